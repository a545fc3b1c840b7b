// The tool `read`: numbered lines of a text file or of a kept text; or a picture or PDF, as a part of the result. It
// changes nothing.
import { basename } from 'node:path'
import { blobHash, clip } from '../core/bound-content.ts'
import { readFileAt } from './guarded-disk.ts'
import { detectMedia } from '../core/file-part.ts'
import { type Output, output, ToolFailure } from '../core/tool-output.ts'
import { type PathGuard, locateForCall, PATH_ALIASES } from './path-guard.ts'
import { type Infer, integerField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const LINES = 2000
const WHOLE_BYTES_MAX = 1_000_000
const NEWLINE = 10

const input = objectField({
  path: textField('A file, from the workspace root or absolute; or "blob:<hash>" to read on in a long result.', {
    min: 1,
  }),
  offset: optionalField(integerField('The first line to read. Lines count from 1.', { min: 1 })),
  limit: optionalField(integerField(`How many lines. Default ${LINES}; required for files over 1 MB.`, { min: 1 })),
  column: optionalField(
    integerField('Where to start in the first line, for very long lines. Columns count from 1.', { min: 1 }),
  ),
  max_chars: optionalField(integerField('Fewer characters than usual.', { min: 100 })),
})
type Args = Infer<typeof input>

export function readTool(guarded: PathGuard, charsMax: number): Tool {
  const tool = defineTool({
    name: 'read',
    description:
      'Reads a text file as numbered lines ("number<tab>line"). When there is more, the last line says how to read on. Shows a picture or PDF.',
    input,
    aliases: PATH_ALIASES,
    effect: 'read',
    readsKept: true,
    execute: async (args, context) => {
      const { bytes, shown, hash } = await loadBytes(guarded, args.path, context)
      const media = detectMedia(bytes)
      if (media !== null && blobHash(args.path) === null) return mediaOutput(bytes, media, { shown, hash })
      if (bytes.length > WHOLE_BYTES_MAX && args.limit === undefined) {
        const how = blobHash(args.path) === null ? 'Give offset and limit, or use search.' : 'Give offset and limit.'
        const text = `"${shown}" has ${bytes.length} bytes. ${how}`
        throw new ToolFailure('InvalidInput', text)
      }
      if (bytes.subarray(0, 8000).includes(0)) {
        const text = `"${shown}" is a binary file of ${bytes.length} bytes; read shows text only.`
        throw new ToolFailure('InvalidInput', text)
      }
      const shownMax = Math.min(charsMax, args.max_chars ?? charsMax)
      const page = cutPage(redactPage(bytes, args, shownMax, context), args, shownMax)
      if (page.offset > Math.max(1, page.total)) {
        throw new ToolFailure('InvalidInput', `"${shown}" has ${page.total} lines; there is no line ${page.offset}.`)
      }
      const { next, offset, total, lines } = page
      const metadata = { path: shown, offset, lines: lines.length, total_lines: total, bytes: bytes.length, hash }
      const on = next === null ? {} : { next_offset: next.offset, next_column: next.column, truncated: true }
      return output({ content: `${lines.join('\n')}\n${pageFooter(page, hash)}`, metadata: { ...metadata, ...on } })
    },
  })
  return { ...tool, root: guarded.root }
}

/** Models see the picture if their provider takes it; otherwise they read that it exists. */
function mediaOutput(
  data: Buffer,
  media: string,
  { shown, hash }: { readonly shown: string; readonly hash: string },
): Output {
  const { length: bytes } = data
  const type = media.startsWith('image/') ? 'image' : 'file'
  const content = `(${type === 'image' ? 'a picture' : 'a document'}, ${media}, ${bytes} bytes; sha256 ${hash.slice(0, 16)})`
  const part = { type, media, data, name: basename(shown) } as const
  return output({ content, metadata: { path: shown, media, bytes, hash }, parts: [part] })
}

async function loadBytes(guarded: PathGuard, path: string, context: ToolContext) {
  const kept = blobHash(path)
  if (kept === null) {
    const place = await locateForCall(guarded, path, 'read', context)
    return { ...(await readFileAt(guarded, place)), shown: place.shown }
  }
  const found = /^[0-9a-f]{64}$/.test(kept) ? await context.recall(kept) : null
  if (found === null) throw new ToolFailure('NotFound', `There is no kept text "${path}".`)
  return { bytes: Buffer.from(found), shown: path, hash: kept }
}

type Page = {
  readonly lines: readonly string[]
  readonly offset: number
  readonly total: number
  readonly next: { readonly offset: number; readonly column: number } | null
}

/** A secret that reaches further than this from the shown part is not recognized. */
const AROUND_BYTES = 65_536

/**
 * Redacts before lines are numbered and cut, so that a secret of several lines is still whole. Only the shown part and
 * its surroundings are redacted. Line ends stay; columns count in the redacted text.
 */
function redactPage(bytes: Buffer, { offset = 1, column = 1 }: Args, charsMax: number, context: ToolContext): Buffer {
  let start = 0
  for (let line = 1; line < offset && start < bytes.length; line++) {
    const newline = bytes.indexOf(NEWLINE, start)
    start = newline < 0 ? bytes.length : newline + 1
  }
  const from = bytes.lastIndexOf(NEWLINE, Math.max(0, start - AROUND_BYTES)) + 1
  const to = start + 4 * (column + charsMax) + AROUND_BYTES
  const text = bytes.toString('utf8', from, to)
  const clean = context.redact(text)
  return clean === text ? bytes : Buffer.concat([bytes.subarray(0, from), Buffer.from(clean), bytes.subarray(to)])
}

/** Only the shown lines are decoded; the rest is counted as bytes. */
function cutPage(bytes: Buffer, { offset = 1, limit = LINES, column = 1 }: Args, charsMax: number): Page {
  const lines: string[] = []
  let [line, start, chars] = [1, 0, 0]
  let next: Page['next'] = null
  for (; start < bytes.length; line++) {
    const newline = bytes.indexOf(NEWLINE, start)
    const end = newline < 0 ? bytes.length : newline
    if (line >= offset && next === null) {
      const from = line === offset ? column : 1
      const body = bytes.toString('utf8', start, end).slice(from - 1)
      const shown = `${line}\t${body}`
      if (lines.length === limit) next = { offset: line, column: 1 }
      else if (chars + shown.length <= charsMax) lines.push(shown)
      else if (lines.length > 0) next = { offset: line, column: 1 }
      else {
        const part = clip(body, charsMax)
        lines.push(`${line}\t${part}`)
        next = { offset: line, column: from + part.length }
      }
      chars += shown.length + 1
    }
    start = end + 1
  }
  return { lines, offset, total: line - 1, next }
}

/** Shows the hash, so that `write` can refuse when the file has changed since. */
function pageFooter({ lines, offset, total, next }: Page, hash: string): string {
  if (total === 0) return `(empty, sha256 ${hash.slice(0, 16)})`
  const range = `lines ${offset} to ${offset + lines.length - 1} of ${total}`
  const column = next !== null && next.column > 1 ? ` and column ${next.column}` : ''
  const on = next === null ? '' : `; read on with offset ${next.offset}${column}`
  return `(${range}${on}; sha256 ${hash.slice(0, 16)})`
}
