/** What an order costs, in cents. */
export function priceOf(items) {
  let sum = 0
  for (const { cents, pieces } of items) sum += cents * pieces
  return sum
}
