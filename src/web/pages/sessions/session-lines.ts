// The order of the session list: problems, then sessions that wait for a person, then running ones, then all others.
// Running sessions are sorted by creation time, so that rows stay in place while they change.
import type { WireCard } from '../../../server/wire.ts'
import { isProblemCard } from '../../parts/status-words.ts'

export type SessionLine =
  | { readonly type: 'head'; readonly name: SessionGroup; readonly count: number }
  | {
      readonly type: 'card'
      readonly card: WireCard
      readonly depth: number
      /** Null: no known children. */
      readonly open: boolean | null
    }

/** The inbox has an entry of the session or of one of its descendants. */
export const WAITING = 'Waiting for a person'
const GROUPS = ['Problems', WAITING, 'Paused', 'Running', 'Scheduled', 'Earlier'] as const
export type SessionGroup = (typeof GROUPS)[number]

/** The ids of roots with an inbox entry of their own or of a descendant. */
export type WaitingRoots = ReadonlySet<string>

function sessionGroupOf(card: WireCard, waiting: WaitingRoots): SessionGroup {
  if (waiting.has(card.session) || isAskingNow(card)) return WAITING
  if (isProblemCard(card)) return 'Problems'
  if (card.status === 'requires_action') return 'Paused'
  if (card.status === 'running') return 'Running'
  return card.status === 'rescheduling' ? 'Scheduled' : 'Earlier'
}

/** The session is in the inbox, or will be when the inbox is read again. */
function isAskingNow({ status, held, trouble, asks, waits }: WireCard): boolean {
  return status === 'requires_action' && !held && trouble === undefined && asks.length + waits.length > 0
}

/** The sessions below each opened root. */
export type ChildrenByRoot = ReadonlyMap<string, readonly WireCard[]>

/** `only`: shows just this section. `counts` covers all sections. */
export function buildSessionLines(
  cards: readonly WireCard[],
  only: SessionGroup | undefined,
  opened: ReadonlySet<string>,
  below: ChildrenByRoot,
  waiting: WaitingRoots,
): { readonly lines: readonly SessionLine[]; readonly counts: ReadonlyMap<SessionGroup, number> } {
  const groups = new Map<SessionGroup, WireCard[]>(GROUPS.map((name) => [name, []]))
  for (const card of cards) groups.get(sessionGroupOf(card, waiting))?.push(card)
  const lines = [...groups].flatMap(([name, all]): readonly SessionLine[] => {
    if (all.length === 0 || (only !== undefined && only !== name)) return []
    const sorted = all.toSorted(name === 'Running' ? compareCreated : compareLastEvent)
    return [
      { type: 'head', name, count: all.length },
      ...sorted.flatMap((card) => linesWithChildren(card, opened, below)),
    ]
  })
  return { lines, counts: new Map([...groups].map(([name, all]) => [name, all.length])) }
}

function linesWithChildren(card: WireCard, opened: ReadonlySet<string>, below: ChildrenByRoot): readonly SessionLine[] {
  const children = below.get(card.session) ?? []
  const open = opened.has(card.session)
  // Its children have cost something, or have reported themselves.
  const hasSome = children.length > 0 || card.treeCostUsd > card.costUsd
  const line: SessionLine = { type: 'card', card, depth: 0, open: hasSome ? open : null }
  if (!open) return [line]
  return [
    line,
    ...children.map((child): SessionLine => ({ type: 'card', card: child, depth: depthOf(child), open: null })),
  ]
}

/** A child's id has one more `~` than its parent's. */
function depthOf({ session, root }: WireCard): number {
  return session.slice(root.length).split('~').length - 1
}

function compareCreated(a: WireCard, b: WireCard): number {
  return (b.created ?? b.at) - (a.created ?? a.at) || (a.session < b.session ? -1 : 1)
}

function compareLastEvent(a: WireCard, b: WireCard): number {
  return b.at - a.at || (a.session < b.session ? -1 : 1)
}
