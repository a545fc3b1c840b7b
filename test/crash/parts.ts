// A long run of kills in parts: processes beside each other, each with its own file or server, client, journal and seed, and one report
// of all. Several small parts are as good as a large one, and a large one gets slow: all logs are read after each kill.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { missed } from './kills.ts'
import { PartFile, type PartLine } from './part-file.ts'
import { printRows, share, stormRows, sum, type Summary, tally } from './summary.ts'
import type { Storms } from './weather.ts'

export type Parts = {
  readonly rounds: number
  readonly seed: number
  /** How many rounds a part has, at most. */
  readonly roundsOfPart: number
  readonly parallel: number
  /** Where the lines go. */
  readonly path: string
  /** What each part is told besides its rounds and its seed. */
  readonly options: readonly string[]
}

type Part = { readonly part: number; readonly seed: number; readonly rounds: number }

/** More of these than one in ten kills, and the machine was too busy for so many parts: the sessions wait for leases, not for kills. */
const LEASES_LOST_MAX = 0.1
const VIOLATIONS_KEPT = 20
/** Said by a part with its line. */
const LINE = '{"part":'

/** Whether all that was promised held. */
export async function runParts(parts: Parts): Promise<boolean> {
  const { rounds, seed, roundsOfPart, parallel, path, options } = parts
  const whole = ['--rounds', `${rounds}`, '--part', `${roundsOfPart}`, '--seed', `${seed}`, ...options].join(' ')
  const file = new PartFile(path, whole)
  const again = `npm run crash -- ${whole} --parallel ${parallel} --resume ${path}`
  const done = new Map(file.done.map((line) => [line.part, line]))
  const left = partsOf(parts).filter(({ part }) => !done.has(part))
  console.log(
    `crash: ${done.size} parts are done and ${left.length} left, ${parallel} at once, at ${file.commit}. If this is ended, go on with:\n  ${again}`,
  )
  const begun = performance.now()
  const failed: string[] = []
  const children = new Set<ChildProcess>()
  let isEnded = false
  const end = (): void => {
    isEnded = true
    left.length = 0
    for (const child of children) child.stdin?.end()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
  const next = async (): Promise<void> => {
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      const line = await run(part, options, children)
      // Told to end, by a signal: it is run when the whole goes on.
      if (line === null && isEnded) continue
      if (line === null) {
        failed.push(`part ${part.part} said nothing of how it ended. Run it alone: ${commandOf(part, options)}`)
        continue
      }
      file.add(line)
      done.set(line.part, line)
      console.log(`  part ${line.part}, seed ${line.seed}: ${line.rounds} rounds in ${line.seconds} s${wrongIn(line)}`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, next))
  return report([...done.values()], failed, (performance.now() - begun) / 1_000)
}

function partsOf({ rounds, seed, roundsOfPart }: Parts): Part[] {
  const count = Math.max(1, Math.ceil(rounds / roundsOfPart))
  // As even as it goes, so that none is too short to show anything.
  const upTo = (i: number): number => Math.floor((rounds * i) / count)
  return Array.from({ length: count }, (_, i) => ({ part: i + 1, seed: seed + i, rounds: upTo(i + 1) - upTo(i) }))
}

function argumentsFor({ seed, rounds }: Part, options: readonly string[]): readonly string[] {
  return [...options, '--rounds', `${rounds}`, '--seed', `${seed}`]
}

function commandOf(part: Part, options: readonly string[]): string {
  return `npm run crash -- ${argumentsFor(part, options).join(' ')}`
}

/** Its line; null if it ended without one. What it says of violations is handed on. */
function run(part: Part, options: readonly string[], children: Set<ChildProcess>): Promise<PartLine | null> {
  const main = fileURLToPath(new URL('./main.js', import.meta.url))
  const args = [main, ...argumentsFor(part, options), '--part', `${part.rounds}`, '--as', `${part.part}`]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  children.add(child)
  let line: PartLine | null = null
  const said: string[] = []
  createInterface({ input: child.stdout }).on('line', (text) => {
    if (text.startsWith(LINE)) line = JSON.parse(text) as PartLine
    else said.push(text)
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => {
      children.delete(child)
      if (line === null || line.violations.length > 0) console.log(said.join('\n'))
      resolve(line)
    })
  })
}

