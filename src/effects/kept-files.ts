// Pictures and files of a tool's result or a model's reply: their bytes go beside the log by hash, and the event holds references. A
// file that cannot be kept is left out, and the result or the reply says so. Loaded when the first result or reply has a file.
import type { BlobRef, Part } from '../kernel/content.ts'
import type { Blob, Store } from '../ports/store.ts'
import { bytesOf, type FilePart, mediaIn, type OutputPart } from '../tools/core/file-part.ts'
import type { Output } from '../tools/core/output.ts'
import { cleanBlob, refOf } from '../engine/wiring.ts'
import type { Redactor } from '../riders/redact/redact.ts'
import { blobFor } from '../view/blobs.ts'

const PARTS_MAX = 20

/** `kept` is what the call keeps; what becomes a blob here is added to it. The store has what the session kept before. */
export type Keeping = {
  readonly redactor: Redactor
  readonly store: Store
  readonly session: string
  kept: readonly Blob[]
}

/** The envelope of a result, with references instead of bytes. */
export async function attached(output: Output, keeping: Keeping): Promise<Output> {
  const { parts = [], ...rest } = output
  const refs: BlobRef[] = []
  const left: string[] = []
  for (const part of parts.slice(0, PARTS_MAX)) {
    const ref = await refFor(part, keeping)
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

async function refFor(part: OutputPart, keeping: Keeping): Promise<BlobRef | string> {
  if (part.type === 'blob') return keptRef(part, keeping)
  if (part.type !== 'image' && part.type !== 'file') return 'A part of a result is an image, a file or a kept blob.'
  const bytes = bytesOf(part)
  if (typeof bytes === 'string') return bytes
  const media = trueMedia(part, bytes)
  if (media === null) return `${part.name ?? 'this image'} is no PNG, JPEG, GIF or WebP picture.`
  const blob = cleanBlob(keeping.redactor, bytes, media)
  keeping.kept = [...keeping.kept, blob]
  return namedRef(blob, part.name)
}

function namedRef(blob: Blob, name: unknown): BlobRef {
  return typeof name === 'string' ? { ...refOf(blob), name } : refOf(blob)
}

/** A provider refuses a whole request for one picture that is not what it is called. */
function trueMedia(
  { media, type }: Pick<FilePart, 'media'> & { readonly type: string },
  bytes: Uint8Array,
): string | null {
  if (type !== 'image' && !media.startsWith('image/')) return media
  const found = mediaIn(bytes)
  return found?.startsWith('image/') ? found : null
}

/** As the log will have it, and nothing else of it. A hash alone is no permission to show what others keep under it. */
async function keptRef({ hash, bytes, media, name }: BlobRef, keeping: Keeping): Promise<BlobRef | string> {
  if (!/^[0-9a-f]{64}$/.test(hash) || !Number.isSafeInteger(bytes) || typeof media !== 'string')
    return 'A kept blob is given as `context.keep` returned it.'
  const { kept, store, session } = keeping
  const blob = kept.find((each) => each.hash === hash) ?? (await blobFor(store, session, hash))
  // A blob that is in no session shows nothing, so it may be named: a recorded result is repeated where its files are missing.
  if (blob === null && (await store.blob(hash)) !== null)
    return `this session has no blob ${hash}. Give the file itself.`
  const found = blob ? trueMedia({ type: 'blob', media }, blob.data) : media
  if (found === null) return `this image (${media}, ${bytes} bytes) is no PNG, JPEG, GIF or WebP picture.`
  return { type: 'blob', hash, bytes, media: found, ...(typeof name === 'string' ? { name } : {}) }
}

type Made = { readonly parts: readonly Part[]; readonly blobs: readonly Blob[] }

/** The parts of a reply, with references instead of bytes. What cannot be kept is said in words, in its place. */
export function madeFiles(parts: readonly Part[], redactor: Redactor): Made {
  const blobs: Blob[] = []
  const kept = parts.map((part): Part => {
    if (part.type !== 'data') return part
    const { media, data, name } = part
    const bytes = bytesOf({ type: 'file', media, data, ...(name === undefined ? {} : { name }) })
    if (typeof bytes === 'string') return { type: 'text', text: `[left out: ${bytes}]` }
    const blob = cleanBlob(redactor, bytes, mediaIn(bytes) ?? media)
    blobs.push(blob)
    return namedRef(blob, name)
  })
  return { parts: kept, blobs }
}
