// The Chat Completions protocol of OpenAI and of many other hosts, and the reader of its stream: chunks in, deltas out.
// encode-chat.ts writes requests; chat-reply.ts has the state and the reply. Host differences are data (quirks). No
// I/O.
import type { Protocol, ModelTarget, WireEvent } from '../protocol.ts'
import { encodeChat } from './encode-chat.ts'
import {
  chatResult,
  beginChat,
  type ChatState,
  DETAILS_MAX,
  detailsIn,
  detailText,
  addDetail,
  chatFailure,
  stopWeight,
  copyChatState,
  chatCost,
  findChatUsage,
  chatUsage,
  type ChatCall,
  isWholeJson,
  type TextSurroundings,
  type AsideChoice,
} from './chat-reply.ts'
import type { Json, Mutable } from '../../../kernel/content.ts'
import type { Delta, ModelFailure, Reply } from '../../../ports/model.ts'
import { readInline } from '../inline-thoughts.ts'
import { madePicture } from '../media.ts'
import { failure } from '../../http/failures.ts'
import { type JsonObject, isObject, asList, asString, parseJson } from '../../../view/untrusted-json.ts'

export const chatProtocol: Protocol<ChatState> = {
  name: 'chat',
  encode: encodeChat,
  begin: beginChat,
  step,
  over: isOver,
  finish: finishChat,
  whole: readWholeAnswer,
}

function finishChat(state: ChatState): Reply | ModelFailure {
  return chatResult(withChoiceAside(state))
}

function isOver({ done, failed }: ChatState): boolean {
  return done || failed !== null
}

// A step never changes the given state, so a stream can be continued from any prefix.

type ChatDraft = Mutable<ChatState>
type ChatStep = readonly [ChatState, readonly Delta[]]

const NOTHING: readonly Delta[] = []

function step(state: ChatState, wire: WireEvent): ChatStep {
  if (state.done || state.failed !== null || wire.data === '') return [state, NOTHING]
  const text = state.alike === null || wire.event !== '' ? null : textBetween(wire.data, state.alike)
  return text === null ? stepWholeChunk(state, wire) : addPlainText(state, text)
}

function stepWholeChunk(state: ChatState, { event, data }: WireEvent): ChatStep {
  // Checked before parsing: it ends every stream, and a parse error costs three times as much.
  if (data.trim() === '[DONE]') return [{ ...state, done: true }, NOTHING]
  const chunk = parseJson(data)
  if (chunk === undefined) return [{ ...state, broken: true }, NOTHING]
  if (!isObject(chunk)) return [state, NOTHING]
  const draft = copyChatState(state)
  const deltas: Delta[] = []
  const choice = choiceIn(state, chunk['choices'])
  if (choice !== null) takeChoice(draft, choice, deltas)
  if (choice !== null) draft.chosen ??= 0
  if (draft.chosen === null) setChoiceAside(draft, chunk['choices'], deltas)
  addCitations(draft, citationsIn(chunk, choice))
  const told = findChatUsage(chunk, choice)
  if (told !== undefined) {
    draft.usage = chatUsage(told)
    draft.cost = chatCost(told)
  }
  const trouble = chatFailure(chunk, event)
  if (trouble !== null) draft.failed = trouble
  if (event === '') learnSurroundings(draft, state, data, deltas)
  return [draft, deltas]
}

/** No answer cites more sources than this. */
const CITED_MAX = 256

/** Some hosts repeat their list in every chunk. */
function addCitations(draft: ChatDraft, cited: readonly Json[]): void {
  if (cited.length === 0) return
  const known = new Set(draft.cited.map(citationAddress))
  const fresh = cited.filter((each) => !known.has(citationAddress(each)))
  if (fresh.length > 0 && known.size < CITED_MAX) draft.cited = [...draft.cited, ...fresh].slice(0, CITED_MAX)
}

function citationAddress(cited: Json): Json {
  return isObject(cited) ? (cited['url'] ?? null) : cited
}

/** Annotations (OpenAI, OpenRouter), or lists of search results (Perplexity, xAI). `search_results` have the titles. */
function citationsIn(chunk: JsonObject, choice: JsonObject | null): readonly Json[] {
  const said = choice?.['delta'] ?? choice?.['message']
  const annotations = isObject(said) ? said['annotations'] : undefined
  const { search_results: results, citations } = chunk
  if (annotations === undefined && results === undefined && citations === undefined) return []
  const cited = asList(annotations).map((one) => (isObject(one) ? (one['url_citation'] ?? null) : null))
  return [...cited, ...asList(results), ...asList(citations)]
}

/** The next chunk after one that only added text may have the same surroundings. */
function learnSurroundings(draft: ChatDraft, before: ChatState, data: string, deltas: readonly Delta[]): void {
  const [only] = deltas
  if (draft.alikeTries === 0 || deltas.length !== 1 || only?.kind !== 'text') return
  const fields = Object.keys(before) as (keyof ChatState)[]
  if (fields.some((name) => name !== 'text' && draft[name] !== before[name])) return
  draft.alikeTries -= 1
  draft.alike = surroundingsOf(data, only.text)
}

