// The learnings of an agent, for later sessions of the same owner: taken from the logs, searched, recalled with
// citations, promoted. The logs are the truth: the file is rebuilt from them when it is gone or damaged. The state of a
// session is not here.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Card, Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { damagedFault } from '../view/session-history.ts'
import { runtimeClock } from '../runtime/state/machine.ts'
import { findUnpassedRound } from '../sessions/look/unpassed-round.ts'
import { runWhenFree } from '../stores/sqlite/sqlite-writer.ts'
import { DETAIL_CHARS, type LearningKind, readLearning, TITLE_CHARS } from '../tools/core/directive.ts'
import { type Learnings, openLearnings, moveDamagedFile, type LearningRow, type FoundLearning } from './learnings.ts'
import {
  functionCheck,
  type Check,
  type Checks,
  clockCheck,
  countCheck,
  nonEmptyCheck,
  methodsCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  textCheck,
  waitCheck,
} from '../options.ts'
import { type Citation, citationsOf, type CiteOptions, nearEpisodes, type RecalledEpisode } from './citations.ts'
import type { Episode } from './episodes.ts'
import { significantWords } from './relevance.ts'
import { clean } from '../view/clean.ts'
import { eventId, clipText } from '../view/shown-text.ts'

/** Options of `openMemory`: its file, and the store whose logs it reads. */
export type OpenMemoryOptions = {
  /** An SQLite file of its own. It is created at the first use. */
  readonly file: string
  /** The store with the logs. */
  readonly store: Pick<Store, 'read' | 'card' | 'list'>
  /**
   * The sessions whose logs are read when the file is opened, with their children, in the order they began. Default:
   * all of the store.
   */
  readonly sessions?: () => readonly string[] | Promise<readonly string[]>
  /** Gives the time of what is written. Default: the clock of the machine. */
  readonly clock?: Clock
  /**
   * Called with one line when the file had to be rebuilt, or a log cannot be read. Default: a warning of the process.
   */
  readonly report?: (line: string) => void
}

const checkOptions = optionsChecker<OpenMemoryOptions>('openMemory', {
  file: requiredCheck(nonEmptyCheck),
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
  sessions: functionCheck,
  clock: clockCheck,
  report: functionCheck,
})

/** A learning as it is listed. */
export type Learned = Frozen<{
  /** Names the event that holds it. */
  id: string
  /** What kind of learning it is. */
  kind: LearningKind
  /** The learning in one line. */
  title: string
  /** All of it. */
  detail: string
  /** When it was learned, in ms since 1970. */
  at: number
  /** It is marked for MEMORY.md. */
  promote: boolean
  /** The user who opened the session that taught it. Null: the host did not say. */
  owner: string | null
  /** A person shared it with all owners. */
  shared: boolean
  /** The events that it was extracted from. Empty for a learning that the log states directly. */
  from: readonly string[]
}>

/**
 * The owner of the learnings. Default: sessions without an owner. One owner's learnings are never shown to another,
 * unless they were shared.
 */
export type Ownership = {
  /** Whose they are. Null: those of sessions without an owner. */
  readonly owner?: string | null
}

/** Which learnings are recalled, and how many. */
export type RecallOptions = CiteOptions &
  Ownership & {
    /** How long to look, in milliseconds. Default: 500. */
    readonly timeoutMs?: number
  }

/** Which earlier runs are recalled, and how many. */
export type RecallEpisodesOptions = RecallOptions & {
  /** Leaves out the runs of this session: its own conversation shows them. */
  readonly except?: string
}

const scoreCheck: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? null : 'must be a number from 0 to 1'
/** Infinity is allowed: it means everything there is. */
const charsCheck: Check = (value, name, of) =>
  value === Number.POSITIVE_INFINITY ? null : countCheck()(value, name, of)
const ownerCheck: Check = (value, name, of) => (value === null ? null : nonEmptyCheck(value, name, of))
const checkOwnership = optionsChecker<Ownership>('list', { owner: ownerCheck })
export const RECALL: Checks<RecallOptions> = {
  owner: ownerCheck,
  limit: countCheck(),
  minScore: scoreCheck,
  charsMax: charsCheck,
  timeoutMs: waitCheck,
}
const checkRecall = optionsChecker<RecallOptions>('recall', RECALL)
const checkRecallEpisodes = optionsChecker<RecallEpisodesOptions>('recallEpisodes', { ...RECALL, except: textCheck })

