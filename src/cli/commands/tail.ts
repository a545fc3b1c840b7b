// `terret tail`: the last events of a session and new ones, whichever process drives it. It only reads.
import type { Event, Store } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { eventLine } from '../present/event-line.ts'
import { EXIT } from '../exit.ts'
import { eventsOf } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'

const LINES = 10
/** Polls too: a process may be killed between an event and its notification. */
const LOOK_MS = 1_000

export function tail(call: Call): Promise<number> {
  const lines = call.count('lines', 0) ?? LINES
  return readPlace(async (place) => {
    const { session, seq } = await sessionOf(place, call.words[0] ?? '')
    const show = (event: Event): void => (call.is('json') ? printJson(event) : print(eventLine(event)))
    return followed(place.store, { session, after: Math.max(0, seq - lines), show, ends: call.is('settled') })
  })
}

type Tail = {
  readonly session: string
  readonly after: number
  readonly show: (event: Event) => void
  readonly ends: boolean
}

async function followed(store: Store, { session, after, show, ends }: Tail): Promise<number> {
  let seen = after
  let left = false
  let news = (): void => {}
  const leave = (): void => {
    left = true
    news()
  }
  const unwatch = store.watch(session, () => news())
  process.on('SIGINT', leave)
  process.on('SIGTERM', leave)
  try {
    for (;;) {
      let timer: NodeJS.Timeout | undefined
      const told = new Promise<void>((resolve) => {
        news = resolve
        timer = setTimeout(resolve, LOOK_MS)
      })
      for await (const event of eventsOf(store, session, seen)) {
        show(event)
        seen = event.seq
      }
      const card = await store.card(session)
      const over = card?.status === 'terminated' || (ends && card?.due === null && card.seq === seen)
      if (!left && !over) await told
      clearTimeout(timer)
      if (left || over) return EXIT.ok
    }
  } finally {
    unwatch()
    process.off('SIGINT', leave)
    process.off('SIGTERM', leave)
  }
}
