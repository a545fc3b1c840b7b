// `npm run machines`: 50 agents on one Postgres, driven by three worker processes, while a worker and the database are killed; each
// payment is approved by a process of its own. It starts, kills, approves and tells; it drives nothing. The account is ledger.ts.
// TERRET_POSTGRES_BIN names the server's programs, TERRET_STORE an empty store of yours, whose server is not killed.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { PlainLines, Screen, type Surface } from '../../src/cli/present/screen.ts'
import { outputStyle } from '../../src/cli/present/print.ts'
import { fitLines, type Paint } from '../../src/cli/present/terminal-text.ts'
import type { Harness } from '../../src/index.ts'
import { type PostgresDatabase, postgres } from '../../src/stores/postgres/postgres.ts'
import { noPostgres, Server } from '../postgres/server.ts'
import { harnessOn, paymentsIn } from './agents.ts'
import { type Ledger, ledgerOf } from './ledger.ts'

const NAMES = ['ash', 'birch', 'cedar']
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const LOOK_MS = 100
/** How long the database stays away. */
const AWAY_MS = 1_500
/** So many commands run at once. */
const APPROVERS = 3
const MINUTES_MAX = 5
const TERRET = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))
const WORKER = fileURLToPath(new URL('child-worker.js', import.meta.url))

type Worker = { readonly name: string; readonly child: ChildProcess; readonly ended: Promise<unknown> }

class Machines {
  readonly #agents: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'terret-machines-'))
  readonly #book = join(this.#folder, 'book.jsonl')
  readonly #began = performance.now()
  readonly #out: Surface
  readonly #paint: Paint
  readonly #workers: Worker[] = []
  readonly #leaving: AbortSignal
  #server: Server | null = null
  #url = process.env['TERRET_STORE'] ?? ''
  #store: PostgresDatabase | null = null
  #harness: Harness | null = null
  #approved = 0
  #now = ''

  constructor(agents: number, leaving: AbortSignal) {
    this.#agents = agents
    this.#leaving = leaving
    const moves = process.stdout.isTTY && process.env['TERM'] !== 'dumb'
    this.#out = moves ? new Screen(process.stdout, { colours: false }) : new PlainLines(process.stdout)
    this.#paint = outputStyle(process.stdout).paint
  }

