// What sessions pursue in rounds, with the real steps and graders, while workers die. One of them is stopped at a moment
// of its own. A step that is a dead letter, since so many processes ended during it, is tried again. Only in some seeds.
import type { BlobRef } from '../src/kernel/content.ts'
import type { InboxBody, OwnerBody } from '../src/kernel/event.ts'
import { EMPTY } from '../src/kernel/session.ts'
import { outcomeAgents } from '../src/outcomes/outcome-agents.ts'
import { firstRoundText } from '../src/outcomes/round-texts.ts'
import { roundMessage } from '../src/outcomes/take-step.ts'
import type { Model, Request } from '../src/ports/model.ts'
import type { CompleteStore, Write } from '../src/ports/store.ts'
import { foldQueue } from '../src/queues/item-queue.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { buildAgents, DEFAULT_AGENT } from '../src/sessions/agent.ts'
import { pursuedLabel, readPursuit } from '../src/sessions/look/read-pursuit.ts'
import { readVerdict } from '../src/sessions/round-verdict.ts'
import { laneAgent } from '../src/view/lanes.ts'
import type { LetterDecision } from '../src/view/letter-decision.ts'
import { graderAgent, graderId, OUTCOMES, PURSUIT, readGraderId } from '../src/view/pursuits.ts'
import { readTranscript } from '../src/view/session-history.ts'
import { textOf } from '../src/view/shown-text.ts'
import { isObject, parseJson } from '../src/view/untrusted-json.ts'
import type { Cast } from './cast.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { OWN } from './programs.ts'
import { Chance } from './scheduler.ts'

const SHARE = 0.6
const BEGIN_MS = 900
const ROUNDS = 4
/** The poem of this round meets the rubric. */
const GOOD = 3
const KINDS = ['goes on', 'is stopped'] as const

/** Whether this seed has pursuits. Its own chance, so that the other seeds are as they were. */
export function hasPursuits(seed: number, { clocks, hooks }: Cast): boolean {
  return !clocks && hooks === null && new Chance(seed ^ 0x90e7).yes(SHARE)
}

type Begun = { readonly session: string; readonly fingerprint: string; readonly stops: boolean }

