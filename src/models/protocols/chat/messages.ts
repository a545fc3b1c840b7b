// The conversation as messages of Chat Completions, in JSON. Written once and kept by the message it came from: a long history
// is not written again for every request. A message never changes when others follow it.
import type { Json, Part } from '../../../kernel/content.ts'
import type { Message } from '../../../kernel/transcript.ts'
import type { Target } from '../protocol.ts'
import type { SoundCall, Turn } from '../sound.ts'
import { json } from '../json.ts'
import { mediaOf } from '../media.ts'
import { type JsonObject, isObject } from '../../../view/json.ts'

type Assistant = Extract<Turn, { type: 'assistant' }>
type Data = Extract<Part, { type: 'data' }>
type Reasoning = Extract<Part, { type: 'reasoning' }>

/** Only models of Anthropic need to be told what to cache. */
export function marked({ model, settings, quirks }: Target): boolean {
  return quirks.cacheMarks === true && settings.cache !== false && /anthropic|claude/i.test(model)
}

/** The mark is always there or never, so the message does not change. */
export function systemMessage(instructions: string, marks: boolean): string {
  if (instructions.trim() === '') return ''
  const text: Json = { type: 'text', text: instructions, cache_control: { type: 'ephemeral' } }
  return `${json({ role: 'system', content: marks ? [text] : instructions })},`
}

/** What the bytes of a turn depend on besides the turn. */
type Sending = {
  readonly key: string
  readonly endpoint: string
  readonly images: boolean
  readonly files: boolean
  /** Thoughts go back as they came; those that are signed, if they came after this event. */
  readonly thinks: boolean
  readonly sealedAfter: number
  /** Nobody may speak right after a tool but the assistant. */
  readonly bridges: boolean
  readonly field: Target['quirks']['reasoningField']
}

/** Mistral wants the assistant to speak between results and a user. */
const BRIDGE = '{"role":"assistant","content":"(The results are noted.)"}'

/** No host takes a conversation in which nobody spoke. */
const NOTHING_SAID = '{"role":"user","content":"(no message)"}'

type Listed = {
  readonly key: string
  readonly turns: readonly Turn[]
  readonly text: string
  /** It ends with results. */
  readonly results: boolean
}
/** By the first turn: the list as it was last sent. The next one nearly always begins with it. */
const listed = new WeakMap<Turn, Listed>()

/** The messages, with commas between them. */
export function messageList(turns: readonly Turn[], target: Target): string {
  const sending = sendingTo(target)
  const [first] = turns
  if (first === undefined) return NOTHING_SAID
  const before = listed.get(first)
  const same = before?.key === sending.key && before.turns.every((turn, at) => turn === turns[at])
  let { text, results } = same ? before : { text: '', results: false }
  for (let at = same ? before.turns.length : 0; at < turns.length; at++) {
    const turn = turns[at] as Turn
    const more = writtenOf(turn, sending)
    if (more === '') continue
    const bridge = sending.bridges && results && turn.type === 'user' ? `${BRIDGE},` : ''
    text = text === '' ? more : `${text},${bridge}${more}`
    results = turn.type === 'assistant' && turn.results.length > 0
  }
  listed.set(first, { key: sending.key, turns, text, results })
  return text === '' ? NOTHING_SAID : text
}

function sendingTo({ endpoint, settings, quirks, sealedAfter = 0 }: Target): Sending {
  const [images, files] = [!quirks.lacks?.includes('images'), !quirks.lacks?.includes('files')]
  const thinks = settings.reasoning !== 'off'
  const field = quirks.reasoningField
  const bridges = quirks.lacks?.includes('user_after_tool') === true
  const key = JSON.stringify([endpoint, images, files, thinks, sealedAfter, bridges, field])
  return { key, endpoint, images, files, thinks, sealedAfter, bridges, field }
}

type Written = { readonly key: string; readonly turn: Turn; readonly text: string }
const written = new WeakMap<Message, Written>()

function writtenOf(turn: Turn, sending: Sending): string {
  const before = written.get(turn.of)
  if (before?.key === sending.key && isSame(before.turn, turn)) return before.text
  const text = turn.type === 'user' ? userMessage(turn.parts, sending) : assistantMessages(turn, sending)
  written.set(turn.of, { key: sending.key, turn, text })
  return text
}

/** Results have the ids of their calls, so an id that was mapped anew shows here too. */
function isSame(before: Turn, now: Turn): boolean {
  if (before === now || before.type === 'user' || now.type === 'user') return before.type === now.type
  if (before.results.length !== now.results.length) return false
  return before.results.every(({ id, content }, i) => id === now.results[i]?.id && content === now.results[i]?.content)
}

