// People who keep order among sessions: they fork forks, ask for a compaction, close what is done, and remove a session with all its
// forks, by the verbs of harnesses whose processes die. Then the first id is used again. Only in some seeds.
import type { HarnessOptions } from '../src/harness.ts'
import type { InboxBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import { EMPTY } from '../src/kernel/session.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../src/context/summary.ts'
import type { Model, Request } from '../src/ports/model.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { buildAgents } from '../src/sessions/agent.ts'
import { textOf } from '../src/view/shown-text.ts'
import { sections } from './agent.ts'
import type { Cast } from './cast.ts'
import { Desks, NEVER } from './idle-harness.ts'
import { hasListeners } from './listeners.ts'
import type { Oracle } from './oracle.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { OWN } from './programs.ts'
import type { Chance } from './scheduler.ts'
// A harness loads these when they are first needed.
import '../src/sessions/fork.ts'
import '../src/sessions/compact.ts'
import '../src/sessions/drive/removed.ts'

const KEEPER = 'keeper'
const DEPTH = 3
const LOOK_MS = 20
/** So long that the older part of a session can be summarised. */
const TEXT_CHARS = 3_000
const BY = 'a keeper'

/**
 * Whether this seed has keepers: each does in which they can be. A run that a wrong clock put off is not waited
 * for, hooks would hold back what is said, and a consumer could be told of a session that is gone.
 */
export function hasKeepers(seed: number, { clocks, hooks, outage }: Cast): boolean {
  return !clocks && hooks === null && outage === null && !hasListeners(seed)
}

export class Keepers {
  readonly violations: string[] = []
  readonly tally = { forks: 0, compacted: 0, closed: 0, removed: 0, kept: 0, again: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #oracle: Oracle
  readonly #chance: Chance
  readonly #desks: Desks
  /** What users said in each session, in order, and what its last request showed of that. */
  readonly #said = new Map<string, string[]>()
  readonly #shown = new Map<string, readonly string[]>()
  readonly #removed: string[] = []

  constructor(stage: Stage, oracle: Oracle) {
    this.#stage = stage
    this.#oracle = oracle
    this.#chance = stage.actor.chance
    this.#desks = new Desks(stage)
  }

  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const subagents: HarnessOptions['subagents'] = {
      // It has no tools: which there are beside these does not matter here.
      [KEEPER]: { description: 'keeps', model: this.#modelIn(process), toolAccess: { allow: [] }, subagents: [] },
    }
    this.#desks.add(process, { subagents })
    const agents = buildAgents({ model: NEVER }, { store, clock, subagents })
    return (name) => (name === KEEPER ? (agents.get(name) ?? null) : null)
  }

  #modelIn(process: SimProcess): Model {
    return {
      name: KEEPER,
      call: async (request) => {
        const sums = request.instructions === CONTEXT_SUMMARY_PROMPT
        if (!sums) {
          this.#oracle.ask(request)
          this.#shown.set(request.session, userTexts(request))
        }
        await process.sleep(this.#chance.between(0, 30))
        if (process.falters()) await new Promise(() => {})
        const text = sums ? sections(request.seq, 'All of it.') : 'Kept. '.padEnd(TEXT_CHARS, 'And so on. ')
        return { type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }
      },
    }
  }

  async play(): Promise<void> {
    await Promise.all(['k0', 'k1'].map((root) => this.#keep(root)))
  }

  async #keep(root: string): Promise<void> {
    const { actor } = this.#stage
    this.busy += 1
    await actor.sleep(this.#chance.between(0, 400))
    await this.#create(root)
    await this.#talk(root)
    const chain = [root]
    for (let depth = 1; depth <= DEPTH; depth++) {
      const id = `${root}-${depth}`
      await this.#fork(chain.at(-1) as string, id)
      chain.push(id)
      await this.#talk(id)
      this.#comparesWith(chain)
      if (this.#chance.yes(0.3)) await this.#compact(id)
      if (this.#chance.yes(0.5)) await this.#triesToRemove(this.#chance.pick(chain.slice(0, -1)), id)
    }
    if (this.#chance.yes(0.6)) await this.#close(chain.at(-1) as string)
    if (this.#chance.yes(0.6)) await this.#removeAll(chain.toReversed(), root)
    this.busy -= 1
  }

  async #create(id: string): Promise<void> {
    const created = { type: 'session.created', agent: KEEPER, planner: 'model', program: OWN } as const
    const { store } = this.#stage
    await store.commit([ownerWrite(id, EMPTY, [created], { now: store.now(), epoch: 0 })])
    this.#said.set(id, [])
  }

  /** Two messages, each with an end of its run. */
  async #talk(session: string): Promise<void> {
    const said = this.#said.get(session) ?? []
    this.#said.set(session, said)
    for (let i = 0; i < 2 && !this.#stage.over(); i++) {
      const text = `${session} says ${said.length}. `.padEnd(TEXT_CHARS, 'More of it. ')
      await this.#say(session, `${said.length}`, text)
      said.push(text)
      await this.#rests(session)
    }
  }

  async #say(session: string, id: string, text: string): Promise<void> {
    const message: InboxBody = { type: 'user.message', id, parts: [{ type: 'text', text }], when: 'next' }
    await this.#stage.store.commit([{ session, lane: 'inbox', events: [message] }])
  }

  async #rests(session: string): Promise<void> {
    const { actor, invariants, over } = this.#stage
    for (;;) {
      const { run, inputs } = invariants.sessions().get(session)?.fold ?? EMPTY
      if (over() || (run === null && inputs.length === 0)) return
      await actor.sleep(LOOK_MS)
    }
  }

  async #fork(from: string, id: string): Promise<void> {
    const done = await this.#desks.ask((harness) => harness.session(from).fork({ id }))
    if (done && 'refused' in done) this.violations.push(`X4 ${from} cannot be forked: ${done.refused}`)
    this.tally.forks += 1
  }

  /** A fork of a fork is shown what was said in all it comes from, each once and in order, and then its own. */
  #comparesWith(chain: readonly string[]): void {
    const { invariants, over } = this.#stage
    const session = chain.at(-1) as string
    const watched = chain.map((id) => invariants.sessions().get(id))
    if (over() || watched.some((each) => !each || each.cutAt > 0 || each.fold.last?.type !== 'completed')) return
    const all = chain.flatMap((id) => this.#said.get(id) ?? [])
    const shown = this.#shown.get(session) ?? []
    if (shown.join('\n') !== all.join('\n'))
      this.violations.push(`X4 ${session} was shown ${shown.length} of the ${all.length} messages it comes from`)
  }

  /** What is given back for a compaction is in the log. */
  async #compact(session: string): Promise<void> {
    const done = await this.#desks.ask((harness) => harness.session(session).compact())
    if (!done || 'refused' in done || done.answer === null || !('summary' in done.answer)) return
    const { seq, summary } = done.answer
    const [event] = (await this.#stage.store.read(session, seq - 1, 1)).events
    if (event?.type !== 'context.compacted' || event.summary !== summary)
      this.violations.push(`X7 the compaction ${seq} of ${session} is ${event?.type ?? 'not there'}`)
    this.tally.compacted += 1
  }

  /** While a fork reads its log, a session stays. */
  async #triesToRemove(session: string, fork: string): Promise<void> {
    const done = await this.#desks.ask((harness) => harness.remove(session, { by: BY }))
    if (done && 'answer' in done) this.violations.push(`X2 ${session} is removed, and ${fork} comes from it`)
    this.tally.kept += 1
  }

  /** A session that is closed takes no message. */
  async #close(session: string): Promise<void> {
    const done = await this.#desks.ask((harness) => harness.session(session).close({ by: BY }))
    if (done === null || this.#stage.over()) return
    if ('refused' in done && done.refused !== 'session_closed')
      this.violations.push(`X5 ${session} cannot be closed: ${done.refused}`)
    const refused = await this.#say(session, 'late', 'Too late.').then(
      () => '',
      (error: unknown) => (error instanceof Fault ? error.code : String(error)),
    )
    if (refused !== 'session_closed')
      this.violations.push(`X5 ${session} is closed, and takes what is said (${refused})`)
    this.tally.closed += 1
  }

  async #removeAll(sessions: readonly string[], root: string): Promise<void> {
    for (const session of sessions) {
      const done = await this.#desks.ask((harness) => harness.remove(session, { by: BY }))
      if (done === null || this.#stage.over()) return
      // An answer that was lost is asked for again.
      if ('refused' in done && done.refused !== 'session_missing')
        this.violations.push(`X1 ${session} cannot be removed: ${done.refused}`)
      if ((await this.#stage.store.card(session)) !== null)
        this.violations.push(`X1 ${session} is removed, and is there`)
      this.#removed.push(session)
      this.tally.removed += 1
    }
    if (this.#chance.yes(0.3)) return
    await this.#create(root)
    await this.#talk(root)
    this.#comparesWith([root])
    this.tally.again += 1
  }

  /** At rest: each removal is noted once, with who asked for it. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const noted = await store.removals(1_000)
    return this.#removed.flatMap((session) => {
      const of = noted.filter((each) => each.session === session && each.by === BY)
      return of.length === 1 ? [] : [`X3 the removal of ${session} is noted ${of.length} times`]
    })
  }
}

function userTexts({ messages }: Request): readonly string[] {
  return messages.flatMap((message) => (message.role === 'user' ? [textOf(message.parts)] : []))
}
