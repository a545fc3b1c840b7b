// Mechanical mutations of the real source, one at a time in a copy: seeds until the first violation, then the unit tests of the room. What
// nothing saw survives, and must be among survivors.ts with a reason. The seed decides which mutations are tried.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { refuse } from './arguments.ts'
import { type Mutation, mutationsOf } from './mutations.ts'
import { compile, copy } from './planted.ts'
import { Chance } from './scheduler.ts'
import type { Report } from './simulate.ts'
import { SURVIVORS } from './survivors.ts'

export type Mutating = {
  /** How many are tried. */
  readonly count: number
  /** It decides which. */
  readonly seed: number
  /** Each is tried with at most so many seeds of the simulator. */
  readonly seeds: number
  /** How many are tried at once, each in a copy of its own. */
  readonly parallel: number
  readonly only: string
  /** A file with the results so far: what is in it is not tried again. */
  readonly resume: string | undefined
  /** What each run of the simulator is told besides its seeds: its store. */
  readonly on: readonly string[]
}

const WAYS = ['rule', 'error', 'crash', 'stuck', 'test', 'none'] as const
/** What showed a mutation. An error is one that a process did not expect; a crash ends the program; stuck is a seed that does not end. */
type Way = (typeof WAYS)[number]
type Result = Pick<Mutation, 'name' | 'was' | 'becomes'> & { readonly way: Way; readonly by: string }

/** Those that start no other program: of the others a copy has not all that they need. */
const RUNTIME = [
  'approval',
  'batch',
  'boundary',
  'children-ends',
  'classify',
  'clock',
  'decide',
  'drive',
  'edited',
  'epoch',
  'guard',
  'limits',
  'money-spent',
  'odd-failures',
  'results',
  'review',
  'run-options',
  'settle',
  'spending',
  'stopped',
  'tool-errors',
  'wake',
].map((name) => `test/runtime/${name}.test.ts`)
/** The rooms, and the unit tests of each. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'src/kernel': ['test/kernel'],
  'src/runtime/loop': RUNTIME,
  'src/runtime/commit': RUNTIME,
  'src/runtime/turn': RUNTIME,
  'src/runtime/money': RUNTIME,
  'src/runtime/guard': RUNTIME,
  'src/stores/plan': ['test/stores/memory', 'test/stores/needs', 'test/stores/fallbacks', 'test/stores/sqlite.test'],
}
/** Types, words and lists, of which nothing is decided. */
const NOT_JUDGED = /\/(index|content|event|codes|addresses)\.ts$/
const COPIED = ['src', 'sim', 'test', 'scripts', 'docs', 'vitest.config.ts']
/** Of its own time, in which a seed must end: a machine that is busy with other things gives it little. */
const STUCK_CPU_MS = 60_000
const LOOK_MS = 1_000
const TESTS_MS = 900_000

/** True when each mutation was seen, or its survival is explained. */
export async function mutate(mutating: Mutating): Promise<boolean> {
  const { count, seed, only, parallel, resume } = mutating
  const all = Object.keys(ROOMS).flatMap(mutationsIn)
  const chosen = shuffled(all, seed)
    .filter(({ name }) => name.includes(only))
    .slice(0, count)
  if (chosen.length === 0) refuse(`No mutation has "${only}" in its name. A name is like: ${all[0]?.name ?? ''}`)
  const known = resume === undefined ? new Map<string, Result>() : resultsIn(resume)
  console.log(`${all.length} mutations in ${Object.keys(ROOMS).length} rooms, ${chosen.length} of them by seed ${seed}`)
  const root = resolve('.build', 'mutants')
  const copies = Array.from({ length: Math.min(parallel, chosen.length) }, (_, i) => join(root, `${process.pid}-${i}`))
  await Promise.all(copies.map((of) => copy(of, COPIED)))
  const results: Result[] = []
  const left = chosen.values()
  const tryAll = async (of: string): Promise<void> => {
    for (const mutation of left) {
      const result = known.get(mutation.name) ?? (await tried(of, mutation, mutating))
      if (resume !== undefined && !known.has(mutation.name)) appendFileSync(resume, `${JSON.stringify(result)}\n`)
      results.push(result)
      console.log(shown(result))
    }
  }
  await Promise.all(copies.map(tryAll))
  return summed(results)
}

function mutationsIn(room: string): readonly Mutation[] {
  const files = readdirSync(room).map((name) => `${room}/${name}`)
  return files
    .filter((file) => file.endsWith('.ts') && !NOT_JUDGED.test(file))
    .flatMap((file) => mutationsOf(file, readFileSync(file, 'utf8')))
}

/** Fisher and Yates. */
function shuffled<T>(items: readonly T[], seed: number): readonly T[] {
  const chance = new Chance(seed)
  const all = [...items]
  for (let i = all.length - 1; i > 0; i--) {
    const j = chance.between(0, i)
    ;[all[i], all[j]] = [all[j] as T, all[i] as T]
  }
  return all
}

/** The results of a run of the same source. The file begins with the digest of it. */
function resultsIn(path: string): ReadonlyMap<string, Result> {
  const digest = sourceDigest()
  if (!existsSync(path)) writeFileSync(path, `${digest}\n`)
  const [first, ...lines] = readFileSync(path, 'utf8').split('\n')
  if (first !== digest)
    refuse(`${path} has results of another source. Give --resume a new file, or check out what it was begun with.`)
  try {
    const results = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Result)
    return new Map(results.map((result) => [result.name, result]))
  } catch {
    return refuse(`${path} has a line that is cut. Remove its last line, and run the command again.`)
  }
}

