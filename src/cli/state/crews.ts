// A process that drives many sessions, each with the harness of its folder: `terret worker` and `terret serve`.
import type { DueLoopOptions, Harness, LookResult } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import type { Claim } from '../../ports/store.ts'
import type { Call } from '../args.ts'
import { endOf } from '../exit.ts'
import { decideCovered } from '../present/approval.ts'
import { clean } from '../../view/clean.ts'
import { lookedText, troubleText } from '../present/looked.ts'
import { outageLine } from '../present/outage.ts'
import { printJson, shortId, warn } from '../present/print.ts'
import { type Crew, Harnesses } from './harnesses.ts'
import { drivenElsewhere } from './program.ts'
import { folderHere, type Place, workplaceOf } from './place.ts'
import type { Setup } from './setup.ts'

type Wanted = Parameters<Harness['take']>[0]
type Looked = NonNullable<Awaited<ReturnType<Harness['look']>>['looked']>

/** How a process drives: how long it may be silent before others take its sessions, and whether it says what it saw. */
export type CrewOptions = {
  readonly leaseMs: number
  readonly says: boolean
  /** `false`: it opens sessions and records what is said to them, and drives none. */
  readonly drives?: boolean
  /** Told of what is reported. */
  readonly failed?: (error: unknown) => void
}

/** Sessions that are driven at once. */
export const WIDTH = 16

export class Crews {
  readonly #place: Place
  readonly #call: Call
  readonly #options: CrewOptions
  readonly #harnesses: Harnesses
  /** Folders whose sessions it leaves to others, and programs, as far as it has said so. */
  readonly #left = new Set<string | null>()
  /** Who took a session that is about to be looked at. */
  readonly #taken = new Map<string, Crew>()
  #busy = 0
  #closed = false

