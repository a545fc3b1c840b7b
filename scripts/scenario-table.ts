// The acceptance scenarios and the tests that show them, put together from the table in docs/inventory.md, the names of
// the tests and the sentences of scripts/scenarios.json. Pure but for `readScenarios`; it runs no test and judges none.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BEHAVIOUR, type Named, namesIn, numberOf, readTests, SCENARIO, type TestFile } from './test-names.ts'

export interface Source {
  /** docs/inventory.md */
  readonly inventory: string
  readonly tests: readonly TestFile[]
  /** scripts/scenarios.json */
  readonly data: {
    readonly scenarios: Readonly<Record<string, string>>
    readonly open: Readonly<Record<string, string>>
  }
}

export interface Row {
  readonly id: string
  readonly sentence: string
  readonly behaviours: readonly string[]
  readonly tests: readonly Named[]
  /** The row itself says that a part is still to come. */
  readonly later: boolean
}

export interface Scenarios {
  readonly rows: readonly Row[]
  /** What does not fit together, one sentence each. */
  readonly problems: readonly string[]
  /** The scenarios that nothing shows yet, or not the whole of. */
  readonly open: readonly string[]
  /** docs/scenarios.md as it should be. */
  readonly page: string
}

/** `B-STORE-20 to B-STORE-26` */
const RANGE = /\b(B(?:-[A-Z][A-Z0-9]*)+-)(\d+) to \1(\d+)\b/g
/** How a table row says that a planned part will bring the rest. */
const LATER = /\b(?:is|are) later\b/

export function readScenarios(root: string): Source {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  return {
    inventory: read('docs/inventory.md'),
    tests: readTests(root),
    data: JSON.parse(read('scripts/scenarios.json')) as Source['data'],
  }
}

export function scenariosOf({ inventory, tests, data }: Source): Scenarios {
  const names = tests.flatMap(namesIn)
  const cited = new Set(names.flatMap(({ ids }) => ids))
  const shown = tableOf(inventory, [...cited])
  const problems = shown.flatMap((line) => problemsOf(line, cited))
  const rows = new Map<string, Row>()
  for (const { ids, behaviours, text } of shown) {
    for (const id of ids) {
      if (rows.has(id)) problems.push(`${id} has two rows`)
      const sentence = data.scenarios[id] ?? ''
      if (sentence === '') problems.push(`${id} has no sentence in scripts/scenarios.json`)
      rows.set(id, { id, sentence, behaviours, tests: testsOf(id, behaviours, names), later: LATER.test(text) })
    }
  }
  for (const id of Object.keys(data.scenarios)) if (!rows.has(id)) problems.push(`${id} has a sentence and no row`)
  for (const id of cited)
    if (id.startsWith('AC-') && !rows.has(id)) problems.push(`a test cites ${id}, which has no row`)
  const all = [...rows.values()].toSorted((a, b) => numberOf(a.id) - numberOf(b.id))
  const open = all.filter(({ tests: shownBy, later }) => later || shownBy.length === 0).map(({ id }) => id)
  return { rows: all, problems, open, page: pageOf(all, data.open) }
}

interface Line {
  readonly ids: readonly string[]
  readonly behaviours: readonly string[]
  readonly text: string
}

/** Every row of the table; those of no scenario have no ids and are still looked at. */
function tableOf(inventory: string, cited: readonly string[]): readonly Line[] {
  return inventory.split('\n').flatMap((line) => {
    const [, first = '', ...rest] = line.split('|')
    if (!line.startsWith('|') || rest.length === 0 || /^\s*(id|-+)\s*$/.test(first)) return []
    const text = rest.join('|')
    return [{ ids: first.match(SCENARIO) ?? [], behaviours: behavioursIn(text, cited), text }]
  })
}

/** The behaviours that a text names, with those between the ends of a range. */
function behavioursIn(text: string, cited: readonly string[]): readonly string[] {
  const found: string[] = []
  const whole = text.replace(RANGE, (range, prefix: string, from: string, to: string) => {
    const between = cited.filter((id) => id.startsWith(prefix) && isBetween(numberOf(id), Number(from), Number(to)))
    return [range, ...between.toSorted((a, b) => numberOf(a) - numberOf(b))].join(', ')
  })
  for (const [id] of whole.matchAll(BEHAVIOUR)) if (!found.includes(id)) found.push(id)
  return found
}

function problemsOf(line: Line, cited: ReadonlySet<string>): readonly string[] {
  const what = line.ids.join(', ') || 'a row'
  return line.behaviours.filter((id) => !cited.has(id)).map((id) => `${what} names ${id}, which no test's name cites`)
}

/** Tests that name the scenario, then those of its behaviours that name no other scenario instead. */
function testsOf(id: string, behaviours: readonly string[], names: readonly Named[]): readonly Named[] {
  const direct = names.filter(({ ids }) => ids.includes(id))
  const byBehaviour = names.filter(
    ({ ids }) => behaviours.some((one) => ids.includes(one)) && !ids.some((one) => one.startsWith('AC-')),
  )
  return [...direct, ...byBehaviour]
}

function pageOf(rows: readonly Row[], open: Readonly<Record<string, string>>): string {
  const lines = rows.map((row) => {
    const left = open[row.id]
    const cells = [
      row.id,
      safe(row.sentence),
      row.behaviours.join(', '),
      [...linesOf(row.tests), ...(left === undefined ? [] : [`**open:** ${safe(left)}`])].join('<br>'),
    ]
    return `| ${cells.join(' | ')} |`
  })
  const done = rows.filter(({ id }) => open[id] === undefined).length
  return `# Scenarios

Which tests show which acceptance scenario of the behaviour inventory. Generated: \`npm run build:all && node .build/scripts/scenarios.js\`
writes it from the table of [inventory.md](inventory.md), the names of the tests and the sentences of \`scripts/scenarios.json\`.
\`test/scenarios.test.ts\` fails when it is out of date.

${done} of ${rows.length} are shown in full. The others say what is open.

| scenario | what must hold | behaviours | tests |
|---|---|---|---|
${lines.join('\n')}
`
}

/** A file once, and its tests after it. */
function linesOf(tests: readonly Named[]): readonly string[] {
  const files = new Map<string, Set<string>>()
  for (const { path, name } of tests) files.set(path, (files.get(path) ?? new Set()).add(safe(name)))
  return [...files].map(([path, names]) => `\`${path}\`: ${[...names].join('; ')}`)
}

/** A text for a cell of a table: what Markdown would take as more than text is escaped. */
function safe(text: string): string {
  return text.replace(/[|<*[\]]|__/g, (sign) => `\\${sign}`).replaceAll('\n', ' ')
}

function isBetween(n: number, from: number, to: number): boolean {
  return n >= from && n <= to
}
