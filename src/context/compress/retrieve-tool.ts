// The tool `retrieve_original`: returns results and messages of this session that were shortened, cleared or cut, as
// they were. Its implementation is loaded by the first call.
import type { Store } from '../../ports/store.ts'
import { integerField, objectField, optionalField, textField } from '../../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../../tools/core/tool.ts'
import { RETRIEVE } from './marker.ts'

/** Reads sessions of this store, each only its own content and that of the sessions it was forked from. */
export function retrieveTool(store: Store): Tool {
  return defineTool({
    name: RETRIEVE,
    description:
      'Returns the full original of a result or a message of this session that was made shorter, cleared or summarised, by its token; or searches all of them. Give lines or bytes for a part of it.',
    input: objectField({
      token: optionalField(
        textField(
          'The token, such as "⟦tj:…⟧", "call:12.0" for a result or "msg:7" for a message of the user or of yours, with its pictures; "call:index" lists all results and "msg:index" all messages; or "blob:<hash>" where a result was cut.',
          { min: 1 },
        ),
      ),
      search: optionalField(
        textField(
          'Instead of a token: words to look for in all messages and results. The lines that hold the rarest come first.',
          {
            min: 1,
          },
        ),
      ),
      line_from: optionalField(integerField('The first line. Lines count from 1.', { min: 1 })),
      line_to: optionalField(integerField('The last line.', { min: 1 })),
      byte_from: optionalField(integerField('The first byte. Bytes count from 0.')),
      byte_to: optionalField(integerField('The byte after the last.')),
    }),
    aliases: { path: 'token' },
    effect: 'read',
    readsKept: true,
    execute: async (args, context) => {
      const { retrieveOriginal } = await import('./read-original.ts')
      return retrieveOriginal(store, args, context)
    },
  })
}
