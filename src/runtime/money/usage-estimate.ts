// Estimated usage of a model call where the provider does not report it, from the characters that were sent and
// received. It holds nothing and moves no money.
import type { Usage } from '../../kernel/content.ts'
import type { Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { isPriced } from '../../models/http/hosted-model.ts'
import { UNKNOWN_PROFILE } from '../../models/price.ts'
import { sizeOfParts, sizeOfMessage } from '../../view/session-history.ts'
import { CHARS_PER_TOKEN_MIN } from './spending-limits.ts'

/** The same fields as in events. */
export type CallSpending = { readonly usage?: Usage; readonly cost?: number; readonly assumed?: true }

/** No reply has this many tokens. */
const TOKENS_MAX = 1e8

/** Impossible usage is dropped: whatever it leads to would be logged and counted. */
export function dropUnsoundUsage<Answer extends Reply | ModelFailure>(answer: Answer): Answer {
  if (answer.type !== 'reply' || !answer.usage || isSoundUsage(answer.usage)) return answer
  return { ...answer, usage: null }
}

function isSoundUsage(usage: Usage): boolean {
  const { inputTokens, outputTokens, ...details } = usage
  const isCount = (tokens: number): boolean => tokens >= 0 && tokens <= TOKENS_MAX
  return (
    isCount(inputTokens) && isCount(outputTokens) && Object.values(details).every((n) => n === undefined || isCount(n))
  )
}

/**
 * The reply with its cost, by the model's prices. Reported usage without a cost is priced. Without usage the cost is estimated, if
 * the model has a price.
 */
export async function priceReply(model: Model, request: Request, reply: Reply): Promise<Reply> {
  const { usage, parts, calls } = reply
  if (usage) return { ...reply, cost: (isPriced(model) ? await model.profile() : UNKNOWN_PROFILE).cost(usage) }
  if (!isPriced(model)) return reply
  const said = calls.reduce((sum, { tool, args }) => sum + tool.length + args.length, sizeOfParts(parts))
  return { ...reply, ...(await estimateSpending(model, request, said)) }
}

/** Estimated usage from the number of characters received. Without a price it only says that the usage is unknown. */
export async function estimateSpending(model: Model, request: Request, saidChars: number): Promise<CallSpending> {
  if (!isPriced(model)) return { assumed: true }
  const inputTokens = Math.ceil(countRequestChars(request) / CHARS_PER_TOKEN_MIN)
  const usage = { inputTokens, outputTokens: Math.ceil(saidChars / CHARS_PER_TOKEN_MIN) }
  return { assumed: true, usage, cost: (await model.profile()).cost(usage) }
}

/** All characters that a request carries. */
export function countRequestChars({ instructions, tools, output, messages }: Request): number {
  const schemas = [...tools, ...(output ? [output.schema] : [])]
  const told = schemas.reduce<number>((sum, each) => sum + JSON.stringify(each).length, instructions.length)
  return messages.reduce((sum, message) => sum + sizeOfMessage(message), told)
}
