// One session as its page shows it: its card, the stretch of its log that is in memory, and what is being said, all live.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import type { Damaged, Event } from '../../server/wire.ts'
import { api } from './api.ts'
import { Log, type LogView } from './log.ts'
import { live, queries } from './query.ts'
import { type Said, Saying } from './said.ts'

/** The card is read again so often at most. */
const CARD_MS = 1_000

export function useSession(id: string) {
  return useQuery({ queryKey: ['session', id], queryFn: ({ signal }) => api.session(id, signal) })
}

export type Opened = { readonly log: Log; readonly view: LogView; readonly said: Said; readonly gone: boolean }

/** `at`: where it is opened; null for the end. */
export function useLog(
  id: string,
  start: { readonly head: number; readonly damaged?: Damaged | undefined },
  at: number | null,
): Opened {
  const [gone, setGone] = useState(false)
  const [log, saying] = useMemo(() => {
    const source = { events: api.events.bind(null, id), state: (seq: number) => api.state(id, seq) }
    return [new Log(source, start), new Saying()] as const
    // What comes later is told by the stream: only the first answer counts.
  }, [id])
  useEffect(() => {
    void log.openAt(at)
    // A damaged log does not go on.
    if (start.damaged) return
    const again = cardReader(id)
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

/** Reads the card again soon, however often it is asked to. */
function cardReader(id: string): () => void {
  let due: number | null = null
  return () => {
    due ??= window.setTimeout(() => {
      due = null
      void queries.invalidateQueries({ queryKey: ['session', id] })
    }, CARD_MS)
  }
}