function addPlainText(state: ChatState, text: string): ChatStep {
  if (text === '') return [state, NOTHING]
  const draft = copyChatState(state)
  draft.text += text
  return [draft, [{ kind: 'text', part: draft.textPart, text }]]
}

/** The message of an unstreamed answer has the same fields as a delta. */
function readWholeAnswer(body: string, target: ModelTarget): Reply | ModelFailure {
  const [streamed] = step(beginChat(target), { event: '', data: body })
  const state = withChoiceAside(streamed)
  if (state.broken || state.done) return failure('network', 'The answer was damaged: it is not JSON.')
  return chatResult({
    ...state,
    done: state.stopped === null && (state.textPart >= 0 || state.calls.length > 0 || state.images.length > 0),
  })
}

/** The choice that is read: the one with index 0, since requests never ask for more, unless another one was chosen. */
function choiceIn({ chosen }: ChatState, choices: unknown): JsonObject | null {
  const index = chosen ?? 0
  return (
    asList(choices as Json).find(
      (choice): choice is JsonObject => isObject(choice) && (choice['index'] ?? 0) === index,
    ) ?? null
  )
}

/**
 * Some hosts give their only choice another index. It is read from its second chunk on, or when the answer ends, unless
 * a choice with index 0 came before.
 */
function setChoiceAside(draft: ChatDraft, choices: unknown, deltas: Delta[]): void {
  const choice = asList(choices as Json).find(isObject)
  const index = draft.aside?.choice['index'] ?? choice?.['index']
  if (!choice || choice['index'] !== index) return
  draft.aside = { before: draft.aside, choice }
  if (draft.aside.before !== null) takeChoiceAside(draft, draft.aside, deltas)
}

function takeChoiceAside(draft: ChatDraft, last: AsideChoice, deltas: Delta[]): void {
  if (last.before !== null) takeChoiceAside(draft, last.before, deltas)
  takeChoice(draft, last.choice, deltas)
  addCitations(draft, citationsIn({}, last.choice))
  draft.chosen = last.choice['index'] ?? 0
  draft.aside = null
}

/** Takes a sole choice that came whole in one chunk. */
function withChoiceAside(state: ChatState): ChatState {
  const { aside, chosen } = state
  if (aside === null || chosen !== null) return state
  // The choice with index 0 may have been cut off.
  if (!state.done && typeof aside.choice['finish_reason'] !== 'string') return state
  const draft = copyChatState(state)
  takeChoiceAside(draft, aside, [])
  return draft
}

function takeChoice(draft: ChatDraft, choice: JsonObject, deltas: Delta[]): void {
  const delta = choice['delta'] ?? choice['message']
  if (isObject(delta)) takeDelta(draft, delta, deltas)
  const reason = choice['finish_reason']
  if (typeof reason !== 'string' || reason === '') return
  // Some hosts send two different reasons: keep the worse one.
  if (draft.stopped === null || stopWeight(reason) > stopWeight(draft.stopped)) draft.stopped = reason
}

