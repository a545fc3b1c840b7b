// Stores pictures and files of a tool's result or a model's reply beside the log by hash; the event holds references. A
// file that cannot be stored is left out, and the result or the reply says so.
import type { BlobRef, Part } from '../../kernel/content.ts'
import type { Blob, Store } from '../../ports/store.ts'
import { filePartBytes, type FilePart, detectMedia, type OutputPart } from '../../tools/core/file-part.ts'
import type { Output } from '../../tools/core/tool-output.ts'
import { cleanBlob, blobRefOf } from '../state/content-blobs.ts'
import type { Redactor } from '../redact/redactor.ts'
import { blobFor } from '../../view/readable-blobs.ts'

const PARTS_MAX = 20

/** `kept` are the blobs of this call; new ones are added to it. The store has the session's earlier blobs. */
export type AttachmentTarget = {
  readonly redactor: Redactor
  readonly store: Store
  readonly session: string
  kept: readonly Blob[]
}

/** Returns the output of a tool with references instead of bytes. */
export async function storeAttachments(output: Output, keeping: AttachmentTarget): Promise<Output> {
  const { parts = [], ...rest } = output
  const refs: BlobRef[] = []
  const left: string[] = []
  for (const part of parts.slice(0, PARTS_MAX)) {
    const ref = await storePart(part, keeping)
    if (typeof ref === 'string') left.push(ref)
    else refs.push(ref)
  }
  if (parts.length > PARTS_MAX) left.push(`A result may have ${PARTS_MAX} pictures and files; it had ${parts.length}.`)
  const shown = refs.length > 0 ? { ...rest, parts: refs } : rest
  if (left.length === 0) return shown
  const content = [rest.content, ...left.map((why) => `[left out: ${why}]`)].filter((text) => text !== '').join('\n')
  const why = left.map((message) => ({ code: 'invalid_part', message }))
  return { ...shown, content, metadata: { ...rest.metadata, parts_left_out: why } }
}

async function storePart(part: OutputPart, keeping: AttachmentTarget): Promise<BlobRef | string> {
  if (part.type === 'blob') return checkKeptRef(part, keeping)
  if (part.type !== 'image' && part.type !== 'file') return 'A part of a result is an image, a file or a kept blob.'
  const bytes = filePartBytes(part)
  if (typeof bytes === 'string') return bytes
  const media = verifyMedia(part, bytes)
  if (media === null) return `${part.name ?? 'this image'} is no PNG, JPEG, GIF or WebP picture.`
  const blob = cleanBlob(keeping.redactor, bytes, media)
  keeping.kept = [...keeping.kept, blob]
  return namedRef(blob, part.name)
}

function namedRef(blob: Blob, name: unknown): BlobRef {
  return typeof name === 'string' ? { ...blobRefOf(blob), name } : blobRefOf(blob)
}

/** A provider refuses a whole request for one picture that is not of its declared type. */
function verifyMedia(
  { media, type }: Pick<FilePart, 'media'> & { readonly type: string },
  bytes: Uint8Array,
): string | null {
  if (type !== 'image' && !media.startsWith('image/')) return media
  const found = detectMedia(bytes)
  return found?.startsWith('image/') ? found : null
}

/**
 * Returns the reference as the log will have it, without other fields. A hash alone gives no permission to show a blob
 * that other sessions keep.
 */
async function checkKeptRef(
  { hash, bytes, media, name }: BlobRef,
  keeping: AttachmentTarget,
): Promise<BlobRef | string> {
  if (!/^[0-9a-f]{64}$/.test(hash) || !Number.isSafeInteger(bytes) || typeof media !== 'string')
    return 'A kept blob is given as `context.keep` returned it.'
  const { kept, store, session } = keeping
  const blob = kept.find((each) => each.hash === hash) ?? (await blobFor(store, session, hash))
  // A blob that no session has shows nothing, so it may be named: a recorded result is repeated where its files are
  // missing.
  if (blob === null && (await store.blob(hash)) !== null)
    return `this session has no blob ${hash}. Give the file itself.`
  const found = blob ? verifyMedia({ type: 'blob', media }, blob.data) : media
  if (found === null) return `this image (${media}, ${bytes} bytes) is no PNG, JPEG, GIF or WebP picture.`
  return { type: 'blob', hash, bytes, media: found, ...(typeof name === 'string' ? { name } : {}) }
}

type StoredFiles = { readonly parts: readonly Part[]; readonly blobs: readonly Blob[] }

/** Returns the parts of a reply with references instead of bytes. A text in its place says why a file was left out. */
export function storeReplyFiles(parts: readonly Part[], redactor: Redactor): StoredFiles {
  const blobs: Blob[] = []
  const kept = parts.map((part): Part => {
    if (part.type !== 'data') return part
    const { media, data, name } = part
    const bytes = filePartBytes({ type: 'file', media, data, ...(name === undefined ? {} : { name }) })
    if (typeof bytes === 'string') return { type: 'text', text: `[left out: ${bytes}]` }
    const blob = cleanBlob(redactor, bytes, detectMedia(bytes) ?? media)
    blobs.push(blob)
    return namedRef(blob, name)
  })
  return { parts: kept, blobs }
}
