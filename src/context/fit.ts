// Shortens the newest texts of a request into a window: results and messages since the last reply, which no clearing and no summary takes
// away. It only decides how much each may show; the transcript shows it, and the log keeps everything.
import { fitMessage, FITTED_CHARS_MIN } from '../kernel/transcript.ts'
import type { Message } from '../kernel/transcript.ts'
import { sizeOfMessage } from '../view/history.ts'
import { estimateMessage } from './estimate.ts'
import { BATCH_SHARE, type Compacted, type Fill } from './window.ts'

/** How full the context is, and how many characters of the request a token has at most. */
export type Sized = { readonly fill: Fill; readonly charsPerToken: number }

/** What the model is shown for the first time: all after the last reply, without what is pinned. */
export function newestBatch(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(last + 1).filter((message) => !(message.role === 'user' && message.pin === true))
}

/** Null: the batch is small enough. */
export function fitBatch(messages: readonly Message[], sized: Sized, windowTokens: number): Compacted | null {
  return fitInto(newestBatch(messages), sized, windowTokens * BATCH_SHARE)
}

/** The same with the room that everything else leaves below `tokens`. */
export function fitRest(messages: readonly Message[], sized: Sized, tokens: number): Compacted | null {
  const batch = newestBatch(messages)
  return fitInto(batch, sized, tokens - (sized.fill.tokens - tokensIn(batch, sized)))
}

function fitInto(batch: readonly Message[], sized: Sized, tokens: number): Compacted | null {
  const { fill } = sized
  const before = tokensIn(batch, sized)
  if (before <= tokens) return null
  const sizes = batch.map(sizeOfMessage)
  const charsPerToken = sizes.reduce((sum, size) => sum + size, 0) / before
  const share = shareOf(sizes, Math.max(0, tokens * charsPerToken))
  const fitted = share < FITTED_CHARS_MIN ? 0 : Math.floor(share)
  // Not all that is large can be made shorter: pictures cannot, and what saves nothing would be asked for again without end.
  const saved = batch.reduce((sum, message, i) => {
    return sum + Math.max(0, (sizes[i] ?? 0) - sizeOfMessage(fitMessage(message, fitted)))
  }, 0)
  if (saved === 0) return null
  const after = Math.max(0, fill.tokens - Math.floor(saved / charsPerToken))
  return { type: 'context.compacted', fitted, before: fill.tokens, after }
}

/** How much each may take at most, so that all together take no more than `room`: small ones stay whole, larger ones share the rest. */
function shareOf(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((a, b) => a - b)
  let left = room
  for (const [i, size] of sorted.entries()) {
    const share = left / (sorted.length - i)
    if (size > share) return share
    left -= size
  }
  return Number.POSITIVE_INFINITY
}

function tokensIn(messages: readonly Message[], { charsPerToken }: Sized): number {
  return messages.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), 0)
}