/** Which learnings are written to a file that every session is told. */
export type Promotion = Ownership & {
  /** The file to add them to, such as MEMORY.md in the agent's folder. Its existing content stays as it is. */
  readonly file: string
  /** The learnings to add. Default: those marked for promotion. */
  readonly ids?: readonly string[]
}

const checkPromotion = optionsChecker<Promotion>('promote', {
  file: requiredCheck(nonEmptyCheck),
  ids: listCheck(textCheck),
  owner: ownerCheck,
})

const PAGE = 1_000
const CARDS = 500
const CANDIDATES = 50
/** After so many sessions in a row with nothing new, the search stops: older ones were read when they were new. */
const KNOWN_ROW = 100
export const RECALL_MS = 500

/** Opens a memory over the sessions of a store. Hand it to a harness as `memoryPlugin(memory)`. */
export function openMemory(options: OpenMemoryOptions): Memory {
  return new Memory(options)
}

/** What agents learned, in a file of its own, with searches over it. It can always be made again from the logs. */
export class Memory {
  /** The store whose logs it reads. */
  readonly store: OpenMemoryOptions['store']
  readonly #file: string
  readonly #sessions: OpenMemoryOptions['sessions']
  readonly #clock: Clock
  readonly #report: (line: string) => void
  /** The open file, also while it catches up. */
  #learnings: Learnings | null = null
  #opening: Promise<Learnings> | null = null
  #closed = false

  constructor(options: OpenMemoryOptions) {
    checkOptions(options)
    const { file, store, sessions, clock = runtimeClock, report = warn } = options
    this.#file = file
    this.#sessions = sessions
    this.store = store
    this.#clock = clock
    this.#report = report
  }

  /** The path of its file, as it was given. */
  get file(): string {
    return this.#file
  }

  /**
   * The learnings of this agent for this owner that are about the query, nearest first. Rejects on an error, or after
   * the time limit.
   */
  async recall(agent: string, query: string, options: RecallOptions = {}): Promise<readonly Citation[]> {
    checkRecall(options)
    const { timeoutMs = RECALL_MS, owner, ...cite } = options
    const words = significantWords(query)
    if (words.length === 0) return []
    const found = await this.within(
      timeoutMs,
      this.#use((learnings) => learnings.find({ agent, owner: owner ?? '' }, words, CANDIDATES)),
    )
    return citationsOf(words, found, cite)
  }

  /**
   * Earlier runs of this agent for this owner that were about the query, nearest first: 3 of them, unless `limit` says
   * otherwise. Rejects as `recall` does.
   */
  async recallEpisodes(
    agent: string,
    query: string,
    options: RecallEpisodesOptions = {},
  ): Promise<readonly RecalledEpisode[]> {
    checkRecallEpisodes(options)
    const { timeoutMs = RECALL_MS, owner, except, ...cite } = options
    const words = significantWords(query)
    if (words.length === 0) return []
    const all = await this.within(
      timeoutMs,
      this.#use((learnings) => learnings.episodes.list({ agent, owner: owner ?? '' })),
    )
    return nearEpisodes(
      words,
      all.filter(({ session }) => session !== except),
      cite,
    )
  }

  /** All episodes of this agent for this owner, the oldest first. */
  async episodes(agent: string, options: Ownership = {}): Promise<readonly Episode[]> {
    checkOwnership(options)
    return this.#use((learnings) => learnings.episodes.list({ agent, owner: options.owner ?? '' }))
  }

