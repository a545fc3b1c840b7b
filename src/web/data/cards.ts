// The list of sessions as it is now: the pages that were read, and the cards that changed since, put together a few times a second however
// many change. And whether what waits for people has to be read again.
import { useEffect, useMemo, useState } from 'react'
import type { PendingAnswer, WireCard } from '../../server/wire.ts'
import { mayWait } from '../../view/pending.ts'
import { api, type SessionsQuery } from './api.ts'
import { live, queries, usePending, useSessions } from './query.ts'

const FRAME_MS = 250
const MISSED_MS = 1_000
const WAITS_MS = 1_000

/** The last of each session that changed; null: it was removed. */
export type News = ReadonlyMap<string, WireCard | null>

/** What is asked of the store by itself, so that it is found however many other sessions are newer. */
const PARTS = {
  problems: { outcome: 'failed,halted,unknown,quarantined' },
  paused: { status: 'requires_action' },
  running: { status: 'running' },
  scheduled: { status: 'rescheduling' },
} as const
export type CardPart = keyof typeof PARTS

/** Sessions that fit the query, each as it is now, and how to read more of each part that has more. */
export function useCards(query: SessionsQuery) {
  const found = useSessions(query)
  const isWhole = query.status === undefined && query.outcome === undefined
  const parts = {
    problems: useSessions({ ...query, ...PARTS.problems }, isWhole),
    paused: useSessions({ ...query, ...PARTS.paused }, isWhole),
    running: useSessions({ ...query, ...PARTS.running }, isWhole),
    scheduled: useSessions({ ...query, ...PARTS.scheduled }, isWhole),
  }
  const pending = usePending()
  const waiting = pending.data?.sessions
  const news = useNews()
  const pages = [...Object.values(parts), found].map(({ data }) => data?.pages)
  const { q = '', status = '', agent = '', outcome = '', since = 0 } = query
  const cards = useMemo(() => {
    const wanted = { q, status, agent, outcome, since }
    const read = pages.flatMap((part) => (part ?? []).flatMap(({ sessions }) => sessions))
    const waits = (waiting ?? []).filter((card) => fits(card, wanted))
    return merged([...waits, ...read], news, wanted)
  }, [...pages, waiting, news, q, status, agent, outcome, since])
  const more = new Map<CardPart, () => void>()
  for (const [part, { hasNextPage, isFetching, fetchNextPage }] of Object.entries(parts))
    if (isWhole && hasNextPage) more.set(part as CardPart, () => void (!isFetching && fetchNextPage()))
  const isReading = pending.isPending || Object.values(parts).some(({ isLoading }) => isLoading)
  return { found, cards, news, more, isReading, isWhole }
}

function useNews(): News {
  const [news, setNews] = useState<News>(() => new Map())
  useEffect(() => {
    const fresh = new Map<string, WireCard | null>()
    const show = throttled(FRAME_MS, () => {
      const cards = [...fresh]
      fresh.clear()
      setNews((before) => new Map([...before, ...cards]))
    })
    const put = (session: string, card: WireCard | null): void => {
      fresh.set(session, card)
      show.soon()
    }
    const take = (card: WireCard): void => put(card.session, card)
    // The newest are read again: what changed while nobody told is among them.
    const missed = throttled(MISSED_MS, () => {
      void api.sessions({ limit: 50 }).then(({ sessions }) => sessions.forEach(take), ignored)
    })
    const leave = live.cards({ onCard: take, onGone: (session) => put(session, null), onMissed: missed.soon })
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

type Wanted = {
  readonly q: string
  readonly status: string
  readonly agent: string
  readonly outcome: string
  readonly since: number
}

/** A session may be in several parts: it is shown once, as it was told last. */
function merged(read: readonly WireCard[], news: News, wanted: Wanted): readonly WireCard[] {
  const known = new Map<string, WireCard>()
  for (const card of read) {
    const before = known.get(card.session)
    if (before === undefined || card.seq > before.seq) known.set(card.session, card)
  }
  const isNew = (card: WireCard): boolean => !known.has(card.session) && card.root === card.session
  const fresh = [...news.values()].filter(
    (card): card is WireCard => card !== null && isNew(card) && fits(card, wanted),
  )
  const now = [...known.values()].flatMap((card) => {
    const latest = news.get(card.session)
    return latest === null ? [] : latest && latest.seq >= card.seq ? latest : card
  })
  return [...fresh, ...now.filter((card) => hasState(card, wanted))]
}

function fits(card: WireCard, wanted: Wanted): boolean {
  const { session, title = '', agent, at, labels = {} } = card
  if (!hasState(card, wanted) || at < wanted.since) return false
  if (wanted.agent !== '' && wanted.agent !== agent) return false
  const text = `${title} ${agent} ${session} ${Object.entries(labels).flat().join(' ')}`.toLowerCase()
  return wanted.q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function hasState({ status, outcome, unknown }: WireCard, wanted: Wanted): boolean {
  if (wanted.status !== '' && wanted.status !== status) return false
  if (wanted.outcome === '' || wanted.outcome === outcome) return true
  return wanted.outcome === 'unknown' && unknown !== undefined
}

/** Reads what waits again when a card that waits changes, or one that did, and when a session was removed. */
export function usePendingNews(): void {
  useEffect(() => {
    const again = throttled(WAITS_MS, () => void queries.invalidateQueries({ queryKey: ['pending'] }))
    const onCard = (card: WireCard): void => {
      const known = queries.getQueryData<PendingAnswer>(['pending'])?.pending ?? []
      const did = known.some(({ sessionId }) => sessionId === card.session)
      if (did || mayWait(card)) again.soon()
    }
    const onGone = (): void => {
      // Pages that are opened next must not show what they had before.
      void queries.invalidateQueries({ refetchType: 'none' })
      again.soon()
    }
    const leave = live.cards({ onCard, onGone, onMissed: again.soon })
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
