// What a caller sends: text, pictures and files. Bytes go beside the log, by hash; the message holds the reference.
import type { Json, Part } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import { anything, type Checks, needed, oneOf, optionsOf, text } from '../options.ts'
import { bytesBlob, refOf } from '../engine/wiring.ts'

/** A picture or a document. `data` is bytes, or base64. */
export type FilePart = {
  readonly type: 'image' | 'file'
  readonly media: string
  readonly data: Uint8Array | string
  readonly name?: string
}

export const FILE_PART: Checks<FilePart> = {
  type: needed(oneOf<FilePart['type']>({ image: true, file: true })),
  media: needed(text, 'Write one such as image/png.'),
  data: needed(anything, 'Give bytes, or base64.'),
  name: text,
}
const checkFile = optionsOf<FilePart>('a file', FILE_PART)

/** Text, or parts. An object is sent as its JSON: that is what graphs read. */
export type Input = string | InputParts | { readonly [name: string]: Json }
type InputParts = readonly (Extract<Part, { type: 'text' | 'blob' }> | FilePart)[]

const FILE_BYTES_MAX = 32 * 1024 * 1024
/** Of one message, and of what a session is opened with. */
const FILES_MAX = 100
const FILES_BYTES_MAX = 128 * 1024 * 1024

export function readInput(input: Input): { readonly parts: readonly Part[]; readonly blobs: readonly Blob[] } {
  if (typeof input === 'string') return { parts: [{ type: 'text', text: input }], blobs: [] }
  // A caller without a type checker may pass anything.
  if (input === null || typeof input !== 'object')
    throw new Fault('invalid_input', 'There is no message. Give a text, a list of parts or an object.')
  if (!isParts(input)) return { parts: [{ type: 'text', text: JSON.stringify(input) }], blobs: [] }
  const blobs: Blob[] = []
  const parts: Part[] = []
  let bytes = 0
  for (const part of input) {
    const before = blobs.length
    parts.push(partOf(part, blobs))
    for (const { data } of blobs.slice(before)) bytes += data.length
    if (blobs.length > FILES_MAX || bytes > FILES_BYTES_MAX)
      throw new Fault(
        'too_many',
        `At most ${FILES_MAX} files of ${FILES_BYTES_MAX} bytes together are taken at once. Send fewer.`,
      )
  }
  return { parts, blobs }
}

function partOf(part: InputParts[number], blobs: Blob[]): Part {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text }
  if (part?.type === 'blob' && typeof part.hash === 'string') return { ...part }
  if (part?.type !== 'image' && part?.type !== 'file')
    throw new Fault(
      'invalid_input',
      'A part is a text, an image, a file or a blob, with what belongs to it. Give those.',
    )
  checkFile(part)
  const blob = blobOf(part)
  blobs.push(blob)
  return { ...refOf(blob), ...(part.name === undefined ? {} : { name: part.name }) }
}

function isParts(input: InputParts | { readonly [name: string]: Json }): input is InputParts {
  return Array.isArray(input)
}

/** Each look goes over the text once, however long and odd it is. */
function isBase64(data: string): boolean {
  const bare = data.replace(/\s+/g, '')
  const digits = bare.replace(/={1,2}$/, '').length
  return !/[^A-Za-z0-9+/=]/.test(bare) && !bare.slice(0, digits).includes('=') && digits % 4 !== 1
}

function blobOf({ type, media, data, name }: FilePart): Blob {
  const what = name ?? `this ${type}`
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(media))
    throw new Fault('invalid_input', `"${media}" is no media type of ${what}. Write one such as image/png.`)
  if (type === 'image' && !media.startsWith('image/'))
    throw new Fault('invalid_input', `${what} is no picture: its media type is ${media}.`)
  if (typeof data === 'string' ? !isBase64(data) : !(data instanceof Uint8Array))
    throw new Fault('invalid_input', `The data of ${what} is not base64, nor bytes.`)
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : data
  if (bytes.length === 0 || bytes.length > FILE_BYTES_MAX) {
    throw new Fault('invalid_input', `${what} has ${bytes.length} bytes; it must have from 1 to ${FILE_BYTES_MAX}.`)
  }
  return bytesBlob(bytes, media)
}
