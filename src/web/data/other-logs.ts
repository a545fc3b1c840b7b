// Reads logs and files of other sessions than the page's own: the origin of a fork, children, sessions to compare.
import { useQueries, useQuery } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'
import type { Event, EventsAnswer, SessionPage, WireCard } from '../../server/wire.ts'
import type { Store } from '../../ports/store.ts'
import type { ComparedLog } from '../../view/compare-logs.ts'
import { readTranscript } from '../../view/session-history.ts'
import { childCosts, type ScriptCell, scriptCellOf } from '../../view/script-cell.ts'
import { timelineOf, type TimelineRow } from '../../view/timeline.ts'
import type { ChildRows } from '../../view/waterfall.ts'
import type { Transcript } from '../../kernel/transcript.ts'
import { api } from './api.ts'

const PAGE = 1_000

/** Reads any session's log, as the view functions expect it. */
const logReader: Pick<Store, 'read'> = {
  read: async (session, after, limit) => {
    const { events, damaged } = await api.events(session, { after, limit: limit ?? PAGE })
    return { events, ...(damaged ? { damaged } : {}) }
  },
}

export type WholeLog = {
  readonly events: readonly Event[]
  /** The log has more events than were read. */
  readonly cut: boolean
}

/** Reads the events up to `upTo`, at most `most` of them. A damaged event ends the reading. */
export async function readLogUpTo(
  session: string,
  upTo: number,
  most: number,
  signal?: AbortSignal,
): Promise<WholeLog> {
  const events: Event[] = []
  for (let after = 0; after < upTo && events.length < most; ) {
    const page = await api.events(session, { after, limit: Math.min(PAGE, upTo - after) }, signal)
    events.push(...page.events)
    if (page.after === null) return { events, cut: false }
    after = page.after
  }
  return { events, cut: (events.at(-1)?.seq ?? 0) < upTo }
}

const REQUESTS_PAGE = 1_000

/** The seqs of all model requests up to `head`. They number the turns of a log that is only partly in memory. */
export function useRequestSeqs(session: string, head: number, isWanted: boolean) {
  return useQuery({
    queryKey: ['requests', session],
    queryFn: async ({ signal }) => {
      const seqs: number[] = []
      for (let after: number | null = 0; after !== null && after < head; ) {
        const asked = { after, types: 'model.started', limit: REQUESTS_PAGE }
        const page: EventsAnswer = await api.events(session, asked, signal)
        seqs.push(...page.events.map(({ seq }) => seq))
        after = page.after
      }
      return { seqs, upTo: head }
    },
    enabled: isWanted,
    staleTime: Number.POSITIVE_INFINITY,
  }).data
}

export type EventSearch = { readonly q?: string; readonly types?: string; readonly fits: (event: Event) => boolean }

/** The nearest matching event before or after a position, found by the server. Null if there is none. */
export async function findEvent(
  session: string,
  start: { readonly before: number } | { readonly after: number },
  { fits, ...wanted }: EventSearch,
): Promise<Event | null> {
  for (let from = start; ; ) {
    const page = await api.events(session, { ...from, ...wanted })
    const isBack = 'before' in from
    const found = isBack ? page.events.findLast(fits) : page.events.find(fits)
    const to = isBack ? page.before : page.after
    if (found !== undefined || to === null) return found ?? null
    from = isBack ? { before: to } : { after: to }
  }
}

/** A session to compare: its card, and its log with the logs it was forked from. */
export type WholeSession = { readonly card: WireCard; readonly logs: ComparedLog; readonly cut: boolean }

/** The most events that are compared. */
const COMPARED_MAX = 20_000
/** The most forks that are followed back. A damaged log could contain a cycle. */
const FORKS_MAX = 50