  constructor(place: Place, call: Call, options: CrewOptions) {
    this.#place = place
    this.#call = call
    this.#options = options
    const onError = (session: string, error: unknown): void => this.#report(session, error)
    this.#harnesses = new Harnesses(place, call, {
      worker: { leaseMs: options.leaseMs, onError },
      drives: options.drives ?? true,
    })
  }

  /** How a due loop looks at sessions and, where the store can, claims them before. */
  get looks(): Pick<DueLoopOptions, 'look' | 'take' | 'chooses'> {
    const look: DueLoopOptions['look'] = (session, alone, claim) => this.look(session, alone, claim)
    return this.#place.store.take ? { look, take: (wanted) => this.take(wanted), chooses: true } : { look }
  }

  get busy(): number {
    return this.#busy
  }

  async look(session: string, alone: boolean, claim?: Claim): Promise<LookResult> {
    this.#busy += 1
    try {
      return await this.#look(session, alone, claim)
    } catch (error) {
      this.#report(session, error)
      return 'failed'
    } finally {
      this.#busy -= 1
    }
  }

  /**
   * Claims due sessions, each for the harness of its folder: first those that wait longest, and if others have some of these by now, of
   * the rest. Null for one that this process cannot drive.
   */
  async take({ among = [], limit, ...wanted }: Wanted): Promise<ReadonlyMap<string, Claim | null>> {
    const taken = new Map<string, Claim | null>()
    if (this.#closed) return taken
    const crews = await Promise.all(among.map((session) => this.#found(session)))
    const found = among.flatMap((session, i) => (crews[i] ? [{ session, crew: crews[i] }] : []))
    for (const [i, session] of among.entries()) if (!crews[i]) taken.set(session, null)
    const first = byCrew(found.slice(0, limit))
    let left = limit
    // All that wait for a crew are named to it, so that no tree gets more than its share. The second time for what others took.
    for (const share of [(crew: Crew) => first.get(crew)?.length ?? 0, () => limit])
      for (const [crew, named] of byCrew(found)) {
        const among = named.filter((session) => !taken.has(session))
        const places = Math.min(left, share(crew), among.length)
        if (places === 0 || this.#closed) continue
        const asked = crew.harness.take({ ...wanted, among, limit: places })
        // What was claimed before is looked at all the same.
        const claims = await asked.catch((error: unknown) => {
          if (left === limit) throw error
          return new Map<string, Claim>()
        })
        for (const [session, claim] of claims) {
          taken.set(session, claim)
          this.#taken.set(session, crew)
        }
        left -= claims.size
      }
    return taken
  }

  async #found(session: string): Promise<Crew | null> {
    try {
      return await this.#crewHere(session)
    } catch (error) {
      this.#report(session, error)
      return null
    }
  }

  #report(session: string, error: unknown): void {
    if (!this.#closed) warn(`${shortId(session)}: ${clean(endOf(error).text)}`)
    this.#options.failed?.(error)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#harnesses.close()
  }

  async #look(session: string, alone: boolean, claim?: Claim): Promise<LookResult> {
    const crew = this.#taken.get(session) ?? (await this.#crewHere(session))
    if (crew === null) return 'failed'
    this.#taken.delete(session)
    const { setup, harness } = crew
    for (let given = claim; ; given = undefined) {
      const { seen, looked } = await harness.look(session, alone, given)
      if (looked?.type === 'elsewhere') this.#leave(session, null, looked.why)
      // The failure was reported; a session that must run alone comes again.
      if (looked === null || seen === 'later') return seen
      this.#say(session, looked, await this.#place.store.card(session))
      // Another worker has it, or the lease was lost.
      if (looked.type !== 'rested') return looked.type === 'stopped' ? 'seen' : 'failed'
      if (looked.waiting !== 'approval' || !(await this.#cover(harness, setup, session))) return 'seen'
    }
  }

  /** Null if its folder is not here, which is looked for again, ever more seldom, or if another program drives it. */
  async #crewHere(session: string): Promise<Crew | null> {
    const [card, { folder, isHere }] = await Promise.all([
      this.#place.store.card(session),
      folderHere(this.#place, session),
    ])
    const elsewhere = drivenElsewhere(this.#place, card)
    if (isHere && elsewhere === null) return this.#harnesses.of({ folder, agent: card?.agent ?? '' })
    this.#leave(session, folder, elsewhere)
    return null
  }

  #leave(session: string, folder: string | null, elsewhere: string | null): void {
    const reason = elsewhere ?? folder
    const silent = this.#left.has(reason) || this.#closed || this.#call.is('quiet')
    this.#left.add(reason)
    if (silent) return
    if (elsewhere !== null)
      return warn(clean(`${shortId(session)} is left alone, like others of its program. ${elsewhere}`))
    const text =
      folder === null
        ? 'Sessions without a folder are left to the programs that opened them'
        : `There is no folder ${folder} here. Its sessions are left to other workers`
    warn(clean(`${text}: ${shortId(session)} and others.`))
  }

  #say(session: string, looked: Looked, card: Card | null): void {
    if (!this.#options.says) return
    const { trouble, outage } = card ?? {}
    const waits = outage && card ? outageLine(card) : null
    if (this.#call.is('json'))
      printJson({ session, ...looked, ...(trouble ? { trouble } : {}), ...(outage ? { outage } : {}) })
    else if (waits !== null) warn(`${shortId(session)}: ${waits}`)
    else if (trouble) warn(`${shortId(session)}: ${troubleText(session, trouble)}`)
    else if (!this.#call.is('quiet')) warn(lookedText(shortId(session), looked))
  }

  /** Writes allowed for the whole run. */
  async #cover(harness: Harness, setup: Setup, session: string): Promise<boolean> {
    const handle = harness.session(session, { stored: true })
    return decideCovered({ session: handle, setup, kept: [] }, await handle.run())
  }

  /** The harness that has the agent of a session, with its tools. The setup of its folder limits a session. */
  async harnessOf({ session, agent }: Pick<Card, 'session' | 'agent'>): Promise<Harness> {
    return this.harnessIn(await workplaceOf(this.#place, session), agent)
  }

  /** The same for a session that is to be opened in this folder. */
  async harnessIn(folder: string, agent: string): Promise<Harness> {
    return (await this.#harnesses.of({ folder, agent })).harness
  }
}

function byCrew(found: readonly { readonly session: string; readonly crew: Crew }[]): ReadonlyMap<Crew, string[]> {
  const crews = new Map<Crew, string[]>()
  for (const { session, crew } of found) {
    const named = crews.get(crew)
    if (named) named.push(session)
    else crews.set(crew, [session])
  }
  return crews
}
