// Logs and files of sessions other than the one that a page follows: where a fork came from, what a run was told, another run to compare.
import { useQuery } from '@tanstack/react-query'
import type { Event, WireCard } from '../../server/wire.ts'
import type { Store } from '../../ports/store.ts'
import type { ComparedLog } from '../../view/compare.ts'
import { readTranscript } from '../../view/history.ts'
import type { Transcript } from '../../kernel/transcript.ts'
import { api } from './api.ts'

const PAGE = 1_000

/** The log of any session, as the projections read one. */
const logs: Pick<Store, 'read'> = {
  read: async (session, after, limit) => {
    const { events, damaged } = await api.events(session, { after, limit: limit ?? PAGE })
    return { events, ...(damaged ? { damaged } : {}) }
  },
}

export type WholeLog = {
  readonly events: readonly Event[]
  /** More are in the log than were read. */
  readonly cut: boolean
}

/** All events up to `upTo`, but never more than `most`. What is damaged ends it. */
export async function readLog(session: string, upTo: number, most: number, signal?: AbortSignal): Promise<WholeLog> {
  const events: Event[] = []
  for (let after = 0; after < upTo && events.length < most; ) {
    const page = await api.events(session, { after, limit: Math.min(PAGE, upTo - after) }, signal)
    events.push(...page.events)
    if (page.after === null) return { events, cut: false }
    after = page.after
  }
  return { events, cut: (events.at(-1)?.seq ?? 0) < upTo }
}

/** A session to compare: its card, and its log with those it was forked from before it. */
export type WholeSession = { readonly card: WireCard; readonly logs: ComparedLog; readonly cut: boolean }

/** More than this is not compared. */
const COMPARED_MAX = 20_000
/** How many forks back a session's origin is followed. A damaged log could name a ring of them. */
const FORKS_MAX = 50

export async function readWhole(session: string, signal?: AbortSignal): Promise<WholeSession> {
  const { card, head } = await api.session(session, signal)
  const logs: { readonly session: string; readonly events: readonly Event[] }[] = []
  let cut = false
  let from: { readonly session: string; readonly seq: number } | undefined = { session, seq: head }
  while (from && logs.length < FORKS_MAX) {
    const log: WholeLog = await readLog(from.session, from.seq, COMPARED_MAX, signal)
    logs.unshift({ session: from.session, events: log.events })
    cut ||= log.cut
    const [created] = log.events
    from = created?.type === 'session.created' ? created.fork : undefined
  }
  return { card, logs, cut }
}

/** The text of a file that the session refers to. What a hash names never changes. */
export function useBlobText(session: string, hash: string | null) {
  return useQuery({
    queryKey: ['blob', session, hash],
    queryFn: async () => (await api.blob(session, hash ?? '')).text(),
    enabled: hash !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** What a fork was shown of the log it came from. Only asked for where there is one. */
export function useInherited(session: string, [created]: readonly Event[]) {
  const isFork = created?.type === 'session.created' && created.fork !== undefined
  return useQuery({
    queryKey: ['inherited', session],
    queryFn: async (): Promise<Transcript> => (await readTranscript(logs, { id: session, upTo: 1 })).transcript,
    enabled: isFork,
    staleTime: Number.POSITIVE_INFINITY,
  })
}
