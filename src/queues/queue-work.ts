// One try of one item: its time limit, and what becomes of the item when the try failed.
import type { CompleteStore } from '../ports/store.ts'
import type { ToolContext } from '../tools/core/tool-context.ts'
import { thrownText } from '../view/shown-text.ts'
import { type QueueOptions, QUEUE_WIDTH, type WorkArgs, type WorkContext } from './queue-agent.ts'
import { encodeTryResult, type TryResult } from './item-queue.ts'

/** The waits before the second try and the tries after it. */
const WAITS_MS = [1_000, 10_000, 60_000, 600_000] as const

/** After so many processes ended during one try, the item is given up: the next process would end too. */
const BEGUN_MAX = 5

/** The content of the call's result. A failed try is a result like any other: the queue decides what follows. */
export async function workOnItem(options: QueueOptions, args: WorkArgs, context: ToolContext): Promise<string> {
  const { attempts, store, failed, deadLetters } = options
  const { key, tries, reason = '' } = args
  const now = (): number => (context.now ? context.now() : context.clock.now())
  const dead = (why: string): TryResult => ({ type: 'dead', reason: why, at: now() })
  const again = (why: string, waitMs: number): TryResult => {
    const at = now()
    return { type: 'again', reason: why, due: at + waitMs, at }
  }
  const tryOnce = async (): Promise<TryResult> => {
    if (tries >= attempts) return dead(reason)
    const begun = await countBegun(store, context)
    if (begun > BEGUN_MAX) return dead(`The process ended ${begun - 1} times during the work on it.`)
    const why = await whyFailed(options, args, context, args.repeated === true || begun > 1)
    if (why === null) return { type: 'done' }
    const waitMs = WAITS_MS[Math.min(tries, WAITS_MS.length - 1)] ?? 0
    return tries + 1 >= attempts ? dead(why) : again(why, waitMs)
  }
  const result = await tryOnce()
  if (!deadLetters) return encodeTryResult(result.type === 'dead' ? { type: 'done' } : result)
  if (result.type !== 'done') failed(context.session, key, { ...result, tries: Math.min(tries + 1, attempts) })
  return encodeTryResult(result)
}

/** Null: the work is done. Work that does not end in time is left alone; its signal was aborted. */
async function whyFailed(
  { work, timeoutMs }: QueueOptions,
  { key, data }: WorkArgs,
  context: ToolContext,
  repeated: boolean,
): Promise<string | null> {
  const over = new AbortController()
  // Work that was stopped has the harness's grace to end by itself.
  const stop = (): void => over.abort(context.signal.reason)
  if (context.signal.aborted) stop()
  context.signal.addEventListener('abort', stop, { once: true })
  let cancel = (): void => {}
  const late = new Promise<never>((_, reject) => {
    cancel = context.clock.timer(timeoutMs, () => {
      const error = new Error(`It took longer than ${timeoutMs} ms.`)
      over.abort(error)
      reject(error)
    })
  })
  const { clock } = context
  const given: WorkContext = {
    signal: over.signal,
    clock,
    repeated,
    // Read only by work that asks a model: from then on the call counts what was spent.
    get askModel() {
      return context.askModel
    },
  }
  try {
    await Promise.race([work({ key, data }, given), late])
    return null
  } catch (error) {
    // The harness stopped the call, so it says nothing about the work.
    if (context.signal.aborted) throw error
    return context.redact(thrownText(error))
  } finally {
    cancel()
    context.signal.removeEventListener('abort', stop)
  }
}

/**
 * How often this call began. Each process that began it wrote an intent first, so work that ends its process is found
 * out.
 */
async function countBegun(store: CompleteStore, { session, call }: ToolContext): Promise<number> {
  const { events } = await store.read(session, Number.parseInt(call, 10), INTENTS_MAX)
  return events.filter((event) => event.type === 'agent.tool_use' && event.call === call).length
}
const INTENTS_MAX = 8 * QUEUE_WIDTH
