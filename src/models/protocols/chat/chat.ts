// The Chat Completions protocol of OpenAI and of many other hosts, and the reader of its stream: chunks in, deltas out.
// Requests are written in encode.ts; the state and the reply made of it are in reply.ts. Host differences are data (quirks). No I/O.
import type { Protocol, Target, WireEvent } from '../protocol.ts'
import { encode } from './encode.ts'
import {
  resultOf,
  begin,
  type ChatState,
  DETAILS_MAX,
  detailsIn,
  detailText,
  withDetail,
  troubleOf,
  weightOf,
  draftOf,
  costOf,
  usageIn,
  usageOf,
  type CallState,
  isWhole,
  type Alike,
  type Aside,
} from './reply.ts'
import type { Json, Mutable } from '../../../kernel/content.ts'
import type { Delta, ModelFailure, Reply } from '../../../ports/model.ts'
import { readInline } from '../inline-thoughts.ts'
import { madeAt } from '../media.ts'
import { failure } from '../../http/failures.ts'
import { type JsonObject, isObject, listOf, stringOf, parsed } from '../../../view/json.ts'

export const chat: Protocol<ChatState> = { name: 'chat', encode, begin, step, over, finish, whole }

function finish(state: ChatState): Reply | ModelFailure {
  return resultOf(withAside(state))
}

function over({ done, failed }: ChatState): boolean {
  return done || failed !== null
}

// A step never changes the state it was given, so a stream can be continued from any prefix.

type Draft = Mutable<ChatState>
type Step = readonly [ChatState, readonly Delta[]]

const NOTHING: readonly Delta[] = []

function step(state: ChatState, wire: WireEvent): Step {
  if (state.done || state.failed !== null || wire.data === '') return [state, NOTHING]
  const text = state.alike === null || wire.event !== '' ? null : textIn(wire.data, state.alike)
  return text === null ? stepWhole(state, wire) : said(state, text)
}

