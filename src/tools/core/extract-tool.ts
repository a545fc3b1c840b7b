// The tool `extract_from_result`: returns the lines of a long, kept result that contain a text, or a range of its
// lines. For agents without `read`: it reads no files. Its output is bounded and never kept, so reading a result
// creates no further one.
import { blobHash } from './bound-content.ts'
import { type Output, output, ToolFailure } from './tool-output.ts'
import { type Infer, integerField, objectField, optionalField, textField } from './argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from './tool.ts'

const LINES = 200
const CHARS_MAX = 16_000
const LINE_CHARS_MAX = 2_000

const input = objectField({
  path: textField('The kept result, as the cut one names it: "blob:<hash>".', { min: 1 }),
  query: optionalField(textField('Only lines that hold this text, whatever its case.', { min: 1 })),
  offset: optionalField(integerField('The first line to look at. Lines count from 1.', { min: 1 })),
  limit: optionalField(integerField(`How many lines to show. Default ${LINES}.`, { min: 1 })),
})
type Args = Infer<typeof input>

/** A tool by which the model reads a part of a long result that was made shorter. */
export function extractTool(): Tool {
  return defineTool({
    name: 'extract_from_result',
    description:
      'Reads in a long result that was cut, as numbered lines ("number<tab>line"): those that hold a text, or a range of them. When there is more, the last line says how to read on.',
    input,
    effect: 'read',
    readsKept: true,
    execute: extractLines,
  })
}

async function extractLines({ path, query, offset = 1, limit = LINES }: Args, context: ToolContext): Promise<Output> {
  const lines = (await readKeptText(path, context)).split('\n')
  const wanted = query?.toLowerCase()
  const shown: string[] = []
  let chars = 0
  let next: number | null = null
  for (let i = offset - 1; i < lines.length; i++) {
    const line = lines[i] ?? ''
    if (wanted !== undefined && !line.toLowerCase().includes(wanted)) continue
    if (shown.length === limit || chars > CHARS_MAX) {
      next = i + 1
      break
    }
    shown.push(`${i + 1}\t${clipAround(line, wanted)}`)
    chars += Math.min(line.length, LINE_CHARS_MAX)
  }
  const on = next === null ? '' : `\n[there is more: go on with offset ${next}]`
  const none = query === undefined ? `[it has ${lines.length} lines]` : `[no line from ${offset} on holds this text]`
  const metadata = {
    path,
    lines: shown.length,
    total_lines: lines.length,
    ...(next === null ? {} : { next_offset: next }),
  }
  return output({ content: `${shown.join('\n') || none}${on}`, metadata })
}

async function readKeptText(path: string, { recall, redact }: ToolContext): Promise<string> {
  const hash = blobHash(path) ?? path
  const found = /^[0-9a-f]{64}$/.test(hash) ? await recall(hash) : null
  if (found !== null) return redact(found)
  throw new ToolFailure('NotFound', `There is no kept result "${path.slice(0, 80)}". Name it as the cut result does.`)
}

/** Cuts a very long line around the text that was searched for. */
function clipAround(line: string, wanted: string | undefined): string {
  if (line.length <= LINE_CHARS_MAX) return line
  const at = wanted === undefined ? 0 : line.toLowerCase().indexOf(wanted)
  const from = Math.max(0, Math.min(at - LINE_CHARS_MAX / 4, line.length - LINE_CHARS_MAX))
  return `${from > 0 ? '…' : ''}${line.slice(from, from + LINE_CHARS_MAX)}${from + LINE_CHARS_MAX < line.length ? '…' : ''}`
}
