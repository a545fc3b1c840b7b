// A picture or a file that code passes to a session or adds to a tool's result: its shape, its limits and its real
// type.
import type { BlobRef } from '../../kernel/content.ts'
import { anyCheck, type Checks, requiredCheck, oneOf, optionsChecker, textCheck } from '../../options.ts'

/** A picture or a document. */
export type FilePart = {
  /** Whether the model sees it as a picture or reads it as a file. */
  readonly type: 'image' | 'file'
  /** The media type, such as `image/png`. That of a picture begins with `image/`. */
  readonly media: string
  /** The bytes, or base64. At most 32 MiB. */
  readonly data: Uint8Array | string
  /** The name of the file. Absent: it has none. */
  readonly name?: string
}

/** A part of a result beside its text: a file, or the reference of a file that `context.keep` kept. */
export type OutputPart = FilePart | BlobRef

export const FILE_PART: Checks<FilePart> = {
  type: requiredCheck(oneOf<FilePart['type']>({ image: true, file: true })),
  media: requiredCheck(textCheck, 'Write one such as image/png.'),
  data: requiredCheck(anyCheck, 'Give bytes, or base64.'),
  name: textCheck,
}
export const checkFile = optionsChecker<FilePart>('a file', FILE_PART)

const FILE_BYTES_MAX = 32 * 1024 * 1024

/** Returns the bytes, or a sentence that says why the file is refused. */
export function filePartBytes({ type, media, data, name }: FilePart): Uint8Array | string {
  const what = name ?? `this ${type}`
  if (!isMedia(media)) return `"${media}" is no media type of ${what}. Write one such as image/png.`
  if (type === 'image' && !media.startsWith('image/')) return `${what} is no picture: its media type is ${media}.`
  if (typeof data === 'string' ? !isBase64(data) : !(data instanceof Uint8Array))
    return `The data of ${what} is not base64, nor bytes.`
  // Copy the bytes: the caller may reuse its buffer.
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Uint8Array.from(data)
  if (bytes.length > 0 && bytes.length <= FILE_BYTES_MAX) return bytes
  return `${what} has ${bytes.length} bytes; it must have from 1 to ${FILE_BYTES_MAX}.`
}

export function isMedia(media: unknown): boolean {
  return typeof media === 'string' && /^[\w.+-]+\/[\w.+-]+$/.test(media)
}

/** Each check goes over the text once, however long and odd it is. */
function isBase64(data: string): boolean {
  // Replace in bounded pieces: a run of millions of blanks would exhaust the memory of the pattern.
  const bare = data.replace(/\s{1,4096}/g, '')
  const digits = bare.replace(/={1,2}$/, '').length
  return !/[^A-Za-z0-9+/=]/.test(bare) && !bare.slice(0, digits).includes('=') && digits % 4 !== 1
}

/**
 * The first bytes of the types that models can see, in latin1. A WebP has its length between `RIFF` and `WEBP`; this is
 * only the first word.
 */
const KINDS: readonly (readonly [string, string])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['RIFF', 'image/webp'],
  ['%PDF-', 'application/pdf'],
]

/** The media type that the first bytes show; null if it is no picture or document that models take. */
export function detectMedia(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(16, bytes.length)).toString('latin1')
  const media = KINDS.find(([begins]) => head.startsWith(begins))?.[1] ?? null
  return media === 'image/webp' && head.slice(8, 12) !== 'WEBP' ? null : media
}
