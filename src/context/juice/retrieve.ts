// `retrieve_original`: what this session has said and heard, as it was: results and messages that were made shorter, cleared or cut. What it
// does is loaded by its first call.
import type { Store } from '../../ports/store.ts'
import { integer, object, optional, text } from '../../tools/core/schema.ts'
import { defineTool, type Tool } from '../../tools/core/tool.ts'
import { RETRIEVE } from './marker.ts'

/** Reads sessions of this store, each only its own and what it was forked from. */
export function retrieveTool(store: Store): Tool {
  return defineTool({
    name: RETRIEVE,
    description:
      'Returns the full original of a result or a message of this session that was made shorter, cleared or summarised, by its token; or searches all of them. Give lines or bytes for a part of it.',
    input: object({
      token: optional(
        text(
          'The token, such as "⟦tj:…⟧", "call:12.0" for a result or "msg:7" for a message of the user or of yours, with its pictures; "call:index" lists all results and "msg:index" all messages; or "blob:<hash>" where a result was cut.',
          { min: 1 },
        ),
      ),
      search: optional(
        text(
          'Instead of a token: words to look for in all messages and results. The lines that hold the rarest come first.',
          {
            min: 1,
          },
        ),
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
