// Why a graph cannot go on: a run ends with it and the session stays. Not a Fault of the caller, and not a failure a model reads.

/** `tasks` are the places in the superstep whose nodes must run again: what they said cannot be used. */
export class GraphError extends Error {
  readonly tasks: readonly number[]
  constructor(message: string, tasks: readonly number[] = []) {
    super(message)
    this.name = 'Misstep'
    this.tasks = tasks
  }
}

/** Never empty: an error without a message is named by its class. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return `${error.name || 'Error'}: ${error.message || 'no message'}`
  return typeof error === 'string' && error !== '' ? error : 'something that is no Error was thrown'
}
