// One deadline for all that a tool does on the web. It does not know the work itself.
import { ToolFailure } from '../core/tool-output.ts'
import type { ToolContext } from '../core/tool.ts'

/** The deadline covers everything, from the name lookup to the last paragraph. Nothing waits after it. */
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
    // After the end, any other error is only a consequence of it.
    throw ending.signal.aborted ? (ending.signal.reason as Error) : error
  } finally {
    cancel()
    context.signal.removeEventListener('abort', stop)
  }
}
