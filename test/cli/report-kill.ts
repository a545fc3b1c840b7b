// Kills reports: starts one with the real command, waits until the log shows the node that is aimed at, kills the process a seeded
// moment later, and reports where the log stood then. Nothing is asserted here, and the killed process does not cooperate.
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import type { Chance } from '../crash/random.ts'
import type { Stage, Started } from './stage.ts'

/** The seven nodes, and the gate before the last of them. */
export const PLACES = ['plan', 'search', 'extract', 'draft', 'review', 'propose', 'gate', 'finalize'] as const
export type KillPlace = (typeof PLACES)[number]

const TOPIC = 'What does a sick-room need: light, clean air, tea, a good bed and variety?'
const NURSING = fileURLToPath(new URL('../../src/cli/demo/documents/nursing', import.meta.url))
/** How long after what it waited for, at most: about as long as a node takes. */
const DELAY_MS: Readonly<Record<KillPlace, number>> = {
  plan: 10,
  search: 60,
  extract: 60,
  draft: 10,
  review: 15,
  propose: 15,
  gate: 10,
  finalize: 15,
}
const PATIENCE_MS = 30_000

export type Killed = {
  readonly session: string
  readonly out: string
  /** Where the log stood when the process was dead; null if it had ended by itself before. */
  readonly place: KillPlace | null
  /** Whether a node was begun and had no result yet. */
  readonly running: boolean
  /** The file as it was then. */
  readonly inode: number | null
}

/** One range: reports are started one after the other in a folder of their own. */
export class Range {
  readonly #stage: Stage
  readonly #store: CompleteStore
  readonly #folder: string
  readonly #chance: Chance
  #shots = 0

  constructor(stage: Stage, store: CompleteStore, name: string, chance: Chance) {
    this.#stage = stage
    this.#store = store
    this.#folder = join(stage.folder, name)
    this.#chance = chance
    mkdirSync(join(this.#folder, 'out'), { recursive: true })
  }

  /** Starts a report and leaves it running. Unless it is killed, it stops at its gate. */
  async start(): Promise<{ readonly session: string; readonly out: string; readonly process: Started }> {
    const out = join(this.#folder, 'out', `${this.#shots++}.md`)
    const known = await this.#sessions()
    const args = ['start', TOPIC, '--documents', NURSING, '--out', out, '--model', 'offline:any']
    const process = this.#stage.start(args, { cwd: this.#folder })
    const session = await until(async () => (await this.#sessions()).find((id) => !known.includes(id)) ?? null)
    return { session, out, process }
  }

  async shoot(aim: KillPlace): Promise<Killed> {
    const { session, out, process } = await this.start()
    // Of the kills at the gate, half hit the process that stops there, half the process that approves.
    const approving = aim === 'finalize' || (aim === 'gate' && this.#chance.happens(0.5))
    if (approving) await process.ended
    const target = approving ? this.#stage.start(['approve', session, '--resume', '--by', 'ana']) : process
    const over = target.ended.then((): true => true)
    if (aim === 'gate' && approving) await sleep(this.#chance.between(0, 400))
    else {
      await until(async () => ((await this.#has(session, aim)) ? true : soon(over)))
      await sleep(this.#chance.between(0, DELAY_MS[aim]))
    }
    target.child.kill('SIGKILL')
    const { code } = await target.ended
    const inode = existsSync(out) ? statSync(out).ino : null
    const events = await this.events(session)
    return { session, out, place: code === null ? placeIn(events) : null, running: isRunning(events), inode }
  }

  /** None as long as there is no session. */
  async events(session: string): Promise<readonly Event[]> {
    if ((await this.#store.card(session)) === null) return []
    return (await this.#store.read(session, 0, 1_000)).events
  }

  /** Whether the log shows this node. */
  async #has(session: string, aim: KillPlace): Promise<boolean> {
    const events = await this.events(session)
    if (aim === 'finalize') return events.some((event) => event.type === 'user.tool_confirmation')
    return calledIn(events).some(({ tool }) => tool === (aim === 'gate' ? 'finalize' : aim))
  }

  async #sessions(): Promise<readonly string[]> {
    return (await this.#store.list({ folder: this.#folder, limit: 10_000 })).map(({ session }) => session)
  }
}

export function calledIn(events: readonly Event[]): readonly { readonly tool: string; readonly call: string }[] {
  return events.flatMap((event) =>
    event.type === 'agent.message' ? event.calls.map(({ tool }, i) => ({ tool, call: `${event.seq}.${i}` })) : [],
  )
}

/** The node that the log has come to; before the first one, the plan. */
function placeIn(events: readonly Event[]): KillPlace {
  const { tool = 'plan' } = calledIn(events).at(-1) ?? {}
  const decided = events.some((event) => event.type === 'user.tool_confirmation')
  return tool === 'finalize' && !decided ? 'gate' : (tool as KillPlace)
}

function isRunning(events: readonly Event[]): boolean {
  const { call = '' } = calledIn(events).at(-1) ?? {}
  const begun = events.some((event) => event.type === 'agent.tool_use' && event.call === call)
  return begun && !events.some((event) => event.type === 'agent.tool_result' && event.call === call)
}

async function until<T>(look: () => T | null | Promise<T | null>): Promise<T> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (found !== null) return found
    if (performance.now() > end) throw new Error('what was waited for did not come')
    await sleep(1)
  }
}

/** Whether it has happened by now. */
function soon(event: Promise<true>): Promise<true | null> {
  return Promise.race([event, Promise.resolve(null)])
}