  /** Removes an episode for good. Its log stays as it is. */
  async forgetEpisode(agent: string, id: string, options: Ownership = {}): Promise<void> {
    checkOwnership(options)
    const colon = id.lastIndexOf(':')
    const [session, seq] = [id.slice(0, Math.max(colon, 0)), Number(id.slice(colon + 1))]
    const whose = { agent, owner: options.owner ?? '' }
    const isThere = await this.#use((learnings) =>
      learnings.inTransaction(() => learnings.forgetEpisode(whose, session, seq)),
    )
    if (!isThere)
      throw new Fault('invalid_input', `Agent "${agent}" has no episode ${clean(id)}. List them to see their ids.`)
  }

  /** All learnings of this agent for this owner, in the order they were learned. */
  async list(agent: string, options: Ownership = {}): Promise<readonly Learned[]> {
    checkOwnership(options)
    return (await this.#use((learnings) => learnings.list(agent, options.owner ?? ''))).map(learnedOf)
  }

  /** The user who opened a session, or opened its root for a child session. Null: the host did not say. */
  async ownerOf(session: string): Promise<string | null> {
    const card = await this.store.card(session)
    const top = card === null || card.root === session ? card : await this.store.card(card.root)
    return top?.owner ?? null
  }

  /** Shares a learning with the sessions of all owners of this agent. Only a person should decide that. */
  share(agent: string, id: string, options: Ownership = {}): Promise<Learned> {
    checkOwnership(options)
    return this.#use((learnings) =>
      learnings.inTransaction(() => {
        const one = findLearning(learnings, agent, id, options)
        learnings.share(agent, one.session, one.seq)
        return { ...learnedOf(one), shared: true }
      }),
    )
  }

  /**
   * Removes for good everything that sessions of this owner taught any agent, and the episodes of their runs. Returns
   * the number of learnings.
   */
  forgetOwner(owner: string): Promise<number> {
    checkOwnership({ owner })
    return this.#use((learnings) =>
      learnings.inTransaction(() => {
        const all = learnings.ownedBy(owner)
        for (const [agent, session, seq] of all) learnings.forget(agent, session, seq)
        learnings.forgetEpisodesOf(owner)
        return all.length
      }),
    )
  }

  /** Takes in what a session has taught since it was last read. */
  async learn(session: string): Promise<void> {
    await this.#take(session, (act) => this.#use(act))
  }

  /**
   * Adds learnings to a file for people and agents to read. Learnings already there are not added again. One from a round
   * of an outcome is added only once a round of it has passed: with `ids` it is refused before, otherwise left out.
   * Returns those that were added.
   */
  async promote(agent: string, promotion: Promotion): Promise<readonly Learned[]> {
    checkPromotion(promotion)
    const { file, ids, owner } = promotion
    const all = await this.list(agent, { owner: owner ?? null })
    const unknown = ids?.find((id) => !all.some((one) => one.id === id))
    if (unknown !== undefined)
      throw new Fault('invalid_input', `Agent "${agent}" has no learning ${unknown}. List them to see their ids.`)
    const ready = new Set<string>()
    for (const { id, promote } of all) {
      if (!(ids?.includes(id) ?? promote)) continue
      const colon = id.lastIndexOf(':')
      const round = await findUnpassedRound(this.store, id.slice(0, colon), Number(id.slice(colon + 1)))
      if (round === null) ready.add(id)
      else if (ids !== undefined) throw unpassedFault(id, round)
    }
    return this.#use((learnings) =>
      learnings.inTransaction(() => {
        const now = learnings.list(agent, owner ?? '').map(learnedOf)
        return addToFile(
          file,
          now.filter(({ id }) => ready.has(id)),
        )
      }),
    )
  }

  /**
   * Removes a learning for good: it is not recalled, and not learned again. If it was promoted, its line in `file` is
   * removed too. Its log stays as it is.
   */
  forget(
    agent: string,
    id: string,
    { file, ...options }: Ownership & { readonly file?: string } = {},
  ): Promise<Learned> {
    return this.#use((learnings) =>
      learnings.inTransaction(() => {
        const one = findLearning(learnings, agent, id, options)
        learnings.forget(agent, one.session, one.seq)
        const learned = learnedOf(one)
        if (file !== undefined) removeFromFile(file, learned)
        return learned
      }),
    )
  }

  /** Gives the extractor and the consumer of episodes the open file. */
  useIndex<T>(act: (learnings: Learnings) => T): Promise<T> {
    return this.#use(act)
  }

  /** An unfinished catch-up is left: the next process to open the file continues there. */
  async close(): Promise<void> {
    this.#closed = true
    this.#learnings?.close()
    this.#learnings = null
  }

  /** A file that turns out to be damaged is rebuilt once. */
  async #use<T>(act: (learnings: Learnings) => T): Promise<T> {
    const learnings = await this.#opened(() => this.#open())
    try {
      return await runWhenFree(this.#clock, () => act(learnings))
    } catch (error) {
      if (!isDamaged(error)) throw error
      const anew = await this.#mended(learnings)
      return runWhenFree(this.#clock, () => act(anew))
    }
  }

  /** Opened once, by the first call. After a failure the next call tries again. */
  #opened(open: () => Promise<Learnings>): Promise<Learnings> {
    if (this.#closed) return Promise.reject(new Fault('store_closed', 'This memory is closed.'))
    if (this.#opening) return this.#opening
    const opening = open()
    this.#opening = opening
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = null
    })
    return opening
  }

  async #mended(broken: Learnings): Promise<Learnings> {
    // Of several calls that find the damage, one rebuilds the file.
    if (this.#learnings === broken) {
      this.#opening = null
      this.#learnings = null
      broken.close()
    }
    return this.#opened(() => this.#anew())
  }

  async #open(): Promise<Learnings> {
    try {
      return await this.#start()
    } catch (error) {
      if (!isDamaged(error)) throw error
      return this.#anew()
    }
  }

  async #anew(): Promise<Learnings> {
    moveDamagedFile(this.#file)
    const learnings = await this.#start()
    this.#report(`The learnings in ${this.#file} were damaged; they have been taken from the logs again.`)
    return learnings
  }

  async #start(): Promise<Learnings> {
    const learnings = await runWhenFree(this.#clock, () => openLearnings(this.#file))
    try {
      if (this.#closed) throw new Fault('store_closed', 'This memory is closed.')
      this.#learnings = learnings
      await this.#catchUp(learnings)
      return learnings
    } catch (error) {
      if (this.#learnings === learnings || this.#closed) {
        this.#learnings = null
        learnings.close()
      }
      throw error
    }
  }

  /** Reads every log that grew since the last time; with an empty file, all of them. */
  async #catchUp(learnings: Learnings): Promise<void> {
    for (const session of await runWhenFree(this.#clock, () => learnings.unownedSessions())) {
      const owner = (await this.ownerOf(session)) ?? ''
      await runWhenFree(this.#clock, () => learnings.setOwner(session, owner))
    }
    const known = await runWhenFree(this.#clock, () => learnings.cursors())
    const grown = ({ session, seq }: Card): boolean => seq > (known.get(session) ?? 0)
    for await (const session of this.#sessions ? this.#newest(await this.#sessions(), grown) : this.#all(grown)) {
      if (this.#closed) return
      try {
        await this.#take(session, (act) => runWhenFree(this.#clock, () => act(learnings)))
      } catch (error) {
        // One unreadable log must not keep the others from being read.
        if (!(error instanceof Fault) || error.code !== 'session_damaged') throw error
        this.#report(`What session ${session} taught cannot be read: ${error.message}`)
      }
    }
  }

  async *#all(grown: (card: Card) => boolean): AsyncGenerator<string> {
    for (let after = ''; ; ) {
      const cards = await this.store.list({ after, limit: CARDS })
      for (const card of cards) if (grown(card)) yield card.session
      if (cards.length < CARDS) return
      after = cards.at(-1)?.session ?? ''
    }
  }

  /**
   * Searches from the newest session back, and returns the oldest first, so that the next process finds what this one
   * leaves undone.
   */
  async *#newest(sessions: readonly string[], grown: (card: Card) => boolean): AsyncGenerator<string> {
    const found: string[][] = []
    for (let i = sessions.length - 1, row = 0; i >= 0 && row < KNOWN_ROW; i--) {
      const family = await this.store.list({ root: sessions[i] ?? '', limit: CARDS })
      const news = family.filter(grown).map(({ session }) => session)
      row = news.length === 0 ? row + 1 : 0
      found.push(news)
    }
    yield* found.reverse().flat()
  }

  async #take(session: string, use: <T>(act: (learnings: Learnings) => T) => Promise<T>): Promise<void> {
    const agent = (await this.store.card(session))?.agent
    if (agent === undefined) throw new Fault('session_missing', `There is no session ${session}.`)
    const owner = (await this.ownerOf(session)) ?? ''
    const taken: FoundLearning[] = []
    const from = await use((learnings) => learnings.cursor(session))
    for (let after = from; ; ) {
      const { events, damaged: broken } = await this.store.read(session, after, PAGE)
      for (const event of events) {
        // Events before an import came from a file: this agent did not learn them.
        if (event.type === 'session.imported') taken.length = 0
        else taken.push(...learningIn(event))
      }
      after = events.at(-1)?.seq ?? after
      if (!broken && events.length === PAGE) continue
      if (after > from) await use((learnings) => learnings.take({ session, agent, owner }, taken, after))
      if (broken) throw damagedFault(session, broken)
      return
    }
  }

  /** A time limit for work before a run: rejects when it takes longer. */
  async within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
    let cancel = (): void => {}
    const late = new Promise<never>((_resolve, reject) => {
      const fault = new Fault('store_busy', `Nothing was recalled: it took longer than ${timeoutMs} ms.`)
      cancel = this.#clock.timer(timeoutMs, () => reject(fault))
    })
    try {
      return await Promise.race([work, late])
    } finally {
      cancel()
    }
  }
}

