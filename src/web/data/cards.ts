// The list of sessions as it is now: the pages that were read, and the cards that changed since, put together a few times a second however
// many change. And whether what waits for people has to be read again.
import { useEffect, useMemo, useState } from 'react'
import type { PendingAnswer, WireCard } from '../../server/wire.ts'
import { mayWait } from '../../view/pending.ts'
import { api, type SessionsQuery } from './api.ts'
import { live, queries, useSessions } from './query.ts'

const FRAME_MS = 250
const MISSED_MS = 1_000
const WAITS_MS = 1_000

/** The last of each session that changed. */
type News = ReadonlyMap<string, WireCard>

/** Sessions that fit the query, in the order of the server, each as it is now. */
export function useCards(query: SessionsQuery) {
  const found = useSessions(query)
  const news = useNews()
  const pages = found.data?.pages
  const { q = '', status = '', agent = '' } = query
  const cards = useMemo(() => {
    const read = (pages ?? []).flatMap(({ sessions }) => sessions)
    return merged(read, news, { q, status, agent })
  }, [pages, news, q, status, agent])
  return { found, cards, news }
}

function useNews(): News {
  const [news, setNews] = useState<News>(() => new Map())
  useEffect(() => {
    const fresh = new Map<string, WireCard>()
    const show = throttled(FRAME_MS, () => {
      const cards = [...fresh]
      fresh.clear()
      setNews((before) => new Map([...before, ...cards]))
    })
    const take = (card: WireCard): void => {
      fresh.set(card.session, card)
      show.soon()
    }
    // The newest are read again: what changed while nobody told is among them.
    const missed = throttled(MISSED_MS, () => {
      void api.sessions({ limit: 50 }).then(({ sessions }) => sessions.forEach(take), ignored)
    })
    const leave = live.cards({ onCard: take, onMissed: missed.soon })
    return () => {
      leave()
      show.stop()
      missed.stop()
    }
  }, [])
  return news
}

/** The live line says itself when the server does not answer. */
function ignored(): void {}

type Wanted = { readonly q: string; readonly status: string; readonly agent: string }

function merged(read: readonly WireCard[], news: News, wanted: Wanted): readonly WireCard[] {
  const known = new Set(read.map(({ session }) => session))
  const isNew = (card: WireCard): boolean => !known.has(card.session) && card.root === card.session
  const fresh = [...news.values()].filter((card) => isNew(card) && fits(card, wanted))
  const now = read.map((card) => {
    const latest = news.get(card.session)
    return latest && latest.seq >= card.seq ? latest : card
  })
  return [...fresh, ...now.filter((card) => wanted.status === '' || card.status === wanted.status)]
}

function fits({ session, title = '', agent, status }: WireCard, wanted: Wanted): boolean {
  if (wanted.status !== '' && wanted.status !== status) return false
  if (wanted.agent !== '' && wanted.agent !== agent) return false
  const text = `${title} ${agent} ${session}`.toLowerCase()
  return wanted.q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** Reads what waits again when a card that waits changes, or one that did. */
export function usePendingNews(): void {
  useEffect(() => {
    const again = throttled(WAITS_MS, () => void queries.invalidateQueries({ queryKey: ['pending'] }))
    const onCard = (card: WireCard): void => {
      const known = queries.getQueryData<PendingAnswer>(['pending'])?.pending ?? []
      const did = known.some(({ sessionId }) => sessionId === card.session)
      if (did || mayWait(card)) again.soon()
    }
    const leave = live.cards({ onCard, onMissed: again.soon })
    return () => {
      leave()
      again.stop()
    }
  }, [])
}

/** Once in so many milliseconds at most, however often it is asked for. */
function throttled(ms: number, act: () => void): { readonly soon: () => void; readonly stop: () => void } {
  let due: number | null = null
  const soon = (): void => {
    due ??= window.setTimeout(() => {
      due = null
      act()
    }, ms)
  }
  return { soon, stop: () => void (due !== null && clearTimeout(due)) }
}
