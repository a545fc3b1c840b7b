// What the generators of the held-out outputs share: numbers that look random and are the same in each run, and lines.

export type Dice = (below: number) => number

/** The same seed gives the same numbers. */
export function dice(seed: number): Dice {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 4_294_967_296) * below)
  }
}

export function pick<T>(roll: Dice, from: readonly [T, ...T[]]): T {
  return from[roll(from.length)] ?? from[0]
}

export function lines(count: number, make: (i: number) => string | readonly string[]): string[] {
  return Array.from({ length: count }, (_, i) => make(i)).flat()
}

export function two(value: number, width = 2): string {
  return String(value).padStart(width, '0')
}

/** The time of a day, so many seconds after `from`. */
export function clock(seconds: number, from = 8): string {
  const all = from * 3_600 + seconds
  return `${two(Math.floor(all / 3_600) % 24)}:${two(Math.floor(all / 60) % 60)}:${two(all % 60)}`
}

export function hex(roll: Dice, length: number): string {
  return Array.from({ length }, () => roll(16).toString(16)).join('')
}

export const NOUNS = [
  'Order',
  'Invoice',
  'Parcel',
  'Stock',
  'Tariff',
  'Ledger',
  'Refund',
  'Voucher',
  'Supplier',
  'Address',
  'Session',
  'Catalog',
  'Basket',
  'Rating',
  'Export',
] as const

export const VERBS = [
  'create',
  'load',
  'merge',
  'split',
  'close',
  'verify',
  'round',
  'sign',
  'parse',
  'archive',
] as const
