// Planted faults: small mutations of the real source, applied one at a time to a copy. The simulator must catch every one
// of them, and the unchanged copy must pass the same seeds. A mutation that no longer applies is an error, not a pass.
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { shareOf } from './arguments.ts'
import { FAULTS, type Planted } from './faults.ts'

/** For a fault that is not seen at its own seed. */
const SEEDS = 2_000
/** Of the clean copy, which also runs each later one at which a fault was seen. */
const FIRST_SEEDS = 300

export type Planting = {
  /** Only faults whose name holds this, and of them a share. */
  readonly only?: string | undefined
  readonly share?: string | undefined
  /** Writes down the seed at which each was seen, where that is another than before: each change of the traces moves them. */
  readonly find: boolean
}

/** True when the clean copy passes and every planted fault is caught. */
export async function planted({ only = '', share, find }: Planting): Promise<boolean> {
  const faults = shareOf(
    FAULTS.filter(({ name }) => name.includes(only)),
    share,
  )
  if (faults.length === 0) throw new Error(`No planted fault of this share has "${only}" in its name.`)
  const root = resolve('.build', 'planted')
  rmSync(root, { recursive: true, force: true })
  // A copy for each core, and each takes the next fault.
  const copies = await Promise.all(Array.from({ length: availableParallelism() }, (_, i) => copy(join(root, `${i}`))))
  let good = await passes(copies, 1, FIRST_SEEDS)
  const later = new Set<number>()
  const left = faults.values()
  const tryAll = async (of: string): Promise<void> => {
    for (const fault of left) {
      const { caught, by, seed } = await tried(of, fault)
      console.log(`${caught ? 'caught ' : 'MISSED '}  ${fault.name}  (${by})`)
      good &&= caught
      if (seed > FIRST_SEEDS) later.add(seed)
      if (find && caught && seed !== (fault.seed ?? 1)) noteSeed(fault, seed)
    }
  }
  await Promise.all(copies.map(tryAll))
  for (const seed of later) good = (await passes(copies, seed, 1)) && good
  console.log(`${faults.length} planted faults, ${good ? 'all caught' : 'NOT all caught'}`)
  rmSync(root, { recursive: true, force: true })
  return good
}

/** Whether the clean tree passes these seeds. Each copy runs a part of them. */
async function passes(copies: readonly string[], first: number, seeds: number): Promise<boolean> {
  const each = Math.ceil(seeds / copies.length)
  const parts = copies.map(async (of, i) => {
    const count = Math.min(each, seeds - i * each)
    return count > 0 ? [await simulated(of, first + i * each, count)] : []
  })
  const failed = (await Promise.all(parts)).flat().filter(({ caught, unfinished }) => caught || unfinished)
  console.log(`${failed.length > 0 ? 'FAILED ' : 'passes '}  the clean tree, seeds ${first} to ${first + seeds - 1}`)
  for (const { output } of failed) console.log(output)
  return failed.length === 0
}

/** Seeds that were not all run, because they took too long, have shown nothing. */
type Outcome = {
  readonly caught: boolean
  readonly unfinished: boolean
  readonly by: string
  readonly output: string
  /** The one that showed it, or 0. */
  readonly seed: number
}

export async function copy(root: string, parts: readonly string[] = ['src', 'sim']): Promise<string> {
  mkdirSync(root, { recursive: true })
  for (const part of parts) cpSync(part, join(root, part), { recursive: true })
  cpSync('package.json', join(root, 'package.json'))
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
  await compile(root, { include: ['src', 'sim'] })
  return root
}

/** The seed where it was last seen first, and all others only if it is not seen there. */
async function tried(root: string, fault: Planted): Promise<Outcome> {
  const files = [join(root, fault.file), join(root, 'out', fault.file.replace(/\.ts$/, '.js'))]
  const clean = files.map((file) => [file, readFileSync(file)] as const)
  apply(root, fault)
  await compile(root, { files: [fault.file] })
  const { seed = 1 } = fault
  const first = await simulated(root, seed, 1)
  const outcome = first.caught ? first : await simulated(root, 1, SEEDS)
  for (const [file, text] of clean) writeFileSync(file, text)
  return outcome
}

function simulated(root: string, first: number, seeds: number): Promise<Outcome> {
  const main = join(root, 'out', 'sim', 'main.js')
  const args = [main, '--bail', '--first', `${first}`, '--seeds', `${seeds}`]
  return new Promise((done) => {
    const child = execFile(process.execPath, args, { timeout: 900_000, maxBuffer: Infinity }, (_, stdout, stderr) =>
      done(outcomeOf(child.exitCode, `${stdout}${stderr}`, seeds)),
    )
  })
}

function outcomeOf(status: number | null, output: string, seeds: number): Outcome {
  if (status === null) return { caught: false, unfinished: true, by: 'took too long', output, seed: 0 }
  const [, found = '', rules = ''] = /seed (\d+): (.*)/.exec(output) ?? []
  const seed = Number(found)
  if (status === 0) return { caught: false, unfinished: false, by: `${seeds} seeds`, output, seed }
  // A change that does not even run shows nothing about the rules.
  if (seed === 0) return { caught: false, unfinished: true, by: `exit ${status} without a seed`, output, seed }
  const by = `${/\b([A-Z]\d+) /.exec(rules)?.[1] ?? `exit ${status}`}, seed ${seed}`
  return { caught: true, unfinished: false, by, output, seed }
}

/** The source still holds what this fault changes, exactly once. */
export function applies({ file, find }: Planted, root = '.'): boolean {
  return readFileSync(join(root, file), 'utf8').split(find).length === 2
}

/** In the list that names the fault. */
function noteSeed({ name }: Planted, seed: number): void {
  const lists = readdirSync('sim').filter((file) => /^faults.*\.ts$/.test(file))
  for (const path of lists.map((file) => join('sim', file))) {
    const text = readFileSync(path, 'utf8')
    const at = [`name: '${name}',\n`, `name: "${name}",\n`].find((line) => text.includes(line))
    if (at === undefined) continue
    const end = text.indexOf(at) + at.length
    const rest = text.slice(end).replace(/^ +seed: \d+,\n/, '')
    writeFileSync(path, `${text.slice(0, end)}    seed: ${seed},\n${rest}`)
  }
}

function apply(root: string, fault: Planted): void {
  const { file, find, replace, name } = fault
  if (!applies(fault, root)) {
    throw new Error(`Planted fault "${name}" does not apply: ${file} must hold this exactly once: ${find}`)
  }
  const path = join(root, file)
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(find, () => replace),
  )
}

/** A mutation may not type-check; it must only run. One file is compiled without those it imports. */
export async function compile(
  root: string,
  what: { readonly include: readonly string[] } | { readonly files: readonly string[] },
): Promise<void> {
  const compilerOptions = {
    outDir: 'out',
    rootDir: '.',
    noEmitOnError: false,
    noCheck: true,
    incremental: false,
    noResolve: 'files' in what,
  }
  const config = { extends: resolve('tsconfig.json'), compilerOptions, include: [], ...what }
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify(config))
  const tsc = resolve('node_modules', 'typescript', 'bin', 'tsc')
  // What a mutation says about types is of no interest.
  await new Promise<void>((done) => execFile(process.execPath, [tsc, '-p', root], () => done()))
}
