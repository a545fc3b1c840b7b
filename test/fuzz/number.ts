// Exact numbers against BigInt: both are scaled until they are integers, and then compared.
import { compareExact, parseExact } from '../../src/tools/jsonl/filter.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = { readonly exactOf: typeof parseExact; readonly compareExact: typeof compareExact }
type Decimal = {
  readonly digits: string
  readonly negative: boolean
  readonly places: number
  readonly exponent: number
}

/** More than any exponent less any number of places, so that every number below becomes an integer. */
const SCALE = 64

function decimal(tape: Tape): Decimal {
  const digits = tape.list(24, () => String(tape.pick([0, 1, 9, 5, 2])), 1).join('')
  const places = tape.below(digits.length + 1)
  return { digits, negative: tape.chance(2), places, exponent: tape.below(61) - 30 }
}

function written({ digits, negative, places, exponent }: Decimal, tape: Tape): string {
  const sign = negative ? '-' : tape.chance(4) ? '+' : ''
  const whole = digits.slice(0, digits.length - places)
  const mantissa = places === 0 ? `${whole}${tape.chance(4) ? '.' : ''}` : `${whole}.${digits.slice(-places)}`
  return `${sign}${mantissa}${exponent === 0 ? '' : `${tape.pick(['e', 'E'])}${exponent}`}`
}

function scaled({ digits, negative, places, exponent }: Decimal): bigint {
  const size = BigInt(digits) * 10n ** BigInt(SCALE + exponent - places)
  return negative ? -size : size
}

function pair(tape: Tape) {
  const left = decimal(tape)
  // Often the same number written in another way, or one that differs in its last digit only.
  const right = [decimal(tape), shifted(left, tape.below(7) - 3), longer(left)][tape.below(3)] ?? left
  return { left, right, texts: [written(left, tape), written(right, tape)] as const }
}

function longer(one: Decimal): Decimal {
  return { ...one, digits: `${one.digits}1`, places: one.places + 1 }
}

function shifted(one: Decimal, by: number): Decimal {
  const places = Math.min(one.digits.length, Math.max(0, one.places + by))
  return { ...one, places, exponent: one.exponent + places - one.places }
}

export const numbers = target<Subject, ReturnType<typeof pair>>({
  name: 'number',
  real: { exactOf: parseExact, compareExact },
  cases: drawn(pair, 80),
  planted: {
    'compares as doubles': {
      exactOf: parseExact,
      compareExact: (a, b) =>
        Number(`${sign(a)}0.${a.digits || '0'}e${a.point}`) - Number(`${sign(b)}0.${b.digits || '0'}e${b.point}`),
    },
    'compares digits before the place of the point': {
      exactOf: parseExact,
      compareExact: (a, b) => (a.digits === b.digits ? compareExact(a, b) : a.digits < b.digits ? -1 : 1),
    },
  },
  check: (subject, { left, right, texts }) => {
    const [a, b] = texts.map((text) => subject.exactOf(text))
    if (!a || !b) throw new Error(`one of ${texts.join(' and ')} was not read`)
    const [x, y] = [scaled(left), scaled(right)]
    const expected = x === y ? 0 : x < y ? -1 : 1
    const got = Math.sign(subject.compareExact(a, b))
    hold(got === expected, () => `${texts.join(' against ')}: ${got} instead of ${expected}`)
    hold(
      Math.sign(subject.compareExact(b, a)) === -expected || expected === 0,
      () => `${texts.join(' against ')}: not the opposite the other way round`,
    )
  },
})

function sign({ negative }: { readonly negative: boolean }): string {
  return negative ? '-' : ''
}
