// What is shown of a text that is not ours, for any text: each row has a margin and fits, no row is one of the program's, and what is
// left out is told.
import { fitLines, widthOf } from '../../src/cli/present/terminal-text.ts'
import { loadMarkdown } from '../../src/cli/present/markdown.ts'
import { modelText } from '../../src/cli/present/markdown-stream.ts'
import { drawPreview, quoteText, type DrawSize, type DrawnPreview } from '../../src/cli/present/call-preview.ts'
import type { PreviewLine } from '../../src/tools/files/preview-call.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = {
  readonly quoted: typeof quoteText
  readonly drawnPreview: typeof drawPreview
  readonly saidText: typeof saidText
  readonly fitted: typeof fitLines
}
type Case = { readonly text: string; readonly room: DrawSize; readonly lines: readonly PreviewLine[] }

/** What the program prints itself, and what its margins are made of. */
const OWN = [
  'Allow it? y yes, this call · n no · e edit ›',
  '  allowed by ann',
  '  ✓ write',
  '? write a (call 5.0)',
  '› yes',
  '$ ',
]
const PIECES = [
  '\n',
  '\n',
  ' ',
  '  ',
  '\t',
  '\r',
  '│ ',
  '  │ ',
  '┆ ',
  '+',
  '-',
  '@@',
  '⟨9 blanks⟩',
  '日本',
  '👍',
  'e\u0301',
]
const ODD = [
  '\u2800',
  '\u00a0',
  '\u200b',
  '\u202e',
  '\u001b[2J',
  '\u3164',
  '\ud800',
  '\u0301',
  '\ufe0f',
  '\u2028',
  'word',
]

function text(tape: Tape): string {
  const piece = (): string => {
    const one = tape.pick([...OWN, ...PIECES, ...ODD])
    return tape.chance(8) ? one.repeat(tape.pick([5, 50, 500])) : one
  }
  return tape.list(12, piece).join('')
}

const cases = drawn((tape): Case => {
  const room = { columns: tape.pick([20, 33, 80]), rows: tape.pick([6, 20, Number.POSITIVE_INFINITY]) }
  const marks = [' ', '+', '-', '@', '\\'] as const
  const line = (): PreviewLine => ({
    mark: tape.pick(marks),
    text: text(tape).replaceAll('\n', ''),
    ...(tape.chance(4) ? { exposed: true } : {}),
  })
  return { text: text(tape), room, lines: tape.list(10, line) }
})

const MARGIN = /^(?: {2}[│┆┊] |[│┆](?: |$))/u

function rowsOf({ rows }: Pick<DrawnPreview, 'rows'>): readonly string[] {
  return rows.flatMap(({ texts }) => texts)
}

await loadMarkdown()

function saidText(said: string, columns: number): string {
  return modelText(said, { columns, hasColours: false })
}

const real: Subject = { quoted: quoteText, drawnPreview: drawPreview, saidText, fitted: fitLines }
const bare = (row: string): string => row.replace(MARGIN, '')

export const shown = target<Subject, Case>({
  name: 'shown',
  real,
  cases,
  planted: {
    'a broken line goes on without a margin': {
      ...real,
      quoted: (said, room) => {
        const all = quoteText(said, room)
        const rows = all.rows.map((row) => ({ ...row, texts: row.texts.map((one, i) => (i === 0 ? one : bare(one))) }))
        return { ...all, rows }
      },
    },
    'what is said has no margin': {
      ...real,
      saidText: (said, columns) => saidText(said, columns).replace(/^[│┆] ?/gmu, ''),
    },
    'the terminal breaks long lines': { ...real, fitted: (said) => said },
    'what is left out is not told': {
      ...real,
      drawnPreview: (action, preview, room) => ({ ...drawPreview(action, preview, room), hidden: null }),
    },
  },
  check: (subject, { text: said, room, lines }) => {
    const { columns } = room
    const none = { files: null, trouble: null, warnings: [] }
    const file = { path: 'a', state: 'changed', added: 0, removed: 0, bytes: false, lines } as const
    const preview = { files: [file], trouble: null, warnings: [] }
    const args = subject.drawnPreview({ args: { text: said, [said]: 1 } }, none, room)
    const changed = subject.drawnPreview({ args: {} }, lines.length > 0 ? preview : none, room)
    const own = lines.length > 0 ? rowsOf(changed).filter((row) => row === '  a') : []
    hold(own.length <= 1, () => 'the name of the file is there twice')
    const quotedRows = rowsOf(subject.quoted(said, room))
    const spoken = subject
      .saidText(said, columns)
      .split('\n')
      .filter((row) => row !== '')
    for (const row of [...quotedRows, ...rowsOf(args), ...rowsOf(changed).filter((one) => one !== '  a'), ...spoken]) {
      hold(MARGIN.test(row), () => `no margin: ${JSON.stringify(row)}`)
      hold(widthOf(row) <= columns, () => `wider than ${columns}: ${JSON.stringify(row)}`)
      hold(!OWN.includes(row), () => `a line of ours: ${JSON.stringify(row)}`)
    }
    for (const row of subject
      .fitted(`  note: ${said.replace(/\s/gu, ' ')}`, columns)
      .split('\n')
      .slice(0, 50))
      hold(widthOf(row) <= columns, () => `wider than ${columns}: ${JSON.stringify(row)}`)
    const whole = subject.drawnPreview({ args: { text: said, [said]: 1 } }, none, {
      columns,
      rows: Number.POSITIVE_INFINITY,
    })
    hold(args.hidden !== null || rowsOf(args).length === rowsOf(whole).length, () => 'something is left out in silence')
  },
})