function takeDelta(draft: ChatDraft, delta: JsonObject, deltas: Delta[]): void {
  const { content, refusal, tool_calls: calls, function_call: old } = delta
  const thought = takeDetails(draft, delta) || asString(delta['reasoning_content']) || asString(delta['reasoning'])
  if (thought !== '') addThought(draft, thought, deltas)
  if (typeof content === 'string') takeContent(draft, content, deltas)
  else if (Array.isArray(content)) takeContentParts(draft, content, deltas)
  if (typeof refusal === 'string' && refusal !== '') {
    draft.refused = true
    addText(draft, refusal, deltas)
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

/** A server that does not separate thoughts from the text leaves them at its beginning, between tags. */
function takeContent(draft: ChatDraft, content: string, deltas: Delta[]): void {
  const { inline, thought, text } = readInline(draft.inline, content)
  if (draft.inline !== inline) draft.inline = inline
  if (thought !== '') addThought(draft, thought, deltas)
  addText(draft, text, deltas)
}

function addText(draft: ChatDraft, text: string, deltas: Delta[]): void {
  if (text === '') return
  if (draft.textPart < 0) draft.textPart = draft.begun++
  draft.text += text
  deltas.push({ kind: 'text', part: draft.textPart, text })
}

function addThought(draft: ChatDraft, text: string, deltas: Delta[]): void {
  startThinking(draft)
  draft.reasoning += text
  deltas.push({ kind: 'reasoning', part: draft.reasoningPart, text })
}

function startThinking(draft: ChatDraft): void {
  if (draft.reasoningPart >= 0) return
  draft.reasoningPart = draft.begun++
  draft.reasoningAt = draft.calls.length
}

/** No reply has more images than this. */
const IMAGES_MAX = 64

/** https://openrouter.ai/docs/guides/overview/multimodal/image-generation: each picture comes whole. */
function takeImages(draft: ChatDraft, images: readonly unknown[]): void {
  for (const image of images) {
    const address = isObject(image) && isObject(image['image_url']) ? asString(image['image_url']['url']) : ''
    const made = madePicture(address)
    if (made === null) continue
    draft.images = [...draft.images, made]
    draft.begun += 1
  }
  if (draft.images.length > IMAGES_MAX) draft.broken = true
}

/** Mistral's content: texts and thoughts side by side. */
function takeContentParts(draft: ChatDraft, parts: readonly unknown[], deltas: Delta[]): void {
  for (const part of parts) {
    if (!isObject(part)) continue
    if (part['type'] === 'text') addText(draft, asString(part['text']), deltas)
    if (part['type'] !== 'thinking') continue
    const thought = asList(part['thinking']).map((inner) => (isObject(inner) ? asString(inner['text']) : ''))
    if (thought.some((text) => text !== '')) addThought(draft, thought.join(''), deltas)
  }
}

/** The readable text of the details. `reasoning` repeats it and is then ignored. */
function takeDetails(draft: ChatDraft, delta: JsonObject): string {
  const given = delta['reasoning_details']
  if (given === undefined || given === null) return ''
  let text = ''
  for (const detail of detailsIn(given)) {
    startThinking(draft)
    draft.details = addDetail(draft.details, detail)
    text += detailText(detail)
  }
  if (draft.details.length > DETAILS_MAX) draft.broken = true
  return text
}

function takeCall(draft: ChatDraft, piece: CallPiece, deltas: Delta[]): void {
  const at = callOfPiece(draft.calls, piece)
  const known = draft.calls[at]
  if (known === undefined && piece.id === '' && piece.tool === '') return
  if (known === undefined && draft.calls.length >= CALLS_MAX) {
    draft.broken = true
    return
  }
  const call = known ? joinPiece(known, piece) : { ...piece, part: draft.begun++ }
  draft.calls = known ? draft.calls.with(at, call) : [...draft.calls, call]
  const proposed = { tool: call.tool, index: known ? at : draft.calls.length - 1 }
  if (piece.args !== '') deltas.push({ kind: 'arguments', part: call.part, text: piece.args, proposed })
}

// Joining the pieces of a call. Hosts differ: the index may be missing or always 0, the id may be repeated, missing or
// new, and a call may come whole. `callOfPiece` has the rules.

type CallPiece = Omit<ChatCall, 'part'>

/** No provider allows more calls than this: a longer stream is damaged. */
const CALLS_MAX = 256

function pieceOf(entry: unknown): CallPiece | null {
  if (!isObject(entry) || !isObject(entry['function'])) return null
  const { index, extra_content: extra, function: called } = entry
  const id = asString(entry['id'])
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) ? index : null,
    // Mistral sends the string "null" for no id.
    id: id === 'null' ? '' : id,
    tool: asString(called['name']),
    args: argsOf(called['arguments']),
    extra: extra ?? undefined,
  }
}

/** The old form, `function_call`: one call, without an index or an id. */
function oldPieceOf(call: JsonObject): CallPiece {
  return { index: -1, id: '', tool: asString(call['name']), args: argsOf(call['arguments']), extra: undefined }
}

/** The index of the call that this piece belongs to; -1 if the piece begins a new call. */
function callOfPiece(calls: readonly ChatCall[], piece: CallPiece): number {
  const { index, id, tool } = piece
  if (index === null && id === '' && tool === '') return calls.length - 1
  const at = calls.findLastIndex((call) => (index === null ? id !== '' && call.id === id : call.index === index))
  const call = calls[at]
  if (call === undefined || tool === '') return at
  // Several calls under one index: a new id with a name, or another name after complete arguments.
  const other = id === '' ? piece.args !== '' && isWholeJson(call.args) : call.id !== '' && call.id !== id
  return other ? -1 : at
}

function joinPiece(call: ChatCall, piece: CallPiece): ChatCall {
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
  return isObject(value) ? JSON.stringify(value) : asString(value)
}

// Most chunks of a long reply differ only in their text. Reading only the text costs a third of parsing the whole
// chunk, so these functions find the place of the text in the next chunk.

/** Null if the position of the text is not certain. */
export function surroundingsOf(data: string, text: string): TextSurroundings | null {
  const literal = JSON.stringify(text)
  const at = data.indexOf(literal, data.indexOf('"content"') + '"content"'.length)
  if (at < 0) return null
  const alike = { before: data.slice(0, at), after: data.slice(at + literal.length) }
  return contentIn(`${alike.before}"${PROBE}"${alike.after}`) === PROBE ? alike : null
}

/** Stands in for the text: if parsing returns it as the content, the position is right. */
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
export function textBetween(data: string, { before, after }: TextSurroundings): string | null {
  const end = data.length - after.length
  // Compares slices: compiled `startsWith` compares character by character.
  if (data.slice(0, before.length) !== before || data.slice(end) !== after) return null
  const literal = data.slice(before.length, end)
  if (literal.charCodeAt(0) !== QUOTE) return null
  try {
    // JSON.parse fails if the text is more than one string.
    return JSON.parse(literal) as string
  } catch {
    return null
  }
}
