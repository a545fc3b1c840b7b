// One session for its page, kept live: its card, the window of its log, and the reply in progress.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import type { Damaged, Event } from '../../server/wire.ts'
import { api } from './api.ts'
import { LogWindow, type LogView } from './log-window.ts'
import { live, queries } from './queries.ts'
import { type LiveReply, LiveReplyBuilder } from './live-reply.ts'

/** The shortest time between two reads of the card. */
const CARD_MS = 1_000

export function useSession(id: string) {
  return useQuery({ queryKey: ['session', id], queryFn: ({ signal }) => api.session(id, signal) })
}

export type OpenLog = {
  readonly log: LogWindow
  readonly view: LogView
  readonly said: LiveReply
  readonly gone: boolean
}

/** `at`: the event to open at; null for the end. */
export function useLog(
  id: string,
  start: { readonly head: number; readonly damaged?: Damaged | undefined },
  at: number | null,
): OpenLog {
  const [gone, setGone] = useState(false)
  const [log, saying] = useMemo(() => {
    const source = { events: api.events.bind(null, id), state: (seq: number) => api.state(id, seq) }
    return [new LogWindow(source, start), new LiveReplyBuilder()] as const
    // Only the first answer counts: later changes come through the stream.
  }, [id])
  useEffect(() => {
    void log.openAt(at)
    // A damaged log does not grow.
    if (start.damaged) return
    const again = createCardRefresher(id)
    const onEvents = (events: readonly Event[]): void => {
      log.take(events)
      saying.take(events)
      again()
    }
    const onDelta = saying.hear.bind(saying)
    const leave = live.follow({ session: id, after: start.head, onEvents, onDelta, onGone: () => setGone(true) })
    const apart = log.subscribe(saying.flush)
    return () => {
      leave()
      apart()
    }
  }, [log, saying])
  const view = useSyncExternalStore(log.subscribe, () => log.view)
  const said = useSyncExternalStore(saying.subscribe, () => saying.said)
  return { log, view, said, gone }
}

/** Returns a function that reads the card again soon, however often it is called. */
function createCardRefresher(id: string): () => void {
  let due: number | null = null
  return () => {
    due ??= window.setTimeout(() => {
      due = null
      void queries.invalidateQueries({ queryKey: ['session', id] })
    }, CARD_MS)
  }
}
