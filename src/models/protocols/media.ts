// Files in requests: their media type, and the text that replaces a file that a model cannot take. Each protocol
// decides which files those are. Files in replies: pictures that a model made.
import type { Part } from '../../kernel/content.ts'

/** A file whose bytes are in the part. */
export type InlineFile = Extract<Part, { type: 'data' }>
/** A file that the provider reads itself. */
export type RemoteFile = Extract<Part, { type: 'url' | 'file_id' }>

/** The media type in lower case and without parameters. Corrects the common mistake `image/jpg`. */
export function mediaTypeOf(media: string): string {
  const plain = media.toLowerCase().split(';')[0]?.trim() ?? ''
  return plain === 'image/jpg' ? 'image/jpeg' : plain
}

/** Whether a part is a file in a request. */
export function isFile(part: Part): part is InlineFile | RemoteFile {
  return part.type === 'data' || part.type === 'url' || part.type === 'file_id'
}

/** The text sent in place of a file. */
export function unseenFileText(part: InlineFile | RemoteFile): string {
  return `[file ${part.name ?? 'without a name'} (${part.media}, ${sizeOrAddress(part)}) cannot be shown to this model]`
}

function sizeOrAddress(part: InlineFile | RemoteFile): string {
  if (part.type === 'url') return part.url
  if (part.type === 'file_id') return `${part.id} at ${part.provider}`
  return `${Buffer.byteLength(part.data, 'base64')} bytes`
}

/** The text in a result whose files are in the message after it. */
export function fileBelowText({ media, name }: InlineFile | RemoteFile): string {
  return `[file ${name ?? 'without a name'} (${media}) is in the message after the results]`
}

/** The text in a reply whose pictures are in the message after it: few hosts take a picture in a reply of the model. */
export function madeFileText({ media, name }: InlineFile | RemoteFile): string {
  return `[file ${name ?? 'without a name'} (${media}) that was made here is in the next message]`
}

/** The text before these pictures. */
export const FROM_REPLY = '[from the reply above]'

/** A picture in a reply, from its URL: in most replies that is a data URL with the bytes. Null if it is neither. */
export function madePicture(url: string, otherwise = 'image/png'): Part | null {
  const [, media, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,([\s\S]+)$/.exec(url) ?? []
  if (media !== undefined && data !== undefined) return { type: 'data', media, data }
  return /^https?:/.test(url) ? { type: 'url', media: otherwise, url } : null
}