export async function readWholeSession(session: string, signal?: AbortSignal): Promise<WholeSession> {
  const { card, head } = await api.session(session, signal)
  const logs: { readonly session: string; readonly events: readonly Event[] }[] = []
  let cut = false
  let from: { readonly session: string; readonly seq: number } | undefined = { session, seq: head }
  while (from && logs.length < FORKS_MAX) {
    const log: WholeLog = await readLogUpTo(from.session, from.seq, COMPARED_MAX, signal)
    logs.unshift({ session: from.session, events: log.events })
    cut ||= log.cut
    const [created] = log.events
    from = created?.type === 'session.created' ? created.fork : undefined
  }
  return { card, logs, cut }
}

/** The text of a file that the session refers to. The content of a hash never changes. */
export function useBlobText(session: string, hash: string | null) {
  return useQuery({
    queryKey: ['blob', session, hash],
    queryFn: async () => (await api.blob(session, hash ?? '')).text(),
    enabled: hash !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** The messages that a fork inherited from its origin. Requested only for forks. */
export function useInherited(session: string, [created]: readonly Event[]) {
  const isFork = created?.type === 'session.created' && created.fork !== undefined
  return useQuery({
    queryKey: ['inherited', session],
    queryFn: async (): Promise<Transcript> => (await readTranscript(logReader, { id: session, upTo: 1 })).transcript,
    enabled: isFork,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** The most sessions of a tree that are listed. */
const TREE_MAX = 1_000
const TREE_PAGE = 200
/** Logs of children are read automatically while they are few and short, and otherwise when they are opened. */
const CHILDREN_READ = 20
const CHILD_EVENTS_MAX = 2_000
const TREE_MS = 5_000

async function readTree(root: string, signal: AbortSignal): Promise<readonly WireCard[]> {
  const cards: WireCard[] = []
  for (let cursor: string | null = ''; cursor !== null && cards.length < TREE_MAX; ) {
    const asked = { root, limit: TREE_PAGE, ...(cursor === '' ? {} : { cursor }) }
    const page: SessionPage = await api.sessions(asked, signal)
    cards.push(...page.sessions)
    cursor = page.next
  }
  return cards
}

/** The most events of a cell that are read. */
const CELL_EVENTS_MAX = 20_000

/** A cell of a script as the lines of its program. */
export async function readScriptCell(session: string, signal: AbortSignal): Promise<ScriptCell> {
  const { card, head } = await api.session(session, signal)
  const rows = timelineOf((await readLogUpTo(session, head, CELL_EVENTS_MAX, signal)).events)
  const below = rows.some((row) => row.type === 'call' && row.child) ? await readTree(card.root, signal) : []
  return scriptCellOf(rows, childCosts(session, below))
}

/** The sessions below one, with the rows of those that are short or opened. */
export function useChildren(card: WireCard, isWanted: boolean, opened: ReadonlySet<string>): readonly ChildRows[] {
  const { session, root, status } = card
  const { data } = useQuery({
    queryKey: ['tree', root],
    queryFn: ({ signal }) => readTree(root, signal),
    enabled: isWanted,
    refetchInterval: status === 'idle' || status === 'terminated' ? false : TREE_MS,
  })
  const below = useMemo(
    () => (isWanted ? (data ?? []).filter((each) => each.session.startsWith(`${session}~`)) : []),
    [data, isWanted, session],
  )
  const isRead = (each: WireCard): boolean =>
    opened.has(each.session) || (below.length <= CHILDREN_READ && each.seq <= CHILD_EVENTS_MAX)
  return useQueries({
    queries: below.map((each) => ({
      queryKey: ['child', each.session, each.seq],
      queryFn: async ({ signal }: { readonly signal: AbortSignal }) =>
        timelineOf((await readLogUpTo(each.session, each.seq, CHILD_EVENTS_MAX, signal)).events),
      enabled: isRead(each),
      staleTime: Number.POSITIVE_INFINITY,
    })),
    combine: useCallback(
      (found: readonly { readonly data?: readonly TimelineRow[] | undefined }[]) =>
        below.map((each, i) => ({ card: each, rows: found[i]?.data ?? null })),
      [below],
    ),
  })
}
