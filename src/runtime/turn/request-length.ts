// The number of tokens in a request: estimated where no provider has counted it, or where the provider's count cannot
// be its length. Some providers count all rounds that they made for one reply. That is right for the cost, but says
// nothing about the length of the next request.
import type { Usage } from '../../kernel/content.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { Reply, Request } from '../../ports/model.ts'
import { estimateMessage, estimateTokens, maxTokensOf, maxMessageTokens } from '../../context/estimate.ts'
import { type WindowFill, requestLength } from '../../context/window-fill.ts'
import { countRequestChars } from '../money/usage-estimate.ts'
import { CHARS_A_TOKEN, sizeOfParts } from '../../view/session-history.ts'

/** A provider may add up to this many tokens of its own to a request, for its instructions and its own tools. */
const ADDED_TOKENS = 10_000
/**
 * A count of up to this many times the expected length is believed. Before anything is cut, `replaceDoubtfulCount`
 * checks it again.
 */
const EXPECTED_TIMES = 2

/** `charsPerToken`: from the provider's last count, or infinite where it is not known. */
export function estimateRequest(request: Request, messages: readonly Message[], charsPerToken: number): number {
  const { chars, text } = promptPrefix(request)
  const prefix = estimateTokens(chars, text, charsPerToken)
  return messages.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), prefix)
}

/** Adds the length of the request to the reply if the provider's input count is a sum or cannot be the length. */
export function correctRequestLength(answer: Reply, request: Request, fill: WindowFill | null): Reply {
  const { usage } = answer
  if (!usage) return answer
  const told = requestLength(usage)
  const rounds = usage.contextTokens === undefined ? countRounds(answer, usage) : 1
  // The count is near the expected length, so nothing is measured: a long conversation would pay for that in every
  // turn.
  if (rounds === 1 && (told <= EXPECTED_TIMES * (fill?.openRequestTokens ?? 0) || isPossibleLength(told, request)))
    return answer
  const charsPerToken = fill?.charsPerToken ?? Number.POSITIVE_INFINITY
  const asked = Math.max(fill?.openRequestTokens ?? 0, estimateRequest(request, request.messages, charsPerToken))
  // Output of the provider's own tools is read again with every request.
  const made = sizeOfParts(answer.parts.filter(({ type }) => type === 'provider')) / CHARS_A_TOKEN
  // The last round is at least as long as the others.
  const least = rounds > 1 && isPossibleLength(told / rounds, request) ? told / rounds : 0
  const contextTokens = Math.min(told, Math.ceil(Math.max(asked + made, least)))
  return contextTokens === told ? answer : { ...answer, usage: { ...usage, contextTokens } }
}

/** A count recorded by an earlier version may be a sum. The length is then estimated from the request. */
export function replaceDoubtfulCount(fill: WindowFill, request: Request): void {
  if (!fill.counted || isPossibleLength(fill.tokens, request)) return
  fill.discardCount(estimateRequest(request, request.messages, Number.POSITIVE_INFINITY))
}

/**
 * How many times the provider may have asked its model for this reply and counted the input: once, and once for each
 * search or tool run.
 */
function countRounds({ parts }: Reply, { webSearches = 0 }: Usage): number {
  return 1 + Math.max(webSearches, parts.filter(({ type }) => type === 'provider').length)
}

/** Whether a request can have this many tokens. */
function isPossibleLength(tokens: number, request: Request): boolean {
  // Nearly all texts have fewer tokens than characters, so most requests need no closer look.
  if (tokens <= ADDED_TOKENS || tokens <= countRequestChars(request)) return true
  if (request.messages.some(hasRemotePart)) return true
  const { chars, text } = promptPrefix(request)
  const most = ADDED_TOKENS + maxTokensOf(chars, text)
  return tokens <= request.messages.reduce((sum, message) => sum + maxMessageTokens(message), most)
}

/** A file that the provider reads itself may be of any length. */
function hasRemotePart({ parts = [] }: Message): boolean {
  return parts.some(({ type }) => type === 'url' || type === 'file_id')
}

/** The part that every request begins with. */
function promptPrefix(request: Request): { readonly chars: number; readonly text: string } {
  const text = request.instructions + JSON.stringify(request.tools)
  return { chars: countRequestChars({ ...request, messages: [] }), text }
}
