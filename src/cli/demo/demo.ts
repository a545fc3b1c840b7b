// `terret demo`, the first minute: a report over the bundled documents by worker processes, three of which are killed. It opens the
// session, starts and kills the workers, asks, and shows what the log says. The workers are `terret resume`; it drives nothing itself.
import { once } from 'node:events'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Harness, Pending } from '../../index.ts'
import { type Call, person } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { isAttended, keepIn, near, shortId, typed } from '../present/print.ts'
import { DEMO, startIn } from '../state/folders.ts'
import { realFolder } from '../state/home.ts'
import { pendingIn } from '../state/log.ts'
import { inPlace, type Place } from '../state/place.ts'
import { setupFor } from '../state/setup.ts'
import { aside } from '../state/without-driving.ts'
import { withHarness } from '../state/work.ts'
import { openPage } from '../serve/browser.ts'
import type { Serving } from '../serve/serving.ts'
import { type Kill, ledger, written } from './ledger.ts'
import { LogReader } from './log-reader.ts'
import { decided, showQuestion } from './question.ts'
import { Telling } from './telling.ts'
import { type Worker, Workers } from './workers.ts'

const DOCUMENTS = join('examples', 'documents', 'nursing')
const TOPIC = 'What does a sick-room need: light, clean air, tea, a good bed and variety?'

/** For those who watch, each node takes at least so long. */
const PACE = '*=500ms'
/** Where a worker is to be killed, the result is kept back until then. */
const AIM_TIME = '20s'
/** How long those who watch see what is about to be killed. */
const AIM_MS = 700
/** There are more only if somebody else kills them, too. */
const WORKERS_MAX = 12
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** The exit codes of a worker after which its session rests: done, failed, or waiting for a person. */
const RESTED: ReadonlySet<number | null> = new Set([EXIT.ok, EXIT.failed, EXIT.waits])

export function demo(call: Call): Promise<number> {
  if (call.is('json'))
    throw new Refusal(
      EXIT.usage,
      `The demo is to be watched: leave out --json. \`${typed`history ID --json`}\` has its log.`,
    )
  const documents = bundled()
  if (call.text('data') === undefined) keepIn(DEMO.data)
  return inPlace(async (opened) => {
    mkdirSync(DEMO.reports, { recursive: true })
    const place = { ...opened, folder: realFolder(DEMO.reports) }
    const played = new Demo(place, call, await begin(place, documents))
    try {
      return await played.play()
    } finally {
      await played.close()
    }
  })
}

/** The documents that come with the package. */
function bundled(): string {
  const [, script = ''] = process.argv
  const folder = join(dirname(realpathSync(script)), '..', '..', DOCUMENTS)
  if (existsSync(folder)) return folder
  throw new Refusal(EXIT.missing, `The documents of the demo are missing: there is no folder ${folder}.`)
}

/** The session and its input are on disk before there is a worker. A file of its own: no report replaces another. */
function begin(place: Place, documents: string): Promise<string> {
  const open = async (harness: Harness): Promise<string> => {
    const session = await startIn(place, place.folder, (as) => harness.open({ ...as, agent: 'report' }))
    await session.send(JSON.stringify({ topic: TOPIC, documents, out: `${shortId(session.id)}.md` }))
    return session.id
  }
  return aside(place, open, { agent: 'report', folder: place.folder })
}

class Demo {
  readonly #place: Place
  readonly #call: Call
  readonly #session: string
  readonly #id: string
  readonly #log: LogReader
  readonly #telling: Telling
  readonly #workers: Workers
  readonly #kills: Kill[] = []
  /** Whether there is a person to watch and to be asked. */
  readonly #isWatched = isAttended() && process.stdout.isTTY
  readonly #leaving = new AbortController()
  /** Where the run is looked at and decided in a browser, once it is served; a text says why it is not. */
  #inspector: Serving | string | null = null
  #closePage: (() => void) | null = null

