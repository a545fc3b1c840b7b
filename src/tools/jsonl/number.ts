// Exact numbers: a decimal number as written, and the order of two of them. No rounding, no arithmetic, no JSON.

/** 0.d₁d₂d₃… × 10^point, with no zero at either end of the digits. Zero has no digits and no sign. */
export type Exact = { readonly negative: boolean; readonly digits: string; readonly point: bigint }

/** Longer exponents cost more to read than any number is worth; such a number has no exact value here. */
const EXPONENT_DIGITS_MAX = 1_000

/** Anything JSON calls a number, and the forms people write (`+1`, `.5`, `5.`). Null for what is no finite number. */
export function exactOf(text: string): Exact | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const written = whole + fraction
  if (written === '' || exponent.length > EXPONENT_DIGITS_MAX) return null
  let start = 0
  let end = written.length
  // Loops, not patterns: stripping zeros with `/0+$/` takes quadratic time on a long run of zeros inside.
  while (start < end && written[start] === '0') start++
  while (end > start && written[end - 1] === '0') end--
  if (start === end) return { negative: false, digits: '', point: 0n }
  const point = BigInt(whole.length - start) + BigInt(exponent)
  return { negative: sign === '-', digits: written.slice(start, end), point }
}

/** Below, at or above zero, as `left` is below, at or above `right`. */
export function compareExact(left: Exact, right: Exact): number {
  const [a, b] = [signOf(left), signOf(right)]
  if (a !== b) return a - b
  return left.negative ? compareSizes(right, left) : compareSizes(left, right)
}

function signOf({ digits, negative }: Exact): number {
  if (digits === '') return 0
  return negative ? -1 : 1
}

function compareSizes(left: Exact, right: Exact): number {
  if (left.point !== right.point) return left.point < right.point ? -1 : 1
  // Both start right behind the point, so the order of the digits as text is the order of the numbers.
  if (left.digits === right.digits) return 0
  return left.digits < right.digits ? -1 : 1
}