function sourceDigest(): string {
  const hash = createHash('sha256')
  for (const part of ['src', 'sim'])
    for (const name of (readdirSync(part, { recursive: true }) as string[]).sort())
      if (name.endsWith('.ts')) hash.update(`${name}\n`).update(readFileSync(join(part, name)))
  return hash.digest('hex')
}

async function tried(root: string, mutation: Mutation, mutating: Mutating): Promise<Result> {
  const { file, name, was, becomes, from, to, put } = mutation
  const paths = [join(root, file), join(root, 'out', file.replace(/\.ts$/, '.js'))]
  const clean = paths.map((path) => [path, readFileSync(path)] as const)
  const text = readFileSync(file, 'utf8')
  writeFileSync(join(root, file), `${text.slice(0, from)}${put}${text.slice(to)}`)
  await compile(root, { files: [file] })
  const seen = (await simulated(root, mutating)) ?? (await tested(root, file))
  for (const [path, bytes] of clean) writeFileSync(path, bytes)
  return { name, was, becomes, ...(seen ?? { way: 'none', by: `${mutating.seeds} seeds and the unit tests` }) }
}

type Shown = Pick<Result, 'way' | 'by'>

/** The first seed that shows it. */
async function simulated(root: string, { seeds, on }: Mutating): Promise<Shown | null> {
  const args = [join('out', 'sim', 'main.js'), '--lines', '--first', '1', '--seeds', `${seeds + 1}`, ...on]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  let shown: Shown | null = null
  let [heard, ended, said] = [0, 0, '']
  const end = (by: Shown): void => {
    shown ??= by
    child.kill('SIGKILL')
  }
  const watch = setInterval(() => {
    if (cpuMs(child.pid) - heard > STUCK_CPU_MS) end({ way: 'stuck', by: `seed ${ended + 1}` })
  }, LOOK_MS)
  child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (shown !== null || !line.endsWith('}')) return
    const { seed, violations } = JSON.parse(line) as Report
    heard = cpuMs(child.pid)
    ended = seed
    if (violations[0] !== undefined)
      end({ ...ruleOf(violations[0]), by: `seed ${seed}: ${violations[0].slice(0, 160)}` })
  })
  const code = await new Promise<number | null>((done) => child.on('close', done))
  clearInterval(watch)
  if (shown !== null || code === 0) return shown
  const why = said.split('\n').find((line) => /Error/.test(line)) ?? ''
  return { way: 'crash', by: `seed ${ended + 1}: exit ${code} ${why}`.slice(0, 160) }
}

/** What processes did not expect is an error, and all else that is wrong breaks a rule. */
function ruleOf(violation: string): { readonly way: Way } {
  return { way: /^E[12] /.test(violation) ? 'error' : 'rule' }
}

/** The time that a process has used of a core. Where the system does not tell, all time counts. */
function cpuMs(pid: number | undefined): number {
  try {
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const fields = rest.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return existsSync('/proc/self/stat') ? 0 : performance.now()
  }
}

/** The first unit test of its room that fails. */
async function tested(root: string, file: string): Promise<Shown | null> {
  const tests = ROOMS[file.slice(0, file.lastIndexOf('/'))] ?? []
  const vitest = resolve('node_modules', 'vitest', 'vitest.mjs')
  const limits = ['--maxWorkers', '1', '--testTimeout', `${TESTS_MS}`, '--hookTimeout', `${TESTS_MS}`]
  const args = [vitest, 'run', '--bail', '1', ...limits, ...tests]
  const env = { ...process.env, TERRET_SHARE: '0' }
  const child = spawn(process.execPath, args, { cwd: root, env, timeout: TESTS_MS, killSignal: 'SIGKILL' })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (said += bytes.toString()))
  const code = await new Promise<number | null>((done) => child.on('close', done))
  if (code === 0) return null
  const escape = String.fromCharCode(27)
  const plain = said.replaceAll(new RegExp(`${escape}\\[[0-9;]*m`, 'g'), '')
  return { way: 'test', by: (/FAIL +(.*)/.exec(plain)?.[1] ?? `exit ${code}`).slice(0, 160) }
}

function shown(result: Result): string {
  const { name, way, by, was, becomes } = result
  if (way !== 'none') return `caught    ${name}  (${way}: ${by})`
  const why = reasonOf(result)
  const replay = `npm run sim -- --mutate 1 --only '${name}'`
  return `${why === null ? 'SURVIVES' : 'survives'}  ${name}\n  - ${was}\n  + ${becomes}\n  ${why ?? `again: ${replay}`}`
}

function reasonOf({ name, was, becomes }: Result): string | null {
  const file = name.slice(0, name.indexOf(':'))
  const of = SURVIVORS.find((known) => known.file === file && known.was === was && known.becomes === becomes)
  return of?.why ?? null
}

function summed(results: readonly Result[]): boolean {
  const count = (way: Way): number => results.filter((result) => result.way === way).length
  const survivors = results.filter(({ way }) => way === 'none')
  const unexplained = survivors.filter((result) => reasonOf(result) === null)
  const caught = WAYS.filter((way) => way !== 'none').map((way) => `${way} ${count(way)}`)
  console.log(
    `${results.length} mutations: caught by ${caught.join(', ')}; ${survivors.length} survive, ${unexplained.length} of them without a reason`,
  )
  if (unexplained.length > 0)
    console.log('Each needs a rule or a test that sees it, or a line in sim/survivors.ts that says why none can.')
  return unexplained.length === 0
}
