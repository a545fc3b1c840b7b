// What a page of a session shows at one moment, from the stretch of its log that is in memory.
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import { useQuery } from '@tanstack/react-query'
import { type Event, next, type Session } from '../../../kernel/index.ts'
import type { SessionAnswer, WireCard } from '../../../server/wire.ts'
import { cardOf } from '../../../view/card.ts'
import { Timeline, timelineOf, type TimelineRow } from '../../../view/timeline.ts'
import { usdOf } from '../../../view/usd.ts'
import { api } from '../../data/api.ts'
import { KEPT_MAX, type Log, type LogView } from '../../data/log.ts'
import { useRequests } from '../../data/logs.ts'
import type { Opened } from '../../data/use-log.ts'
import type { ViewProps } from '../props.ts'
import type { Address } from './address.ts'
import { rowOf } from './lookup.ts'

const NO_ROWS: readonly TimelineRow[] = []

/** The rows up to an event. What was taken before is not taken again while only the end moves on. Null: none are wanted. */
function useRows({ events, base, cut }: LogView, upTo: number | null, asked: number | null): readonly TimelineRow[] {
  const kept = useRef<{ readonly timeline: Timeline; readonly base: Session; readonly asked: number | null } | null>(
    null,
  )
  return useMemo(() => {
    if (upTo === null) return NO_ROWS
    const { current } = kept
    if (current === null || current.base !== base || current.asked !== asked || current.timeline.seq > upTo)
      kept.current = { timeline: new Timeline(cut ? base : undefined, asked ?? 0), base, asked }
    const { timeline } = kept.current as NonNullable<typeof kept.current>
    for (let i = timeline.seq - base.seq; i < events.length; i++) {
      const event = events[i]
      if (event === undefined || event.seq > upTo) break
      timeline.take(event)
    }
    return timeline.rows.slice()
  }, [events, base, cut, upTo, asked])
}

/** So many of the last events of what it was forked from. */
const ORIGIN = 300

type Origin = { readonly session: string; readonly rows: readonly TimelineRow[] }

/** What was said before a fork, if the page has the beginning of the log. */
export function useOrigin({ events }: LogView): Origin | null {
  const [first] = events
  const fork = first?.type === 'session.created' ? first.fork : undefined
  const { data } = useQuery({
    queryKey: ['origin', fork?.session, fork?.seq],
    queryFn: ({ signal }) => api.events(fork?.session ?? '', { before: (fork?.seq ?? 0) + 1, limit: ORIGIN }, signal),
    enabled: fork !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return useMemo(() => (fork && data ? { session: fork.session, rows: timelineOf(data.events) } : null), [fork, data])
}

/** Rows, state and card at the shown moment, and what is chosen in them. */
export function useShown(answer: SessionAnswer, { log, view }: Opened, { at, chosen, go }: Address) {
  const last = view.events.at(-1)?.seq ?? view.base.seq
  const moment = Math.min(at ?? last, last)
  const isNow = at === null && view.atEnd
  const asked = useAsked(answer.card.session, view)
  const all = useRows(view, last, asked)
  const past = useRows(view, moment === last ? null : moment, asked)
  const rows = moment === last ? all : past
  const state = useMemo(() => (at === null || log.has(at) ? log.stateAt(moment) : null), [log, view, moment, at])
  const card = useMemo(
    () => (isNow || at !== null ? cardAt(answer.card, state, isNow) : answer.card),
    [answer, state, isNow, at],
  )
  const focus = chosen ?? (at === null ? null : { seq: at, call: null })
  const event = focus === null ? null : (view.events[focus.seq - view.base.seq - 1] ?? null)
  const row = useMemo(
    () => (focus === null ? null : rowOf(rows, focus, event ?? undefined)),
    [rows, focus?.seq, focus?.call, event],
  )
  const events = useMemo(() => view.events.slice(0, moment - view.base.seq), [view.events, view.base, moment])
  const onChoose = useCallback((seq: number) => go({ e: String(seq) }), [go])
  // What waited at a moment of the past is not known.
  const waiting = useMemo(
    () => (isNow ? answer.pending.map(({ sessionId }) => sessionId) : []).filter((id) => id !== answer.card.session),
    [isNow, answer],
  )
  const props: ViewProps = { card, events, cut: view.cut, isNow, state, waiting, chosen: focus?.seq ?? null, onChoose }
  return { all, rows, last, isNow, focus, event, row, props, isNumbered: asked !== null }
}

/** How many requests the log has before the part in memory. Null: it is not known, and turns have no numbers. */
function useAsked(session: string, { base, head, cut, isNew }: LogView): number | null {
  const requests = useRequests(session, head, cut && !isNew && head > WHOLE_MAX && head <= KEPT_MAX)
  if (!cut) return 0
  if (requests === undefined || base.seq > requests.upTo) return null
  return requests.seqs.filter((seq) => seq <= base.seq).length
}

/** The card as it was then: its status is made as in every list. */
function cardAt(card: WireCard, state: Session | null, isNow: boolean): WireCard {
  if (state === null) return card
  const then = cardOf(card.session, state, next(state, { now: state.at, epoch: state.epoch }))
  const own = usdOf(state.cost)
  const treeCostUsd = isNow ? card.treeCostUsd + Math.max(0, own - card.costUsd) : own
  // What the card says of the last run is of the run that was the last one then.
  const { cause: _cause, limit: _limit, unknown: _unknown, ...rest } = card
  return { ...rest, ...then, costUsd: own, treeCostUsd }
}

/** Moves the part in memory to an event that is not in it. While one is read, only the last that is asked for after it counts. */
export function useReach(log: Log, seq: number | null): void {
  const wanted = useRef<number | null>(null)
  const reads = useRef(false)
  useEffect(() => {
    wanted.current = seq
    if (reads.current) return
    const read = async (): Promise<void> => {
      reads.current = true
      for (;;) {
        const to = wanted.current
        if (to === null || log.view.isNew || log.has(to)) break
        await log.openAt(to)
        // It could not be read: the page says so.
        if (!log.has(to) && wanted.current === to) break
      }
      reads.current = false
    }
    void read()
  }, [log, seq])
}

/** Shorter logs are read whole in the background: turns then have numbers, and a search finds all. */
const WHOLE_MAX = 5_000

/** Reads what stands before the part in memory, where the log is short or its view needs all of it. */
export function useWhole(log: Log, { cut, isNew, head, opened }: LogView, isNeeded: boolean): void {
  const isWanted = cut && !isNew && (isNeeded || head <= WHOLE_MAX)
  useEffect(() => {
    if (isWanted) void log.readBack()
  }, [log, isWanted, opened])
}

/** The events that a row is made of, up to the shown moment. */
export function eventsOf(row: TimelineRow | null, events: readonly Event[], base: Session): readonly Event[] {
  const at = (seq: number | null): readonly Event[] => {
    const event = seq === null ? undefined : events[seq - base.seq - 1]
    return event ? [event] : []
  }
  if (row?.type === 'turn') return [...at(row.seq), ...at(row.reply)]
  if (row?.type !== 'call') return row ? at(row.seq) : []
  return [...at(row.seq), ...events.filter((event) => 'call' in event && event.call === row.call)]
}

const PHONE = '(max-width: 767px)'

export function useIsPhone(): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(PHONE)
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => matchMedia(PHONE).matches,
  )
}