/** More than a model may write, since marks may stand in place of secrets. */
const TITLE_CHARS_MAX = 2 * TITLE_CHARS
const DETAIL_CHARS_MAX = 2 * DETAIL_CHARS
const NOTE_CHARS_MAX = 10_000

function learningIn(event: Event): readonly FoundLearning[] {
  if (event.type !== 'note.added' || event.kind !== 'learning' || event.text.length > NOTE_CHARS_MAX) return []
  const learning = readLearning(event.text)
  if (learning === null) return []
  const title = clipText(learning.title, TITLE_CHARS_MAX)
  const detail = clipText(learning.detail, DETAIL_CHARS_MAX)
  return [{ learning: { ...learning, title, detail }, seq: event.seq, at: event.at }]
}

function unpassedFault(id: string, round: number): Fault {
  const text = `The learning ${clean(id)} is from round ${round} of an outcome that has not passed. Promote it once a round has passed, or forget it.`
  return new Fault('invalid_input', text)
}

function findLearning(learnings: Learnings, agent: string, id: string, { owner }: Ownership): LearningRow {
  const one = learnings.list(agent, owner ?? '').find(({ session, seq }) => eventId(session, seq) === id)
  if (one) return one
  const whose = owner === undefined || owner === null ? '' : ` of ${clean(owner)}`
  throw new Fault('invalid_input', `Agent "${agent}" has no learning ${clean(id)}${whose}. List them to see their ids.`)
}

