// How a node stands: which of its calls are still wanted, whether it is done, and whether it has failed. One call is the simplest
// case of many. Where only so many are needed, they are called in waves, so that what was called does not depend on speed.
import type { Item, MapPolicy } from './step.ts'

export type Standing =
  | { readonly type: 'wants'; readonly items: readonly number[] }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly error: string }

const DONE: Standing = { type: 'done' }

export function standing(policy: MapPolicy | null, items: readonly Item[], width: number): Standing {
  const open = items.flatMap(({ value, error }, i) => (value === undefined && error === undefined ? [i] : []))
  if (policy === 'collect-all' || policy === 'best-effort')
    return open.length > 0 ? { type: 'wants', items: open } : DONE
  if (policy === null || policy === 'fail-fast') return untilError(items, open, width)
  return untilQuorum(policy.quorum, items, open, width)
}

/** The first error in the order of the input: items before it are called first, and none after it. */
function untilError(items: readonly Item[], open: readonly number[], width: number): Standing {
  const at = items.findIndex(({ error }) => error !== undefined)
  const first = at < 0 ? open : open.filter((i) => i < at)
  if (first.length > 0) return { type: 'wants', items: first.slice(0, width) }
  return at < 0 ? DONE : { type: 'failed', error: items[at]?.error ?? '' }
}

function untilQuorum(quorum: number, items: readonly Item[], open: readonly number[], width: number): Standing {
  const values = items.filter(({ value }) => value !== undefined).length
  if (values >= quorum) return DONE
  if (values + open.length >= quorum) return { type: 'wants', items: open.slice(0, width) }
  const { error = 'there are too few items' } = items.find((item) => item.error !== undefined) ?? {}
  const text = `QuorumNotMet: ${values} of ${items.length} succeeded, and ${quorum} must. The first error: ${error}`
  return { type: 'failed', error: text }
}
