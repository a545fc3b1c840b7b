// The children of sessions that were opened in the list: read on opening, then kept current.
import { useQueries } from '@tanstack/react-query'
import { useCallback, useMemo, useState } from 'react'
import type { WireCard } from '../../../server/wire.ts'
import { compareByCall } from '../../../view/tree-rows.ts'
import { api } from '../../data/api.ts'
import type { ChangedCards } from '../../data/card-list.ts'
import type { ChildrenByRoot } from './session-lines.ts'

const CHILDREN_MAX = 200

type OpenTrees = {
  readonly opened: ReadonlySet<string>
  readonly below: ChildrenByRoot
  readonly toggle: (session: string) => void
}

/** `news`: changed cards, including those of children. */
export function useTrees(news: ChangedCards): OpenTrees {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const toggle = useCallback((session: string): void => {
    setOpened(
      (before) => new Set(before.has(session) ? [...before].filter((id) => id !== session) : [...before, session]),
    )
  }, [])
  const read = useQueries({
    queries: [...opened].map((root) => ({
      queryKey: ['children', root],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) => api.sessions({ root, limit: CHILDREN_MAX }, signal),
    })),
    combine: (found) => found.flatMap(({ data }) => data?.sessions ?? []),
  })
  const below = useMemo(() => {
    const cards = new Map<string, WireCard>()
    for (const card of [...read, ...news.values()])
      if (card !== null && news.get(card.session) !== null && card.root !== card.session) cards.set(card.session, card)
    return groupByRoot([...cards.values()])
  }, [read, news])
  return { opened, below, toggle }
}

function groupByRoot(cards: readonly WireCard[]): ChildrenByRoot {
  const below = new Map<string, WireCard[]>()
  for (const card of cards.toSorted(compareInTree)) {
    const known = below.get(card.root)
    if (known) known.push(card)
    else below.set(card.root, [card])
  }
  return below
}

/** Sorts parents before their children, and siblings by the calls that made them. */
function compareInTree(a: WireCard, b: WireCard): number {
  if (b.session.startsWith(`${a.session}~`)) return -1
  return a.session.startsWith(`${b.session}~`) ? 1 : compareByCall(a, b)
}
