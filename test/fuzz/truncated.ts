// Text that ends early: it is closed or given up, never completed. The oracle wrote the text, so it knows what the cut hit.
import type { Json } from '../../src/kernel/content.ts'
import { closeJson } from '../../src/tools/repair/close-json.ts'
import { anyJson, isObject, isPart, pollution, sameJson } from './json.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = typeof closeJson
type Token = { readonly text: string; readonly kind: 'mark' | 'key' | 'string' | 'number' | 'word' }
type Case = {
  readonly whole: Json
  readonly pairs: number
  readonly text: string
  readonly hit: Token['kind'] | null
  readonly cut: boolean
}

function document(tape: Tape): Case {
  const whole = Object.fromEntries(
    tape.list(8, () => [tape.pick(['a', 'b', '"', '__proto__', 'ü', '', 'c', '\\']), anyJson(tape)] as const),
  )
  const tokens = tokensOf(whole)
  const gap = tape.pick(['', '', ' ', '\n  '])
  const all = tokens.map(({ text }) => text + gap)
  const length = all.join('').length
  const end = tape.chance(8) ? length : (tape.below(256) * 256 + tape.below(256)) % (length + 1)
  let at = 0
  const hit = tokens.find(({ text }) => {
    const start = at
    at += text.length + gap.length
    return start < end && end <= start + text.length
  })
  const inside = hit !== undefined && isOpen(hit, end - (at - gap.length - hit.text.length))
  return {
    whole,
    pairs: Object.keys(whole).length,
    text: all.join('').slice(0, end),
    hit: inside ? hit.kind : null,
    cut: end < length,
  }
}

/** A cut behind the last character of a number still leaves it open: more digits may have followed. */
function isOpen({ kind, text }: Token, characters: number): boolean {
  return kind === 'number' || characters < text.length
}

function tokensOf(value: Json): readonly Token[] {
  if (Array.isArray(value))
    return listed(
      '[',
      value.map((item: Json) => tokensOf(item)),
      ']',
    )
  if (isObject(value)) {
    const fields = Object.entries(value).map(([key, item]): readonly Token[] => [
      { text: JSON.stringify(key), kind: 'key' },
      mark(':'),
      ...tokensOf(item),
    ])
    return listed('{', fields, '}')
  }
  const kind = typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : 'word'
  return [{ text: JSON.stringify(value), kind }]
}

function listed(open: string, items: readonly (readonly Token[])[], end: string): readonly Token[] {
  return [mark(open), ...items.flatMap((item, i) => (i === 0 ? item : [mark(','), ...item])), mark(end)]
}

function mark(text: string): Token {
  return { text, kind: 'mark' }
}

export const truncations = target<Subject, Case>({
  name: 'truncated',
  real: closeJson,
  cases: drawn(document, 96),
  planted: {
    'half a string is taken for a whole one': (text) => {
      const closed = closeJson(text)
      return closed?.lost === 'value' ? (closeJson(`${text}"`) ?? closed) : closed
    },
    'what was lost is not told': (text) => {
      const closed = closeJson(text)
      return closed && { ...closed, lost: 'none' }
    },
    'it throws where nothing can be read': (text) => {
      const closed = closeJson(text)
      if (closed === null) throw new Error('nothing can be read')
      return closed
    },
    'a number at the end is taken for whole': (text) => closeJson(/\d$/.test(text) ? `${text} ` : text),
  },
  check: (subject, { whole, pairs, text, hit, cut }) => {
    const closed = subject(text)
    if (!cut && pairs <= 12)
      hold(closed?.lost === 'none' && sameJson(closed.value, whole), () => 'the whole text was not read as it is')
    if (closed === null) return
    hold(isPart(closed.value, whole), () => `${JSON.stringify(closed.value)} was never written`)
    const half = hit === 'string' || hit === 'number'
    hold(!half || closed.lost === 'value', () => `half a ${hit} was lost, and "${closed.lost}" was told`)
    const spoilt = pollution(closed.value)
    hold(spoilt === null, () => spoilt ?? '')
  },
})