function stepWhole(state: ChatState, { event, data }: WireEvent): Step {
  // Checked before parsing: it ends every stream, and a parse error costs three times as much.
  if (data.trim() === '[DONE]') return [{ ...state, done: true }, NOTHING]
  const chunk = parsed(data)
  if (chunk === undefined) return [{ ...state, broken: true }, NOTHING]
  if (!isObject(chunk)) return [state, NOTHING]
  const draft = draftOf(state)
  const deltas: Delta[] = []
  const choice = choiceIn(state, chunk['choices'])
  if (choice !== null) take(draft, choice, deltas)
  if (choice !== null) draft.chosen ??= 0
  if (draft.chosen === null) setAside(draft, chunk['choices'], deltas)
  cite(draft, citedIn(chunk, choice))
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

/** More than any answer cites. */
const CITED_MAX = 256

/** Some hosts repeat their list in every chunk. */
function cite(draft: Draft, cited: readonly Json[]): void {
  if (cited.length === 0) return
  const known = new Set(draft.cited.map(addressOf))
  const fresh = cited.filter((each) => !known.has(addressOf(each)))
  if (fresh.length > 0 && known.size < CITED_MAX) draft.cited = [...draft.cited, ...fresh].slice(0, CITED_MAX)
}

function addressOf(cited: Json): Json {
  return isObject(cited) ? (cited['url'] ?? null) : cited
}

/** Annotations (OpenAI, OpenRouter), or lists of what was searched (Perplexity, xAI). The titles come with `search_results`. */
function citedIn(chunk: JsonObject, choice: JsonObject | null): readonly Json[] {
  const said = choice?.['delta'] ?? choice?.['message']
  const annotations = isObject(said) ? said['annotations'] : undefined
  const { search_results: results, citations } = chunk
  if (annotations === undefined && results === undefined && citations === undefined) return []
  const cited = listOf(annotations).map((one) => (isObject(one) ? (one['url_citation'] ?? null) : null))
  return [...cited, ...listOf(results), ...listOf(citations)]
}

/** After a chunk that only added text, the next one may have the same surroundings. */
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

/** The message of an unstreamed answer has the same fields as a delta. */
function whole(body: string, target: Target): Reply | ModelFailure {
  const [streamed] = step(begin(target), { event: '', data: body })
  const state = withAside(streamed)
  if (state.broken || state.done) return failure('network', 'The answer was damaged: it is not JSON.')
  return resultOf({
    ...state,
    done: state.stopped === null && (state.textPart >= 0 || state.calls.length > 0 || state.images.length > 0),
  })
}

/** The choice that is read: that with the index 0, for requests never ask for more, unless another one was chosen. */
function choiceIn({ chosen }: ChatState, choices: unknown): JsonObject | null {
  const index = chosen ?? 0
  return (
    listOf(choices as Json).find(
      (choice): choice is JsonObject => isObject(choice) && (choice['index'] ?? 0) === index,
    ) ?? null
  )
}

/**
 * Some hosts give their only choice another index. It is read from its second chunk on, or when the answer ends, unless a choice with the
 * index 0 came before.
 */
function setAside(draft: Draft, choices: unknown, deltas: Delta[]): void {
  const choice = listOf(choices as Json).find(isObject)
  const index = draft.aside?.choice['index'] ?? choice?.['index']
  if (!choice || choice['index'] !== index) return
  draft.aside = { before: draft.aside, choice }
  if (draft.aside.before !== null) takeAside(draft, draft.aside, deltas)
}

function takeAside(draft: Draft, last: Aside, deltas: Delta[]): void {
  if (last.before !== null) takeAside(draft, last.before, deltas)
  take(draft, last.choice, deltas)
  cite(draft, citedIn({}, last.choice))
  draft.chosen = last.choice['index'] ?? 0
  draft.aside = null
}

/** A sole choice that came whole in one chunk. */
function withAside(state: ChatState): ChatState {
  const { aside, chosen } = state
  if (aside === null || chosen !== null) return state
  // The choice with the index 0 may have been cut off.
  if (!state.done && typeof aside.choice['finish_reason'] !== 'string') return state
  const draft = draftOf(state)
  takeAside(draft, aside, [])
  return draft
}

function take(draft: Draft, choice: JsonObject, deltas: Delta[]): void {
  const delta = choice['delta'] ?? choice['message']
  if (isObject(delta)) takeDelta(draft, delta, deltas)
  const reason = choice['finish_reason']
  if (typeof reason !== 'string' || reason === '') return
  // Some hosts send two different reasons: keep the worse one.
  if (draft.stopped === null || weightOf(reason) > weightOf(draft.stopped)) draft.stopped = reason
}

function takeDelta(draft: Draft, delta: JsonObject, deltas: Delta[]): void {
  const { content, refusal, tool_calls: calls, function_call: old } = delta
  const thought = takeDetails(draft, delta) || stringOf(delta['reasoning_content']) || stringOf(delta['reasoning'])
  if (thought !== '') think(draft, thought, deltas)
  if (typeof content === 'string') takeContent(draft, content, deltas)
  else if (Array.isArray(content)) takeParts(draft, content, deltas)
  if (typeof refusal === 'string' && refusal !== '') {
    draft.refused = true
    say(draft, refusal, deltas)
  }
  if (Array.isArray(delta['images'])) takeImages(draft, delta['images'])
  if (Array.isArray(calls)) {
    for (const entry of calls as readonly unknown[]) {
      const piece = pieceOf(entry)
      if (piece !== null) takeCall(draft, piece, deltas)
    }
  }
  if (isObject(old)) takeCall(draft, oldPieceOf(old), deltas)
}

/** A server that does not part thoughts from the text leaves them at its begin, between tags. */
function takeContent(draft: Draft, content: string, deltas: Delta[]): void {
  const { inline, thought, text } = readInline(draft.inline, content)
  if (draft.inline !== inline) draft.inline = inline
  if (thought !== '') think(draft, thought, deltas)
  say(draft, text, deltas)
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

/** More than any reply has. */
const IMAGES_MAX = 64

/** https://openrouter.ai/docs/guides/overview/multimodal/image-generation: each picture comes whole. */
function takeImages(draft: Draft, images: readonly unknown[]): void {
  for (const image of images) {
    const address = isObject(image) && isObject(image['image_url']) ? stringOf(image['image_url']['url']) : ''
    const made = madeAt(address)
    if (made === null) continue
    draft.images = [...draft.images, made]
    draft.begun += 1
  }
  if (draft.images.length > IMAGES_MAX) draft.broken = true
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

/** The readable text of the details. `reasoning` repeats it and is then ignored. */
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
  const proposed = { tool: call.tool, index: known ? at : draft.calls.length - 1 }
  if (piece.args !== '') deltas.push({ kind: 'arguments', part: call.part, text: piece.args, proposed })
}

// Joining the pieces of a call. Hosts differ: the index may be missing or always 0, the id may be repeated, missing or new,
// and a call may come whole. `ownerOf` holds the rules.

type Piece = Omit<CallState, 'part'>

/** More than any provider allows: a longer stream is damaged. */
const CALLS_MAX = 256

function pieceOf(entry: unknown): Piece | null {
  if (!isObject(entry) || !isObject(entry['function'])) return null
  const { index, extra_content: extra, function: called } = entry
  const id = stringOf(entry['id'])
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) ? index : null,
    // Mistral sends the string "null" for no id.
    id: id === 'null' ? '' : id,
    tool: stringOf(called['name']),
    args: argsOf(called['arguments']),
    extra: extra ?? undefined,
  }
}

