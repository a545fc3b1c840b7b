// Drives many due sessions in one process, each with the harness of its folder, for `terret worker` and `terret serve`.
import type { Harness } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import type { Claim } from '../../ports/store.ts'
import type { CommandArgs } from '../args.ts'
import { exitForError } from '../exit.ts'
import { decideCovered } from '../present/ask-approval.ts'
import { clean } from '../../view/clean.ts'
import { gradedAgent } from '../../view/pursuits.ts'
import { lookText, attemptsText } from '../present/look-text.ts'
import { outageLine } from '../present/outage.ts'
import { printJson, shortId, warn } from '../present/print.ts'
import { type FolderHarness, Harnesses } from './harnesses.ts'
import { drivenElsewhere } from './own-program.ts'
import { findFolderHere, type CommandContext, workingFolder } from './command-context.ts'
import type { FolderSetup } from './folder-setup.ts'
import { type DueLoopOptions, lookAt, type LookResult, takeDueSessions, type WorkerLook } from '../../worker.ts'

type TakeRequest = Parameters<typeof takeDueSessions>[1]
type LookReport = NonNullable<WorkerLook['looked']>

/** The lease of a process that drives, and whether it prints the result of each look. */
export type DueDriverOptions = {
  readonly leaseMs: number
  readonly says: boolean
  /** `false`: it opens sessions and records input for them, and drives none. */
  readonly drives?: boolean
  /** Receives each reported error. */
  readonly failed?: (error: unknown) => void
  /** Receives each harness that is opened. */
  readonly opened?: (harness: Harness) => void
}

/** The most sessions that are driven at once. */
export const WIDTH = 16

export class DueDriver {
  readonly #place: CommandContext
  readonly #call: CommandArgs
  readonly #options: DueDriverOptions
  readonly #harnesses: Harnesses
  /** The folders and programs for which it was already printed that their sessions are left to others. */
  readonly #left = new Set<string | null>()
  /** The harness that claimed a session, until the session is looked at. */
  readonly #taken = new Map<string, FolderHarness>()
  #busy = 0
  #closed = false

  constructor(place: CommandContext, call: CommandArgs, options: DueDriverOptions) {
    this.#place = place
    this.#call = call
    this.#options = options
    const onError = (session: string, error: unknown): void => this.#report(session, error)
    this.#harnesses = new Harnesses(place, call, {
      worker: { leaseMs: options.leaseMs, onError, drives: options.drives ?? true },
      ...(options.opened ? { opened: options.opened } : {}),
    })
  }

  /** The functions of a due loop: a look at a session and, if the store can, the claim before it. */
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
   * Claims due sessions, each for the harness of its folder. Those that wait longest come first; if others have claimed
   * some of them, more of the rest follow. Null for a session that this process cannot drive.
   */
  async take({ among = [], limit, ...wanted }: TakeRequest): Promise<ReadonlyMap<string, Claim | null>> {
    const taken = new Map<string, Claim | null>()
    if (this.#closed) return taken
    const crews = await Promise.all(among.map((session) => this.#found(session)))
    const found = among.flatMap((session, i) => (crews[i] ? [{ session, crew: crews[i] }] : []))
    for (const [i, session] of among.entries()) if (!crews[i]) taken.set(session, null)
    const first = groupByHarness(found.slice(0, limit))
    let left = limit
    // Each harness gets the names of all its waiting sessions, so that no tree gets more than its share. The second
    // round replaces sessions that others took.
    for (const share of [(crew: FolderHarness) => first.get(crew)?.length ?? 0, () => limit])
      for (const [crew, named] of groupByHarness(found)) {
        const among = named.filter((session) => !taken.has(session))
        const places = Math.min(left, share(crew), among.length)
        if (places === 0 || this.#closed) continue
        const asked = takeDueSessions(crew.harness, { ...wanted, among, limit: places })
        // If a later claim fails, the earlier ones are still used.
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

  async #found(session: string): Promise<FolderHarness | null> {
    try {
      return await this.#crewHere(session)
    } catch (error) {
      this.#report(session, error)
      return null
    }
  }

  #report(session: string, error: unknown): void {
    if (!this.#closed) warn(`${shortId(session)}: ${clean(exitForError(error).text)}`)
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
      const { seen, looked } = await lookAt(harness, session, alone, given)
      if (looked?.type === 'elsewhere') this.#leave(session, null, looked.why)
      // The failure was reported; a session that must run alone comes again.
      if (looked === null || seen === 'later') return seen
      this.#say(session, looked, await this.#place.store.card(session))
      // Another worker has it, or the lease was lost.
      if (looked.type !== 'rested') return looked.type === 'stopped' ? 'seen' : 'failed'
      if (looked.waiting !== 'approval' || !(await this.#cover(harness, setup, session))) return 'seen'
    }
  }

  /**
   * Null if another program drives the session, or if its folder is not here. A missing folder is looked for again,
   * ever more seldom.
   */
  async #crewHere(session: string): Promise<FolderHarness | null> {
    const [card, { folder, isHere }] = await Promise.all([
      this.#place.store.card(session),
      findFolderHere(this.#place, session),
    ])
    const elsewhere = drivenElsewhere(this.#place, card)
    if (isHere && elsewhere === null) return this.#harnesses.of({ folder, agent: gradedAgent(card?.agent ?? '') })
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

  #say(session: string, looked: LookReport, card: Card | null): void {
    if (!this.#options.says) return
    const { trouble, outage } = card ?? {}
    const waits = outage && card ? outageLine(card) : null
    if (this.#call.is('json'))
      printJson({ session, ...looked, ...(trouble ? { trouble } : {}), ...(outage ? { outage } : {}) })
    else if (waits !== null) warn(`${shortId(session)}: ${waits}`)
    else if (trouble) warn(`${shortId(session)}: ${attemptsText(session, trouble)}`)
    else if (!this.#call.is('quiet')) warn(lookText(shortId(session), looked))
  }

  /** Decides writes that the person allowed for the whole run. */
  async #cover(harness: Harness, setup: FolderSetup, session: string): Promise<boolean> {
    const handle = harness.session(session, { stored: true })
    return decideCovered({ session: handle, setup, kept: [] }, await handle.run())
  }

  /** The harness with the agent of a session and its tools. The setup of its folder limits a session. */
  async harnessOf({ session, agent }: Pick<Card, 'session' | 'agent'>): Promise<Harness> {
    return this.harnessIn(await workingFolder(this.#place, session), agent)
  }

  /** The same for a new session in this folder. */
  async harnessIn(folder: string, agent: string): Promise<Harness> {
    return (await this.#harnesses.of({ folder, agent: gradedAgent(agent) })).harness
  }
}

function groupByHarness(
  found: readonly { readonly session: string; readonly crew: FolderHarness }[],
): ReadonlyMap<FolderHarness, string[]> {
  const crews = new Map<FolderHarness, string[]>()
  for (const { session, crew } of found) {
    const named = crews.get(crew)
    if (named) named.push(session)
    else crews.set(crew, [session])
  }
  return crews
}