function learnedOf({ kind, title, detail, session, seq, at, promote, owner, shared, source }: LearningRow): Learned {
  const from = source === '' ? [] : source.split(',').map((each) => eventId(session, Number(each)))
  const whose = { owner: owner === '' ? null : owner, shared: shared === 1 }
  return { id: eventId(session, seq), kind, title, detail, at, promote: promote === 1, ...whose, from }
}

/** The caller holds the transaction, so no other process changes the file. */
function addToFile(file: string, wanted: readonly Learned[]): readonly Learned[] {
  const text = readText(file)
  // Compares whole lines without their mark, since a learning may begin like another one.
  const lines = new Set(text.split('\n').map((line) => line.replace(MARK, '').trimEnd()))
  const missing = wanted.filter((one) => !text.includes(markOf(one)) && !lines.has(lineOf(one)))
  if (missing.length === 0) return []
  const before = text === '' ? '# Memory\n\n' : text.endsWith('\n') ? text : `${text}\n`
  replaceWhole(file, `${before}${missing.map((one) => `${lineOf(one)} ${markOf(one)}\n`).join('')}`)
  return missing
}

/** Removes only the line that was added for it. */
function removeFromFile(file: string, one: Learned): void {
  const text = readText(file)
  const mark = markOf(one)
  if (!text.includes(mark)) return
  const left = text.split('\n').filter((line) => !line.endsWith(mark))
  replaceWhole(file, left.join('\n'))
}

function replaceWhole(file: string, text: string): void {
  const beside = `${file}.${process.pid}.tmp`
  try {
    writeFileSync(beside, text, { mode: 0o600 })
    renameSync(beside, file)
  } catch (error) {
    rmSync(beside, { force: true })
    throw new Fault('io_error', `${file} cannot be written: check its directory.`, String(error))
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return ''
    throw new Fault('io_error', `${file} cannot be read: check its permissions.`, String(error))
  }
}

function lineOf({ kind, title, detail }: Learned): string {
  return clean(`- **${title}** (${kind}): ${detail}`.replace(/\s+/g, ' '))
}

const MARK = /<!-- \S+ -->$/

function markOf({ id }: Learned): string {
  return `<!-- ${encodeURIComponent(id)} -->`
}

function isDamaged(error: unknown): boolean {
  return error instanceof Fault && error.code === 'store_damaged'
}

function warn(line: string): void {
  process.emitWarning(line, 'TerretWarning')
}