function userMessage(parts: readonly Part[], sending: Sending): string {
  const content = parts.flatMap((part) => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    return part.type === 'data' ? [dataPart(part, sending)] : []
  })
  if (content.length === 0) return ''
  const texts = content.flatMap((part) => ('text' in part ? [part.text] : []))
  return json({ role: 'user', content: texts.length === content.length ? texts.join('\n\n') : content })
}

/** https://platform.openai.com/docs/guides/images-vision and …/guides/pdf-files */
const IMAGES = /^image\/(png|jpeg|webp|gif)$/
const FILES = /^application\/pdf$/
const IMAGE_CHARS_MAX = 20_971_520
const FILE_CHARS_MAX = 33_554_432

function dataPart(part: Data, { images, files }: Sending) {
  const media = mediaOf(part.media)
  const url = `data:${media};base64,${part.data}`
  if (images && IMAGES.test(media) && url.length <= IMAGE_CHARS_MAX) return { type: 'image_url', image_url: { url } }
  if (files && FILES.test(media) && url.length <= FILE_CHARS_MAX) {
    return { type: 'file', file: { filename: part.name ?? 'file.pdf', file_data: url } }
  }
  return { type: 'text', text: unseen(part) }
}

function unseen({ media, data, name }: Data): string {
  const bytes = Buffer.byteLength(data, 'base64')
  return `[file ${name ?? 'without a name'} (${media}, ${bytes} bytes) cannot be shown to this model]`
}

/** The message and the results of its calls; nothing at all where there is nothing that a host would take. */
function assistantMessages(turn: Assistant, sending: Sending): string {
  const { texts, thoughts, plain, details, extras } = sorted(turn, sending)
  if (turn.calls.length === 0 && texts.length + thoughts.length === 0) return ''
  const content = [...thoughts, ...texts].join('\n\n')
  const fields = [`"role":"assistant","content":${content === '' ? 'null' : json(content)}`]
  // Signed: as it came, to the letter.
  if (details.length > 0) fields.push(`"reasoning_details":${JSON.stringify(details)}`)
  const bare = details.length === 0 || sending.field === 'reasoning_content'
  if (bare && turn.calls.length > 0 && sending.thinks) fields.push(...plainReasoning(plain, sending))
  if (turn.calls.length > 0) {
    const calls = turn.calls.map((call, at) => toolCall(call, extras.get(at)))
    fields.push(`"tool_calls":[${calls.join(',')}]`)
  }
  const results = turn.results.map(({ id, content: said }) => json({ role: 'tool', tool_call_id: id, content: said }))
  return [`{${fields.join(',')}}`, ...results].join(',')
}

/** What is not signed goes back only beside calls: elsewhere hosts ignore it, and some refuse it. */
function plainReasoning(plain: readonly string[], { field }: Sending): readonly string[] {
  if (field === undefined) return []
  const name = field === 'reasoning_content' ? field : 'reasoning'
  if (plain.length > 0) return [`"${name}":${json(plain.join('\n\n'))}`]
  // DeepSeek and Moonshot refuse a call without it, and take an empty one for none.
  return field === 'reasoning_content' ? [`"${name}":" "`] : []
}

function sorted({ of, parts }: Assistant, sending: Sending) {
  const signed = sending.thinks && of.seq > sending.sealedAfter
  const [texts, thoughts, plain]: [string[], string[], string[]] = [[], [], []]
  const details: Json[] = []
  const extras = new Map<number, Json>()
  for (const part of parts) {
    if (part.type === 'text') texts.push(part.text)
    if (part.type === 'data') texts.push(unseen(part))
    if (part.type !== 'reasoning') continue
    const own = ownData(part, sending.endpoint)
    const { reasoning_details: list, extra_content: extra } = own?.data ?? {}
    if (extra !== undefined) extras.set(own?.at ?? 0, extra)
    else if (signed && Array.isArray(list)) details.push(...(list as readonly Json[]))
    else if (part.text.trim() === '') continue
    // Without a mark it is text alone, and may have come from anybody.
    else if (sending.thinks && sending.field !== undefined && part.opaque === undefined) plain.push(part.text)
    else thoughts.push(`<thinking>\n${part.text}\n</thinking>`)
  }
  return { texts, thoughts, plain, details, extras }
}

/** What this endpoint wrote itself. */
function ownData({ opaque }: Reasoning, endpoint: string): { readonly at: number; readonly data: JsonObject } | null {
  if (!isObject(opaque) || opaque['by'] !== endpoint || !isObject(opaque['data'])) return null
  return { at: typeof opaque['at'] === 'number' ? opaque['at'] : 0, data: opaque['data'] }
}

function toolCall({ id, tool, args, raw = json(args) }: SoundCall, extra: Json | undefined): string {
  const called = json({ id, type: 'function', function: { name: tool, arguments: raw } })
  return extra === undefined ? called : `${called.slice(0, -1)},"extra_content":${JSON.stringify(extra)}}`
}