/** What a part says at its end. */
export function lineOf(part: number, seed: number, summary: Summary): PartLine {
  const { rounds, seconds, kills, storms, strikes, leasesLost, verdict, violations, again } = summary
  const { journal, effects } = verdict
  return {
    part,
    seed,
    rounds,
    seconds: Math.round(seconds),
    kills,
    classes: { ...strikes.struck.kills, idle: strikes.struck.idle },
    storms,
    sessions: verdict.sessions,
    events: verdict.events,
    acknowledged: journal.acknowledged + strikes.acknowledged,
    lost: journal.lost + strikes.lost,
    doubled: journal.duplicated,
    onceRan: effects.ran.once,
    onceTwice: effects.onceTwice,
    unknown: effects.unknown,
    unknownDone: effects.unknownDone,
    leasesLost,
    faults: verdict.faults,
    violations: violations.slice(0, VIOLATIONS_KEPT),
    again,
  }
}

function wrongIn({ violations, again }: PartLine): string {
  return violations.length === 0 ? '' : `, ${violations.length} violations; again with: ${again}`
}

function report(lines: readonly PartLine[], failed: readonly string[], seconds: number): boolean {
  const total = (of: (line: PartLine) => number): number => lines.reduce((all, line) => all + of(line), 0)
  const each = <Name extends string>(of: (line: PartLine) => Readonly<Record<Name, number>>): Record<Name, number> => {
    const names = new Set(lines.flatMap((line) => Object.keys(of(line)) as Name[]))
    return Object.fromEntries([...names].map((name) => [name, total((line) => of(line)[name] ?? 0)])) as Record<
      Name,
      number
    >
  }
  const classes = each(({ classes: found }) => found)
  const faults = each(({ faults: found }) => found)
  const storms: Storms = each(({ storms: found }) => found)
  const [kills, leasesLost] = [total((line) => line.kills), total((line) => line.leasesLost)]
  const wrong = [
    ...lines.flatMap(({ part, violations }) => violations.map((text) => `part ${part}: ${text}`)),
    ...failed,
  ]
  const { idle: _idle, ...hit } = classes
  wrong.push(...missed(kills, hit))
  console.log(
    `crash: ${total((line) => line.rounds)} rounds in ${lines.length} parts; this time ${seconds.toFixed(0)} s`,
  )
  printRows([
    ['kills', kills, tally(classes)],
    ['kills during a commit', classes.commit ?? 0, `${share(classes.commit ?? 0, kills)} of all`],
    ...stormRows(storms),
    ['sessions', total((line) => line.sessions), `${total((line) => line.events)} events`],
    ['acknowledged', total((line) => line.acknowledged), ''],
    ['lost', total((line) => line.lost), ''],
    ['doubled', total((line) => line.doubled), ''],
    ['once effects', total((line) => line.onceRan), `twice ${total((line) => line.onceTwice)}`],
    ['unknown', total((line) => line.unknown), `of which the effect had run ${total((line) => line.unknownDone)}`],
    ['leases lost without a kill', leasesLost, `${share(leasesLost, kills)} of the kills`],
    ['faults met by workers', sum(faults), tally(faults)],
  ])
  if (leasesLost > kills * LEASES_LOST_MAX && total((line) => line.storms.partitions + line.storms.serverKills) === 0)
    console.log('  Many leases ended by themselves: use a smaller --parallel to strike more work.')
  for (const text of wrong.slice(0, 20)) console.log(`  VIOLATION ${text}`)
  for (const { again, violations } of lines) if (violations.length > 0) console.log(`  again with: ${again}`)
  console.log(
    `lost ${total((line) => line.lost)}, doubled ${total((line) => line.doubled)}, once twice ${total((line) => line.onceTwice)}; violations ${wrong.length}`,
  )
  return wrong.length === 0
}
