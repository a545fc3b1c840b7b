// What the readers of foreign transcripts make of a file: a flat list of texts, calls and results in the order of the
// file. Nothing in it is trusted: ids only say which result belongs to which call, and are replaced.
import type { Json } from '../../kernel/content.ts'
import { asList, asString, isObject, type JsonObject, ownOf, parseJson } from '../../view/untrusted-json.ts'

export type ForeignPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  /** `data` is in base64, as the file has it. */
  | { readonly type: 'file'; readonly media: string; readonly data: string }

export type ForeignItem =
  | { readonly type: 'user' | 'assistant'; readonly parts: readonly ForeignPart[] }
  | { readonly type: 'call'; readonly id: string; readonly tool: string; readonly args: Json }
  | { readonly type: 'result'; readonly id: string; readonly ok: boolean; readonly parts: readonly ForeignPart[] }

/** `leftOut`: how many entries of the file are not part of the conversation, or cannot be read. */
export type ForeignTranscript = {
  readonly items: readonly ForeignItem[]
  readonly entries: number
  readonly leftOut: number
}

/** The items of one entry. Null: it is left out. */
export type ItemReader = (entry: JsonObject) => readonly ForeignItem[] | null

export function readEntries(entries: readonly (Json | undefined)[], read: ItemReader): ForeignTranscript {
  const items: ForeignItem[] = []
  let leftOut = 0
  for (const entry of entries) {
    const found = isObject(entry) ? read(entry) : null
    if (found === null) leftOut += 1
    else items.push(...found)
  }
  return { items, entries: entries.length, leftOut }
}

/** A content that is a text or a list of parts. Parts that cannot be read are left out. */
export function partsOf(content: Json | undefined): readonly ForeignPart[] {
  if (typeof content === 'string') return textParts(content)
  return asList(content).flatMap((part) => (isObject(part) ? partOf(part) : textParts(asString(part))))
}

export function textParts(text: string, type: 'text' | 'reasoning' = 'text'): readonly ForeignPart[] {
  return text.trim() === '' ? [] : [{ type, text }]
}

const TEXTS: ReadonlySet<string> = new Set(['text', 'input_text', 'output_text', 'summary_text', 'reasoning_text'])
const FILES: ReadonlySet<string> = new Set(['image', 'input_image', 'image_url', 'document', 'file', 'input_file'])

function partOf(part: JsonObject): readonly ForeignPart[] {
  const type = asString(ownOf(part, 'type'))
  if (TEXTS.has(type)) return textParts(asString(ownOf(part, 'text')))
  if (type === 'refusal') return textParts(asString(ownOf(part, 'refusal')))
  if (type === 'thinking') return textParts(asString(ownOf(part, 'thinking')), 'reasoning')
  if (type === 'reasoning') return textParts(asString(ownOf(part, 'text')), 'reasoning')
  return FILES.has(type) ? [filePart(part)] : []
}

const DATA_URL = /^data:([\w.+-]{1,64}\/[\w.+-]{1,64});base64,/

/** Only bytes that the file holds itself. An address is named in words: nothing is fetched, here or by a provider. */
function filePart(part: JsonObject): ForeignPart {
  const nested = ['source', 'image_url', 'file'].map((key) => ownOf(part, key)).find(isObject)
  const source = nested ?? part
  const [url = '', data = ''] = ['url', 'data'].map((key) => asString(ownOf(source, key)))
  const direct = asString(ownOf(part, 'image_url')) || asString(ownOf(source, 'file_data')) || url
  const [head, media] = DATA_URL.exec(direct) ?? []
  if (head !== undefined && media !== undefined) return { type: 'file', media, data: direct.slice(head.length) }
  const said = asString(ownOf(source, 'media_type'))
  if (data !== '') return { type: 'file', media: said || 'image/jpeg', data }
  return { type: 'text', text: direct === '' ? '[a file]' : `[a file at ${direct.slice(0, 2_000)}]` }
}

/** The arguments of a call: an object, its JSON text, or any other text. */
export function argumentsOf(value: Json | undefined): Json {
  if (typeof value !== 'string')
    return isObject(value) ? value : value === undefined || value === null ? {} : { input: value }
  const parsed = parseJson(value)
  return isObject(parsed) ? parsed : value.trim() === '' ? {} : { input: value }
}