  /** True if nothing was lost or doubled. */
  async play(): Promise<boolean> {
    this.#say(`${this.#agents} agents on one Postgres. Each wants to pay an invoice, and must ask first.`, 'bold')
    this.#say('Real: processes, kill -9, Postgres, approvals. Scripted: model, bank.', 'bold')
    this.#out.show((mark) => ({ calls: [], status: fitLines(`${mark} ${this.#now}`, this.#out.columns) }))
    const { store, harness } = await this.#open()
    await this.#start()
    this.#now = 'agents are opened'
    for (let i = 1; i <= this.#agents; i += 1) {
      const session = await harness.open({ id: `invoice-${String(i).padStart(2, '0')}` })
      await session.send(`Pay invoice ${i}.`)
    }
    this.#tell(`${this.#agents} agents are open, in the log; the workers take them from there`)
    const ended = new AbortController()
    const approving = this.#approve(store, AbortSignal.any([ended.signal, this.#leaving])).finally(() => ended.abort())
    await Promise.all([approving, this.#strike(ended.signal), this.#watch(store).finally(() => ended.abort())])
    this.#tell(`All ${this.#agents} agents are done`)
    const [day] = (await harness.health()).accounts ?? []
    const account = day && (await store.account(day.id))
    const ledger = await ledgerOf(store, paymentsIn(this.#book), account ?? { spent: 0, assumed: 0 })
    await this.#end(ledger)
    return ledger.lost + ledger.doubled === 0
  }

  async #open(): Promise<{ readonly store: PostgresDatabase; readonly harness: Harness }> {
    this.#now = 'Postgres starts'
    if (this.#url === '') {
      this.#server = await Server.start({ fsync: true })
      this.#url = this.#server.url()
    }
    const store = postgres(this.#url)
    this.#store = store
    const harness = harnessOn(store, this.#book, null)
    this.#harness = harness
    await store.open()
    if ((await store.list({ limit: 1 })).length > 0)
      throw new Error('The store of TERRET_STORE has sessions. Give an empty database, or leave TERRET_STORE out.')
    const where = this.#server ? `started, on port ${this.#server.port}` : 'of TERRET_STORE: it is not killed'
    this.#tell(`Postgres ${where}`)
    return { store, harness }
  }

  async #start(): Promise<void> {
    this.#now = 'workers start'
    for (const name of NAMES) {
      const child = spawn(process.execPath, [WORKER, name, this.#book], {
        env: { ...process.env, TERRET_STORE: this.#url },
        stdio: ['pipe', 'pipe', 'inherit'],
        // A Ctrl-C of the terminal is for the process that shows it.
        detached: true,
      })
      this.#workers.push({ name, child, ended: once(child, 'exit') })
    }
    await Promise.all(
      this.#workers.map(({ child, ended }) => Promise.race([once(child.stdout ?? child, 'data'), ended])),
    )
    this.#tell(`Three workers run: ${this.#workers.map(({ name, child }) => `${name} ${child.pid}`).join(', ')}`)
  }

  /** Whatever waits, each by a `terret approve` of its own. */
  async #approve(store: PostgresDatabase, over: AbortSignal): Promise<void> {
    this.#tell('Other processes approve, each for one agent: terret approve ID --yes')
    while (!over.aborted) {
      const waiting = [...(await store.list({ status: 'requires_action', limit: this.#agents }))]
      const person = async (): Promise<void> => {
        for (let card = waiting.shift(); card && !over.aborted; card = waiting.shift())
          await this.#run(['approve', card.session, '--yes', '--by', 'you'], over)
      }
      await Promise.all(Array.from({ length: APPROVERS }, person))
      await sleep(LOOK_MS)
    }
  }

  async #run(args: readonly string[], over: AbortSignal): Promise<void> {
    const env = { ...process.env, TERRET_STORE: this.#url, TERRET_HOME: join(this.#folder, 'home') }
    const child = spawn(process.execPath, [TERRET, ...args], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    const leave = (): void => void child.kill('SIGKILL')
    over.addEventListener('abort', leave)
    const [code] = (await once(child, 'close')) as [number | null]
    over.removeEventListener('abort', leave)
    // 9: it does not wait any more. It was decided by the one before, whose end was not heard.
    if (code === 0) this.#approved += 1
    else if (!over.aborted && code !== 9) throw new Error(`terret ${args.join(' ')} ended with ${code}: ${said.trim()}`)
  }

  /** A worker is killed after a fifth of the payments, the database after three fifths: each in the middle of some. */
  async #strike(over: AbortSignal): Promise<void> {
    const [fifth, rest] = [this.#agents / 5, (this.#agents * 3) / 5]
    const first = await this.#payment(fifth, over)
    const victim = this.#workers.find(({ name }) => name === first)
    if (!victim) return
    victim.child.kill('SIGKILL')
    await victim.ended
    this.#tell(`✗ kill -9 ${victim.child.pid}: worker ${victim.name}, in the middle of a payment`, 'red')
    if (this.#server === null || (await this.#payment(rest, over)) === null) return
    await this.#server.kill()
    this.#tell('✗ kill -9: Postgres, each of its processes, in the middle of a payment', 'red')
    await sleep(AWAY_MS)
    if (over.aborted) return
    await this.#server.up()
    this.#tell('✓ Postgres runs again, with what is on its disk')
  }

  /** Who makes this payment, as soon as it is in the book: the bank has not answered yet. */
  async #payment(number: number, over: AbortSignal): Promise<string | null> {
    while (!over.aborted) {
      const payment = paymentsIn(this.#book)[Math.ceil(number) - 1]
      if (payment) return payment.worker
      await sleep(LOOK_MS / 4)
    }
    return null
  }

  /** Until all agents are done. */
  async #watch(store: PostgresDatabase): Promise<void> {
    for (const until = performance.now() + MINUTES_MAX * 60_000; ; ) {
      this.#leaving.throwIfAborted()
      const cards = await store.list({ limit: this.#agents })
      const done = cards.filter(({ outcome }) => outcome === 'completed').length
      const asked = cards.filter(({ status }) => status === 'requires_action').length
      this.#now = `${asked} wait for approval, ${this.#approved} approved, ${done} of ${this.#agents} done`
      if (done === this.#agents) return
      if (performance.now() > until) throw new Error(`After ${MINUTES_MAX} minutes ${done} agents are done.`)
      const gone = this.#workers.filter(({ child }) => child.exitCode !== null)
      if (gone.length > 0) throw new Error(`Worker ${gone[0]?.name} ended by itself.`)
      await sleep(LOOK_MS)
    }
  }

  async #end(ledger: Ledger): Promise<void> {
    await this.close()
    this.#say('')
    this.#say('The ledger, from the logs of all sessions and the book of the bank:', 'bold')
    for (const line of ledger.lines) this.#say(line)
    const left = this.#workers.map(({ child }) => child.pid ?? 0).filter(lives)
    this.#say(`Processes  ${left.length === 0 ? 'none is left' : `left: ${left.join(', ')}`}`)
  }

  /** Nothing is left: no process, no folder. */
  async close(): Promise<void> {
    this.#out.show(null)
    for (const { child } of this.#workers) child.kill('SIGKILL')
    await Promise.all(this.#workers.map(({ ended }) => ended))
    // What still waits for a server that is away is given up with it.
    const closing = Promise.all([this.#harness?.close(), this.#store?.close()])
    await Promise.race([closing.catch(() => {}), sleep(1_000, null, { ref: false })])
    await this.#server?.close()
    this.#server = null
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #say(text: string, paint: keyof Paint | null = null): void {
    const shown = fitLines(text, this.#out.columns)
    this.#out.say('note', paint === null ? shown : this.#paint[paint](shown))
  }

  #tell(text: string, paint: keyof Paint | null = null): void {
    this.#say(`${((performance.now() - this.#began) / 1_000).toFixed(1).padStart(5)} s  ${text}`, paint)
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const { values } = argumentsOf('machines', { options: { agents: { type: 'string' } } })
const agents = wholeNumber(values.agents ?? '50', 'agents', 5)
if (noPostgres && process.env['TERRET_STORE'] === undefined)
  refuse(
    'There is no Postgres here. Install it (apt install postgresql), or name its programs in TERRET_POSTGRES_BIN or an empty database in TERRET_STORE.',
  )
const leaving = new AbortController()
for (const signal of SIGNALS) process.on(signal, () => leaving.abort())
const machines = new Machines(agents, leaving.signal)
try {
  if (!(await machines.play())) process.exitCode = 1
} catch (error) {
  if (!leaving.signal.aborted) console.error(error instanceof Error ? error.message : error)
  process.exitCode = leaving.signal.aborted ? 5 : 1
} finally {
  await machines.close()
}
if (leaving.signal.aborted) console.log('Stopped. No process is left.')
process.exit()