/** The old form, `function_call`: one call, without an index or an id. */
function oldPieceOf(call: JsonObject): Piece {
  return { index: -1, id: '', tool: stringOf(call['name']), args: argsOf(call['arguments']), extra: undefined }
}

/** The index of the call that this piece belongs to; -1 if the piece begins a new call. */
function ownerOf(calls: readonly CallState[], piece: Piece): number {
  const { index, id, tool } = piece
  if (index === null && id === '' && tool === '') return calls.length - 1
  const at = calls.findLastIndex((call) => (index === null ? id !== '' && call.id === id : call.index === index))
  const call = calls[at]
  if (call === undefined || tool === '') return at
  // Several calls under one index: a new id with a name, or a name again after arguments that were whole.
  const other = id === '' ? piece.args !== '' && isWhole(call.args) : call.id !== '' && call.id !== id
  return other ? -1 : at
}

function joined(call: CallState, piece: Piece): CallState {
  return {
    index: call.index,
    id: call.id || piece.id,
    tool: call.tool || piece.tool,
    args: call.args + piece.args,
    part: call.part,
    extra: piece.extra ?? call.extra,
  }
}

/** Some hosts send the arguments as the object itself. */
function argsOf(value: unknown): string {
  return isObject(value) ? JSON.stringify(value) : stringOf(value)
}

// Most chunks of a long reply differ only in their text. Reading just the text costs a third of parsing the whole chunk, so
// these functions find where the text of the next chunk stands.

/** Null if the position of the text is not certain. */
export function alikeOf(data: string, text: string): Alike | null {
  const literal = JSON.stringify(text)
  const at = data.indexOf(literal, data.indexOf('"content"') + '"content"'.length)
  if (at < 0) return null
  const alike = { before: data.slice(0, at), after: data.slice(at + literal.length) }
  return contentIn(`${alike.before}"${PROBE}"${alike.after}`) === PROBE ? alike : null
}

/** Put in place of the text: if it is then parsed as the content, the position is right. */
const PROBE = 'terret-probe'

function contentIn(data: string): unknown {
  try {
    const { choices } = JSON.parse(data) as { readonly choices: readonly { readonly delta: unknown }[] }
    const delta = choices[0]?.delta
    return isObject(delta) ? delta['content'] : null
  } catch {
    return null
  }
}

const QUOTE = 0x22

/** The text of a chunk with the same surroundings; null if the chunk must be parsed whole. */
export function textIn(data: string, { before, after }: Alike): string | null {
  const end = data.length - after.length
  // By slices: once it is compiled, startsWith compares character by character.
  if (data.slice(0, before.length) !== before || data.slice(end) !== after) return null
  const literal = data.slice(before.length, end)
  if (literal.charCodeAt(0) !== QUOTE) return null
  try {
    // JSON.parse fails if it is more than one string.
    return JSON.parse(literal) as string
  } catch {
    return null
  }
}
