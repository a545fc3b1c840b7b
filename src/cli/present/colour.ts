// Colours code line by line. The state after a line is one word, so a comment or a text over several lines keeps its
// colour, and a line that is written is never looked at again. It is no parser: what it does not know stays plain.
import type { Run, Runs } from './flow.ts'
import { plainRuns } from './flow.ts'

const COMMENT = '2'
const STRING = '32'
const KEYWORD = '35'
const NUMBER = '33'
const KEY = '36'

/** Longer lines are data or minified, and colouring them takes long. */
const COLOURED_CHARS_MAX = 2_000

/** What goes on over line ends, from its beginning to its end. `codes` is also its name in the state. */
type Span = { readonly begin: string; readonly end: string; readonly codes: string; readonly hasEscapes?: boolean }

type Language = {
  readonly comment: RegExp | null
  readonly spans: readonly Span[]
  /** A text that ends on its line. */
  readonly text: RegExp
  readonly words: ReadonlySet<string>
  readonly ignoresCase?: boolean
}

const QUOTED = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/y
const DOUBLE = /"(?:\\.|[^"\\])*"/y
const BLOCK: Span = { begin: '/*', end: '*/', codes: COMMENT }
const SLASHES = /\/\/.*/y
const HASH = /(?<=^|\s)#.*/y

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' '))
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  ts: {
    comment: SLASHES,
    spans: [BLOCK, { begin: '`', end: '`', codes: STRING, hasEscapes: true }],
    text: QUOTED,
    words: words(
      'abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace new null number of private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while yield',
    ),
  },
  python: {
    comment: HASH,
    spans: [
      { begin: '"""', end: '"""', codes: STRING, hasEscapes: true },
      { begin: "'''", end: "'''", codes: STRING, hasEscapes: true },
    ],
    text: QUOTED,
    words: words(
      'False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield',
    ),
  },
  shell: {
    comment: HASH,
    spans: [
      { begin: '"', end: '"', codes: STRING, hasEscapes: true },
      { begin: "'", end: "'", codes: STRING },
    ],
    text: /\$(?:\w+|[@#?!*$-]|\{[^}]*\})/y,
    words: words(
      'break case cd continue do done echo elif else esac eval exec exit export fi for function if in local read readonly return set shift source then trap unset until while',
    ),
  },
  go: {
    comment: SLASHES,
    spans: [BLOCK, { begin: '`', end: '`', codes: STRING }],
    text: QUOTED,
    words: words(
      'any bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int interface iota map nil package range return rune select string struct switch true type var',
    ),
  },
  rust: {
    comment: SLASHES,
    spans: [BLOCK, { begin: '"', end: '"', codes: STRING, hasEscapes: true }],
    // A lifetime begins like a character and does not end like one.
    text: /'(?:\\[^']+|[^'\\])'/y,
    words: words(
      'Self as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self static str struct super trait true type unsafe use usize where while',
    ),
  },
  sql: {
    comment: /--.*/y,
    spans: [BLOCK, { begin: "'", end: "'", codes: STRING }],
    text: DOUBLE,
    ignoresCase: true,
    words: words(
      'add all alter and any as asc begin between by case cast check column commit conflict constraint create cross default delete desc distinct do drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with',
    ),
  },
  json: { comment: SLASHES, spans: [BLOCK], text: DOUBLE, words: words('true false null') },
}

const NAMES: Readonly<Record<string, string>> = {
  ts: 'ts js tsx jsx mjs cjs mts cts typescript javascript',
  python: 'python py python3',
  shell: 'shell sh bash zsh console shellscript',
  go: 'go golang',
  rust: 'rust rs',
  sql: 'sql sqlite mysql postgres postgresql psql',
  json: 'json jsonc json5 jsonl',
  diff: 'diff patch',
}

const LANGUAGE_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(NAMES).flatMap(([language, names]) => names.split(' ').map((name) => [name, language] as const)),
)

export type ColouredLine = { readonly runs: Runs; readonly state: string }

/** `state`: that of the line before; empty for the first line. */
export function colourLine(line: string, name: string, state: string): ColouredLine {
  const known = LANGUAGE_OF.get(name.toLowerCase())
  if (known === 'diff') return { runs: [{ text: line, codes: diffCodes(line) }], state: '' }
  const language = LANGUAGES[known ?? '']
  if (!language || line.length > COLOURED_CHARS_MAX) return { runs: plainRuns(line), state }
  return lexLine(line, language, state)
}

function diffCodes(line: string): string {
  if (/^(?:\+\+\+|---|diff |index )/.test(line)) return '1'
  if (line.startsWith('@@')) return KEY
  return line.startsWith('+') ? STRING : line.startsWith('-') ? '31' : ''
}

const NUMBERED = /\b(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/iy
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy
const OTHER = /\s+|[^\s]/uy

function lexLine(line: string, language: Language, before: string): ColouredLine {
  const runs: Run[] = []
  let state = before
  let at = 0
  const put = (to: number, codes: string): void => {
    const last = runs.at(-1)
    const text = line.slice(at, to)
    if (last?.codes === codes) runs[runs.length - 1] = { text: last.text + text, codes }
    else if (text !== '') runs.push({ text, codes })
    at = to
  }
  while (at < line.length) {
    const span = language.spans.find((each) => (state === '' ? line.startsWith(each.begin, at) : each.begin === state))
    if (span) {
      const end = findEnd(line, state === '' ? at + span.begin.length : at, span)
      state = end === null ? span.begin : ''
      put(end ?? line.length, span.codes)
      continue
    }
    const [to, codes] = nextToken(line, at, language)
    put(to, codes)
  }
  return { runs, state }
}

function findEnd(line: string, from: number, { end, hasEscapes = false }: Span): number | null {
  for (let at = from; at < line.length; at += 1) {
    if (hasEscapes && line[at] === '\\') at += 1
    else if (line.startsWith(end, at)) return at + end.length
  }
  return null
}

function nextToken(line: string, at: number, language: Language): readonly [to: number, codes: string] {
  const ends = (pattern: RegExp | null): number => {
    if (pattern === null) return 0
    pattern.lastIndex = at
    return pattern.test(line) ? pattern.lastIndex : 0
  }
  const comment = ends(language.comment)
  if (comment > at) return [comment, COMMENT]
  const text = ends(language.text)
  if (text > at) return [text, /^\s*:/.test(line.slice(text, text + 8)) ? KEY : STRING]
  const number = ends(NUMBERED)
  if (number > at) return [number, NUMBER]
  const word = ends(WORD)
  if (word > at) {
    const name = line.slice(at, word)
    return [word, language.words.has(language.ignoresCase ? name.toLowerCase() : name) ? KEYWORD : '']
  }
  return [Math.max(at + 1, ends(OTHER)), '']
}
