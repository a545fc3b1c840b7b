// The money, counted again from the log alone: what every account holds and has spent, after every commit. Which accounts a call
// is paid from is written down here a second time, so that the real book-keeping is compared with something.
import { writerTime } from '../src/kernel/clock.ts'
import type { Event } from '../src/kernel/event.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import type { Budget } from '../src/runtime/state/agent.ts'
import { type Cast, HOLD_MAX } from './cast.ts'
import type { Fail } from './watched.ts'

/** `shortAt` is when it last had no room for the dearest call. `unseen`: what summaries may have held whose process died. */
type Account = { held: number; spent: number; shortAt: number; unseen: number; undated: number }
type Payer = { agent: string; root: string; run: number; runAt: number; open: Hold | null }
type Hold = { readonly amount: number; readonly accounts: readonly string[] }

const DAY_MS = 86_400_000

export class Money {
  readonly #cast: Cast
  readonly #accounts = new Map<string, Account>()
  readonly #payers = new Map<string, Payer>()
  readonly #touched = new Set<string>()
  /** The budgets of roots that have one of their own, and how much more each was allowed. */
  readonly #own = new Map<string, { readonly budget: Budget; raised: number }>()
  /** How many events it has seen: clocks may differ, their order does not. */
  #events = 0

  constructor(cast: Cast) {
    this.#cast = cast
  }

  /** The session has a budget of its own, which people raise. */
  allow(session: string, budget: Budget): void {
    this.#own.set(session, { budget, raised: 0 })
  }

  take(session: string, e: Event, fail: Fail): void {
    this.#events += 1
    const payer = this.#payers.get(session) ?? { agent: '', root: session, run: 0, runAt: 0, open: null }
    this.#payers.set(session, payer)
    if (e.type === 'session.created') {
      payer.agent = e.agent
      payer.root = e.parent?.root ?? session
    } else if (e.type === 'run.started') {
      payer.run = e.seq
      payer.runAt = this.#events
    } else if (e.type === 'note.added') this.#raised(session, e)
    else if (e.type === 'model.started') this.#hold(session, payer, e)
    else if (e.type === 'agent.message' || e.type === 'model.failed') {
      const lost = e.type === 'model.failed' && e.class === 'lost' && this.#cast.window !== null
      for (const id of (lost && payer.open?.accounts) || []) this.#account(id).unseen += HOLD_MAX
      this.#close(payer, costOf(e), fail)
    } else if (e.type === 'context.compacted' && this.#cast.budget !== null && e.cost !== undefined) {
      // Like what a tool asks of a model, a summary is paid under a budget only.
      for (const id of this.#accountsOf(session, payer, writerTime(e))) {
        const account = this.#account(id)
        account.spent += e.cost
        account.undated += e.cost
      }
    } else if (e.type === 'run.settled' && e.outcome.type === 'limit' && e.outcome.limit === 'usd') {
      const accounts = this.#accountsOf(session, payer, writerTime(e))
      // Another session may have given back what was missing just then.
      const short = (id: string): boolean =>
        this.#room(id) - (this.#accounts.get(id)?.unseen ?? 0) < HOLD_MAX ||
        (this.#accounts.get(id)?.shortAt ?? 0) >= payer.runAt
      if (!accounts.some(short)) fail('M3 a run ends for money that is there')
    }
  }

  /** No account ever holds and has spent more than it may. */
  committed(): readonly string[] {
    const over = [...this.#touched].filter((id) => this.#room(id) < 0)
    this.#touched.clear()
    return over.map((id) => `${id}: M1 ${JSON.stringify(this.#accounts.get(id))} is more than ${this.#limit(id)}`)
  }

  /**
   * All is at rest: the store's accounts say the same as the log, and nothing is held. A summary whose process died is counted as what
   * was held for it, and is in no log: `summaries` are all that were asked for, or for which money was held.
   */
  async audit(store: CompleteStore, summaries: number): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const [id, { held, spent }] of this.#accounts) {
      const account = await store.account(id)
      if (held !== 0) wrong.push(`${id}: A4 the log leaves ${held} held`)
      if (account?.held !== 0) wrong.push(`${id}: A4 ${account?.held} is still held`)
      const more = (account?.spent ?? 0) - spent
      // A summary is paid on the day it was asked for; a clock that was set may have its event on another.
      const undated = id.startsWith('day:') ? this.#account(id).undated : 0
      if (more < -undated || more > summaries * HOLD_MAX)
        wrong.push(`${id}: A5 spent ${account?.spent}, the log says ${spent}`)
      if ((account?.limit ?? null) !== this.#limit(id))
        wrong.push(`${id}: A6 may spend ${account?.limit}, and not ${this.#limit(id)}`)
    }
    return wrong
  }

  /** What a person allows counts from the moment when it is written down. */
  #raised(session: string, { text }: Extract<Event, { type: 'note.added' }>): void {
    const [, usd] = /raised the budget by \$(\d+(?:\.\d+)?)/.exec(text) ?? []
    const own = this.#own.get(session)
    if (own && usd !== undefined) own.raised += Math.round(Number(usd) * 1_000_000)
  }

