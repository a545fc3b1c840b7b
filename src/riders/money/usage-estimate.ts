// What a model call used where the provider does not report it: an estimate from the characters that were sent and that came back. It holds nothing
// and moves no money.
import type { Usage } from '../../kernel/content.ts'
import type { Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { isPriced } from '../../models/http/hosted.ts'
import { UNKNOWN } from '../../models/price.ts'
import { sizeOf, sizeOfMessage } from '../../view/history.ts'
import { CHARS_A_TOKEN } from './spending-limits.ts'

/** As events have it. */
export type Spent = { readonly usage?: Usage; readonly cost?: number; readonly assumed?: true }

/** No reply has as many tokens. */
const TOKENS_MAX = 1e8

/** Usage that cannot be is none at all: what comes of it would be logged and counted. */
export function soundly<Answer extends Reply | ModelFailure>(answer: Answer): Answer {
  if (answer.type !== 'reply' || !answer.usage || isSound(answer.usage)) return answer
  return { ...answer, usage: null }
}

function isSound(usage: Usage): boolean {
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
export async function costed(model: Model, request: Request, reply: Reply): Promise<Reply> {
  const { usage, parts, calls } = reply
  if (usage) return { ...reply, cost: (isPriced(model) ? await model.profile() : UNKNOWN).cost(usage) }
  if (!isPriced(model)) return reply
  const said = calls.reduce((sum, { tool, args }) => sum + tool.length + args.length, sizeOf(parts))
  return { ...reply, ...(await assumedFor(model, request, said)) }
}

/** Estimated usage from the number of characters received. Without a price only the fact that it is unknown. */
export async function assumedFor(model: Model, request: Request, saidChars: number): Promise<Spent> {
  if (!isPriced(model)) return { assumed: true }
  const inputTokens = Math.ceil(charsIn(request) / CHARS_A_TOKEN)
  const usage = { inputTokens, outputTokens: Math.ceil(saidChars / CHARS_A_TOKEN) }
  return { assumed: true, usage, cost: (await model.profile()).cost(usage) }
}

/** All that a request carries. */
export function charsIn({ instructions, tools, output, messages }: Request): number {
  const schemas = [...tools, ...(output ? [output.schema] : [])]
  const told = schemas.reduce<number>((sum, each) => sum + JSON.stringify(each).length, instructions.length)
  return messages.reduce((sum, message) => sum + sizeOfMessage(message), told)
}
