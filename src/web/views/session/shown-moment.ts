// Computes what the page of a session shows at one moment, from the window of its log in memory.
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import { useQuery } from '@tanstack/react-query'
import { type Event, next, type Session } from '../../../kernel/index.ts'
import type { SessionAnswer, WireCard } from '../../../server/wire.ts'
import { cardOf } from '../../../view/card.ts'
import { Timeline, timelineOf, type TimelineRow } from '../../../view/timeline.ts'
import { usdOf } from '../../../view/usd.ts'
import { api } from '../../data/api.ts'
import { KEPT_MAX, type LogWindow, type LogView } from '../../data/log-window.ts'
import { useRequestSeqs } from '../../data/other-logs.ts'
import type { OpenLog } from '../../data/use-log.ts'
import type { ViewProps } from '../view-props.ts'
import type { PageAddress } from './page-address.ts'
import { findRow } from './find-row.ts'

const NO_ROWS: readonly TimelineRow[] = []

/**
 * The rows up to an event. While only the end moves on, earlier events are not processed again. Null: no rows are
 * needed.
 */
function useTimelineRows(
  { events, base, cut }: LogView,
  upTo: number | null,
  asked: number | null,
): readonly TimelineRow[] {
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

/** The most events of a fork's origin that are shown. */
const ORIGIN = 300

type ForkOrigin = { readonly session: string; readonly rows: readonly TimelineRow[] }

/** The last rows of a fork's origin before the fork, if the window includes the fork's first event. */
export function useForkOrigin({ events }: LogView): ForkOrigin | null {
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

/** The rows, state and card at the shown moment, and the chosen row. */
export function useShownMoment(answer: SessionAnswer, { log, view }: OpenLog, { at, chosen, go }: PageAddress) {
  const last = view.events.at(-1)?.seq ?? view.base.seq
  const moment = Math.min(at ?? last, last)
  const isNow = at === null && view.atEnd
  const asked = useEarlierRequests(answer.card.session, view)
  const all = useTimelineRows(view, last, asked)
  const past = useTimelineRows(view, moment === last ? null : moment, asked)
  const rows = moment === last ? all : past
  const state = useMemo(() => (at === null || log.has(at) ? log.stateAt(moment) : null), [log, view, moment, at])
  const card = useMemo(
    () => (isNow || at !== null ? cardAt(answer.card, state, isNow) : answer.card),
    [answer, state, isNow, at],
  )
  const focus = chosen ?? (at === null ? null : { seq: at, call: null })
  const event = focus === null ? null : (view.events[focus.seq - view.base.seq - 1] ?? null)
  const row = useMemo(
    () => (focus === null ? null : findRow(rows, focus, event ?? undefined)),
    [rows, focus?.seq, focus?.call, event],
  )
  const events = useMemo(() => view.events.slice(0, moment - view.base.seq), [view.events, view.base, moment])
  const onChoose = useCallback((seq: number) => go({ e: String(seq) }), [go])
  // Pending calls at a past moment are unknown.
  const waiting = useMemo(
    () => (isNow ? answer.pending.map(({ sessionId }) => sessionId) : []).filter((id) => id !== answer.card.session),
    [isNow, answer],
  )
  const props: ViewProps = { card, events, cut: view.cut, isNow, state, waiting, chosen: focus?.seq ?? null, onChoose }
  return { all, rows, last, isNow, focus, event, row, props, isNumbered: asked !== null }
}

/** The number of model requests before the window. Null if unknown: turns then have no numbers. */
function useEarlierRequests(session: string, { base, head, cut, isNew }: LogView): number | null {
  const requests = useRequestSeqs(session, head, cut && !isNew && head > WHOLE_MAX && head <= KEPT_MAX)
  if (!cut) return 0
  if (requests === undefined || base.seq > requests.upTo) return null
  return requests.seqs.filter((seq) => seq <= base.seq).length
}

/** The card at the shown moment, computed like the cards of lists. */
function cardAt(card: WireCard, state: Session | null, isNow: boolean): WireCard {
  if (state === null) return card
  const then = cardOf(card.session, state, next(state, { now: state.at, epoch: state.epoch }))
  const own = usdOf(state.cost)
  const treeCostUsd = isNow ? card.treeCostUsd + Math.max(0, own - card.costUsd) : own
  // The card's fields about the last run would be those of a later run.
  const { cause: _cause, limit: _limit, unknown: _unknown, ...rest } = card
  return { ...rest, ...then, costUsd: own, treeCostUsd }
}

/** Moves the window to an event outside of it. While a read is in progress, only the last requested event counts. */
export function useOpenAround(log: LogWindow, seq: number | null): void {
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
        // The read failed, and the page shows the error.
        if (!log.has(to) && wanted.current === to) break
      }
      reads.current = false
    }
    void read()
  }, [log, seq])
}

/** Shorter logs are read whole in the background, so that turns have numbers and a search covers everything. */
const WHOLE_MAX = 5_000

/** Reads the events before the window if the log is short or the view needs all of it. */
export function useWholeLog(log: LogWindow, { cut, isNew, head, opened }: LogView, isNeeded: boolean): void {
  const isWanted = cut && !isNew && (isNeeded || head <= WHOLE_MAX)
  useEffect(() => {
    if (isWanted) void log.readBack()
  }, [log, isWanted, opened])
}

/** The events that make up a row, up to the shown moment. */
export function rowEvents(row: TimelineRow | null, events: readonly Event[], base: Session): readonly Event[] {
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
