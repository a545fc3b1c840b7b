// The error that stops a graph: the run ends with it, and the session stays. It is not a Fault of the caller, and not a
// failure that a model reads.

/** `tasks` are the positions in the superstep of the nodes that must run again, because their output cannot be used. */
export class GraphError extends Error {
  readonly tasks: readonly number[]
  constructor(message: string, tasks: readonly number[] = []) {
    super(message)
    this.name = 'Misstep'
    this.tasks = tasks
  }
}

/** Never empty: an error without a message is described by its class. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return `${error.name || 'Error'}: ${error.message || 'no message'}`
  return typeof error === 'string' && error !== '' ? error : 'something that is no Error was thrown'
}
