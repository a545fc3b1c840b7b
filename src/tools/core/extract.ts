// `extract_from_result`: the lines of a long, kept result that hold a text, or a range of its lines. For agents without `read`: it
// knows no files. What it shows is bounded and never kept anew, so reading a result makes no further one.
import { blobHash } from './bound.ts'
import { type Output, output, ToolFailure } from './output.ts'
import { type Infer, integer, object, optional, text } from './schema.ts'
import { defineTool, type Tool, type ToolContext } from './tool.ts'

const LINES = 200
const CHARS_MAX = 16_000
const LINE_CHARS_MAX = 2_000

const input = object({
  path: text('The kept result, as the cut one names it: "blob:<hash>".', { min: 1 }),
  query: optional(text('Only lines that hold this text, whatever its case.', { min: 1 })),
  offset: optional(integer('The first line to look at. Lines count from 1.', { min: 1 })),
  limit: optional(integer(`How many lines to show. Default ${LINES}.`, { min: 1 })),
})
type Args = Infer<typeof input>

export function extractTool(): Tool {
  return defineTool({
    name: 'extract_from_result',
    description:
      'Reads in a long result that was cut, as numbered lines ("number<tab>line"): those that hold a text, or a range of them. When there is more, the last line says how to read on.',
    input,
    effect: 'read',
    readsKept: true,
    execute: extract,
  })
}

async function extract({ path, query, offset = 1, limit = LINES }: Args, context: ToolContext): Promise<Output> {
  const lines = (await keptAt(path, context)).split('\n')
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
    shown.push(`${i + 1}\t${around(line, wanted)}`)
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

async function keptAt(path: string, { recall, redact }: ToolContext): Promise<string> {
  const hash = blobHash(path) ?? path
  const found = /^[0-9a-f]{64}$/.test(hash) ? await recall(hash) : null
  if (found !== null) return redact(found)
  throw new ToolFailure('NotFound', `There is no kept result "${path.slice(0, 80)}". Name it as the cut result does.`)
}

/** Of a very long line the part around what was looked for. */
function around(line: string, wanted: string | undefined): string {
  if (line.length <= LINE_CHARS_MAX) return line
  const at = wanted === undefined ? 0 : line.toLowerCase().indexOf(wanted)
  const from = Math.max(0, Math.min(at - LINE_CHARS_MAX / 4, line.length - LINE_CHARS_MAX))
  return `${from > 0 ? '…' : ''}${line.slice(from, from + LINE_CHARS_MAX)}${from + LINE_CHARS_MAX < line.length ? '…' : ''}`
}
