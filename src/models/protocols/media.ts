// Files in requests: their media type, and the text that replaces a file a model cannot take. Each protocol decides which those are.
import type { Part } from '../../kernel/content.ts'

/** In lower case and without parameters. Corrects the common mistake `image/jpg`. */
export function mediaOf(media: string): string {
  const plain = media.toLowerCase().split(';')[0]?.trim() ?? ''
  return plain === 'image/jpg' ? 'image/jpeg' : plain
}

/** The text sent in place of a file. */
export function unseen({ media, data, name }: Extract<Part, { type: 'data' }>): string {
  const bytes = Buffer.byteLength(data, 'base64')
  return `[file ${name ?? 'without a name'} (${media}, ${bytes} bytes) cannot be shown to this model]`
}
