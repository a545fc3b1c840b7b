// `terret demo`, the first minute: worker processes write a report over the bundled documents, and three of them are
// killed. The demo opens the session, starts and kills the workers, asks, and shows the log. The workers are `terret
// resume`; the demo itself drives nothing.
import { once } from 'node:events'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pending, Sessions } from '../../index.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { isAttended, useDataFolder, pathToType, shortId, terretCommand } from '../present/print.ts'
import { DEMO, startSessionIn } from '../state/session-folders.ts'
import { realFolder } from '../state/cli-home.ts'
import { readPending } from '../state/read-log.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { readSetup } from '../state/folder-setup.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { withHarness } from '../state/drive-session.ts'
import { openPage } from '../serve/browser.ts'
import type { OpenServer } from '../serve/open-server.ts'
import { type Kill, accountLines, findWrittenFile } from './demo-account.ts'
import { LogReader } from './log-reader.ts'
import { awaitDecision, showQuestion } from './demo-question.ts'
import { DemoOutput } from './demo-output.ts'
import { type DemoWorker, DemoWorkers } from './demo-workers.ts'

const DOCUMENTS = join('demo', 'documents', 'nursing')
const TOPIC = 'What does a sick-room need: light, clean air, tea, a good bed and variety?'

/** At a terminal each node takes at least this long, so that it can be watched. */
const PACE = '*=500ms'
/** At a node where a worker is to be killed, the result is held back this long. */
const AIM_TIME = '20s'
/** How long a person can see that a node runs before its worker is killed. */
const AIM_MS = 700
/** More workers are needed only if someone else kills them too. */
const WORKERS_MAX = 12
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** The exit codes of a worker after which its session rests: done, failed, or waiting for a person. */
const RESTED: ReadonlySet<number | null> = new Set([EXIT.ok, EXIT.failed, EXIT.waits])

export function demoCommand(call: CommandArgs): Promise<number> {
  if (call.is('json'))
    throw new CliError(
      EXIT.usage,
      `The demo is to be watched: leave out --json. \`${terretCommand`history ID --json`}\` has its log.`,
    )
  const documents = findDocuments()
  if (call.text('data') === undefined) useDataFolder(DEMO.data)
  return withStore(async (opened) => {
    mkdirSync(DEMO.reports, { recursive: true })
    const place = { ...opened, folder: realFolder(DEMO.reports) }
    const played = new Demo(place, call, await openReport(place, documents))
    try {
      return await played.play()
    } finally {
      await played.close()
    }
  })
}

/** The documents that come with the package. */
function findDocuments(): string {
  const [, script = ''] = process.argv
  const folder = join(dirname(realpathSync(script)), DOCUMENTS)
  if (existsSync(folder)) return folder
  throw new CliError(EXIT.missing, `The documents of the demo are missing: there is no folder ${folder}.`)
}

/**
 * The session and its input are on disk before the first worker starts. Each report has its own file, so none replaces
 * another.
 */
function openReport(place: CommandContext, documents: string): Promise<string> {
  const open = async (sessions: Sessions): Promise<string> => {
    const session = await startSessionIn(place, place.folder, (as) => sessions.open({ ...as, agent: 'report' }))
    await session.send(JSON.stringify({ topic: TOPIC, documents, out: `${shortId(session.id)}.md` }))
    return session.id
  }
  return withoutDriving(place, open, { agent: 'report', folder: place.folder })
}

class Demo {
  readonly #place: CommandContext
  readonly #call: CommandArgs
  readonly #session: string
  readonly #id: string
  readonly #log: LogReader
  readonly #telling: DemoOutput
  readonly #workers: DemoWorkers
  readonly #kills: Kill[] = []
  /** True if a person watches and can be asked. */
  readonly #isWatched = isAttended() && process.stdout.isTTY
  readonly #leaving = new AbortController()
  /** The server where the run can be seen and decided in a browser, once it runs; a text says why it does not. */
  #inspector: OpenServer | string | null = null
  #closePage: (() => void) | null = null

  constructor(place: CommandContext, call: CommandArgs, session: string) {
    this.#place = place
    this.#call = call
    this.#session = session
    this.#id = shortId(session)
    this.#log = new LogReader(place.store, session)
    this.#telling = new DemoOutput(this.#log, place.folder)
    this.#workers = new DemoWorkers(session, place.home.folder)
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
    const [pending] = this.#isLeft ? [] : await readPending(this.#place.store, this.#session)
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
    this.#telling.command(`  ${terretCommand`approve ${this.#id}`}`)
    if (this.#served && this.#call.is('open')) await this.#openPage(this.#served)
    const [place, log, telling, by] = [this.#place, this.#log, this.#telling, actorName(this.#call)]
    return awaitDecision({ place, log, telling, pending, by }, this.#leaving.signal)
  }

  async #openPage({ page }: OpenServer): Promise<void> {
    this.#closePage = await openPage(this.#place.home, page)
    if (this.#closePage === null) this.#telling.say('No browser could be opened. Open the address yourself.')
  }

  get #served(): OpenServer | null {
    return typeof this.#inspector === 'string' ? null : this.#inspector
  }

  get #resume(): string {
    return terretCommand`resume ${this.#id}`
  }

  get #isLeft(): boolean {
    return this.#leaving.signal.aborted
  }

