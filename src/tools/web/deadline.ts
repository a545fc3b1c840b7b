// One deadline for all that a tool does on the web. What it does there is not known here.
import { ToolFailure } from '../core/output.ts'
import type { ToolContext } from '../core/tool.ts'

/** The deadline covers everything, from the look-up of the name to the last paragraph. Nothing is left waiting after it. */
export async function withDeadline<T>(
  ms: number,
  context: ToolContext,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const late = new ToolFailure('Timeout', `Nothing came in time: it was given up after ${ms} ms.`)
  const stop = (): void => ending.abort(new ToolFailure('Interrupted', 'The fetch was stopped.'))
  const cancel = context.clock.timer(ms, () => ending.abort(late))
  if (context.signal.aborted) stop()
  context.signal.addEventListener('abort', stop, { once: true })
  try {
    return await work(ending.signal)
  } catch (error) {
    // Once it is over, whatever else broke broke because of that.
    throw ending.signal.aborted ? (ending.signal.reason as Error) : error
  } finally {
    cancel()
    context.signal.removeEventListener('abort', stop)
  }
}
