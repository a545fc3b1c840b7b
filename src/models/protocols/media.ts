// Files in requests: their media type, and the text that replaces a file a model cannot take. Each protocol decides which those are.
// Files in replies: pictures that a model made.
import type { Part } from '../../kernel/content.ts'

/** A file whose bytes are here. */
export type Data = Extract<Part, { type: 'data' }>
/** A file that the provider reads itself. */
export type Remote = Extract<Part, { type: 'url' | 'file_id' }>

/** In lower case and without parameters. Corrects the common mistake `image/jpg`. */
export function mediaOf(media: string): string {
  const plain = media.toLowerCase().split(';')[0]?.trim() ?? ''
  return plain === 'image/jpg' ? 'image/jpeg' : plain
}

/** A part that is a file in a request, and no text and no thought. */
export function isFile(part: Part): part is Data | Remote {
  return part.type === 'data' || part.type === 'url' || part.type === 'file_id'
}

/** The text sent in place of a file. */
export function unseen(part: Data | Remote): string {
  return `[file ${part.name ?? 'without a name'} (${part.media}, ${whatOf(part)}) cannot be shown to this model]`
}

function whatOf(part: Data | Remote): string {
  if (part.type === 'url') return part.url
  if (part.type === 'file_id') return `${part.id} at ${part.provider}`
  return `${Buffer.byteLength(part.data, 'base64')} bytes`
}

/** The text in a result whose files are in the message after it. */
export function shownBelow({ media, name }: Data | Remote): string {
  return `[file ${name ?? 'without a name'} (${media}) is in the message after the results]`
}

/** The text in a reply whose pictures are in the message after it: few hosts take a picture as something that the model said. */
export function madeBelow({ media, name }: Data | Remote): string {
  return `[file ${name ?? 'without a name'} (${media}) that was made here is in the next message]`
}

/** The text before those pictures. */
export const FROM_REPLY = '[from the reply above]'

/** A picture in a reply, given by its address: in most replies that holds the bytes. Null: it is neither. */
export function madeAt(url: string, otherwise = 'image/png'): Part | null {
  const [, media, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,([\s\S]+)$/.exec(url) ?? []
  if (media !== undefined && data !== undefined) return { type: 'data', media, data }
  return /^https?:/.test(url) ? { type: 'url', media: otherwise, url } : null
}
