// Money for people. Internally money is counted in whole millionths of a dollar; every name that ends in `Usd` is in
// dollars.

export function usdOf(millionths: number): number {
  return millionths / 1_000_000
}

export function usdText(millionths: number): string {
  return `$${usdOf(millionths).toFixed(4)}`
}
