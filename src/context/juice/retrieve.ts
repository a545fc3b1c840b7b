// `retrieve_original`: the original of a result that the content router made shorter, or a part of it. What it does is loaded by its
// first call.
import type { Store } from '../../ports/store.ts'
import { integer, object, optional, text } from '../../tools/core/schema.ts'
import { defineTool, type Tool } from '../../tools/core/tool.ts'
import { RETRIEVE } from './marker.ts'

/** Originals of this store's sessions. */
export function retrieveTool(store: Store): Tool {
  return defineTool({
    name: RETRIEVE,
    description:
      'Returns the full original of a result of this session that was made shorter, cleared or summarised, by its token. Give lines or bytes for a part of it.',
    input: object({
      token: text(
        'The token, such as "⟦tj:…⟧" or "call:12.0"; "call:index" lists all results; or "blob:<hash>" where a result was cut.',
        { min: 1 },
      ),
      line_from: optional(integer('The first line. Lines count from 1.', { min: 1 })),
      line_to: optional(integer('The last line.', { min: 1 })),
      byte_from: optional(integer('The first byte. Bytes count from 0.')),
      byte_to: optional(integer('The byte after the last.')),
    }),
    aliases: { path: 'token' },
    effect: 'read',
    readsKept: true,
    execute: async (args, context) => {
      const { retrieve } = await import('./originals.ts')
      return retrieve(store, args, context)
    },
  })
}
