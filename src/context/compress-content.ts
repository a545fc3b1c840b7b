// `shortenContent` for hosts: shortens a large text by its kind. The content router itself is loaded by the first
// call.
import type { Compressed, CompressOptions } from './compress/shorten-content.ts'
import type { TextHint } from './compress/text-kind.ts'

export type { Compressed, CompressOptions } from './compress/shorten-content.ts'
export type { TextHint as ContentHint, TextKind as ContentKind } from './compress/text-kind.ts'

/**
 * Does to any text what the content router of an agent does to a result: a file, a page, an answer of a service. The
 * text stays as it is unless it gets smaller. Without `options.keep` nothing is left out: the text is only written in a
 * shorter form.
 */
export async function compressContent(
  content: string,
  hint: TextHint = {},
  options: CompressOptions = {},
): Promise<Compressed> {
  const router = await import('./compress/shorten-content.ts')
  return router.shortenContent(content, hint, options)
}
