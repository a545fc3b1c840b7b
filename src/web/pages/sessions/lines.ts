// The list of sessions in its order: problems first, then what waits for people, then what runs, then all others. Within what moves the
// order is that of their birth, so that rows stay where they are while somebody reads them.
import type { WireCard } from '../../../server/wire.ts'
import { isProblem } from '../../parts/why.ts'

export type Line =
  | { readonly type: 'head'; readonly name: Group; readonly count: number }
  | {
      readonly type: 'card'
      readonly card: WireCard
      readonly depth: number
      /** Null: it has no children that are known. */
      readonly open: boolean | null
    }

/** Something of the session, or of a child below it, is in the inbox. */
export const WAITING = 'Waiting for a person'
const GROUPS = ['Problems', WAITING, 'Paused', 'Running', 'Scheduled', 'Earlier'] as const
export type Group = (typeof GROUPS)[number]

/** Ids of roots that wait: in the inbox is something of theirs, or of a child below them. */
export type WaitingRoots = ReadonlySet<string>

function groupOf(card: WireCard, waiting: WaitingRoots): Group {
  if (waiting.has(card.session) || asksNow(card)) return WAITING
  if (isProblem(card)) return 'Problems'
  if (card.status === 'requires_action') return 'Paused'
  if (card.status === 'running') return 'Running'
  return card.status === 'rescheduling' ? 'Scheduled' : 'Earlier'
}

/** The inbox has it, or has it as soon as it is read again. */
function asksNow({ status, held, trouble, asks, waits }: WireCard): boolean {
  return status === 'requires_action' && !held && trouble === undefined && asks.length + waits.length > 0
}

/** The sessions below each root that was opened. */
export type Below = ReadonlyMap<string, readonly WireCard[]>

/** `only`: the one section that is shown. `counts` has all of them. */
export function linesOf(
  cards: readonly WireCard[],
  only: Group | undefined,
  opened: ReadonlySet<string>,
  below: Below,
  waiting: WaitingRoots,
): { readonly lines: readonly Line[]; readonly counts: ReadonlyMap<Group, number> } {
  const groups = new Map<Group, WireCard[]>(GROUPS.map((name) => [name, []]))
  for (const card of cards) groups.get(groupOf(card, waiting))?.push(card)
  const lines = [...groups].flatMap(([name, all]): readonly Line[] => {
    if (all.length === 0 || (only !== undefined && only !== name)) return []
    const sorted = all.toSorted(name === 'Running' ? byBirth : byAge)
    return [{ type: 'head', name, count: all.length }, ...sorted.flatMap((card) => withChildren(card, opened, below))]
  })
  return { lines, counts: new Map([...groups].map(([name, all]) => [name, all.length])) }
}

function withChildren(card: WireCard, opened: ReadonlySet<string>, below: Below): readonly Line[] {
  const children = below.get(card.session) ?? []
  const open = opened.has(card.session)
  // What is below it has cost something, or told of itself.
  const hasSome = children.length > 0 || card.treeCostUsd > card.costUsd
  const line: Line = { type: 'card', card, depth: 0, open: hasSome ? open : null }
  if (!open) return [line]
  return [line, ...children.map((child): Line => ({ type: 'card', card: child, depth: depthOf(child), open: null }))]
}

/** The id of a child has one `~` more than that of its parent. */
function depthOf({ session, root }: WireCard): number {
  return session.slice(root.length).split('~').length - 1
}

function byBirth(a: WireCard, b: WireCard): number {
  return (b.created ?? b.at) - (a.created ?? a.at) || (a.session < b.session ? -1 : 1)
}

function byAge(a: WireCard, b: WireCard): number {
  return b.at - a.at || (a.session < b.session ? -1 : 1)
}
