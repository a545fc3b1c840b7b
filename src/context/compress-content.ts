// `compressContent` for hosts: a large text, made shorter by its kind. The router itself is loaded by the first call.
import type { Compressed, CompressOptions } from './juice/compress.ts'
import type { Hint } from './juice/kind.ts'

export type { Compressed, CompressOptions } from './juice/compress.ts'
export type { Hint as ContentHint, Kind as ContentKind } from './juice/kind.ts'

/**
 * What the content router of an agent does to a result, for any text: a file, a page, an answer of a service. It is left as it is
 * unless it gets smaller. Without `options.keep` nothing is left out: it is only written in a shorter form.
 */
export async function compressContent(
  content: string,
  hint: Hint = {},
  options: CompressOptions = {},
): Promise<Compressed> {
  const router = await import('./juice/compress.ts')
  return router.compressContent(content, hint, options)
}
