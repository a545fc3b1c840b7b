// `terret tail`: the last events of a session and new ones, whichever process drives it; with `--tree` also those of its children. It
// only reads.
import type { Card, Event, CompleteStore } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { nameIn } from '../../view/tree-rows.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { eventLineWriter } from '../present/event-line.ts'
import { EXIT } from '../exit.ts'
import { readEvents } from '../state/read-log.ts'
import { withStoreToRead, findSession } from '../state/command-context.ts'
import { print, printJson, shortId } from '../present/print.ts'

const LINES = 10
/**
 * Notifications are not enough: a process may be killed between an event and its notification, so the log is also
 * polled.
 */
const LOOK_MS = 1_000

export function tailCommand(call: CommandArgs): Promise<number> {
  const lines = call.count('lines', 0) ?? LINES
  return withStoreToRead(async ({ store, ...place }) => {
    const card = await findSession({ store, ...place }, call.words[0] ?? '')
    const json = call.is('json')
    const line = eventLineWriter()
    const one = (event: Event): void => (json ? printJson(event) : print(line(event)))
    const followed = call.is('tree')
      ? new TreeTail(store, card, {
          lines,
          show: json ? printEventJson : (event, of) => print(`${sessionLabel(of, card)}${line(event, of.session)}`),
        })
      : new SessionTail(store, card, { lines, show: one })
    const following = { followed, ends: call.is('settled'), children: call.is('tree') }
    return followTail(store, card.session, following)
  })
}

/** The name of a child below the session and its agent, in one column. */
function sessionLabel(of: Card, { session }: Card): string {
  const name = of.session === session ? shortId(session) : shownId(nameIn(of.session, session))
  return `${`${name} ${oneLine(of.agent, AGENT_CHARS_MAX)}`.padEnd(LABEL_WIDTH)} `
}

const AGENT_CHARS_MAX = 40
const LABEL_WIDTH = 22

function printEventJson(event: Event, { session }: Card): void {
  printJson({ session, ...event })
}

/** The source of followed events. `look` shows new ones, and says whether more may come. */
type TailSource = { look(): Promise<'works' | 'settled' | 'closed'> }

type TailOptions<Show> = { readonly lines: number; readonly show: Show }

class SessionTail implements TailSource {
  readonly #store: CompleteStore
  readonly #id: string
  readonly #show: (event: Event) => void
  #seen: number

  constructor(store: CompleteStore, { session, seq }: Card, { lines, show }: TailOptions<(event: Event) => void>) {
    this.#store = store
    this.#id = session
    this.#show = show
    this.#seen = Math.max(0, seq - lines)
  }

  async look(): ReturnType<TailSource['look']> {
    for await (const event of readEvents(this.#store, this.#id, this.#seen)) {
      this.#show(event)
      this.#seen = event.seq
    }
    const card = await this.#store.card(this.#id)
    if (card?.status === 'terminated') return 'closed'
    return card?.due === null && card.seq === this.#seen ? 'settled' : 'works'
  }
}

type TailEvent = { readonly event: Event; readonly card: Card }

/** The most events held for sorting: one look reads events from several logs. */
const HELD_MAX = 1_000
/** The most events of one session read at once. */
const PAGE = 100

/** It keeps one number for each session, and never more events than `HELD_MAX` and a page. */
class TreeTail implements TailSource {
  readonly #store: CompleteStore
  readonly #top: Card
  readonly #show: (event: Event, of: Card) => void
  readonly #lines: number
  readonly #seen = new Map<string, number>()
  #isFirst = true

  constructor(store: CompleteStore, top: Card, { lines, show }: TailOptions<(event: Event, of: Card) => void>) {
    this.#store = store
    this.#top = top
    this.#show = show
    this.#lines = lines
  }

  async look(): ReturnType<TailSource['look']> {
    if (this.#isFirst) await this.#last()
    this.#isFirst = false
    let held: readonly TailEvent[] = []
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

  /** Shows the last events of the whole tree. All earlier ones count as seen. */
  async #last(): Promise<void> {
    let held: readonly TailEvent[] = []
    for (const card of await this.#cards()) {
      this.#seen.set(card.session, Math.max(0, card.seq - this.#lines))
      for (;;) {
        const page = await this.#page(card)
        held = sortEvents([...held, ...page]).slice(-this.#lines)
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

  async #page(card: Card): Promise<readonly TailEvent[]> {
    const page: TailEvent[] = []
    for await (const event of readEvents(this.#store, card.session, this.#seen.get(card.session) ?? 0)) {
      page.push({ event, card })
      this.#seen.set(card.session, event.seq)
      if (page.length === PAGE) return page
    }
    // The card may be ahead of the log, if the tree was removed since.
    this.#seen.set(card.session, Math.max(card.seq, this.#seen.get(card.session) ?? 0))
    return page
  }

  #put(held: readonly TailEvent[]): readonly TailEvent[] {
    for (const { event, card } of sortEvents(held)) this.#show(event, card)
    return []
  }
}

/** A child is created in a commit of its parent, so at equal times the parent's events come first. */
function sortEvents(shown: readonly TailEvent[]): readonly TailEvent[] {
  return shown.toSorted((a, b) => a.event.at - b.event.at || a.card.session.length - b.card.session.length)
}

type FollowSettings = { readonly followed: TailSource; readonly ends: boolean; readonly children: boolean }

async function followTail(
  store: CompleteStore,
  session: string,
  { followed, ends, children }: FollowSettings,
): Promise<number> {
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
