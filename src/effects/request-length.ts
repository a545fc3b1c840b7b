// How many tokens a request has: estimated where no provider has counted it, and where what a provider counted cannot be its length.
// Some count all rounds that they made for one reply. That is right for the money, and says nothing about the next request.
import type { Usage } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Reply, Request } from '../ports/model.ts'
import { estimateMessage, estimateTokens, mostTokens, mostTokensOf } from '../context/estimate.ts'
import { type Fill, lengthIn } from '../context/window.ts'
import { charsIn } from '../riders/money/usage-estimate.ts'
import { CHARS_A_TOKEN, sizeOf } from '../view/history.ts'

/** A provider may add up to this many tokens of its own to a request, for its instructions and the tools that it runs. */
const ADDED_TOKENS = 10_000
/** A length of up to so many times what the log makes of it is believed. Before anything is cut, `doubtSum` looks at it again. */
const EXPECTED_TIMES = 2

/** `charsPerToken`: as the provider counted last. Without end where it is not known. */
export function estimateRequest(request: Request, messages: readonly Message[], charsPerToken: number): number {
  const { chars, text } = prefixOf(request)
  const prefix = estimateTokens(chars, text, charsPerToken)
  return messages.reduce((sum, message) => sum + estimateMessage(message, charsPerToken), prefix)
}

/** The reply with how long its request was, where its input is a sum or cannot be the length. */
export function withLength(answer: Reply, request: Request, fill: Fill | null): Reply {
  const { usage } = answer
  if (!usage) return answer
  const told = lengthIn(usage)
  const rounds = usage.contextTokens === undefined ? countRounds(answer, usage) : 1
  // About as long as was expected: then nothing is counted, which a long conversation would pay for in every turn.
  if (rounds === 1 && (told <= EXPECTED_TIMES * (fill?.asked ?? 0) || isPossible(told, request))) return answer
  const charsPerToken = fill?.charsPerToken ?? Number.POSITIVE_INFINITY
  const asked = Math.max(fill?.asked ?? 0, estimateRequest(request, request.messages, charsPerToken))
  // What the provider did itself is read again with every request.
  const made = sizeOf(answer.parts.filter(({ type }) => type === 'provider')) / CHARS_A_TOKEN
  // The last round is not shorter than the others.
  const least = rounds > 1 && isPossible(told / rounds, request) ? told / rounds : 0
  const contextTokens = Math.min(told, Math.ceil(Math.max(asked + made, least)))
  return contextTokens === told ? answer : { ...answer, usage: { ...usage, contextTokens } }
}

/** What an earlier version recorded may be a sum: then the length is estimated from the request. */
export function doubtSum(fill: Fill, request: Request): void {
  if (!fill.counted || isPossible(fill.tokens, request)) return
  fill.doubt(estimateRequest(request, request.messages, Number.POSITIVE_INFINITY))
}

/** How often the provider may have asked its model for this reply, and counted each time: it searched, or ran tools. */
function countRounds({ parts }: Reply, { webSearches = 0 }: Usage): number {
  return 1 + Math.max(webSearches, parts.filter(({ type }) => type === 'provider').length)
}

/** Whether a request can have so many tokens. */
function isPossible(tokens: number, request: Request): boolean {
  // Nearly all have fewer tokens than characters: then nothing more is looked at.
  if (tokens <= ADDED_TOKENS || tokens <= charsIn(request)) return true
  if (request.messages.some(hasRemotePart)) return true
  const { chars, text } = prefixOf(request)
  const most = ADDED_TOKENS + mostTokens(chars, text)
  return tokens <= request.messages.reduce((sum, message) => sum + mostTokensOf(message), most)
}

/** A file that the provider reads itself may be of any length. */
function hasRemotePart({ parts = [] }: Message): boolean {
  return parts.some(({ type }) => type === 'url' || type === 'file_id')
}

/** What every request begins with. */
function prefixOf(request: Request): { readonly chars: number; readonly text: string } {
  const text = request.instructions + JSON.stringify(request.tools)
  return { chars: charsIn({ ...request, messages: [] }), text }
}
