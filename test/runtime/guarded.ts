// A growing log with a guard, as in the driver: the guard is asked right before each request, and its notice is logged first.
import type { Limits, Proposal } from '../../src/kernel/content.ts'
import type { Event, OwnerBody } from '../../src/kernel/event.ts'
import type { Decision } from '../../src/kernel/next.ts'
import { buildRunSettled } from '../../src/kernel/result.ts'
import {
  type BreakerOptions,
  GuardFold,
  type SavedGuard,
  type GuardTraits,
  type GuardAdvice,
  type ModelWindow,
} from '../../src/runtime/guard/guard.ts'
import { call, Logbook } from '../kernel/logbook.ts'

const PLAIN: GuardTraits = { writers: new Set(), pollers: new Set(), finalResult: false, model: 'own' }

export const ENDLESS = (): ModelWindow => ({ tokens: Number.POSITIVE_INFINITY, compacts: true })

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>
/** Text is a success. */
export type Ended = string | Omit<Result, 'type' | 'call'>
export type Said = Extract<Event, { type: 'note.added' }>
type Options = { limits?: Partial<Limits>; breaker?: BreakerOptions | false; traits?: Partial<GuardTraits> }

export class Guarded {
  readonly log = new Logbook()
  readonly traits: GuardTraits
  /** Every notice of the guard; null where it had none. */
  readonly words: (GuardAdvice | null)[] = []
  readonly breaker: BreakerOptions | false
  guard: GuardFold
  /** What becomes of a note on its way to the log. */
  redact = (text: string): string => text
  /** At every look another process takes over, with what a snapshot kept. */
  saves = false
  #fed = 0

  constructor({ limits = {}, breaker = {}, traits = {} }: Options = {}) {
    this.traits = { ...PLAIN, ...traits }
    this.breaker = breaker
    this.guard = new GuardFold({ breaker })
    this.log.say('go')
    this.log.begin(limits)
    this.settle()
  }

  /** As the driver does: record what `next` decides, and ask the guard before each request. */
  settle(): Decision {
    for (;;) {
      this.#feed()
      if (this.saves) this.#takeOver()
      const decision = this.log.next()
      if (decision.type !== 'record') return decision
      const asks = decision.events.some((body) => body.type === 'model.started')
      const word = asks ? this.guard.beforeRequest(this.log.session, this.traits, ENDLESS) : null
      if (asks) this.words.push(word)
      if (word?.type === 'settle') this.log.owner(buildRunSettled(this.log.session, word.outcome))
      else if (word?.type === 'compact') this.log.owner(word.body)
      else if (word) this.log.owner({ type: 'note.added', kind: word.kind, text: this.redact(word.text) })
      else this.#record(decision.events)
    }
  }

  /** One turn: these calls and their outcomes. Calls that the kernel settles itself have no outcome here. */
  turn(calls: readonly Proposal[], ended: readonly (Ended | null)[]): Decision {
    const seq = this.log.reply(calls)
    this.settle()
    ended.forEach((end, i) => {
      if (end !== null) this.log.owner({ type: 'agent.tool_result', call: `${seq}.${i}`, ...fields(end) })
    })
    return this.settle()
  }

  one(tool: string, args: Proposal['args'], end: Ended, extra: Partial<Proposal> = {}): Decision {
    return this.turn([call(tool, { args, ...extra })], [end])
  }

  /** A new process: a guard that has seen the same log. */
  restart(): void {
    this.guard = new GuardFold({ breaker: this.breaker })
    this.#fed = 0
    this.#feed()
  }

  #takeOver(): void {
    const saved = JSON.parse(JSON.stringify(this.guard.save())) as SavedGuard
    this.guard = new GuardFold({ breaker: this.breaker })
    this.guard.restore(saved)
  }

  get notes(): readonly Said[] {
    return this.log.events.filter((event) => event.type === 'note.added')
  }

  get nudges(): readonly string[] {
    return this.notes.filter(({ kind }) => kind === 'nudge').map(({ text }) => text)
  }

  get limits(): readonly string[] {
    return this.notes.filter(({ kind }) => kind === 'limit').map(({ text }) => text)
  }

  /** Why the breaker stopped the run; null while it runs. */
  get halted(): string | null {
    const { run, last } = this.log.session
    return run === null && last?.type === 'halted' ? last.reason : null
  }

  #record(events: readonly OwnerBody[]): void {
    const allow = this.guard.allow(this.log.session, this.traits)
    for (const body of events)
      this.log.owner(body.type === 'model.started' && allow !== 'all' ? { ...body, allow } : body)
  }

  #feed(): void {
    while (this.#fed < this.log.events.length) this.guard.take(this.log.events[this.#fed++] as Event)
  }
}

function fields(end: Ended): Omit<Result, 'type' | 'call'> {
  return typeof end === 'string' ? { status: 'ok', content: end } : end
}

export function failed(message: string, kind: NonNullable<Result['failure']>['kind'] = 'Failed'): Ended {
  return { status: 'error', content: message, failure: { kind, message: message.slice(0, 500) || kind } }
}
