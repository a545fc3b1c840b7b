// What a model gives back, not believed: a host may write its own in JavaScript. What is neither a reply nor a failure is a failure.
import type { CallContext, Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import { failure, isObjectOrList } from './http/failures.ts'

/** Never throws: a throw is a failure like any other, and another model may not have it. */
export async function answerOf(model: Model, request: Request, context: CallContext): Promise<Reply | ModelFailure> {
  try {
    return readAnswer(await model.call(request, context))
  } catch (error) {
    const text = error instanceof Error && error.message ? error.message : 'the model threw something'
    return { ...failure('other', text), elsewhere: true }
  }
}

/** The answer itself, if it is one. */
export function readAnswer(said: Reply | ModelFailure): Reply | ModelFailure {
  if (isFailure(said)) return said
  if (!isReply(said)) return unreadable('the model answered something that is no reply')
  const { cost } = said as { readonly cost?: unknown }
  if (cost === undefined || typeof cost === 'number') return said
  const given = cost === null ? 'null' : `a ${typeof cost}`
  return unreadable(`the model answered with a cost that is ${given}: give a number of millionths of a dollar, or none`)
}

function unreadable(message: string): ModelFailure {
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
