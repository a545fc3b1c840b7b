// The children of sessions that somebody opened in the list: read when they are opened, and kept as they change.
import { useQueries } from '@tanstack/react-query'
import { useCallback, useMemo, useState } from 'react'
import type { WireCard } from '../../../server/wire.ts'
import { byBirth } from '../../../view/tree.ts'
import { api } from '../../data/api.ts'
import type { News } from '../../data/cards.ts'
import type { Below } from './lines.ts'

const CHILDREN_MAX = 200

type Trees = {
  readonly opened: ReadonlySet<string>
  readonly below: Below
  readonly toggle: (session: string) => void
}

/** `news`: cards that changed, children among them. */
export function useTrees(news: News): Trees {
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
    return grouped([...cards.values()])
  }, [read, news])
  return { opened, below, toggle }
}

function grouped(cards: readonly WireCard[]): Below {
  const below = new Map<string, WireCard[]>()
  for (const card of cards.toSorted(byId)) {
    const known = below.get(card.root)
    if (known) known.push(card)
    else below.set(card.root, [card])
  }
  return below
}

/** Each before those below it, siblings by the calls that made them. */
function byId(a: WireCard, b: WireCard): number {
  if (b.session.startsWith(`${a.session}~`)) return -1
  return a.session.startsWith(`${b.session}~`) ? 1 : byBirth(a, b)
}
