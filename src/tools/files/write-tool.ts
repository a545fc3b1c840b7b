// The tool `write`: writes a whole file or appends to one, in one step. With the hash that the caller read, it never
// overwrites anything else.
import { hash } from 'node:crypto'
import { clip } from '../core/bound-content.ts'
import { diff } from '../../view/line-diff.ts'
import {
  CHANGED_BY_EDITOR,
  checkApprovedFile,
  conflictFailure,
  fileStatesAt,
  keepBytes,
  readBeforeWrite,
  replaceSeenFile,
} from './guarded-disk.ts'
import type { SeenFile } from './editor-buffers.ts'
import { output } from '../core/tool-output.ts'
import {
  approvalOfPaths,
  runExclusive,
  type PathGuard,
  locateForCall,
  PATH_ALIASES,
  type GuardedPath,
  placeOfGuard,
} from './path-guard.ts'
import { flagField, type Infer, objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import { changeIn, undoChanges } from './undo-changes.ts'

const DIFF_CHARS_MAX = 20_000

const input = objectField({
  path: textField('The file, from the workspace root or absolute. Missing folders are made.', { min: 1 }),
  content: textField('The whole new content; with append, what to add.'),
  append: optionalField(flagField('Add to the end of the file instead of replacing it.')),
  expected_hash: optionalField(
    textField('The sha256 that read showed. If the file is another one by now, nothing is written.', {
      min: 12,
      max: 64,
    }),
  ),
})
type Args = Infer<typeof input>

export function writeTool(guarded: PathGuard): Tool {
  const tool = defineTool({
    name: 'write',
    description:
      'Writes a file: creates it, replaces it, or appends to it. To change part of a file, use edit. Appending what the file already ends with changes nothing, unless expected_hash is given.',
    input,
    aliases: { ...PATH_ALIASES, contents: 'content', file_text: 'content' },
    // Safe to run again after a crash: a file that already has the requested content is left alone.
    effect: 'idempotent',
    sequential: true,
    deliverable: true,
    approval: ({ path }) => approvalOfPaths(guarded, [path]),
    place: () => placeOfGuard(guarded),
    undo: (metadata, context) => undoChanges(guarded, changeIn(metadata), context),
    execute: async (args, context) => {
      const place = await locateForCall(guarded, args.path, 'write', context)
      return runExclusive(guarded, place, () => writeContent(guarded, place, args, context))
    },
  })
  const filesChanged: Tool['filesChanged'] = (args) => fileStatesAt(guarded, [(args as Args).path])
  return { ...tool, root: guarded.root, filesChanged }
}

async function writeContent(guarded: PathGuard, place: GuardedPath, args: Args, context: ToolContext) {
  const seen = await readBeforeWrite(guarded, place)
  const added = Buffer.from(args.content)
  const expected = args.expected_hash === undefined || seen?.hash.startsWith(args.expected_hash.toLowerCase()) === true
  if (isDone(seen, added, args, expected)) {
    const content = `${place.shown} already ${args.append ? 'ends with this' : 'is exactly this'}: nothing was changed.`
    const same = { hash: seen?.hash ?? null, before: seen?.hash ?? null }
    return output({ content, metadata: { path: place.shown, changed: false, ...same } })
  }
  checkApprovedFile(guarded, place, seen, context)
  if (!expected) throw conflictFailure()
  const bytes = args.append && seen ? Buffer.concat([seen.bytes, added]) : added
  const replaced = seen ? keepBytes(context, seen.bytes) : null
  const wanted = hash('sha256', bytes)
  const after = await replaceSeenFile({ guarded, place, seen, bytes, after: wanted, context })
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
 * A second run of the same call must not append twice. With the expected hash this is certain; without it, a file that
 * ends with the text counts as done.
 */
function isDone(seen: SeenFile | null, added: Buffer, { append, expected_hash }: Args, expected: boolean): boolean {
  if (seen === null) return false
  if (!append) return seen.bytes.equals(added)
  const before = seen.bytes.subarray(0, Math.max(0, seen.bytes.length - added.length))
  if (!seen.bytes.subarray(before.length).equals(added)) return false
  if (expected_hash === undefined) return true
  return !expected && hash('sha256', before).startsWith(expected_hash.toLowerCase())
}
