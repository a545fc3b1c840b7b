// The tool `edit`: exact replacements in files, one after the other; a failed one is reported and the others still
// happen. It never guesses: text that is absent or not unique is not replaced.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Json } from '../../kernel/content.ts'
import { boundContent } from '../core/bound-content.ts'
import { diff } from '../../view/line-diff.ts'
import {
  CHANGED_BY_EDITOR,
  checkApprovedFile,
  fileStatesAt,
  keepBytes,
  readBeforeWrite,
  replaceSeenFile,
} from './guarded-disk.ts'
import { ApprovalNeeded, output, ToolFailure } from '../core/tool-output.ts'
import {
  approvalOfPaths,
  runExclusive,
  type PathGuard,
  locatePath,
  locateForCall,
  PATH_ALIASES,
  type GuardedPath,
  placeOfGuard,
} from './path-guard.ts'
import { parseArguments } from '../repair/argument-reading.ts'
import { renameAliases } from '../repair/repair.ts'
import {
  flagField,
  type Infer,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import { changeIn, undoChanges } from './undo-changes.ts'
import { isObject } from '../../view/untrusted-json.ts'

const editSchema = objectField({
  path: textField('The file, from the workspace root or absolute.', { min: 1 }),
  old_string: textField('The exact text to replace, with enough around it to be unique.', { min: 1 }),
  new_string: textField('What to put there.'),
  replace_all: optionalField(flagField('Replace every occurrence instead of the only one.')),
  expected_replacements: optionalField(integerField('Fail unless exactly this many are replaced.', { min: 1 })),
})
const input = objectField({
  edits: listField('Applied in order; each sees what the earlier ones did.', editSchema, { min: 1, max: 200 }),
})
type Edit = Infer<typeof editSchema>

type EditResult = {
  readonly ok: boolean
  readonly text: string
  readonly result: { readonly [key: string]: Json }
}

const aliases = {
  ...PATH_ALIASES,
  old_str: 'old_string',
  old_text: 'old_string',
  oldString: 'old_string',
  new_str: 'new_string',
  new_text: 'new_string',
  newString: 'new_string',
  all: 'replace_all',
  replaceAll: 'replace_all',
}
const ALIASES = new Map(Object.entries(aliases))

export function editTool(guarded: PathGuard, charsMax: number): Tool {
  const tool = defineTool({
    name: 'edit',
    description:
      'Replaces exact text in files. Each old_string must be in the file exactly once, unless replace_all is set. Read the file first.',
    input,
    effect: 'once',
    sequential: true,
    deliverable: true,
    aliases,
    approval: ({ edits }) => approvalOfPaths(guarded, pathsOf(edits)),
    place: () => placeOfGuard(guarded),
    normalise: normaliseEdits,
    undo: ({ results }, context) =>
      undoChanges(guarded, Array.isArray(results) ? results.flatMap(changeIn) : [], context),
    reconcile: ({ edits }) => verifyEdits(guarded, edits),
    execute: async ({ edits }, context) => {
      await checkApprovals(guarded, edits, context)
      const done: EditResult[] = []
      for (const [index, edit] of edits.entries()) done.push(await applyEdit(guarded, edit, index, context))
      const failed = done.filter(({ ok }) => !ok)
      const said = boundContent(done.map((each) => each.text).join('\n'), context, charsMax)
      const counts = { applied: done.length - failed.length, failed: failed.length }
      const results = done.map(({ result }) => result)
      const type = failed[0]?.result['error_type']
      const metadata = { ...said.metadata, ...counts, results, ...(type === undefined ? {} : { error_type: type }) }
      return output({ ok: failed.length === 0, content: said.content, metadata })
    },
  })
  const filesChanged: Tool['filesChanged'] = (args) =>
    fileStatesAt(guarded, pathsOf((args as Infer<typeof input>).edits))
  return { ...tool, root: guarded.root, filesChanged }
}

function pathsOf(edits: readonly Edit[]): readonly string[] {
  return [...new Set(edits.map(({ path }) => path))]
}

/** Asks for an approval before the first edit is made, or not at all. Other problems are reported edit by edit. */
async function checkApprovals(guarded: PathGuard, edits: readonly Edit[], context: ToolContext): Promise<void> {
  for (const path of pathsOf(edits)) {
    try {
      const place = await locateForCall(guarded, path, 'write', context)
      checkApprovedFile(guarded, place, await readBeforeWrite(guarded, place), context)
    } catch (error) {
      if (error instanceof ApprovalNeeded) throw error
    }
  }
}

/** After a crash, finds out from the files whether all edits happened. Anything less is undecided. */
async function verifyEdits(guarded: PathGuard, edits: readonly Edit[]) {
  for (const { path, old_string, new_string } of edits) {
    const place = await locatePath(guarded, path, 'write')
    const text = (await readBeforeWrite(guarded, place))?.bytes.toString() ?? ''
    const has = (within: string, what: string) => splitBy(within, what).length > 1
    const gone = !has(text, old_string) || has(new_string, old_string)
    if (new_string === '' || !has(text, new_string) || !gone) return undefined
  }
  const content = `Verified after a restart: the files hold ${edits.length === 1 ? 'the edit' : 'all edits'}.`
  return output({ content, metadata: { verified: true, applied: edits.length, failed: 0 } })
}

/** Accepts the flat form as a list of one, and a path beside the list for edits that have none. */
function normaliseEdits(args: Json): Json {
  if (!isObject(args)) return args
  const { edits: given, ...named } = renameAliases(args, ALIASES)
  if (given === undefined) return 'old_string' in named ? { edits: [named] } : args
  const edits = editList(given)
  const { path, ...rest } = named
  if (edits === null || Object.keys(rest).length > 0) return args
  return {
    edits: edits.map((edit: Json) => {
      if (!isObject(edit) || path === undefined) return edit
      const own = renameAliases(edit, ALIASES)
      return 'path' in own ? own : { path, ...own }
    }),
  }
}

/** Accepts one edit as a list of one, and a list written as text. */
function editList(edits: Json): readonly Json[] | null {
  if (typeof edits === 'string') return editList(parseArguments(edits) ?? null)
  if (isObject(edits)) return [edits]
  return Array.isArray(edits) ? edits : null
}

async function applyEdit(guarded: PathGuard, edit: Edit, index: number, context: ToolContext): Promise<EditResult> {
  try {
    const place = await locateForCall(guarded, edit.path, 'write', context)
    const done = await runExclusive(guarded, place, () => changeFile(guarded, place, edit, context))
    const count = done.replacements === 1 ? '1 replacement' : `${done.replacements} replacements`
    const { changes, ...facts } = done
    return {
      ok: true,
      text: `Edited ${place.shown}: ${count}.\n${changes}`,
      result: { index, path: place.shown, ok: true, ...facts },
    }
  } catch (error) {
    if (context.signal.aborted || !(error instanceof Error)) throw error
    const known =
      error instanceof ToolFailure ? { error_type: error.kind, ...error.metadata } : { error_type: error.name }
    return {
      ok: false,
      text: `Edit ${index + 1} of ${edit.path} failed: ${error.message}`,
      result: { index, path: edit.path, ok: false, error: error.message, ...known },
    }
  }
}

async function changeFile(guarded: PathGuard, place: GuardedPath, edit: Edit, context: ToolContext) {
  const seen = await readBeforeWrite(guarded, place)
  checkApprovedFile(guarded, place, seen, context)
  if (seen === null) throw new ToolFailure('NotFound', `There is no "${place.shown}". Use write to create it.`)
  // Bytes that are not text would come back changed.
  if (!isUtf8(seen.bytes)) throw new ToolFailure('InvalidInput', `"${place.shown}" is not UTF-8 text.`)
  const before = seen.bytes.toString()
  const { after, replacements } = substituteText(before, edit)
  const bytes = Buffer.from(after)
  const replaced = keepBytes(context, seen.bytes)
  const wanted = hash('sha256', bytes)
  const written = await replaceSeenFile({ guarded, place, seen, bytes, after: wanted, context })
  return {
    replacements,
    hash: written,
    before: seen.hash,
    replaced,
    changes:
      diff(place.shown, context.redact(before), context.redact(after)) + (written === wanted ? '' : CHANGED_BY_EDITOR),
  }
}

function substituteText(before: string, edit: Edit): { readonly after: string; readonly replacements: number } {
  const { old_string, new_string, found } = findMatches(before, edit)
  if (found === 0) {
    const hint = before.includes('\r\n') ? ' Its lines end with \\r\\n.' : ''
    throw new ToolFailure('InvalidInput', `old_string is not in the file. It must match exactly, spaces too.${hint}`)
  }
  if (found > 1 && edit.replace_all !== true) {
    const text = `old_string is in the file ${found} times. Add lines around it, or set replace_all.`
    throw new ToolFailure('InvalidInput', text)
  }
  const { expected_replacements: expected = found } = edit
  if (expected !== found) {
    throw new ToolFailure('InvalidInput', `old_string is in the file ${found} times, not ${expected}.`)
  }
  if (old_string === new_string) throw new ToolFailure('InvalidInput', 'old_string and new_string are the same.')
  // Join the parts instead of calling `replaceSeenFile`: a "$&" in the new text stays text.
  return { after: splitBy(before, old_string).join(new_string), replacements: found }
}

/** Models sometimes escape twice. This is undone only if the given text is absent and the unescaped one occurs once. */
function findMatches(before: string, { old_string, new_string }: Edit) {
  const found = splitBy(before, old_string).length - 1
  const plain = unescapeText(old_string)
  if (found > 0 || plain === old_string || splitBy(before, plain).length !== 2) return { old_string, new_string, found }
  return { old_string: plain, new_string: unescapeText(new_string), found: 1 }
}

/** The built-in search takes time proportional to the product of both lengths: harmless up to this needle length. */
const NEEDLE_CHARS = 32

/** As `text.split(needle)`, in time proportional to the sum of the lengths (Knuth, Morris and Pratt). */
export function splitBy(text: string, needle: string): readonly string[] {
  if (needle.length <= NEEDLE_CHARS) return text.split(needle)
  if (needle.length > text.length) return [text]
  // For each prefix of the needle: the length of its longest suffix that is also a prefix.
  const again = new Int32Array(needle.length + 1)
  for (let at = 1, same = 0; at < needle.length; at++) {
    while (same > 0 && needle.charCodeAt(at) !== needle.charCodeAt(same)) same = again[same] as number
    if (needle.charCodeAt(at) === needle.charCodeAt(same)) same += 1
    again[at + 1] = same
  }
  const parts: string[] = []
  let from = 0
  for (let at = 0, same = 0; at < text.length; at++) {
    while (same > 0 && text.charCodeAt(at) !== needle.charCodeAt(same)) same = again[same] as number
    if (text.charCodeAt(at) === needle.charCodeAt(same)) same += 1
    if (same < needle.length) continue
    parts.push(text.slice(from, at + 1 - needle.length))
    from = at + 1
    same = 0
  }
  return [...parts, text.slice(from)]
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

function unescapeText(escaped: string): string {
  return escaped.replace(/\\(?:u([0-9a-fA-F]{4})|(["\\/nrtbf]))/g, (_all, code?: string, letter?: string) =>
    code === undefined ? (ESCAPES[letter ?? ''] ?? letter ?? '') : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
