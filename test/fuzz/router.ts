// The whole content router over any bytes: it throws nothing, shows no half of a character, is bounded, and its last line says what it
// is and where the original is.
import { compressContent, type Compressed, type CompressOptions } from '../../src/context/compress-content.ts'
import type { TextHint } from '../../src/context/compress/text-kind.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Case = { readonly text: string; readonly hint: TextHint; readonly profile: 'full' | 'light' }
type Subject = (one: Case) => Promise<Compressed>

const TOKEN = '0123456789abcdef'.repeat(2)

const real: Subject = ({ text, hint, profile }) => {
  const options: CompressOptions = { profile, keep: () => TOKEN, minBytes: 0 }
  return compressContent(text, hint, options)
}

const PIECES = [
  '\u0000',
  '\uD83D',
  '😀',
  '\r',
  '\n',
  '\n\n',
  '\t',
  ' | ',
  ',',
  '"',
  '{',
  '}',
  '[',
  ']',
  ':',
  '/',
  '\u001B[31m',
]
const WORDS = [
  'error',
  'Caused by: X',
  '    at f (a.js:1:1)',
  'ok 12',
  'a/b/c.ts',
  '2026-01-02 10:00:00 INFO x',
  'k: v',
  '(×2)',
  '⟦tj:',
]

function draw(tape: Tape): Case {
  const piece = (): string => {
    if (tape.chance(3)) return tape.pick(PIECES)
    return tape.chance(2) ? tape.pick(WORDS) : String.fromCharCode(tape.pick([97, 65, 48, 233, 0x4e2d, 0x2028, 0xdc00]))
  }
  const line = (): string => tape.list(12, piece).join('')
  const lines = tape.list(40, () => `${line()}\n`.repeat(tape.pick([1, 1, 2, 30])))
  const hints: readonly TextHint[] = [
    {},
    { command: 'make' },
    { path: 'a.csv' },
    { path: 'a.yaml' },
    { tool: 'grep' },
    { kind: 'json' },
    { kind: 'diff' },
    { kind: 'html' },
    { command: 'kubectl get pods' },
  ]
  return { text: lines.join(''), hint: tape.pick(hints), profile: tape.pick(['full', 'light'] as const) }
}

const HALF = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

async function check(subject: Subject, one: Case): Promise<void> {
  const made = await subject(one)
  if (!made.changed) return hold(made.content === one.text, () => 'what is not changed is another text')
  const bytes = Buffer.byteLength(one.text)
  hold(made.bytesAfter < bytes && made.bytesAfter === Buffer.byteLength(made.content), () => 'it is not smaller')
  hold(!HALF.test(made.content), () => 'half a character is shown')
  hold(!(made.lossy && one.profile === 'light'), () => 'something was left out where nothing may be')
  const last = made.content.slice(made.content.lastIndexOf('\n') + 1)
  const said = made.lossy
    ? `[PARTIAL view, full original (${bytes} bytes): retrieve_original with the token ⟦tj:${TOKEN}⟧]`
    : `[reformatted, no data lost; original (${bytes} bytes): ⟦tj:${TOKEN}⟧]`
  hold(last === said, () => `the last line is ${last}`)
}

export const router = target<Subject, Case>({
  name: 'router',
  real,
  cases: drawn(draw, 512),
  planted: {
    'the last line names another token': async (one) => {
      const made = await real(one)
      return made.changed ? { ...made, content: made.content.replace(TOKEN, 'f'.repeat(32)) } : made
    },
    'it is longer than the original': async (one) => {
      const made = await real(one)
      return made.changed ? { ...made, bytesAfter: made.bytesBefore + 1 } : made
    },
  },
  check,
})
