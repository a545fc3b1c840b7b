// Shortens the newest texts of a request to fit the window: results and messages since the last reply, which clearing
// and summaries do not remove. It only decides how much each may show; the transcript shows it, and the log keeps
// everything.
import { fitMessage, FITTED_CHARS_MIN } from '../kernel/transcript.ts'
import type { Message } from '../kernel/transcript.ts'
import { sizeOfMessage } from '../view/session-history.ts'
import { estimateMessage } from './estimate.ts'
import { BATCH_SHARE, type CompactionBody, type WindowFill } from './window-fill.ts'

/** How full the context is, and the most characters per token in the request. */
export type ContextSize = { readonly fill: WindowFill; readonly charsPerToken: number }

/** The messages that the model sees for the first time: all after the last reply, without pinned ones. */
export function newestBatch(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(last + 1).filter((message) => !(message.role === 'user' && message.pin === true))
}

/** Null if the batch is small enough. */
export function fitBatch(
  messages: readonly Message[],
  sized: ContextSize,
  windowTokens: number,
): CompactionBody | null {
  return shortenBatch(newestBatch(messages), sized, windowTokens * BATCH_SHARE)
}

/** The same, but the batch gets the room that all other content leaves below `tokens`. */
export function fitBatchBelow(messages: readonly Message[], sized: ContextSize, tokens: number): CompactionBody | null {
  const batch = newestBatch(messages)
  return shortenBatch(batch, sized, tokens - (sized.fill.tokens - tokensIn(batch, sized)))
}

function shortenBatch(batch: readonly Message[], sized: ContextSize, tokens: number): CompactionBody | null {
  const { fill } = sized
  const before = tokensIn(batch, sized)
  if (before <= tokens) return null
  const sizes = batch.map(sizeOfMessage)
  const charsPerToken = sizes.reduce((sum, size) => sum + size, 0) / before
  const share = largestShare(sizes, Math.max(0, tokens * charsPerToken))
  const fitted = share < FITTED_CHARS_MIN ? 0 : Math.floor(share)
  // Pictures cannot be made shorter, and a compaction that saves nothing would be requested again without end.
  const saved = batch.reduce((sum, message, i) => {
    return sum + Math.max(0, (sizes[i] ?? 0) - sizeOfMessage(fitMessage(message, fitted)))
  }, 0)
  if (saved === 0) return null
  const after = Math.max(0, fill.tokens - Math.floor(saved / charsPerToken))
  return { type: 'context.compacted', fitted, before: fill.tokens, after }
}

/**
 * The most that each may take so that all together take no more than `room`: small ones stay whole, larger ones share
 * the rest.
 */
function largestShare(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((a, b) => a - b)
  let left = room
  for (const [i, size] of sorted.entries()) {
    const share = left / (sorted.length - i)
    if (size > share) return share
    left -= size
  }
  return Number.POSITIVE_INFINITY
}

function tokensIn(messages: readonly Message[], { charsPerToken }: ContextSize): number {
  return messages.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), 0)
}
