// `terret tail`: the last events of a session and new ones, whichever process drives it; with `--tree` also those of its children. It
// only reads.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { nameIn } from '../../view/tree.ts'
import type { Call } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { lineWriter } from '../present/event-line.ts'
import { EXIT } from '../exit.ts'
import { eventsOf } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson, shortId } from '../present/print.ts'

const LINES = 10
/** Polls too: a process may be killed between an event and its notification. */
const LOOK_MS = 1_000

export function tail(call: Call): Promise<number> {
  const lines = call.count('lines', 0) ?? LINES
  return readPlace(async ({ store, ...place }) => {
    const card = await sessionOf({ store, ...place }, call.words[0] ?? '')
    const json = call.is('json')
    const line = lineWriter()
    const one = (event: Event): void => (json ? printJson(event) : print(line(event)))
    const followed = call.is('tree')
      ? new TreeTail(store, card, {
          lines,
          show: json ? asJson : (event, of) => print(`${label(of, card)}${line(event, of.session)}`),
        })
      : new SessionTail(store, card, { lines, show: one })
    const following = { followed, ends: call.is('settled'), children: call.is('tree') }
    return follow(store, card.session, following)
  })
}

/** The name of a child below the session, and its agent, in one column. */
function label(of: Card, { session }: Card): string {
  const name = of.session === session ? shortId(session) : shownId(nameIn(of.session, session))
  return `${`${name} ${oneLine(of.agent, AGENT_CHARS_MAX)}`.padEnd(LABEL_WIDTH)} `
}

const AGENT_CHARS_MAX = 40
const LABEL_WIDTH = 22

function asJson(event: Event, { session }: Card): void {
  printJson({ session, ...event })
}

/** What is followed. `look` shows what is new, and says whether anything may still come. */
type Followed = { look(): Promise<'works' | 'settled' | 'closed'> }

type Tail<Show> = { readonly lines: number; readonly show: Show }

class SessionTail implements Followed {
  readonly #store: Store
  readonly #id: string
  readonly #show: (event: Event) => void
  #seen: number

  constructor(store: Store, { session, seq }: Card, { lines, show }: Tail<(event: Event) => void>) {
    this.#store = store
    this.#id = session
    this.#show = show
    this.#seen = Math.max(0, seq - lines)
  }

  async look(): ReturnType<Followed['look']> {
    for await (const event of eventsOf(this.#store, this.#id, this.#seen)) {
      this.#show(event)
      this.#seen = event.seq
    }
    const card = await this.#store.card(this.#id)
    if (card?.status === 'terminated') return 'closed'
    return card?.due === null && card.seq === this.#seen ? 'settled' : 'works'
  }
}

type Shown = { readonly event: Event; readonly card: Card }

/** Events that are held at once, to be shown in their order: those of one look come from several logs. */
const HELD_MAX = 1_000
/** Events of one session read at once. */
const PAGE = 100

/** It keeps one number for each session, and never more events than `HELD_MAX` and a page. */
class TreeTail implements Followed {
  readonly #store: Store
  readonly #top: Card
  readonly #show: (event: Event, of: Card) => void
  readonly #lines: number
  readonly #seen = new Map<string, number>()
  #isFirst = true

  constructor(store: Store, top: Card, { lines, show }: Tail<(event: Event, of: Card) => void>) {
    this.#store = store
    this.#top = top
    this.#show = show
    this.#lines = lines
  }

  async look(): ReturnType<Followed['look']> {
    if (this.#isFirst) await this.#last()
    this.#isFirst = false
    let held: readonly Shown[] = []
    let cards = await this.#cards()
    for (let news = this.#news(cards); news.length > 0; news = this.#news(cards)) {
      for (const card of news) {
        held = [...held, ...(await this.#page(card))]
        if (held.length >= HELD_MAX) held = this.#put(held)
      }
    }
    this.#put(held)
    cards = await this.#cards()
    const isOver = this.#news(cards).length === 0 && cards.every(({ due }) => due === null)
    const [top] = cards
    if (isOver && top?.status === 'terminated') return 'closed'
    return isOver ? 'settled' : 'works'
  }

  /** The last events of the whole tree; all before them count as seen. */
  async #last(): Promise<void> {
    let held: readonly Shown[] = []
    for (const card of await this.#cards()) {
      this.#seen.set(card.session, Math.max(0, card.seq - this.#lines))
      for (;;) {
        const page = await this.#page(card)
        held = sorted([...held, ...page]).slice(-this.#lines)
        if (page.length < PAGE) break
      }
    }
    this.#put(held)
  }

  async #cards(): Promise<readonly Card[]> {
    const top = (await this.#store.card(this.#top.session)) ?? this.#top
    return [top, ...(await cardsBelow(this.#store, top))]
  }

  #news(cards: readonly Card[]): readonly Card[] {
    return cards.filter(({ session, seq }) => seq > (this.#seen.get(session) ?? 0))
  }

  async #page(card: Card): Promise<readonly Shown[]> {
    const page: Shown[] = []
    for await (const event of eventsOf(this.#store, card.session, this.#seen.get(card.session) ?? 0)) {
      page.push({ event, card })
      this.#seen.set(card.session, event.seq)
      if (page.length === PAGE) return page
    }
    // Its card may be ahead of what can be read, if its tree was removed since.
    this.#seen.set(card.session, Math.max(card.seq, this.#seen.get(card.session) ?? 0))
    return page
  }

  #put(held: readonly Shown[]): readonly Shown[] {
    for (const { event, card } of sorted(held)) this.#show(event, card)
    return []
  }
}

/** A child is made in a commit of its parent: of one moment, the parent's events come first. */
function sorted(shown: readonly Shown[]): readonly Shown[] {
  return shown.toSorted((a, b) => a.event.at - b.event.at || a.card.session.length - b.card.session.length)
}

type Following = { readonly followed: Followed; readonly ends: boolean; readonly children: boolean }

async function follow(store: Store, session: string, { followed, ends, children }: Following): Promise<number> {
  let left = false
  let news = (): void => {}
  const leave = (): void => {
    left = true
    news()
  }
  const tell = (): void => news()
  const unwatch = [store.watch(session, tell), ...(children ? [store.watchDue(tell)] : [])]
  process.on('SIGINT', leave)
  process.on('SIGTERM', leave)
  try {
    for (;;) {
      let timer: NodeJS.Timeout | undefined
      const told = new Promise<void>((resolve) => {
        news = resolve
        timer = setTimeout(resolve, LOOK_MS)
      })
      const now = await followed.look()
      const over = now === 'closed' || (ends && now === 'settled')
      if (!left && !over) await told
      clearTimeout(timer)
      if (left || over) return EXIT.ok
    }
  } finally {
    for (const off of unwatch) off()
    process.off('SIGINT', leave)
    process.off('SIGTERM', leave)
  }
}
