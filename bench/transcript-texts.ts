// The conversations of `transcripts`, made from a seed: tasks of a user, pages that tools return, and where facts and rules stand.
// Sizes are those of agents at work: code and test logs of 1 to 20 KB, web pages with their markup of 4 to 40 KB, results of queries of
// 1 to 12 KB; `dumps` are whole tables of 1 to 30 KB.

export type Kind = 'coding' | 'research' | 'data' | 'dumps'
/** `said` is what the agent says before it looks. `needs`: an older page, by its number, that is needed again at this one. */
export type Page = { readonly path: string; readonly text: string; readonly said: string; readonly needs?: number }
export type Task = { readonly text: string; readonly pages: number; readonly rule: boolean }
/** In a page, at this line; or, with null, in the message of a user. */
export type Fact = { readonly text: string; readonly page: number | null; readonly line: number }
type Transcript = { readonly tasks: readonly Task[]; readonly pages: readonly Page[]; readonly facts: readonly Fact[] }

export const RULES = [
  'Never write to the production database.',
  'Always give amounts in cents.',
  'You must not mail customers.',
  'Do not delete branches of other people.',
  'Never send personal data to a third party.',
] as const

const TASKS = 36
const PAGES_A_TASK = 8
const FACTS_IN_PAGES = 14
const FACTS_SAID = 6
/** So often a page that was read before is needed again, about so many pages ago. */
const NEEDED_AGAIN = 0.15
const MEAN_AGE = 8
const SEEDS: Readonly<Record<Kind, number>> = { coding: 11, research: 23, data: 37, dumps: 41 }

/** The same for the same kind, however often it is asked for. */
export function transcriptOf(kind: Kind): Transcript {
  const chance = chanceOf(SEEDS[kind])
  const count = TASKS * PAGES_A_TASK
  const facts: Fact[] = []
  const pages = Array.from({ length: count }, (_, n): Page => {
    const lines = pageOf(kind, n, chance)
    if (n % Math.floor(count / FACTS_IN_PAGES) === 5 && facts.length < FACTS_IN_PAGES) {
      const line = Math.floor(lines.length * (0.7 + 0.2 * chance()))
      const text = `The code of vault ${n} is ${1_000 + Math.floor(chance() * 9_000)}.`
      lines.splice(line, 0, wrapped(kind, text))
      facts.push({ text, page: n, line: line + 1 })
    }
    const age = 1 + Math.floor(-Math.log(1 - chance()) * MEAN_AGE)
    const needs = chance() < NEEDED_AGAIN && n > age ? { needs: n - age } : {}
    return { path: `${kind}/part${n % 17}/item${n}`, text: lines.join('\n'), said: sentence(chance, 12), ...needs }
  })
  const tasks = Array.from({ length: TASKS }, (_, i): Task => {
    const rule = RULES[i]
    if (rule !== undefined) return { text: rule, pages: PAGES_A_TASK, rule: true }
    const said = i % 5 === 1 && facts.length < FACTS_IN_PAGES + FACTS_SAID
    const fact = `The badge of guard ${i} is ${1_000 + Math.floor(chance() * 9_000)}.`
    if (said) facts.push({ text: fact, page: null, line: 0 })
    return { text: `${sentence(chance, 14)}${said ? ` ${fact}` : ''}`, pages: PAGES_A_TASK, rule: false }
  })
  return { tasks, pages, facts }
}

type Chance = () => number

function chanceOf(seed: number): Chance {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const WORDS =
  'order price customer report window account result value number change system market record study method public data energy model table region growth night winter border garden answer letter signal record paper winter engine branch worker status amount invoice harbour village question morning island history summer member'.split(
    ' ',
  )

function word(chance: Chance): string {
  return WORDS[Math.floor(chance() * WORDS.length)] ?? 'word'
}

function sentence(chance: Chance, words: number): string {
  const said = Array.from({ length: words }, () => word(chance)).join(' ')
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}.`
}

/** Most are small and few are large: the square of an even draw. */
function size(chance: Chance, least: number, most: number): number {
  return Math.floor(least + (most - least) * chance() ** 2)
}

function until(chars: number, line: (n: number) => string): string[] {
  const lines: string[] = []
  for (let [length, n] = [0, 0]; length < chars; n++) {
    const next = line(n)
    lines.push(next)
    length += next.length + 1
  }
  return lines
}

function pageOf(kind: Kind, n: number, chance: Chance): string[] {
  if (kind === 'research') return webPage(n, chance)
  if (kind === 'data') return n % 3 === 0 ? jsonRows(chance, 12_000) : table(chance, 12_000)
  if (kind === 'dumps') return n % 3 === 0 ? jsonRows(chance, 20_000) : table(chance, 30_000)
  return n % 3 === 0 ? testLog(chance) : codeFile(chance)
}

function wrapped(kind: Kind, fact: string): string {
  return kind === 'research' ? `<p>${fact}</p>` : kind === 'coding' ? `// ${fact}` : fact
}

/** About half of it is markup: scripts, styles and links, as pages have them. */
function webPage(n: number, chance: Chance): string[] {
  const chars = size(chance, 4_000, 40_000)
  const scripts = until(
    chars * 0.25,
    (at) => `<script>window.${word(chance)}${at} = {"${word(chance)}": ${at}}</script>`,
  )
  const links = until(chars * 0.2, (at) => `<li class="nav"><a href="/${word(chance)}/${at}">${word(chance)}</a></li>`)
  const body = until(chars * 0.55, (at) =>
    at % 12 === 0
      ? `<h2>${sentence(chance, 4)}</h2>`
      : `<p class="text">${sentence(chance, 20)} ${sentence(chance, 24)}</p>`,
  )
  const head = ['<!doctype html>', '<html>', `<head><title>Page ${n}</title>`, ...scripts, '</head>', '<body>']
  return [...head, '<nav><ul>', ...links, '</ul></nav>', '<main>', ...body, '</main>', '</body>', '</html>']
}

function table(chance: Chance, most: number): string[] {
  const rows = until(size(chance, 1_000, most), (n) => {
    const amount = Math.floor(chance() * 100_000)
    return `${n + 1},2024-0${1 + (n % 9)}-1${n % 10},${word(chance)},${word(chance)},${amount / 100},${amount % 2 === 0 ? 'open' : 'paid'}`
  })
  return ['id,day,region,kind,amount,status', ...rows]
}

function jsonRows(chance: Chance, most: number): string[] {
  return until(size(chance, 1_000, most), (n) => {
    const [name, group, total] = [word(chance), word(chance), Math.floor(chance() * 10_000)]
    return JSON.stringify({ id: n, name, group, total, ok: chance() > 0.1 })
  })
}

function testLog(chance: Chance): string[] {
  return until(size(chance, 1_000, 20_000), (n) =>
    n % 37 === 36
      ? `  ✗ ${word(chance)} ${word(chance)} (${Math.floor(chance() * 900)} ms): expected ${n} to be ${n + 1}`
      : `  ✓ ${word(chance)} of ${word(chance)} keeps its ${word(chance)} (${Math.floor(chance() * 90)} ms)`,
  )
}

function codeFile(chance: Chance): string[] {
  return until(size(chance, 1_500, 14_000), (n) => {
    const [one, other] = [word(chance), word(chance)]
    if (n % 9 === 0) return `export function ${one}Of(${other}: ${other.toUpperCase()}): number {`
    if (n % 9 === 8) return '}'
    return `  const ${one}${n} = ${other}.map((${word(chance)}) => ${word(chance)} + ${Math.floor(chance() * 99)})`
  })
}
