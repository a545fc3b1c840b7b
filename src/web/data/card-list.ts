// The current list of sessions: the pages read so far, merged with changed cards a few times a second. Also decides
// when the pending calls must be read again.
import { useEffect, useMemo, useState } from 'react'
import type { PendingAnswer, WireCard } from '../../server/wire.ts'
import { mayWait } from '../../view/pending-calls.ts'
import { api, type SessionsQuery } from './api.ts'
import { live, queries, usePending, useSessions } from './queries.ts'

const FRAME_MS = 250
const MISSED_MS = 1_000
const WAITS_MS = 1_000

/** The latest card of each changed session; null if it was removed. */
export type ChangedCards = ReadonlyMap<string, WireCard | null>

/** Parts with queries of their own, so that their sessions are found however many newer sessions there are. */
const PARTS = {
  problems: { outcome: 'failed,halted,unknown,quarantined' },
  paused: { status: 'requires_action' },
  running: { status: 'running' },
  scheduled: { status: 'rescheduling' },
} as const
export type CardPart = keyof typeof PARTS

/** The current cards that match the query, and how to read more of each part. */
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
  const news = useChangedCards()
  const pages = [...Object.values(parts), found].map(({ data }) => data?.pages)
  const { q = '', status = '', agent = '', outcome = '', since = 0 } = query
  const cards = useMemo(() => {
    const wanted = { q, status, agent, outcome, since }
    const read = pages.flatMap((part) => (part ?? []).flatMap(({ sessions }) => sessions))
    const waits = (waiting ?? []).filter((card) => matchesCardFilter(card, wanted))
    return mergeCards([...waits, ...read], news, wanted)
  }, [...pages, waiting, news, q, status, agent, outcome, since])
  const more = new Map<CardPart, () => void>()
  for (const [part, { hasNextPage, isFetching, fetchNextPage }] of Object.entries(parts))
    if (isWhole && hasNextPage) more.set(part as CardPart, () => void (!isFetching && fetchNextPage()))
  const isReading = pending.isPending || Object.values(parts).some(({ isLoading }) => isLoading)
  return { found, cards, news, more, isReading, isWhole }
}

function useChangedCards(): ChangedCards {
  const [news, setNews] = useState<ChangedCards>(() => new Map())
  useEffect(() => {
    const fresh = new Map<string, WireCard | null>()
    const show = throttle(FRAME_MS, () => {
      const cards = [...fresh]
      fresh.clear()
      setNews((before) => new Map([...before, ...cards]))
    })
    const put = (session: string, card: WireCard | null): void => {
      fresh.set(session, card)
      show.soon()
    }
    const take = (card: WireCard): void => put(card.session, card)
    // The newest cards are read again, since changes may have been missed.
    const missed = throttle(MISSED_MS, () => {
      void api.sessions({ limit: 50 }).then(({ sessions }) => sessions.forEach(take), ignoreFailure)
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

/** The live status already shows that the server does not answer. */
function ignoreFailure(): void {}

type CardSearch = {
  readonly q: string
  readonly status: string
  readonly agent: string
  readonly outcome: string
  readonly since: number
}

/** A session in several parts is shown once, with its latest card. */
function mergeCards(read: readonly WireCard[], news: ChangedCards, wanted: CardSearch): readonly WireCard[] {
  const known = new Map<string, WireCard>()
  for (const card of read) {
    const before = known.get(card.session)
    if (before === undefined || card.seq > before.seq) known.set(card.session, card)
  }
  const isNew = (card: WireCard): boolean => !known.has(card.session) && card.root === card.session
  const fresh = [...news.values()].filter(
    (card): card is WireCard => card !== null && isNew(card) && matchesCardFilter(card, wanted),
  )
  const now = [...known.values()].flatMap((card) => {
    const latest = news.get(card.session)
    return latest === null ? [] : latest && latest.seq >= card.seq ? latest : card
  })
  return [...fresh, ...now.filter((card) => matchesState(card, wanted))]
}

function matchesCardFilter(card: WireCard, wanted: CardSearch): boolean {
  const { session, title = '', agent, at, labels = {} } = card
  if (!matchesState(card, wanted) || at < wanted.since) return false
  if (wanted.agent !== '' && wanted.agent !== agent) return false
  const text = `${title} ${agent} ${session} ${Object.entries(labels).flat().join(' ')}`.toLowerCase()
  return wanted.q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function matchesState({ status, outcome, unknown }: WireCard, wanted: CardSearch): boolean {
  if (wanted.status !== '' && wanted.status !== status) return false
  if (wanted.outcome === '' || wanted.outcome === outcome) return true
  return wanted.outcome === 'unknown' && unknown !== undefined
}

/** Reads the pending calls again when a card that waits or waited changes, and when a session is removed. */
export function usePendingNews(): void {
  useEffect(() => {
    const again = throttle(WAITS_MS, () => void queries.invalidateQueries({ queryKey: ['pending'] }))
    const onCard = (card: WireCard): void => {
      const known = queries.getQueryData<PendingAnswer>(['pending'])?.pending ?? []
      const did = known.some(({ sessionId }) => sessionId === card.session)
      if (did || mayWait(card)) again.soon()
    }
    const onGone = (): void => {
      // Pages opened next must not show the removed session.
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

/** Runs at most once per interval, however often it is requested. */
function throttle(ms: number, act: () => void): { readonly soon: () => void; readonly stop: () => void } {
  let due: number | null = null
  const soon = (): void => {
    due ??= window.setTimeout(() => {
      due = null
      act()
    }, ms)
  }
  return { soon, stop: () => void (due !== null && clearTimeout(due)) }
}
