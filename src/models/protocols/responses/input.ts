// One turn of the conversation as input items of the Responses API, in JSON. Written once and kept by the message it came from:
// a long history is not written again for every request.
import type { Part } from '../../../kernel/content.ts'
import type { Message } from '../../../kernel/transcript.ts'
import type { Target } from '../protocol.ts'
import type { SoundCall, SoundResult, Turn } from '../sound.ts'
import { json } from '../json.ts'
import { mediaOf } from '../media.ts'
import { markOf } from './marks.ts'

type Assistant = Extract<Turn, { type: 'assistant' }>
type Data = Extract<Part, { type: 'data' }>

/** What the bytes of a turn depend on besides the turn. */
export type Sending = {
  readonly key: string
  readonly endpoint: string
  /** Reasoning items go back as they came. */
  readonly native: boolean
  /** Of what came after this event. */
  readonly sealedAfter: number
  readonly images: boolean
  readonly files: boolean
}

export function sendingTo({ endpoint, quirks, sealedAfter = 0 }: Target, native: boolean): Sending {
  const [images, files] = [!quirks.lacks?.includes('images'), !quirks.lacks?.includes('files')]
  const key = JSON.stringify([endpoint, native, sealedAfter, images, files])
  return { key, endpoint, native, sealedAfter, images, files }
}

type Written = {
  readonly key: string
  readonly said: string
  readonly results: readonly SoundResult[]
  readonly told: string
}
const written = new WeakMap<Message, Written>()

/** Items separated by commas, or nothing. The results of its calls follow an assistant's items. */
export function itemsOf(turn: Turn, sending: Sending): string {
  if (turn.type === 'user') return keptFor(turn, sending).said
  const { said, told } = keptFor(turn, sending)
  return told === '' ? said : said === '' ? told : `${said},${told}`
}

/** Only the results: what was said is with the provider already. */
export function resultsOf(turn: Assistant): string {
  return turn.results.map(resultItem).join(',')
}

function keptFor(turn: Turn, sending: Sending): Written {
  // An id that was mapped depends on what stands before, so such a turn is written each time.
  if (turn.type === 'assistant' && !hasOwnIds(turn)) return write(turn, sending)
  const before = written.get(turn.of)
  const results = turn.type === 'assistant' ? turn.results : []
  if (before?.key === sending.key && sameResults(before.results, results)) return before
  const fresh = write(turn, sending)
  written.set(turn.of, fresh)
  return fresh
}

function write(turn: Turn, sending: Sending): Written {
  const { key } = sending
  if (turn.type === 'user') return { key, said: userItem(turn.parts, sending), results: [], told: '' }
  return { key, said: assistantItems(turn, sending).join(','), results: turn.results, told: resultsOf(turn) }
}

export function hasOwnIds({ of, calls }: Assistant): boolean {
  return of.role === 'assistant' && calls.every(({ id }, i) => of.calls[i]?.id === id)
}

function sameResults(left: readonly SoundResult[], right: readonly SoundResult[]): boolean {
  return left.length === right.length && left.every((result, i) => result.content === right[i]?.content)
}

function userItem(parts: readonly Part[], sending: Sending): string {
  const content = parts.flatMap((part) => {
    if (part.type === 'text') return [json({ type: 'input_text', text: part.text })]
    return part.type === 'data' ? [dataContent(part, sending)] : []
  })
  return content.length === 0 ? '' : `{"type":"message","role":"user","content":[${content.join(',')}]}`
}

/** https://developers.openai.com/api/docs/guides/images-vision and …/guides/file-inputs */
const IMAGES = /^image\/(png|jpeg|webp|gif)$/
const FILES =
  /^(text\/.+|application\/(pdf|json|rtf|msword|vnd\.ms-(excel|powerpoint)|vnd\.openxmlformats-officedocument\..+))$/
const IMAGE_CHARS_MAX = 20_971_520
const FILE_CHARS_MAX = 33_554_432

function dataContent(part: Data, { images, files }: Sending): string {
  const media = mediaOf(part.media)
  const url = `data:${media};base64,${part.data}`
  if (images && IMAGES.test(media) && url.length <= IMAGE_CHARS_MAX) {
    return json({ type: 'input_image', detail: 'auto', image_url: url })
  }
  if (files && FILES.test(media) && url.length <= FILE_CHARS_MAX) {
    return json({ type: 'input_file', filename: part.name ?? nameFor(media), file_data: url })
  }
  return json({ type: 'input_text', text: unseen(part) })
}

function unseen({ media, data, name }: Data): string {
  const bytes = Buffer.byteLength(data, 'base64')
  return `[file ${name ?? 'without a name'} (${media}, ${bytes} bytes) cannot be shown to this model]`
}

/** The provider reads the kind of a file from its name. */
function nameFor(media: string): string {
  return media === 'text/plain' ? 'file.txt' : `file.${media.split(/[/.+-]/).at(-1) ?? 'txt'}`
}

/** In the order the provider gave them, as far as the marks tell; else texts before calls. */
function assistantItems(turn: Assistant, sending: Sending): readonly string[] {
  const items: string[] = []
  let texts: string[] = []
  let phase: string | null = null
  let called = 0
  const flush = (): void => {
    if (texts.length > 0) items.push(messageItem(texts, phase))
    texts = []
    phase = null
  }
  const callsUpTo = (end: number): void => {
    for (; called < end && called < turn.calls.length; called++) {
      flush()
      items.push(callItem(turn.calls[called] as SoundCall))
    }
  }
  const native = sending.native && turn.of.seq > sending.sealedAfter
  turn.parts.forEach((part, i) => {
    if (part.type !== 'reasoning') {
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'data') texts.push(unseen(part))
      return
    }
    const mark = markOf(part, sending.endpoint)
    if (mark) callsUpTo(mark.at)
    if (mark?.type === 'message') {
      flush()
      phase = mark.phase
    } else if (mark?.type === 'item' && native && isFollowed(turn, i, called)) {
      flush()
      items.push(JSON.stringify(mark.item))
    } else if (part.text.trim() !== '') {
      texts.push(`<thinking>\n${part.text}\n</thinking>`)
    }
  })
  callsUpTo(turn.calls.length)
  flush()
  return items
}

/** A reasoning item is refused without the message or call it led to. */
function isFollowed(turn: Assistant, at: number, called: number): boolean {
  return called < turn.calls.length || turn.parts.slice(at + 1).some((part) => part.type === 'text')
}

function messageItem(texts: readonly string[], phase: string | null): string {
  const content = texts.map((text) => json({ type: 'output_text', text })).join(',')
  const label = phase === null ? '' : `,"phase":${json(phase)}`
  return `{"type":"message","role":"assistant","content":[${content}]${label}}`
}

function callItem({ id, tool, args, raw = json(args) }: SoundCall): string {
  return json({ type: 'function_call', call_id: id, name: tool, arguments: raw })
}

function resultItem({ id, content }: SoundResult): string {
  return json({ type: 'function_call_output', call_id: id, output: content })
}
