// `write`: a whole file, or more at its end, in one step. It never writes over what the caller has not seen, if told what that was.
import { hash } from 'node:crypto'
import { clip } from '../core/bound.ts'
import { diff } from '../../view/diff.ts'
import { CHANGED_BY_EDITOR, checkShown, conflict, filesAt, keepBytes, look, replace } from './disk.ts'
import type { Seen } from './buffers.ts'
import { output } from '../core/output.ts'
import { approvalOfPaths, exclusive, type Guard, locateFor, PATH_ALIASES, type Place, placeOf } from './paths.ts'
import { flag, type Infer, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import { changeIn, undoChanges } from './undo.ts'

const DIFF_CHARS_MAX = 20_000

const input = object({
  path: text('The file, from the workspace root or absolute. Missing folders are made.', { min: 1 }),
  content: text('The whole new content; with append, what to add.'),
  append: optional(flag('Add to the end of the file instead of replacing it.')),
  expected_hash: optional(
    text('The sha256 that read showed. If the file is another one by now, nothing is written.', { min: 12, max: 64 }),
  ),
})
type Args = Infer<typeof input>

export function writeTool(guarded: Guard): Tool {
  const tool = defineTool({
    name: 'write',
    description:
      'Writes a file: creates it, replaces it, or appends to it. To change part of a file, use edit. Appending what the file already ends with changes nothing, unless expected_hash is given.',
    input,
    aliases: { ...PATH_ALIASES, contents: 'content', file_text: 'content' },
    // Safe to run again after a crash: a file that already is what was asked for is left alone.
    effect: 'idempotent',
    sequential: true,
    deliverable: true,
    approval: ({ path }) => approvalOfPaths(guarded, [path]),
    place: () => placeOf(guarded),
    undo: (metadata, context) => undoChanges(guarded, changeIn(metadata), context),
    execute: async (args, context) => {
      const place = await locateFor(guarded, args.path, 'write', context)
      return exclusive(guarded, place, () => write(guarded, place, args, context))
    },
  })
  const filesChanged: Tool['filesChanged'] = (args) => filesAt(guarded, [(args as Args).path])
  return { ...tool, root: guarded.root, filesChanged }
}

async function write(guarded: Guard, place: Place, args: Args, context: ToolContext) {
  const seen = await look(guarded, place)
  const added = Buffer.from(args.content)
  const expected = args.expected_hash === undefined || seen?.hash.startsWith(args.expected_hash.toLowerCase()) === true
  if (isDone(seen, added, args, expected)) {
    const content = `${place.shown} already ${args.append ? 'ends with this' : 'is exactly this'}: nothing was changed.`
    const same = { hash: seen?.hash ?? null, before: seen?.hash ?? null }
    return output({ content, metadata: { path: place.shown, changed: false, ...same } })
  }
  checkShown(guarded, place, seen, context)
  if (!expected) throw conflict()
  const bytes = args.append && seen ? Buffer.concat([seen.bytes, added]) : added
  const replaced = seen ? keepBytes(context, seen.bytes) : null
  const wanted = hash('sha256', bytes)
  const after = await replace({ guarded, place, seen, bytes, after: wanted, context })
  const verb = args.append && seen ? 'Appended to' : seen ? 'Replaced' : 'Created'
  return output({
    content: `${verb} ${place.shown}: ${bytes.length} bytes, sha256 ${after.slice(0, 16)}.${after === wanted ? '' : CHANGED_BY_EDITOR}`,
    metadata: {
      path: place.shown,
      changed: true,
      created: seen === null,
      bytes: bytes.length,
      hash: after,
      before: seen?.hash ?? null,
      replaced,
      diff: clip(
        diff(place.shown, context.redact(seen?.bytes.toString() ?? ''), context.redact(bytes.toString())),
        DIFF_CHARS_MAX,
      ),
    },
  })
}

/**
 * A second run of the same call must not append twice. With the expected hash it is certain whether it happened; without it,
 * a file that ends with the text counts as done.
 */
function isDone(seen: Seen | null, added: Buffer, { append, expected_hash }: Args, expected: boolean): boolean {
  if (seen === null) return false
  if (!append) return seen.bytes.equals(added)
  const before = seen.bytes.subarray(0, Math.max(0, seen.bytes.length - added.length))
  if (!seen.bytes.subarray(before.length).equals(added)) return false
  if (expected_hash === undefined) return true
  return !expected && hash('sha256', before).startsWith(expected_hash.toLowerCase())
}
