// What a stream of chunks came to: a Reply if the host said that it was done and nothing was wrong, else a failure.
import type { Json, Mutable, Part } from '../../../kernel/content.ts'
import type { ModelFailure, Reply } from '../../../kernel/ports.ts'
import { failure, failureOf } from '../../http/failures.ts'
import type { Opaque } from '../protocol.ts'
import { isWhole } from './calls.ts'
import { isSigned } from './details.ts'
import type { ChatState } from './state.ts'
import { type JsonObject, isObject, stringOf } from '../../../view/json.ts'

export function resultOf(state: ChatState): Reply | ModelFailure {
  const { failed, broken, stopped, done, usage, cost } = state
  if (failed !== null) return withPartial(failed, state)
  if (broken) return withPartial(failure('network', 'The stream was damaged: an event could not be read.'), state)
  // Nobody said that the arguments are all there.
  const cut = stopped === null && state.calls.some(({ args }) => args !== '' && !isWhole(args))
  if ((stopped === null && !done) || cut) {
    return withPartial(failure('network', 'The stream ended before the reply was complete.'), state)
  }
  if (stopped !== null && weightOf(stopped) === FAILED) {
    return withPartial(failure('server', `The provider stopped early: ${stopped}.`), state)
  }
  const finish = finishOf(state)
  // What was asked for before a refusal is not asked for any more.
  const calls = finish === 'refusal' ? [] : state.calls
  const asked = calls.map(({ id, tool, args }) => ({ id, tool, args }))
  const reply: Mutable<Reply> = { type: 'reply', parts: partsOf(state, calls), calls: asked, finish, usage }
  if (cost !== undefined) reply.cost = cost
  return reply
}

const [FAILED, REFUSED, LENGTH, FINE] = [3, 2, 1, 0]
const WEIGHTS: Readonly<Record<string, number>> = {
  error: FAILED,
  // DeepSeek's and vLLM's words for an answer that was given up.
  insufficient_system_resource: FAILED,
  abort: FAILED,
  length: LENGTH,
  // Mistral's word for the end of its context.
  model_length: LENGTH,
  max_tokens: LENGTH,
}

/** How much a reason to stop says. Gemini adds its own words after a colon. */
export function weightOf(reason: string): number {
  if (reason.startsWith('content_filter')) return REFUSED
  return Object.hasOwn(WEIGHTS, reason) ? (WEIGHTS[reason] ?? FINE) : FINE
}

function finishOf({ stopped, refused, calls }: ChatState): Reply['finish'] {
  const weight = stopped === null ? FINE : weightOf(stopped)
  if (refused || weight === REFUSED) return 'refusal'
  if (weight === LENGTH) return 'length'
  return calls.length > 0 ? 'calls' : 'stop'
}

function partsOf(state: ChatState, calls: ChatState['calls']): readonly Part[] {
  const { text, textPart, reasoning, reasoningPart, reasoningAt, details } = state
  const parts: Part[] = []
  if (textPart >= 0) parts.push({ type: 'text', text })
  const signed = isSigned(details)
  if (reasoningPart >= 0 && (signed || reasoning !== '')) {
    const data = signed ? { reasoning_details: details as readonly Json[] } : null
    const thought: Part = data
      ? { type: 'reasoning', text: reasoning, opaque: opaqueOf(state, reasoningAt, data) }
      : { type: 'reasoning', text: reasoning }
    if (textPart >= 0 && textPart < reasoningPart) parts.push(thought)
    else parts.unshift(thought)
  }
  calls.forEach(({ extra }, at) => {
    if (extra === undefined) return
    parts.push({ type: 'reasoning', text: '', opaque: opaqueOf(state, at, { extra_content: extra }) })
  })
  return parts
}

function opaqueOf({ by, model }: ChatState, at: number, data: Json): Opaque {
  return { by, model, at, data }
}

/** A call that began is output too: then the partial text is there, and empty. */
function withPartial(failed: ModelFailure, { text, calls }: ChatState): ModelFailure {
  return text === '' && calls.length === 0 ? failed : { ...failed, partial: text }
}

/** An error inside a stream that began well: as an object, as a sentence, or as the chunk itself. */
export function troubleOf(chunk: JsonObject, event: string): ModelFailure | null {
  const { error } = chunk
  if (isObject(error)) return troubled(error)
  if (typeof error === 'string' && error !== '') return failure('server', error)
  return event === 'error' || chunk['object'] === 'error' ? troubled(chunk) : null
}

function troubled(error: JsonObject): ModelFailure {
  const { metadata } = error
  const number = Number(error['code'] ?? error['status_code'])
  const status = Number.isInteger(number) && number >= 400 && number < 600 ? { status: number } : {}
  const word = [isObject(metadata) ? metadata['error_type'] : null, error['code'], error['type']].find(
    (value): value is string => typeof value === 'string' && value !== '' && Number.isNaN(Number(value)),
  )
  const message = stringOf(error['message']) || 'The provider reported an error without a message.'
  const failed = failureOf({ ...status, ...(word === undefined ? {} : { code: word }), message })
  // It had begun to answer, so what it cannot name is its own trouble.
  return failed.class === 'other' ? failure('server', failed.message) : failed
}
