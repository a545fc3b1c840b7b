// Pictures of a terminal as SVG: of one capture of tmux with its colours, or of a recording, which then moves. The text
// stays text, both themes of the reader are served, and a reader who wants no motion sees the last state.
import { columnWidth } from '../src/view/columns.ts'

/** What the terminal showed from a time on: the rows of `tmux capture-pane -p -e`. */
export type TerminalFrame = { readonly atMs: number; readonly text: string }
export type PictureOptions = {
  readonly columns: number
  readonly title: string
  /** How long the last state of a recording stays before it begins again. */
  readonly restMs?: number
}

type Run = { readonly text: string; readonly column: number; readonly columns: number; readonly classes: string }
/** A row with the time that it was shown. */
type RowShown = { readonly row: number; readonly line: string; readonly fromMs: number; readonly toMs: number }

const ESCAPE = '\u001b'
/** What tmux writes before text that looks different. */
const STYLE_CODE = new RegExp(`(${ESCAPE}\\[[\\d;]*m)`, 'g')
const RESET_CODE = new RegExp(`^${ESCAPE}\\[(?:0?[;m])`)

const CELL = 8.4
const LINE = 19
const PAD = 16
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

export function svgOfTerminal(frames: readonly TerminalFrame[], options: PictureOptions): string {
  const first = frames[0]?.atMs ?? 0
  const shifted = frames.map(({ atMs, text }) => ({
    at: Math.round(atMs - first),
    lines: styledRows(text.replace(/\s+$/, '').split('\n')),
  }))
  const lastAt = shifted.at(-1)?.at ?? 0
  const totalMs = shifted.length > 1 ? lastAt + (options.restMs ?? 5_000) : 0
  const rows = Math.max(...shifted.map(({ lines }) => lines.length))
  const shown: RowShown[] = []
  for (let row = 0; row < rows; row++) {
    const states = shifted.map(({ at, lines }) => ({ line: lines[row] ?? '', fromMs: at }))
    const changes = states.filter(({ line }, at) => at === 0 || line !== states[at - 1]?.line)
    for (const [at, { line, fromMs }] of changes.entries())
      shown.push({ row, line, fromMs, toMs: changes[at + 1]?.fromMs ?? totalMs })
  }
  return picture(
    shown.filter(({ line }) => line.replaceAll(STYLE_CODE, '').trim() !== ''),
    rows,
    totalMs,
    options,
  )
}

/** What a capture shows, as text alone. */
export function withoutStyle(text: string): string {
  return text.replaceAll(STYLE_CODE, '').replace(/ +$/gm, '').trimEnd()
}

/** tmux writes a style where it changes, so a row begins as the one before it ended. */
function styledRows(rows: readonly string[]): readonly string[] {
  let before = ''
  return rows.map((row) => {
    const whole = before + row
    const codes = whole.match(STYLE_CODE) ?? []
    before = codes
      .slice(
        Math.max(
          0,
          codes.findLastIndex((code) => RESET_CODE.test(code)),
        ),
      )
      .join('')
    return whole
  })
}

function picture(shown: readonly RowShown[], rows: number, totalMs: number, options: PictureOptions): string {
  const width = Math.ceil(options.columns * CELL + 2 * PAD)
  const height = rows * LINE + 2 * PAD
  const moving = shown.filter(({ fromMs, toMs }) => fromMs > 0 || toMs < totalMs)
  const names = new Map<string, string>()
  for (const { fromMs, toMs } of moving) {
    const span = `${fromMs} ${toMs}`
    if (!names.has(span)) names.set(span, `t${names.size}`)
  }
  const keyframes = [...names].map(([span, name]) => {
    const [from = 0, to = 0] = span.split(' ').map(Number)
    const percent = (ms: number): string => ((ms / totalMs) * 100).toFixed(2)
    const steps = [
      ...(from > 0 ? [`0%{opacity:0}`] : []),
      `${percent(from)}%{opacity:1}`,
      ...(to < totalMs ? [`${percent(to)}%{opacity:0}`] : []),
      `100%{opacity:${to < totalMs ? 0 : 1}}`,
    ]
    const still = to < totalMs ? `@media(prefers-reduced-motion:reduce){.${name}{animation:none;opacity:0}}` : ''
    return `@keyframes ${name}{${steps.join('')}}.${name}{animation:${name} ${totalMs}ms step-end infinite}${still}`
  })
  const reduced = '@media(prefers-reduced-motion:reduce){g{animation:none!important}}'
  const body = shown.map(({ row, line, fromMs, toMs }) => {
    const name = names.get(`${fromMs} ${toMs}`)
    const texts = runsOf(line)
      .map((run) => textOf(run, row))
      .join('')
    return name === undefined ? texts : `<g class="${name}">${texts}</g>`
  })
  const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`
  const title = `<title>${escapeXml(options.title)}</title>`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">${title}
<style>${STYLE}${keyframes.length > 0 ? reduced : ''}${keyframes.join('\n')}</style>
<rect class="screen" width="100%" height="100%" rx="8"/>
${body.join('\n')}
</svg>
`
}

