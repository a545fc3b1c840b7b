// What is printed of ids, names and texts, against a real terminal emulator: tmux is given the rows, and what it shows then is looked
// at. No text moves the cursor out of its row, changes a row before or after it, sets the title, rings or changes the screen.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { loadMarkdown } from '../../src/cli/present/markdown.ts'
import { modelText } from '../../src/cli/present/markdown-stream.ts'
import { oneLine, shownId, shownLine, shownRow } from '../../src/view/clean.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, type Property, type Target } from './target.ts'

/** How a text is printed: as an id, a row, a name, the line of an output, and as what a model said. */
type Subject = {
  readonly shownId: typeof shownId
  readonly shownRow: typeof shownRow
  readonly oneLine: (text: string) => string
  readonly shownLine: typeof shownLine
  readonly saidText: (text: string) => string
}

const ESCAPE = '\u001b'
const SEQUENCES = [
  '[2J',
  '[H',
  '[10;10H',
  '[5A',
  '[99B',
  '[K',
  '[1K',
  '[3J',
  '[?1049h',
  '[?25l',
  '[2;4r',
  '[8m',
  '[L',
  '[M',
  '[S',

  ']0;owned\u0007',
  ']2;owned\u001b\\',
  ']52;c;b3duZWQ=\u0007',
  'kowned\u001b\\',
  'Pq',
  'c',
  '7',
  '8',
  'D',
  'M',
  '#8',
  '(0',

  ']8;;http://x\u001b\\',
  '[6n',
  '[>c',
  '[4h',
  '[20h',
  '[?7l',
  '[?5h',
  '_x\u001b\\',
  '^x\u001b\\',
  '[1;31m',
  '[15~',
].map((rest) => ESCAPE + rest)
const C1 = ['\u009b2J', '\u009d0;owned\u009c', '\u0090q\u009c', '\u0085', '\u0084', '\u008d']
const CONTROLS = [
  '\r',
  '\n',
  '\b',
  '\b\b\b\b\b\b\b\b',
  '\v',
  '\f',
  '\u0007',
  '\u000e',
  '\u000f',
  '\u007f',
  '\t',
  '\u0000',
  '\u0018',
]
const ODD = [
  '\u202e',
  '\u2066',
  '\u200b',
  '\u200d',
  '\u2028',
  '\u2029',
  '\u0301',
  '\u0301'.repeat(20),
  '\ufe0f',
  '\u3164',
]
const PLAIN = [
  'a',
  'word',
  ' ',
  '  ',
  '日本',
  '👍',
  '👩‍👩‍👧',
  'é',
  '%s',
  '\\e[2J',
  '$(x)',
  '`x`',
  '---',
  '# ',
  '> ',
  '```',
  '|',
  '⟨',
  '\ud800',
]

const text = (tape: Tape): string =>
  tape.list(5, () => tape.pick(tape.pick([SEQUENCES, SEQUENCES, C1, CONTROLS, ODD, PLAIN, PLAIN]))).join('')

/** A terminal takes long to show something: it shows many texts at once. */
type Case = { readonly texts: readonly string[] }
const TEXTS_MAX = 40
const cases = drawn((tape): Case => ({ texts: tape.list(TEXTS_MAX, () => text(tape), 1) }), 300)

const COLUMNS = 600
const ROWS = TEXTS_MAX * 6
const SHOWN_MS = 4_000

/** One screen, which is given a file to print. It has a server of its own. */
class Screen {
  readonly #folder = mkdtempSync(join(tmpdir(), 'terret-screen-'))
  readonly #socket = join(this.#folder, 'tmux')
  readonly #file = join(this.#folder, 'rows')
  #shown = 0

  constructor() {
    this.#tmux('new-session', '-d', '-x', String(COLUMNS), '-y', String(ROWS), 'sleep 100000')
    this.#tmux('set-option', '-g', 'remain-on-exit', 'on')
    this.#tmux('set-option', '-g', 'allow-rename', 'on')
  }