export class Pursuits {
  readonly violations: string[] = []
  readonly tally = { rounds: 0, gradings: 0, stopped: 0, retried: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #begun: Begun[] = []

  constructor(stage: Stage) {
    this.#stage = stage
    this.#chance = stage.actor.chance
  }

  /** The agents in this process. `host` is read when a lane works. */
  agentIn(process: SimProcess, host: () => unknown): (name: string) => Agent | null {
    const { store, clock } = process
    const own = buildAgents({ model: this.#modelIn(process) }, { store, clock })
    const { find } = outcomeAgents(own, { harness: host, store, clock, report: () => {} })
    return (name) => (name === DEFAULT_AGENT ? (own.get(name) ?? null) : find(name))
  }

  /** What it says follows from what it reads. */
  #modelIn(process: SimProcess): Model {
    return {
      name: 'poet',
      call: async (request) => {
        await process.sleep(this.#chance.between(0, 60))
        const text = lastText(request)
        const round = Number(/^Round (\d)/.exec(text)?.[1] ?? 1)
        const reply = { type: 'reply', finish: 'stop', usage: null } as const
        if (!request.instructions.startsWith('You grade'))
          return { ...reply, parts: [{ type: 'text', text: `Poem ${round}.` }], calls: [] }
        const met = Number(/Poem (\d)/.exec(text)?.[1]) >= GOOD ? 'yes' : 'no'
        const verdict = JSON.stringify({ criteria: [{ criterion: 'It rhymes', met, why: 'so' }], summary: '' })
        return { ...reply, parts: [], calls: [{ id: 'a', tool: 'final_result', args: verdict }] }
      },
    }
  }

  async play(): Promise<void> {
    await Promise.all(KINDS.map((kind, i) => this.#pursue(i, kind === 'is stopped')))
  }

  async #pursue(n: number, stops: boolean): Promise<void> {
    const { actor, store } = this.#stage
    this.busy += 1
    await actor.sleep(this.#chance.between(10, BEGIN_MS))
    const session = `poem.${n}`
    const fingerprint = `${n}`.repeat(24)
    const counts = { roundsMax: ROUNDS, limit: null, spentBefore: 0 }
    const task = { session, life: 0, description: 'Write a poem.', rubric: '- It rhymes.', ...counts }
    const created = (agent: string, more: object): readonly OwnerBody[] => [
      { type: 'session.created', agent, planner: 'model', program: OWN, ...more },
    ]
    const now = { now: store.now(), epoch: 0 }
    const grader = created(graderAgent(DEFAULT_AGENT), { labels: pursuedLabel(session), metadata: { [PURSUIT]: task } })
    const first = roundMessage(fingerprint, 1, firstRoundText(task), undefined)
    await store.commit([
      ownerWrite(session, EMPTY, created(DEFAULT_AGENT, {}), now),
      ownerWrite(graderId(fingerprint, 1), EMPTY, grader, now),
      { session, lane: 'inbox', events: [first] },
    ])
    this.#begun.push({ session, fingerprint, stops })
    if (stops) {
      await actor.sleep(this.#chance.between(5, 700))
      const stop: InboxBody = { type: 'user.interrupt', id: 'stop', mode: 'stop' }
      await store.commit([{ session, lane: 'inbox', events: [stop] }])
    }
    this.busy -= 1
  }

  /** An operator, who looks at the dead letters of a lane of outcomes soon after one of its steps was given up. */
  look(writes: readonly Write[]): void {
    for (const { session, events } of writes) {
      if (this.#stage.invariants.sessions().get(session)?.fold.agent !== laneAgent(OUTCOMES)) continue
      const given = events.some((event) => event.type === 'agent.tool_result' && isDead(event.content))
      if (given) void this.#retry(session)
    }
  }

  async #retry(lane: string): Promise<void> {
    const { actor, store, invariants, say } = this.#stage
    this.busy += 1
    for (let open = true; open; ) {
      await actor.sleep(this.#chance.between(20, 200))
      const seq = invariants.sessions().get(lane)?.fold.seq ?? 0
      const { transcript } = await readTranscript(store, { id: lane, upTo: seq })
      const dead = [...foldQueue(transcript.messages).dead.values()]
      open = dead.length > 0
      for (const { key, deaths } of dead) {
        this.tally.retried += 1
        const decision: LetterDecision = { letter: key, deaths, decision: 'retry', by: 'operator' }
        const id = `letter:${deaths}:${key}`
        const parts = [{ type: 'text', text: JSON.stringify(decision) } as const]
        await say(lane, { type: 'user.message', id, parts, when: 'next' })
      }
    }
    this.busy -= 1
  }

  /** At rest: each has ended, its rounds follow each other, each was graded once, and none began after a stop. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const { session, fingerprint, stops } of this.#begun) {
      const pursuit = await readPursuit(store, fingerprint)
      const { end = null, round = 0 } = pursuit?.status ?? {}
      if (end === null) wrong.push(`U1 ${session} rests in round ${round}, and has not ended`)
      if (end === 'satisfied' ? round !== GOOD : end !== 'interrupted' || !stops)
        wrong.push(`U2 ${session} ended as ${String(end)} in round ${round}`)
      const { events } = await store.read(session, 0)
      // What a worker says that cares for a session that was left alone is no stop.
      const stopped = events.find((event) => event.type === 'user.interrupt' && event.mode === 'stop')
      const stop = stopped?.seq ?? Number.POSITIVE_INFINITY
      const rounds = events.filter((event) => event.type === 'user.message')
      if (rounds.some(({ seq }) => seq > stop)) wrong.push(`U3 ${session} has a round after the stop`)
      if (rounds.length !== round) wrong.push(`U4 ${session} has ${rounds.length} messages of ${round} rounds`)
      this.tally.rounds += rounds.length
      if (end === 'interrupted') this.tally.stopped += 1
    }
    for (const [id] of this.#stage.invariants.sessions()) {
      if (readGraderId(id) === null) continue
      const { events } = await store.read(id, 0)
      const verdicts = events.filter(
        (event) =>
          event.type === 'agent.message' && event.verdict.type === 'final' && readVerdict(event.verdict.output),
      )
      this.tally.gradings += verdicts.length
      if (verdicts.length > 1) wrong.push(`U5 ${id} grades its round ${verdicts.length} times`)
    }
    return wrong
  }
}

/** Whether this is the result of a try after which its item was given up. */
function isDead(content: string | BlobRef): boolean {
  const result = typeof content === 'string' ? parseJson(content) : null
  return isObject(result) && result['type'] === 'dead'
}

function lastText({ messages }: Request): string {
  const said = messages.findLast(({ role }) => role === 'user')
  return said?.role === 'user' ? textOf(said.parts) : ''
}