function textOf({ text, column, columns, classes }: Run, row: number): string {
  const x = (PAD + column * CELL).toFixed(1)
  const y = PAD + row * LINE + 14
  const length = (columns * CELL).toFixed(1)
  const back = classes.includes('inverse')
    ? `<rect class="block" x="${x}" y="${y - 14}" width="${length}" height="${LINE}"/>`
    : ''
  const name = classes === '' ? '' : ` class="${classes}"`
  return `${back}<text${name} x="${x}" y="${y}" textLength="${length}" xml:space="preserve">${escapeXml(text)}</text>`
}

/** Letters outside of ASCII have their own place: fonts differ on their widths. */
const WIDTHS = /[\x20-\x7e\u2500-\u257f]+|[^\x20-\x7e\u2500-\u257f]+/g

/** The pieces of a row that look alike. Rows of spaces are left out. */
function runsOf(line: string): readonly Run[] {
  const runs: Run[] = []
  let style: readonly string[] = []
  let column = 0
  for (const part of line.split(STYLE_CODE)) {
    const codes = part.startsWith('\u001b[') ? part.slice(2, -1) : undefined
    if (codes !== undefined) style = styled(style, codes)
    else if (part !== '') {
      for (const text of part.match(WIDTHS) ?? []) {
        let columns = 0
        for (const char of text) columns += columnWidth(char)
        if (text.trim() !== '' || style.includes('inverse'))
          runs.push({ text, column, columns, classes: style.join(' ') })
        column += columns
      }
    }
  }
  return runs
}

const MARKS: Readonly<Record<number, string>> = {
  1: 'bold',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'strike',
}

function styled(before: readonly string[], codes: string): readonly string[] {
  let style = new Set(before)
  const list = codes === '' ? [0] : codes.split(';').map(Number)
  const isColour = (name: string): boolean => COLOURS.includes(name) || name === 'bright'
  for (let at = 0; at < list.length; at++) {
    const code = list[at] ?? 0
    const mark = MARKS[code]
    if (code === 0) style = new Set()
    else if (mark !== undefined) style.add(mark)
    else if (code === 22) style = new Set([...style].filter((each) => each !== 'bold' && each !== 'dim'))
    else if (code >= 23 && code <= 29) style.delete(MARKS[code - 20] ?? '')
    else if ((code >= 30 && code <= 39) || (code >= 90 && code <= 97)) {
      style = new Set([...style].filter((each) => !isColour(each)))
      // A number of the table of 256: its first sixteen are the named ones, the others keep the colour of the text.
      const number = code === 38 ? list[at + 2] : code % 10
      if (code === 38) at += list[at + 1] === 2 ? 4 : 2
      const colour = code === 39 ? undefined : COLOURS[(number ?? 8) % 8]
      if (colour !== undefined && (code !== 38 || (number ?? 16) < 16)) style.add(colour)
    }
  }
  return [...style]
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const DARK =
  '.screen{fill:#15181d}text,.block{fill:#d7dce2}.red{fill:#ff7b72}.green{fill:#7ee787}.yellow{fill:#e3b341}.blue{fill:#79c0ff}.magenta{fill:#d2a8ff}.cyan{fill:#76e3ea}.white{fill:#fff}.black{fill:#8b949e}text.inverse{fill:#15181d}'
const STYLE = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}.screen{fill:#f6f8fa;stroke:#d0d7de}.block{fill:#1f2328}.red{fill:#cf222e}.green{fill:#1a7f37}.yellow{fill:#9a6700}.blue{fill:#0969da}.magenta{fill:#8250df}.cyan{fill:#1b7c83}.white{fill:#6e7781}.black{fill:#24292f}.bold{font-weight:600}.dim{opacity:.65}.italic{font-style:italic}.underline{text-decoration:underline}.strike{text-decoration:line-through}text.inverse{fill:#f6f8fa}@media(prefers-color-scheme:dark){${DARK}}`
