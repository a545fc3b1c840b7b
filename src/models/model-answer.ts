// Checks the answer of a model: a host may write its own model in JavaScript. An answer that is neither a reply nor a
// failure becomes a failure.
import type { CallContext, Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import { failure, isObjectOrList } from './http/failures.ts'

/** Never throws: a model that throws has failed, and another model may succeed. */
export async function askModel(model: Model, request: Request, context: CallContext): Promise<Reply | ModelFailure> {
  try {
    return readAnswer(await model.call(request, context))
  } catch (error) {
    const text = error instanceof Error && error.message ? error.message : 'the model threw something'
    return { ...failure('other', text), elsewhere: true }
  }
}

/** Returns the answer itself if it is valid. */
export function readAnswer(said: Reply | ModelFailure): Reply | ModelFailure {
  if (isFailure(said)) return said
  if (!isReply(said)) return unreadableAnswer('the model answered something that is no reply')
  const { cost } = said as { readonly cost?: unknown }
  if (cost === undefined || typeof cost === 'number') return said
  const given = cost === null ? 'null' : `a ${typeof cost}`
  return unreadableAnswer(
    `the model answered with a cost that is ${given}: give a number of millionths of a dollar, or none`,
  )
}

function unreadableAnswer(message: string): ModelFailure {
  return { ...failure('other', message), broken: true, elsewhere: true }
}

function isFailure(said: unknown): boolean {
  return isObjectOrList(said) && said['type'] === 'failure' && typeof said['message'] === 'string'
}

function isReply(said: unknown): boolean {
  if (!isObjectOrList(said) || said['type'] !== 'reply') return false
  const { parts, calls } = said
  return Array.isArray(parts) && parts.every(isPart) && Array.isArray(calls) && calls.every(isCall)
}

function isPart(part: unknown): boolean {
  if (!isObjectOrList(part) || typeof part['type'] !== 'string') return false
  return (part['type'] !== 'text' && part['type'] !== 'reasoning') || typeof part['text'] === 'string'
}

function isCall(call: unknown): boolean {
  return isObjectOrList(call) && typeof call['tool'] === 'string' && typeof call['args'] === 'string'
}
