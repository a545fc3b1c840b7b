// Runs a family: its fixture once, then its cases again and again, each in a fresh process, and makes figures of what
// they report. The process side of it is `runCase`.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Family, type Figure, type Median, medianOf, type Sample } from './family.ts'

/** One line of the output. Without a value it was skipped, and `note` says why. */
export type Measured = {
  readonly name: string
  readonly value: number | null
  readonly unit: string
  readonly floor: number | null
  readonly ratio: number | null
  readonly target: number
  readonly atLeast: boolean
  readonly ok: boolean | null
  readonly note: string
}

export type Plan = {
  readonly family: Family
  /** The figures asked for. */
  readonly figures: readonly Figure[]
  readonly repetitions: number
  /** The script that runs a case when it is called with `--case NAME FOLDER`. */
  readonly script: string
}

const CASE_MS_MAX = 300_000

export async function measure({ family, figures, repetitions, script }: Plan): Promise<readonly Measured[]> {
  if (family.lacks) return figures.map((figure) => skipped(figure, family.lacks))
  const folder = makeFolder(script)
  const sampleOf = async (name: string): Promise<Sample> => {
    const sample = await spawn(script, caseName(family, name), folder)
    return Object.fromEntries(Object.entries(sample).map(([key, value]) => [`${name}.${key}`, value]))
  }
  try {
    const repeated: Sample[] = []
    if (family.fixture) await spawn(script, caseName(family, 'fixture'), folder)
    for (let i = 0; i < repetitions; i++) {
      const once = Object.keys(family.cases).map((name) => () => sampleOf(name))
      repeated.push(...(family.together ? await Promise.all(once.map((run) => run())) : await inTurn(once)))
    }
    const median: Median = (key) => medianOf(repeated.flatMap((sample) => sample[key] ?? []))
    return figures.map((figure) => measured(figure, median))
  } catch (error) {
    // Only trouble with packages: what is wrong with the bench itself must be seen.
    if (!family.mayFail || !/npm (error|ERR!)/.test(String(error))) throw error
    return figures.map((figure) => skipped(figure, error))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function inTurn<T>(acts: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
  const done: T[] = []
  for (const act of acts) done.push(await act())
  return done
}

/** Beside the script and not in the machine's temporary folder, which may be no disk at all. */
function makeFolder(script: string): string {
  const parent = join(script, '..', '..', 'bench-data')
  mkdirSync(parent, { recursive: true })
  return mkdtempSync(join(parent, 'run-'))
}

function caseName(family: Family, name: string): string {
  return `${family.figures[0]?.name ?? ''}:${name}`
}

async function spawn(script: string, name: string, folder: string): Promise<Sample> {
  const options = { timeout: CASE_MS_MAX, maxBuffer: 2 ** 24 }
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--case', name, folder], options)
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Sample
}

/** In the fresh process: runs one case of one family, and prints what it measured as one line. */
export async function runCase(
  familyOf: (name: string) => Promise<Family>,
  name: string,
  folder: string,
): Promise<void> {
  const [of = '', wanted = ''] = name.split(':')
  const family = await familyOf(of)
  const found = wanted === 'fixture' ? family.fixture : (family.cases[wanted] ?? family.parts?.[wanted])
  if (!found) throw new Error(`there is no case ${name}`)
  console.log(JSON.stringify(await found(folder)))
}

function measured(figure: Figure, median: Median): Measured {
  const { name, unit, target, atLeast = false } = figure
  const value = round(figure.value(median))
  const floor = round(figure.floor(median))
  const ok = atLeast ? value >= target : value <= target
  const ratio = floor > 0 ? round(value / floor) : null
  return { name, value, unit, floor, ratio, target, atLeast, ok, note: figure.note?.(median) ?? '' }
}

function skipped({ name, unit, target, atLeast = false }: Figure, error: unknown): Measured {
  // The first line only says that the case failed; npm's own word is further down.
  const lines = String(error).split('\n')
  const why = lines.find((text) => /^npm (error|ERR!)|^\w*Error:(?! Command)/.test(text)) ?? lines[0] ?? ''
  return { name, value: null, unit, floor: null, ratio: null, target, atLeast, ok: null, note: `skipped: ${why}` }
}

function round(value: number): number {
  return Number(value.toPrecision(4))
}
