// A log in the making, for kernel tests: add events, see the session and what must happen now.
import type { Gate, Limits, Proposal, Verdict } from '../../src/kernel/content.ts'
import type { Event, InboxBody, OwnerBody } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import { type Decision, next } from '../../src/kernel/next.ts'
import { EMPTY, type Session } from '../../src/kernel/session.ts'

export class Logbook {
  readonly events: Event[] = []
  session: Session = EMPTY
  now = 1_000
  epoch = 1

  constructor() {
    this.owner({ type: 'session.created', agent: 'test', planner: 'model' }, 0)
  }

  owner(body: OwnerBody, epoch = this.epoch): number {
    return this.#add({ seq: this.session.seq + 1, at: this.now, epoch, ...body })
  }

  inbox(body: InboxBody): number {
    return this.#add({ seq: this.session.seq + 1, at: this.now, epoch: 0, ...body })
  }

  say(text: string, when: 'next' | 'after' | 'now' = 'next'): number {
    return this.inbox({ type: 'user.message', id: `m${this.session.seq}`, parts: [{ type: 'text', text }], when })
  }

  /** Starts a run over what waits, with these limits. */
  begin(limits: Partial<Limits> = {}): number {
    const decision = this.next()
    if (decision.type !== 'perform' || decision.effects[0]?.type !== 'prepare')
      throw new Error(`no run to prepare: ${decision.type}`)
    const { inputs, wakes } = decision.effects[0]
    return this.owner({
      type: 'run.started',
      inputs,
      wakes: wakes.map(({ key }) => key),
      limits: { ...DEFAULT_LIMITS, ...limits },
      toolset: 't',
      instructions: 'i',
    })
  }

  /** Writes down what `next` records, until the world must answer. */
  settle(): Exclude<Decision, { type: 'record' }> {
    for (;;) {
      const decision = this.next()
      if (decision.type !== 'record') return decision
      for (const body of decision.events) this.owner(body)
    }
  }

  reply(calls: readonly Proposal[] = [], verdict?: Verdict): number {
    const meant = verdict ?? { type: calls.length > 0 ? ('continue' as const) : ('final' as const) }
    return this.owner({
      type: 'agent.message',
      parts: [{ type: 'text', text: 'said' }],
      calls,
      verdict: meant,
    })
  }

  result(call: string, content = 'done', extra: { retryKind?: string } = {}): number {
    return this.owner({ type: 'agent.tool_result', call, status: 'ok', content, ...extra })
  }

  next(): Decision {
    return next(this.session, { now: this.now, epoch: this.epoch })
  }

  types(): readonly string[] {
    return this.events.map((event) => event.type)
  }

  #add(event: Event): number {
    this.events.push(event)
    this.session = fold(this.session, event)
    return event.seq
  }
}

export function call(tool: string, extra: Partial<Proposal> = {}): Proposal {
  return {
    id: `id-${tool}`,
    tool,
    args: {},
    effect: 'once',
    timeoutMs: 1_000,
    ...extra,
  }
}

export function ask(tool: string, extra: Partial<Extract<Gate, { type: 'ask' }>> = {}): Proposal {
  return call(tool, {
    gate: { type: 'ask', class: tool, n: 1, roles: [], expiresAt: null, ...extra },
    digest: `digest-${tool}`,
  })
}

/** A run with one open model call. */
export function asking(limits: Partial<Limits> = {}): Logbook {
  const log = new Logbook()
  log.say('go')
  log.begin(limits)
  log.settle()
  return log
}
