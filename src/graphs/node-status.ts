// The status of a node: which of its calls are still needed, whether it is done, and whether it has failed. A node with
// one call is the simplest case. Where only some calls are needed, they are made in groups, so that the choice does not
// depend on speed.
import type { NodeItem, MapPolicy } from './planner-node.ts'

export type NodeStatus =
  | { readonly type: 'wants'; readonly items: readonly number[] }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly error: string }

const DONE: NodeStatus = { type: 'done' }

export function nodeStatus(policy: MapPolicy | null, items: readonly NodeItem[], width: number): NodeStatus {
  const open = items.flatMap(({ value, error }, i) => (value === undefined && error === undefined ? [i] : []))
  if (policy === 'collect-all' || policy === 'best-effort')
    return open.length > 0 ? { type: 'wants', items: open } : DONE
  if (policy === null || policy === 'fail-fast') return statusUntilError(items, open, width)
  return statusUntilQuorum(policy.quorum, items, open, width)
}

/** Finds the first error in the order of the input. Items before it are called first; items after it are not called. */
function statusUntilError(items: readonly NodeItem[], open: readonly number[], width: number): NodeStatus {
  const at = items.findIndex(({ error }) => error !== undefined)
  const first = at < 0 ? open : open.filter((i) => i < at)
  if (first.length > 0) return { type: 'wants', items: first.slice(0, width) }
  return at < 0 ? DONE : { type: 'failed', error: items[at]?.error ?? '' }
}

function statusUntilQuorum(
  quorum: number,
  items: readonly NodeItem[],
  open: readonly number[],
  width: number,
): NodeStatus {
  const values = items.filter(({ value }) => value !== undefined).length
  if (values >= quorum) return DONE
  if (values + open.length >= quorum) return { type: 'wants', items: open.slice(0, width) }
  const { error = 'there are too few items' } = items.find((item) => item.error !== undefined) ?? {}
  const text = `QuorumNotMet: ${values} of ${items.length} succeeded, and ${quorum} must. The first error: ${error}`
  return { type: 'failed', error: text }
}
