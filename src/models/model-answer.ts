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
  const given: unknown = said
  const fields = (typeof given === 'object' && given !== null ? given : {}) as Readonly<Record<string, unknown>>
  const { type, message, parts, calls, cost } = fields
  if (type === 'failure' && typeof message === 'string') return said
  if (type !== 'reply' || !Array.isArray(parts) || !parts.every(isPart) || !areCalls(calls))
    return unreadableAnswer('the model answered something that is no reply')
  if (cost === undefined || typeof cost === 'number') return said
  const what = cost === null ? 'null' : `a ${typeof cost}`
  return unreadableAnswer(
    `the model answered with a cost that is ${what}: give a number of millionths of a dollar, or none`,
  )
}

function unreadableAnswer(message: string): ModelFailure {
  return { ...failure('other', message), broken: true, elsewhere: true }
}

function isPart(part: unknown): boolean {
  if (!isObjectOrList(part) || typeof part['type'] !== 'string') return false
  return (part['type'] !== 'text' && part['type'] !== 'reasoning') || typeof part['text'] === 'string'
}

function areCalls(calls: unknown): boolean {
  if (!Array.isArray(calls)) return false
  for (let i = 0; i < calls.length; i++) {
    const { tool, args } = (calls[i] ?? {}) as { readonly tool?: unknown; readonly args?: unknown }
    if (typeof tool !== 'string' || typeof args !== 'string') return false
  }
  return true
}