  #head(): void {
    const pace = this.#isWatched ? ' and pace' : ''
    this.#telling.say(
      `Terret makes a report while its workers get killed. All of it in ${pathToType(DEMO.folder)}/.`,
      'bold',
    )
    this.#telling.say(`Real: processes, kill -9, SQLite, file. Scripted: writer (no model)${pace}.`, 'bold')
  }

  /** Starts workers, one after another, until the session rests. The first of them are killed at these nodes. */
  async #work(aims: readonly string[]): Promise<void> {
    this.#telling.moves()
    for (let i = 0; !this.#isLeft && !this.#log.isSettled; i += 1) {
      if (i === WORKERS_MAX) throw new CliError(EXIT.failed, `${i} workers were killed. Go on with: ${this.#resume}`)
      if (await this.#worker(this.#aimOf(aims))) break
    }
    this.#telling.rest()
  }

  /** The next node at which to kill a worker: not done yet, and without an earlier kill. */
  #aimOf(aims: readonly string[]): string | null {
    const done = this.#log.stops.filter(({ status }) => status === 'ok').map(({ node }) => node)
    const past = new Set([...done, ...this.#kills.map(({ node }) => node)])
    return aims.find((node) => !past.has(node)) ?? null
  }

  /** Runs one worker to its end. True if its session rests. */
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
    throw new CliError(code ?? EXIT.failed, `Worker process ${worker.pid} failed: ${said.trim()} Then: ${this.#resume}`)
  }

  /** Null: the system starts no process, and this process did the work. */
  async #started(aim: string | null): Promise<DemoWorker | null> {
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
    const setup = await readSetup(this.#place.home, this.#place.folder)
    await withHarness(this.#place, setup, this.#call, (harness) => harness.session(this.#session).run(), 'report')
  }

  /**
   * True if this node has begun and has no result in the log; for the last node, also that its bytes are in the file.
   */
  #isAt(aim: string): boolean {
    const { proposal } = this.#log.state
    if (this.#log.running !== aim) return false
    return aim !== 'finalize' || (!!proposal && findWrittenFile(proposal.path, proposal.sha256) !== null)
  }

  /** `other`: the signal that someone else sent. */
  #killed(pid: number, other: NodeJS.Signals | null): void {
    const node = this.#log.running
    const { proposal } = this.#log.state
    const file = node === 'finalize' && proposal ? findWrittenFile(proposal.path, proposal.sha256) : null
    const when =
      node === null ? 'between two nodes' : `${file ? 'after its write' : 'while it ran'}: no result in the log`
    this.#telling.killed(node ?? '', pid, `${when}${other === null ? '' : ` (${other}, not from here)`}`)
    if (other === null && node !== null) this.#kills.push({ node, pid, file })
  }

  /** Says that the session waits, and how to go on. */
  #later(): number {
    this.#telling.say('It waits, and no process runs. Go on today or next week, from any terminal:')
    this.#telling.command(`  See it:     ${terretCommand`pending ${this.#id} --whole`}`)
    this.#telling.command(`  Allow it:   ${terretCommand`approve ${this.#id} --resume`}`)
    this.#telling.command(`  Refuse it:  ${terretCommand`reject ${this.#id} --resume`}`)
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
    for (const line of accountLines({ log: this.#log, kills: this.#kills, pids, cost })) this.#telling.say(line)
    this.#telling.command(`Next       ${terretCommand`inspect ${this.#id}`}`)
    this.#telling.say('           docs/guide/quickstart.md: an agent of your own')
    const isRefused = this.#log.events.some((event) => event.type === 'user.tool_confirmation' && !event.allow)
    return outcome === 'completed' || isRefused ? EXIT.ok : EXIT.failed
  }

  /** Serves until Ctrl-C, and drives from now on: sessions that are forked or continued in the inspector go on. */
  async #look(served: OpenServer): Promise<void> {
    served.drive()
    this.#telling.say('Inspector  this run, until Ctrl-C:')
    this.#telling.command(`  ${served.page}`)
    const { signal } = this.#leaving
    // The server keeps the process alive.
    if (!signal.aborted) await once(signal, 'abort')
    // The terminal printed its mark of the Ctrl-C, so the next text begins on a new line.
    process.stderr.write('\n')
    this.#telling.command(`Again      ${terretCommand`serve`}`)
  }
}