  #tmux(...args: readonly string[]): string {
    const env = { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', HOME: this.#folder, LC_ALL: 'C.UTF-8' }
    return execFileSync('tmux', ['-u', '-S', this.#socket, '-f', '/dev/null', ...args], { encoding: 'utf8', env })
  }

  /** The rows of the screen, and what else a text could have changed. */
  show(rows: readonly string[]): { readonly rows: readonly string[]; readonly state: string } {
    this.#shown += 1
    const end = `end-${this.#shown}`
    writeFileSync(this.#file, `${rows.join('\n')}\n${end}\n`)
    const title = `title-${this.#shown}`
    this.#tmux(
      'respawn-pane',
      '-k',
      `printf '\\033]2;${title}\\007\\033[2J\\033[H'; cat '${this.#file}'; exec sleep 100000`,
    )
    const begun = Date.now()
    for (;;) {
      const seen = this.#tmux('capture-pane', '-p').split('\n')
      const at = seen.findIndex((row) => row.trimEnd() === end)
      if (at >= 0 || Date.now() - begun > SHOWN_MS) {
        const format =
          '#{pane_title}|#{cursor_x},#{cursor_y}|#{alternate_on}|#{window_bell_flag}|#{window_name}|#{scroll_region_upper}'
        const told = this.#tmux('display-message', '-p', format).trim()
        const [name = '', place = '', ...more] = told.split('|')
        const state = [
          name === title ? 'its title' : name,
          place === `0,${at + 1}` ? 'its place' : place,
          ...more,
        ].join('|')
        return { rows: seen.slice(0, Math.max(0, at)).map((row) => row.trimEnd()), state }
      }
    }
  }

  close(): void {
    try {
      this.#tmux('kill-server')
    } catch {
      // It went by itself.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

await loadMarkdown()

const real: Subject = {
  shownId,
  shownRow,
  oneLine: (said) => oneLine(said, 400),
  shownLine,
  saidText: (said) => modelText(said, { columns: 200, hasColours: false }),
}

/** The rows as they are printed, each with its number at its beginning, and where it is one row also at its end. */
function printed(subject: Subject, { texts }: Case): readonly { readonly row: string; readonly ends: boolean }[] {
  return texts.flatMap((said, i) => [
    { row: `a${i}:${subject.shownId(said)}:${i}a`, ends: true },
    { row: `b${i}:${subject.shownRow(`x ${said} y`)}:${i}b`, ends: true },
    { row: `c${i}:${subject.oneLine(said)}:${i}c`, ends: true },
    { row: `d${i}:${subject.shownLine(said.replaceAll('\n', ' '))}:${i}d`, ends: true },
    ...subject
      .saidText(said.slice(0, 60))
      .split('\n')
      .slice(0, 2)
      .map((row, n) => ({ row: `e${i}.${n}:${row}`, ends: false })),
  ])
}

function check(screen: Screen, subject: Subject, one: Case): void {
  const wanted = printed(subject, one)
  const { rows, state } = screen.show(wanted.map(({ row }) => row))
  hold(
    rows.length === wanted.length,
    () => `${wanted.length} rows were printed, and ${rows.length} are there: ${JSON.stringify(one.texts)}`,
  )
  for (const [i, { row, ends }] of wanted.entries()) {
    const [begin = ''] = /^\w+\.?\d*:/.exec(row) ?? []
    const seen = rows[i] ?? ''
    const isWhole = seen.startsWith(begin) && (!ends || seen.endsWith(row.slice(row.lastIndexOf(':'))))
    hold(isWhole, () => `${JSON.stringify(row)} is shown as ${JSON.stringify(seen)}`)
    // Where all is drawn by one cell each, it is there letter by letter.
    if (/^[\x20-\x7e]*$/.test(row))
      hold(seen === row.trimEnd(), () => `${JSON.stringify(row)} is shown as ${JSON.stringify(seen)}`)
  }
  hold(
    state.startsWith('its title|its place|0|0|'),
    () => `the screen is otherwise: ${state}: ${JSON.stringify(one.texts)}`,
  )
}

function open(subject: Subject): () => Property {
  return () => {
    const screen = new Screen()
    return {
      property: fc.property(cases, (one) => check(screen, subject, one)),
      close: () => screen.close(),
    }
  }
}

const planted: Readonly<Record<string, Subject>> = {
  'an id is printed as it is': { ...real, shownId: (said) => said },
  'only escape is taken out of a row': { ...real, shownRow: (said) => said.replaceAll(ESCAPE, '') },
  // oxlint-disable-next-line no-control-regex -- It is what is let through.
  'what goes back is let through': { ...real, oneLine: (said) => said.replace(/[^\x08\r\x20-\x7e]/g, '') },
  'a title is let through': { ...real, shownLine: (said) => said.replace(/[\n\r]/g, '') },
}

/** Without tmux there is no such target. */
export const hasTmux = spawnSync('tmux', ['-V']).status === 0
if (!hasTmux && process.env['TERRET_REQUIRE_TMUX'])
  throw new Error('tmux is missing, and its tests may not be skipped here')

export const screens: Target = {
  name: 'screen',
  every: 100,
  open: open(real),
  planted: Object.entries(planted).map(([name, subject]) => ({ name, open: open(subject) })),
}
