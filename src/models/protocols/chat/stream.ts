// The answer of a Chat Completions host: chunks in, one Reply or failure out. The state of one step is never changed by the
// next, so any prefix of a stream can be gone on from. What hosts disagree on is in chat-calls, chat-details and chat-usage.
import type { Mutable } from '../../../kernel/content.ts'
import type { Delta, ModelFailure, Reply } from '../../../kernel/ports.ts'
import { failure } from '../../http/failures.ts'
import type { Target, WireEvent } from '../protocol.ts'
import { alikeOf, textIn } from './alike.ts'
import { CALLS_MAX, joined, oldPieceOf, ownerOf, type Piece, pieceOf } from './calls.ts'
import { DETAILS_MAX, detailsIn, detailText, withDetail } from './details.ts'
import { resultOf, troubleOf, weightOf } from './reply.ts'
import { begin, type ChatState, draftOf } from './state.ts'
import { costOf, usageIn, usageOf } from './usage.ts'
import { type JsonObject, isObject, listOf, stringOf } from '../../../view/json.ts'

type Draft = Mutable<ChatState>
type Step = readonly [ChatState, readonly Delta[]]

const NOTHING: readonly Delta[] = []

export function step(state: ChatState, wire: WireEvent): Step {
  if (state.done || state.failed !== null || wire.data === '') return [state, NOTHING]
  const text = state.alike === null || wire.event !== '' ? null : textIn(wire.data, state.alike)
  return text === null ? stepWhole(state, wire) : said(state, text)
}

function stepWhole(state: ChatState, { event, data }: WireEvent): Step {
  // Looked for first: it ends every stream, and as an error of the parser it costs three times as much.
  if (data.trim() === '[DONE]') return [{ ...state, done: true }, NOTHING]
  let chunk: unknown
  try {
    chunk = JSON.parse(data)
  } catch {
    return [{ ...state, broken: true }, NOTHING]
  }
  if (!isObject(chunk)) return [state, NOTHING]
  const draft = draftOf(state)
  const deltas: Delta[] = []
  const choice = choiceIn(chunk['choices'])
  if (choice !== null) take(draft, choice, deltas)
  const told = usageIn(chunk, choice)
  if (told !== undefined) {
    draft.usage = usageOf(told)
    draft.cost = costOf(told)
  }
  const trouble = troubleOf(chunk, event)
  if (trouble !== null) draft.failed = trouble
  if (event === '') lookAlike(draft, state, data, deltas)
  return [draft, deltas]
}

/** A chunk that was nothing but another piece of the text: the next one may look the same. */
function lookAlike(draft: Draft, before: ChatState, data: string, deltas: readonly Delta[]): void {
  const [only] = deltas
  if (draft.alikeTries === 0 || deltas.length !== 1 || only?.kind !== 'text') return
  const fields = Object.keys(before) as (keyof ChatState)[]
  if (fields.some((name) => name !== 'text' && draft[name] !== before[name])) return
  draft.alikeTries -= 1
  draft.alike = alikeOf(data, only.text)
}

function said(state: ChatState, text: string): Step {
  if (text === '') return [state, NOTHING]
  const draft = draftOf(state)
  draft.text += text
  return [draft, [{ kind: 'text', part: draft.textPart, text }]]
}

/** The message of a whole answer has the fields of a delta, only complete. */
export function whole(body: string, target: Target): Reply | ModelFailure {
  const [state] = step(begin(target), { event: '', data: body })
  if (state.broken || state.done) return failure('network', 'The answer was damaged: it is not JSON.')
  return resultOf({ ...state, done: state.stopped === null && (state.textPart >= 0 || state.calls.length > 0) })
}

/** Only the first choice: more are never asked for. */
function choiceIn(choices: unknown): JsonObject | null {
  const choice: unknown = Array.isArray(choices) ? choices[0] : null
  return isObject(choice) && (choice['index'] ?? 0) === 0 ? choice : null
}

function take(draft: Draft, choice: JsonObject, deltas: Delta[]): void {
  const delta = choice['delta'] ?? choice['message']
  if (isObject(delta)) takeDelta(draft, delta, deltas)
  const reason = choice['finish_reason']
  if (typeof reason !== 'string' || reason === '') return
  // Some hosts say it twice, and not the same: what went wrong counts.
  if (draft.stopped === null || weightOf(reason) > weightOf(draft.stopped)) draft.stopped = reason
}

function takeDelta(draft: Draft, delta: JsonObject, deltas: Delta[]): void {
  const { content, refusal, tool_calls: calls, function_call: old } = delta
  const thought = takeDetails(draft, delta) || stringOf(delta['reasoning_content']) || stringOf(delta['reasoning'])
  if (thought !== '') think(draft, thought, deltas)
  if (typeof content === 'string') say(draft, content, deltas)
  else if (Array.isArray(content)) takeParts(draft, content, deltas)
  if (typeof refusal === 'string' && refusal !== '') {
    draft.refused = true
    say(draft, refusal, deltas)
  }
  if (Array.isArray(calls)) {
    for (const entry of calls as readonly unknown[]) {
      const piece = pieceOf(entry)
      if (piece !== null) takeCall(draft, piece, deltas)
    }
  }
  if (isObject(old)) takeCall(draft, oldPieceOf(old), deltas)
}

function say(draft: Draft, text: string, deltas: Delta[]): void {
  if (text === '') return
  if (draft.textPart < 0) draft.textPart = draft.begun++
  draft.text += text
  deltas.push({ kind: 'text', part: draft.textPart, text })
}

function think(draft: Draft, text: string, deltas: Delta[]): void {
  startThinking(draft)
  draft.reasoning += text
  deltas.push({ kind: 'reasoning', part: draft.reasoningPart, text })
}

function startThinking(draft: Draft): void {
  if (draft.reasoningPart >= 0) return
  draft.reasoningPart = draft.begun++
  draft.reasoningAt = draft.calls.length
}

/** Mistral's content: texts and thoughts side by side. */
function takeParts(draft: Draft, parts: readonly unknown[], deltas: Delta[]): void {
  for (const part of parts) {
    if (!isObject(part)) continue
    if (part['type'] === 'text') say(draft, stringOf(part['text']), deltas)
    if (part['type'] !== 'thinking') continue
    const thought = listOf(part['thinking']).map((inner) => (isObject(inner) ? stringOf(inner['text']) : ''))
    if (thought.some((text) => text !== '')) think(draft, thought.join(''), deltas)
  }
}

/** What is in them to read. The same text also stands in `reasoning`, which is then not read. */
function takeDetails(draft: Draft, delta: JsonObject): string {
  const given = delta['reasoning_details']
  if (given === undefined || given === null) return ''
  let text = ''
  for (const detail of detailsIn(given)) {
    startThinking(draft)
    draft.details = withDetail(draft.details, detail)
    text += detailText(detail)
  }
  if (draft.details.length > DETAILS_MAX) draft.broken = true
  return text
}

function takeCall(draft: Draft, piece: Piece, deltas: Delta[]): void {
  const at = ownerOf(draft.calls, piece)
  const known = draft.calls[at]
  if (known === undefined && piece.id === '' && piece.tool === '') return
  if (known === undefined && draft.calls.length >= CALLS_MAX) {
    draft.broken = true
    return
  }
  const call = known ? joined(known, piece) : { ...piece, part: draft.begun++ }
  draft.calls = known ? draft.calls.with(at, call) : [...draft.calls, call]
  if (piece.args !== '') deltas.push({ kind: 'arguments', part: call.part, text: piece.args })
}