  #hold(session: string, payer: Payer, e: Extract<Event, { type: 'model.started' }>): void {
    if (!e.held) return
    payer.open = { amount: e.held, accounts: this.#accountsOf(session, payer, writerTime(e)) }
    for (const id of payer.open.accounts) {
      const account = this.#account(id)
      account.held += e.held
      if (this.#room(id) < HOLD_MAX) account.shortAt = this.#events
    }
  }

  /** Null: what was held for it. */
  #close(payer: Payer, told: number | null, fail: Fail): void {
    const { open } = payer
    payer.open = null
    if (!open) return
    const cost = told ?? open.amount
    if (cost > open.amount) fail(`M2 a call cost ${cost}, and ${open.amount} was held for it`)
    for (const id of open.accounts) {
      const account = this.#account(id)
      account.held -= open.amount
      account.spent += cost
    }
  }

  #account(id: string): Account {
    const account = this.#accounts.get(id) ?? { held: 0, spent: 0, shortAt: 0, unseen: 0, undated: 0 }
    this.#accounts.set(id, account)
    this.#touched.add(id)
    return account
  }

  #accountsOf(session: string, { root, run }: Payer, at: number): readonly string[] {
    if (this.#cast.budget === null && !this.#own.has(root)) return [`session:${session}`]
    const { agent } = this.#payers.get(root) ?? { agent: '' }
    return [`run:${session}:${run}`, `session:${session}`, `tree:${root}`, `day:${agent}:${Math.floor(at / DAY_MS)}`]
  }

  #room(id: string): number {
    const { held, spent } = this.#accounts.get(id) ?? { held: 0, spent: 0 }
    return (this.#limit(id) ?? Number.POSITIVE_INFINITY) - held - spent
  }

  #limit(id: string): number | null {
    const { budget, allowances } = this.#cast
    const colon = id.indexOf(':')
    const own = this.#own.get(id.split(':')[1] ?? '')
    const isOwn = own !== undefined && id.startsWith('session:')
    if (isOwn) return Math.round((own.budget.sessionUsd ?? 0) * 1_000_000) + own.raised
    if (own !== undefined || id.startsWith('day:spender:')) return null
    if (budget === null) return allowances.get(id.slice(colon + 1)) ?? null
    const { runUsd, sessionUsd, treeUsd, dayUsd } = budget
    const usd = { run: runUsd, session: sessionUsd, tree: treeUsd, day: dayUsd }[id.slice(0, colon)]
    return usd === undefined ? null : Math.round(usd * 1_000_000)
  }
}

/** The cost of a call; null where it is unknown. */
function costOf(e: Extract<Event, { type: 'agent.message' | 'model.failed' }>): number | null {
  if (e.assumed) return null
  if (e.type === 'agent.message') return e.cost ?? null
  // An answer that came after its stop is paid for like any other.
  return e.class === 'lost' ? null : (e.cost ?? 0)
}
