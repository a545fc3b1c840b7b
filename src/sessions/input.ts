// Reads a caller's input: text, pictures, sounds and files, or addresses of files for the provider. Bytes go beside the
// log, by hash; the message holds the reference.
import type { SessionHeads } from '../runtime/state/session-tree.ts'
import type { BlobRef, Json, Part } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { InboxBody } from '../kernel/event.ts'
import type { Blob, Store } from '../ports/store.ts'
import { countCheck, nonEmptyCheck, requiredCheck, optionsChecker, textCheck } from '../options.ts'
import { filePartBytes, checkFile, type FilePart, isMedia } from '../tools/core/file-part.ts'
import { bytesBlob, blobRefOf } from '../runtime/state/content-blobs.ts'
import { blobFor } from '../view/readable-blobs.ts'

export type { FilePart }

/** The hint for callers who give a conversation of another library. */
export const BRING_MESSAGES =
  'A run takes one message. Bring a conversation along with session = await harness.open({ messages }), then session.run(input).'

/** Text or parts. An object is sent as its JSON, which graphs read. */
export type Input = string | InputParts | { readonly [name: string]: Json }
type InputParts = readonly (Extract<Part, { type: 'text' | 'blob' }> | FilePart | RemotePart)[]

/**
 * A picture or a file that the provider reads itself: from an address, or uploaded to it before, under the provider's
 * id.
 */
export type RemotePart = Extract<Part, { type: 'url' | 'file_id' }>

const remote = { media: requiredCheck(textCheck, 'Write one such as image/png.'), name: textCheck } as const
const checkUrl = optionsChecker<Extract<RemotePart, { type: 'url' }>>('an address', {
  ...remote,
  type: requiredCheck(textCheck),
  url: requiredCheck(textCheck),
})
const checkFileId = optionsChecker<Extract<RemotePart, { type: 'file_id' }>>('a file id', {
  ...remote,
  type: requiredCheck(textCheck),
  provider: requiredCheck(nonEmptyCheck),
  id: requiredCheck(textCheck),
})
const checkKept = optionsChecker<BlobRef>('a blob', {
  ...remote,
  type: requiredCheck(textCheck),
  hash: requiredCheck(textCheck),
  bytes: requiredCheck(countCheck()),
})
const URL_CHARS_MAX = 8_192

/** The limits for one message, and for the opening of a session. */
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
    parts.push(readPart(part, blobs))
    for (const { data } of blobs.slice(before)) bytes += data.length
    if (blobs.length > FILES_MAX || bytes > FILES_BYTES_MAX)
      throw new Fault(
        'too_many',
        `At most ${FILES_MAX} files of ${FILES_BYTES_MAX} bytes together are taken at once. Send fewer.`,
      )
  }
  return { parts, blobs }
}

/**
 * Whether the input looks like a conversation of another library in place of a message. An object with an empty list of
 * messages counts too. A workflow may read such an object.
 */
export function isConversation(input: Input): boolean {
  if (input === null || typeof input !== 'object') return false
  const isBare = Array.isArray(input)
  const listed: unknown = isBare ? input : (input as { readonly messages?: unknown }).messages
  if (!Array.isArray(listed)) return false
  if (listed.length === 0) return !isBare
  const [first] = listed as readonly { readonly role?: unknown; readonly type?: unknown }[]
  return typeof first?.role === 'string' && first.type === undefined
}

function readPart(part: InputParts[number], blobs: Blob[]): Part {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text }
  if (part?.type === 'blob') return readKeptRef(part)
  if (part?.type === 'url' || part?.type === 'file_id') return readRemotePart(part)
  if (part?.type !== 'image' && part?.type !== 'file')
    throw new Fault(
      'invalid_input',
      'A part is a text, an image, a file, a url, a file_id or a blob, with what belongs to it. Give those.',
    )
  checkFile(part)
  const blob = readFileBlob(part)
  blobs.push(blob)
  return { ...blobRefOf(blob), ...(part.name === undefined ? {} : { name: part.name }) }
}

/** `checkOwnBlobs` finds out whether the session has the blob. */
function readKeptRef(part: BlobRef): BlobRef {
  checkKept(part)
  const { type, hash, bytes, media, name } = part
  if (!isMedia(media))
    throw new Fault('invalid_input', `"${media}" is no media type of a blob. Write one such as image/png.`)
  return { type, hash, bytes, media, ...(name === undefined ? {} : { name }) }
}

type SentMessage = { readonly event: InboxBody; readonly blobs: readonly Blob[] }

/** The hashes of blobs that a message names but does not bring. */
export function referencedBlobs({ event, blobs }: SentMessage): readonly string[] {
  if (event.type !== 'user.message') return []
  const hashes = event.parts.flatMap((part) => (part.type === 'blob' ? [part.hash] : []))
  return hashes.filter((hash) => !blobs.some((blob) => blob.hash === hash))
}

/** A message may name only blobs of its session and its tree: with a hash alone it could read those of others. */
export async function checkOwnBlobs(store: Store, session: string, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    if ((await blobFor(store, session, hash)) !== null) continue
    throw new Fault('invalid_input', `Session ${session} has no blob ${hash}. Send the file itself.`)
  }
}

/** Nothing is fetched here: the provider finds out whether the file exists. */
function readRemotePart(part: RemotePart): RemotePart {
  if (part.type === 'url') checkUrl(part)
  else checkFileId(part)
  const { media, name } = part
  if (!isMedia(media))
    throw new Fault('invalid_input', `"${media}" is no media type of a ${part.type}. Write one such as image/png.`)
  const named = name === undefined ? {} : { name }
  if (part.type === 'file_id') {
    const { type, provider, id } = part
    if (/^[\w.-]{1,256}$/.test(id)) return { type, media, provider, id, ...named }
    throw new Fault('invalid_input', 'The id of an uploaded file is what the provider called it. Give that.')
  }
  const { type, url } = part
  const { protocol, username, password } = URL.canParse(url)
    ? new URL(url)
    : { protocol: '', username: '', password: '' }
  if (url.length > URL_CHARS_MAX || !/^https?:$/.test(protocol) || username + password !== '')
    throw new Fault('invalid_input', 'The url of a file is an http or https address without a password. Give one.')
  return { type, media, url, ...named }
}

function isParts(input: InputParts | { readonly [name: string]: Json }): input is InputParts {
  return Array.isArray(input)
}

function readFileBlob(part: FilePart): Blob {
  const bytes = filePartBytes(part)
  if (typeof bytes === 'string') throw new Fault('invalid_input', bytes)
  return bytesBlob(bytes, part.media)
}

/** How many messages may wait in one session. */
const INPUTS_MAX = 1_000

/** A log shorter than the limit has fewer messages, so most sends only read the card. */
export async function checkInboxRoom(heads: SessionHeads, id: string, seq: number, more: number): Promise<void> {
  if (seq + more <= INPUTS_MAX) return
  const { inputs } = await heads.of(id)
  if (inputs.length + more <= INPUTS_MAX) return
  const text = `Session ${id} has ${inputs.length} messages that wait, and may have ${INPUTS_MAX}. Send again when it has read some, or interrupt it.`
  throw new Fault('too_many', text)
}
