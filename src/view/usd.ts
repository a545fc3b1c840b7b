// Money for people. Internally money is counted in whole millionths of a dollar; every name that ends in `Usd` is in
// dollars.

/** Millionths of a dollar as dollars. */
export function usdOf(millionths: number): number {
  return millionths / 1_000_000
}

/** Millionths of a dollar as a text, such as `$0.0123`. */
export function usdText(millionths: number): string {
  return `$${usdOf(millionths).toFixed(4)}`
}