  constructor(place: Place, call: Call, session: string) {
    this.#place = place
    this.#call = call
    this.#session = session
    this.#id = shortId(session)
    this.#log = new LogReader(place.store, session)
    this.#telling = new Telling(this.#log, place.folder)
    this.#workers = new Workers(session, place.home.folder)
    for (const signal of SIGNALS) process.on(signal, this.#leave)
  }

  readonly #leave = (): void => {
    this.#leaving.abort()
    this.#workers.leave()
  }

  async close(): Promise<void> {
    this.#workers.leave()
    this.#telling.rest()
    this.#closePage?.()
    if (this.#served) await this.#served.close()
    for (const signal of SIGNALS) process.off(signal, this.#leave)
  }

  async play(): Promise<number> {
    this.#head()
    await this.#work(['search', 'draft'])
    const [pending] = this.#isLeft ? [] : await pendingIn(this.#place.store, this.#session)
    if (pending) {
      showQuestion({ telling: this.#telling, pending })
      if (!this.#isWatched || !(await this.#isDecided(pending))) return this.#later()
      await this.#work(['finalize'])
    }
    if (this.#isLeft) return this.#stopped()
    const code = await this.#end()
    if (this.#served) await this.#look(this.#served)
    return code
  }

  async #isDecided(pending: Pending): Promise<boolean> {
    const { openInspector } = await import('./inspector.ts')
    this.#inspector = await openInspector(this.#place, this.#call)
    if (typeof this.#inspector === 'string') this.#telling.say(this.#inspector)
    const inspector = this.#served ? ', in the inspector' : ''
    this.#telling.say(`No worker runs now. Decide here${inspector}, or in a second terminal:`)
    if (this.#served) this.#telling.command(`  ${this.#served.page}`)
    this.#telling.command(`  ${typed`approve ${this.#id}`}`)
    if (this.#served && this.#call.is('open')) await this.#openPage(this.#served)
    const [place, log, telling, by] = [this.#place, this.#log, this.#telling, person(this.#call)]
    return decided({ place, log, telling, pending, by }, this.#leaving.signal)
  }

  async #openPage({ page }: Serving): Promise<void> {
    this.#closePage = await openPage(this.#place.home, page)
    if (this.#closePage === null) this.#telling.say('No browser could be opened. Open the address yourself.')
  }

  get #served(): Serving | null {
    return typeof this.#inspector === 'string' ? null : this.#inspector
  }

  get #resume(): string {
    return typed`resume ${this.#id}`
  }

  get #isLeft(): boolean {
    return this.#leaving.signal.aborted
  }

  #head(): void {
    const pace = this.#isWatched ? ' and pace' : ''
    this.#telling.say(`Terret makes a report while its workers get killed. All of it in ${near(DEMO.folder)}/.`, 'bold')
    this.#telling.say(`Real: processes, kill -9, SQLite, file. Scripted: writer (no model)${pace}.`, 'bold')
  }

  /** Workers, one after another, until the session rests. The first of them are killed at these nodes. */
  async #work(aims: readonly string[]): Promise<void> {
    this.#telling.moves()
    for (let i = 0; !this.#isLeft && !this.#log.isSettled; i += 1) {
      if (i === WORKERS_MAX) throw new Refusal(EXIT.failed, `${i} workers were killed. Go on with: ${this.#resume}`)
      if (await this.#worker(this.#aimOf(aims))) break
    }
    this.#telling.rest()
  }

  /** The next node to kill a worker at: not done, and not killed at before. */
  #aimOf(aims: readonly string[]): string | null {
    const done = this.#log.stops.filter(({ status }) => status === 'ok').map(({ node }) => node)
    const past = new Set([...done, ...this.#kills.map(({ node }) => node)])
    return aims.find((node) => !past.has(node)) ?? null
  }

  /** One worker to its end. True if its session rests. */
  async #worker(aim: string | null): Promise<boolean> {
    const worker = await this.#started(aim)
    if (worker === null) return true
    this.#log.pid = worker.pid
    const over = new AbortController()
    const ended = worker.ended.finally(() => over.abort())
    const signals = AbortSignal.any([over.signal, this.#leaving.signal])
    const isThere = await this.#log.until(() => {
      this.#telling.news()
      return aim !== null && this.#isAt(aim) ? true : null
    }, signals)
    if (aim !== null && isThere && this.#isWatched) await sleep(AIM_MS)
    const isKilled = aim !== null && isThere === true && worker.kill()
    const { code, signal, said } = await ended
    await this.#log.look()
    this.#telling.news()
    if (signal !== null && !this.#isLeft) this.#killed(worker.pid, isKilled ? null : signal)
    this.#log.pid = null
    if (signal !== null) return false
    if (RESTED.has(code)) return true
    throw new Refusal(code ?? EXIT.failed, `Worker process ${worker.pid} failed: ${said.trim()} Then: ${this.#resume}`)
  }

  /** Null: the system starts no process, and the work was done in this one. */
  async #started(aim: string | null): Promise<Worker | null> {
    const holds = [...(this.#isWatched ? [PACE] : []), ...(aim === null ? [] : [`${aim}=${AIM_TIME}`])]
    try {
      return await this.#workers.start(holds)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#telling.say(`! No worker process can be started (${why}). This process does the work; nothing is killed.`)
      this.#log.pid = process.pid
      await this.#here()
      await this.#log.look()
      this.#telling.news()
      return null
    }
  }

  async #here(): Promise<void> {
    const setup = await setupFor(this.#place.home, this.#place.folder)
    await withHarness(this.#place, setup, this.#call, (harness) => harness.session(this.#session).run(), 'report')
  }

  /** Whether this node has begun and has no result in the log; of the last one also that its bytes are in the file. */
  #isAt(aim: string): boolean {
    const { proposal } = this.#log.state
    if (this.#log.running !== aim) return false
    return aim !== 'finalize' || (!!proposal && written(proposal.path, proposal.sha256) !== null)
  }

  /** `other`: the signal of somebody else. */
  #killed(pid: number, other: NodeJS.Signals | null): void {
    const node = this.#log.running
    const { proposal } = this.#log.state
    const file = node === 'finalize' && proposal ? written(proposal.path, proposal.sha256) : null
    const when =
      node === null ? 'between two nodes' : `${file ? 'after its write' : 'while it ran'}: no result in the log`
    this.#telling.killed(node ?? '', pid, `${when}${other === null ? '' : ` (${other}, not from here)`}`)
    if (other === null && node !== null) this.#kills.push({ node, pid, file })
  }

  /** It waits, and says how it goes on. */
  #later(): number {
    this.#telling.say('It waits, and no process runs. Go on today or next week, from any terminal:')
    this.#telling.command(`  See it:     ${typed`pending ${this.#id} --whole`}`)
    this.#telling.command(`  Allow it:   ${typed`approve ${this.#id} --resume`}`)
    this.#telling.command(`  Refuse it:  ${typed`reject ${this.#id} --resume`}`)
    return EXIT.ok
  }

  #stopped(): number {
    this.#telling.say('Stopped; no process is left, and nothing is lost. Go on with:')
    this.#telling.command(`  ${this.#resume}`)
    return EXIT.interrupted
  }

  async #end(): Promise<number> {
    this.#telling.news()
    const { cost = 0, outcome = null } = (await this.#place.store.card(this.#session)) ?? {}
    const { pids } = this.#workers
    for (const line of ledger({ log: this.#log, kills: this.#kills, pids, cost })) this.#telling.say(line)
    this.#telling.command(`Next       ${typed`inspect ${this.#id}`}`)
    this.#telling.say('           docs/guide/quickstart.md: an agent of your own')
    const isRefused = this.#log.events.some((event) => event.type === 'user.tool_confirmation' && !event.allow)
    return outcome === 'completed' || isRefused ? EXIT.ok : EXIT.failed
  }

  /** Served until Ctrl-C, and from now on driven: what is forked or sent in the inspector goes on. */
  async #look(served: Serving): Promise<void> {
    served.drive()
    this.#telling.say('Inspector  this run, until Ctrl-C:')
    this.#telling.command(`  ${served.page}`)
    const { signal } = this.#leaving
    // The server keeps the process alive.
    if (!signal.aborted) await once(signal, 'abort')
    // The terminal has left its mark of the Ctrl-C on a line of its own.
    process.stderr.write('\n')
    this.#telling.command(`Again      ${typed`serve`}`)
  }
}
