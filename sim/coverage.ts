// What the seeds of a run did not reach: functions and lines of kernel, runtime, plan and memory store, and rules that met no case. It reads
// what the processes of the run counted (NODE_V8_COVERAGE). Lines are those of the compiled JavaScript, so their number is about right.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { UNREACHED } from './unreached.ts'

const ROOMS = ['src/kernel', 'src/runtime', 'src/stores/plan', 'src/stores/memory']
/** `I4 the log cannot be folded`: what a rule says when it is broken. */
const RULE = /[`'" ]([A-Z]\d{1,2}) (?=[a-z$])/g
const BUILD = fileURLToPath(new URL('../', import.meta.url))

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number }
type Script = {
  readonly url: string
  readonly functions: readonly { readonly functionName: string; readonly ranges: readonly Range[] }[]
}
type FileReach = { readonly lines: number; readonly missed: number; readonly unentered: readonly string[] }

/** Prints all of it. True when each function that no seed enters is on the list with a reason. */
export function reportReach(folder: string): boolean {
  const scripts = scriptsIn(folder)
  rmSync(folder, { recursive: true, force: true })
  const files = ROOMS.flatMap(filesIn).map((file) => [file, reachOf(file, scripts.get(file) ?? null)] as const)
  const missing = files.flatMap(([file, reach]) =>
    reach === null ? [file] : reach.unentered.map((name) => `${file} ${name}`),
  )
  const listed = new Set(UNREACHED.flatMap(({ where }) => where))
  for (const room of ROOMS) {
    const own = files.filter(([file]) => file.startsWith(`${room}/`))
    const sum = (of: (reach: FileReach) => number): number =>
      own.reduce((all, [, reach]) => all + (reach === null ? 0 : of(reach)), 0)
    const unloaded = own.flatMap(([file, reach]) => (reach === null ? [file.slice(room.length + 1)] : []))
    console.log(
      `${room}: ${sum(({ missed }) => missed)} of ${sum(({ lines }) => lines)} lines not reached, ${sum(({ unentered }) => unentered.length)} functions not entered; not loaded: ${unloaded.join(', ') || 'none'}`,
    )
  }
  console.log(rulesText(scripts))
  const found = new Set(missing)
  const fresh = missing.filter((where) => !listed.has(where))
  const reached = [...listed].filter((where) => !found.has(where))
  if (reached.length > 0)
    console.log(`reached, or no longer there: take out of sim/unreached.ts: ${reached.join('; ')}`)
  if (fresh.length > 0) console.log(`NOT REACHED, and not in sim/unreached.ts with a reason:\n  ${fresh.join('\n  ')}`)
  return fresh.length === 0
}

/** By their TypeScript files: what each process counted. */
function scriptsIn(folder: string): ReadonlyMap<string, readonly Script[]> {
  const found = new Map<string, Script[]>()
  const begin = pathToFileURL(BUILD).href
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { readonly result: readonly Script[] }
    for (const script of result) {
      if (!script.url.startsWith(begin)) continue
      const file = script.url.slice(begin.length).replace(/\.js$/, '.ts')
      found.set(file, [...(found.get(file) ?? []), script])
    }
  }
  return found
}

/** Those that hold more than types. */
function filesIn(room: string): readonly string[] {
  return readdirSync(room, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(room, name).replaceAll(sep, '/'))
    .filter((file) => /^(?!\s*\/\/|export (\{|\*).*;|import ).*\S/m.test(codeOf(file)))
    .sort()
}

function codeOf(file: string): string {
  return readFileSync(join(BUILD, file.replace(/\.ts$/, '.js')), 'utf8')
}

/** Null: no process loaded it. */
function reachOf(file: string, scripts: readonly Script[] | null): FileReach | null {
  if (scripts === null) return null
  const code = codeOf(file)
  const hit = new Uint8Array(code.length)
  const entered = new Map<string, boolean>()
  for (const { functions } of scripts) {
    const here = new Uint8Array(code.length)
    for (const { functionName, ranges } of functions) {
      // An inner range comes after the one around it.
      for (const { startOffset, endOffset, count } of ranges) here.fill(count > 0 ? 1 : 0, startOffset, endOffset)
      const isEntered = (ranges[0]?.count ?? 0) > 0
      // The second is what V8 makes of the fields of a class.
      if (functionName !== '' && !functionName.startsWith('<'))
        entered.set(functionName, isEntered || (entered.get(functionName) ?? false))
    }
    for (let i = 0; i < hit.length; i++) hit[i] = (hit[i] ?? 0) | (here[i] ?? 0)
  }
  let [at, missed, lines] = [0, 0, 0]
  for (const line of code.split('\n')) {
    const reached = hit.subarray(at, at + line.length).reduce((sum, one) => sum + one, 0)
    if (line.trim() !== '') lines += 1
    if (line.trim() !== '' && reached * 2 < line.length) missed += 1
    at += line.length + 1
  }
  return { lines, missed, unentered: [...entered].flatMap(([name, is]) => (is ? [] : [name])).sort() }
}

/** How often the code was reached that asks whether a rule is broken. */
function rulesText(scripts: ReadonlyMap<string, readonly Script[]>): string {
  const counts = new Map<string, number>()
  for (const [file, counted] of scripts) {
    if (!file.startsWith('sim/')) continue
    for (const { index, 1: rule = '' } of codeOf(file).matchAll(RULE)) {
      const cases = counted.reduce((sum, { functions }) => sum + casesAt(functions, index), 0)
      counts.set(rule, (counts.get(rule) ?? 0) + cases)
    }
  }
  const rules = [...counts].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
  const met = rules.filter(([, count]) => count > 0).map(([rule, count]) => `${rule} ${count}`)
  const none = rules.filter(([, count]) => count === 0).map(([rule]) => rule)
  return `rules that met a case, and how often: ${met.join(', ')}\nrules that met none: ${none.join(', ') || 'none'}`
}

/** Of the innermost range around it that was reached: the complaint itself is not, where no rule is broken. */
function casesAt(functions: Script['functions'], at: number): number {
  const around = functions.flatMap(({ ranges }) =>
    ranges.filter(({ startOffset, endOffset, count }) => count > 0 && startOffset <= at && at < endOffset),
  )
  const inner = around.sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))[0]
  // The file itself is no case.
  return inner === undefined || around.length === 1 ? 0 : inner.count
}
