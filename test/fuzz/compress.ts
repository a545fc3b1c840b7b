// The content router: what is handed out is smaller, says what it is, and keeps its promises, whatever the text is. Without loss,
// JSON can be read back.
import { shortenCode } from '../../src/context/compress/shorten-code.ts'
import { detectKind } from '../../src/context/compress/detect-kind.ts'
import { shortenDiff } from '../../src/context/compress/shorten-diff.ts'
import { shortenJson } from '../../src/context/compress/shorten-json.ts'
import type { TextHint, TextKind, Shortener, ShortenedText } from '../../src/context/compress/text-kind.ts'
import { shortenLog } from '../../src/context/compress/shorten-log.ts'
import { shortenSearch } from '../../src/context/compress/shorten-search.ts'
import { anyJson } from './json.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Case = { readonly text: string; readonly kind: TextKind; readonly hint: TextHint; readonly lossless: boolean }
type Subject = (one: Case) => ShortenedText | null

const SIGNAL = new AbortController().signal
/** HTML is read by what `web_fetch` uses, which has tests of its own, and plain text stays as it is. */
const KINDS: Readonly<Partial<Record<TextKind, Shortener>>> = {
  json: shortenJson,
  code: shortenCode,
  log: shortenLog,
  search: shortenSearch,
  diff: shortenDiff,
}

const real: Subject = ({ text, kind, hint, lossless }) => {
  detectKind(text, hint)
  const made = KINDS[kind]?.(text, { lossless, hint, signal: SIGNAL }) ?? null
  return made instanceof Promise ? null : made
}

const WORDS = [
  'error',
  'ERROR x',
  'warn',
  'ok',
  '{',
  '}',
  '(',
  ')',
  ';',
  '"',
  "'",
  '`',
  '/',
  '//',
  '/*',
  '*/',
  '\\',
  '\r',
  '\u001B[1m',
  'def f():',
  'fn a() {',
  '@@ -1,2 +1,2 @@',
  '--- a',
  '+++ b',
  'diff --git a/x b/x',
  '+x',
  '-x',
  ' x',
  'a.ts:1:',
  'src/b.ts:22:',
  '[… 3 left out',
  '😀',
  '\u2028',
  '12345678901234567',
  'at x',
  '    at y',
  '"""',
  '⟦tj:',
  'src/a/b.ts',
  'src/a/c.ts',
  'a,b,"c, d"',
  'x  y  1',
  '| a | b | 12 |',
  'USER PID STAT CMD',
  'key: value',
  '  - item',
  '(×3)',
  '-rw-r--r-- 1 a b 12 Nov 1 10:00 f',
  'Permission denied',
]

function soup(tape: Tape): string {
  const line = (): string => tape.list(5, () => tape.pick(WORDS)).join(tape.pick(['', ' ', '\t', '  ']))
  // Some lines come again, so that there is something to fold.
  const some = (): string => `${line()}\n`.repeat(tape.pick([1, 1, 1, 4])).trimEnd()
  return tape.list(60, some).join('\n')
}

function draw(tape: Tape): Case {
  const kind = tape.pick(['json', 'code', 'log', 'search', 'diff'] as const)
  const rows = (): string =>
    JSON.stringify(
      tape.list(60, () => anyJson(tape)),
      null,
      tape.pick([0, 1]),
    )
  const text = kind === 'json' && !tape.chance(4) ? rows() : soup(tape)
  const command = tape.pick([undefined, 'npm test', 'pytest', 'tsc', 'cargo build', 'git fetch', 'kubectl get pods'])
  const hint = {
    ...(command === undefined ? {} : { command }),
    ...(tape.chance(2) ? { path: tape.pick(['a.py', 'a.rs', 'a.ts']) } : {}),
  }
  return { text, kind, hint, lossless: tape.chance(2) }
}

/** Half of a pair, whichever it is. */
const HALF = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/
/** What is shown of a log, and the number of lines of progress. */
const CHARS_MAX = 14_000

/** What a folded log may stand for: repeats that are counted, or paths of one folder in one line. */
function unfoldedLog(shown: string): readonly string[] {
  const lines = shown.split('\n')
  const repeats = lines.flatMap((line) => {
    const [all = '', times = '1'] = / \(×(\d{1,9})\)$/.exec(line) ?? []
    return Array.from({ length: Number(times) }, () => line.slice(0, line.length - all.length))
  })
  const paths = lines.flatMap((line) => {
    const at = line.indexOf('/: ')
    if (at < 0) return [line]
    return line
      .slice(at + 3)
      .split(' ')
      .map((name) => line.slice(0, at + 1) + name)
  })
  return [repeats.join('\n'), paths.join('\n')]
}

function check(subject: Subject, one: Case): void {
  const made = subject(one)
  if (made === null) return
  hold(!(one.lossless && made.lossy), () => 'something was left out where nothing may be')
  const lines = made.text.split('\n').length
  hold(one.kind !== 'log' || one.lossless || lines <= 99, () => `a log of ${lines} lines`)
  hold(one.kind !== 'log' || !made.lossy || made.text.length <= CHARS_MAX, () => `${made.text.length} characters`)
  hold(!HALF.test(made.text), () => 'half a character is shown')
  if (one.lossless && one.kind === 'log') hold(unfoldedLog(made.text).includes(one.text), () => 'other bytes come back')
  if (made.lossy || one.kind !== 'json') return
  const value = parsed(one.text)
  const dense = value === undefined ? undefined : JSON.stringify(value)
  // What is no table is the same JSON. A table begins with its number of rows.
  const same =
    dense === undefined || /^\d+ rows|<table 1>/.test(made.text) || JSON.stringify(parsed(made.text)) === dense
  hold(same, () => 'what is called lossless is another value')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

export const compressions = target<Subject, Case>({
  name: 'compress',
  real,
  cases: drawn(draw, 256),
  planted: {
    'light leaves something out': (one) => real({ ...one, lossless: false }),
    'a log is as long as it likes': (one) => {
      const made = real(one)
      return one.kind === 'log' && made ? { ...made, text: `${made.text}\n${'x\n'.repeat(100)}` } : made
    },
    'half a character is shown': (one) => {
      const made = real(one)
      return made && { ...made, text: made.text.replace(/😀.*$/s, '\uD83D') }
    },
    'a folded log stands for another text': (one) => {
      const made = real(one)
      return made && one.lossless && one.kind === 'log' ? { ...made, text: `${made.text}\nx` } : made
    },
    'letters of JSON are lost': (one) => {
      const made = real(one)
      return made && !made.lossy && one.kind === 'json' ? { ...made, text: made.text.replaceAll(/[a-z]/g, '') } : made
    },
  },
  check,
})
