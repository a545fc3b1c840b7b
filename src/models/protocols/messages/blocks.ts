// One turn as Anthropic's content blocks, written once and kept: a long history costs nothing to send again. It knows the
// inside of a message; which messages there are and who speaks them is turns.ts.
import type { BlobRef, Frozen, Part } from '../../../kernel/content.ts'
import type { Message } from '../../../kernel/transcript.ts'
import type { Target } from '../protocol.ts'
import type { SoundCall, SoundResult, Turn } from '../sound.ts'
import { json } from '../json.ts'
import { mediaOf } from '../media.ts'
import { isObject } from '../../../view/json.ts'

/** What the bytes of a turn depend on, besides the turn itself. */
export type Reader = Frozen<{
  endpoint: string
  model: string
  /** Signed blocks may go back, of what came after this event. */
  signed: boolean
  sealedAfter: number
  images: boolean
  files: boolean
  /** All of the above in one word. */
  key: string
}>

type AssistantTurn = Extract<Turn, { type: 'assistant' }>
type UserTurn = Extract<Turn, { type: 'user' }>
/** Blocks with commas between them and no brackets around them; empty where there is nothing to send. */
type Written = Frozen<{ said: string; results: string; thinksFirst: boolean }>

export function readerOf({ endpoint, model, quirks, sealedAfter = 0 }: Target, signed: boolean): Reader {
  const images = !quirks.lacks?.includes('images')
  const files = !quirks.lacks?.includes('files')
  const key = JSON.stringify([endpoint, model, signed, sealedAfter, images, files])
  return { endpoint, model, signed, sealedAfter, images, files, key }
}

export function textBlock(text: string): string {
  return `{"type":"text","text":${json(text)}}`
}

/** `results` is the start of the user message that must follow. */
export function written(turn: Turn, reader: Reader): Written {
  const memo = memos.get(turn.of)
  if (memo !== undefined && memo.key === reader.key && isOf(memo, turn)) return memo
  const fresh = turn.type === 'user' ? ofUser(turn, reader) : ofAssistant(turn, reader)
  memos.set(turn.of, fresh)
  return fresh
}

type Memo = Written & Frozen<{ key: string; calls: readonly SoundCall[]; answers: readonly SoundResult[] }>

const memos = new WeakMap<Message, Memo>()

/** Ids can be mapped and results cleared without the message of the model changing, so both are compared. */
function isOf({ calls, answers }: Memo, turn: Turn): boolean {
  if (turn.type === 'user') return true
  const { results } = turn
  return (
    calls.length === turn.calls.length &&
    calls.every((call, i) => call.id === turn.calls[i]?.id) &&
    answers.every((answer, i) => answer.ok === results[i]?.ok && answer.content === results[i]?.content)
  )
}

function ofUser(turn: UserTurn, reader: Reader): Memo {
  const blocks: string[] = []
  for (const part of turn.parts) {
    if (part.type === 'text') blocks.push(textBlock(part.text))
    else if (part.type !== 'reasoning') blocks.push(fileBlock(part, reader))
  }
  return { said: blocks.join(','), results: '', thinksFirst: false, key: reader.key, calls: [], answers: [] }
}

function ofAssistant(turn: AssistantTurn, reader: Reader): Memo {
  const { calls, results } = turn
  const blocks: { readonly thinks: boolean; readonly text: string }[] = []
  const thoughts: string[] = []
  let called = 0
  const callUpTo = (count: number): void => {
    for (; called < Math.min(count, calls.length); called++) {
      blocks.push({ thinks: false, text: callBlock(calls[called] as SoundCall) })
    }
  }
  for (const part of turn.parts) {
    if (part.type === 'text') blocks.push({ thinks: false, text: textBlock(part.text) })
    else if (part.type !== 'reasoning') blocks.push({ thinks: false, text: textBlock(unshown(part)) })
    else {
      const signed = turn.of.seq > reader.sealedAfter ? signedBlock(part, reader) : null
      if (signed !== null) {
        callUpTo(signed.at)
        blocks.push({ thinks: true, text: signed.text })
      } else if (part.text.trim() !== '') thoughts.push(part.text)
    }
  }
  callUpTo(calls.length)
  // A message may not end with a thinking block: what was thought last was cut off before it led to anything.
  while (blocks.at(-1)?.thinks) blocks.pop()
  // Signed blocks must stay first, so a thought without a signature is only told where there are none.
  if (thoughts.length > 0 && !blocks.some(({ thinks }) => thinks)) {
    blocks.unshift({ thinks: false, text: textBlock(`<thinking>\n${thoughts.join('\n\n')}\n</thinking>`) })
  }
  const said = blocks.map(({ text }) => text).join(',')
  const thinksFirst = blocks[0]?.thinks ?? false
  return { said, results: results.map(resultBlock).join(','), thinksFirst, key: reader.key, calls, answers: results }
}

/** The provider's own block, and how many calls stand before it; null where it may not go back to this reader. */
function signedBlock(part: Extract<Part, { type: 'reasoning' }>, reader: Reader): { at: number; text: string } | null {
  const { opaque } = part
  // A signature is good for one model only: another one of the same provider refuses the whole request.
  if (!reader.signed || !isObject(opaque) || opaque.by !== reader.endpoint || opaque.model !== reader.model) return null
  const { data, at } = opaque
  if (!isObject(data)) return null
  const whole =
    data.type === 'thinking'
      ? typeof data.thinking === 'string' && typeof data.signature === 'string' && data.signature !== ''
      : data.type === 'redacted_thinking' && typeof data.data === 'string'
  return whole ? { at: typeof at === 'number' ? at : 0, text: JSON.stringify(data) } : null
}

function callBlock({ id, tool, args }: SoundCall): string {
  return `{"type":"tool_use","id":${json(id)},"name":${json(tool)},"input":${json(args)}}`
}

function resultBlock({ id, ok, content }: SoundResult): string {
  return `{"type":"tool_result","tool_use_id":${json(id)},"content":${json(content)}${ok ? '' : ',"is_error":true'}}`
}

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
/** The API refuses a longer one with every request that shows it. It counts the base64, not the bytes. */
const IMAGE_CHARS_MAX = 5_242_880
/** A request has 32 MB in all. */
const FILE_CHARS_MAX = 31_457_280

type FilePart = Extract<Part, { type: 'data' }> | BlobRef

function fileBlock(part: FilePart, { images, files }: Reader): string {
  if (part.type === 'blob' || part.data === '') return textBlock(unshown(part))
  const media = mediaOf(part.media)
  const source = `"source":{"type":"base64","media_type":${json(media)},"data":${json(part.data)}}`
  if (images && IMAGES.has(media) && part.data.length <= IMAGE_CHARS_MAX) return `{"type":"image",${source}}`
  if (!files || media !== 'application/pdf' || part.data.length > FILE_CHARS_MAX) return textBlock(unshown(part))
  return `{"type":"document",${source}${part.name === undefined ? '' : `,"title":${json(part.name)}`}}`
}

function unshown(part: FilePart): string {
  const name = part.type === 'data' && part.name !== undefined ? `${part.name} ` : ''
  const bytes = part.type === 'blob' ? part.bytes : bytesOf(part.data)
  return `[file ${name}(${part.media}, ${bytes} bytes) cannot be shown to this model]`
}

function bytesOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding)
}
