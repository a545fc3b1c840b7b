// The file of a long run of kills: a first line that says what is run, then one line for each part that has ended. A run that was
// ended in the middle goes on with the parts that are not there. It starts nothing: parts.ts does.
import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { refuse } from '../../sim/arguments.ts'
import { commitHere } from '../../sim/commit-here.ts'
import type { KillClass } from './strike.ts'
import type { Storms } from './weather.ts'

/** What a part found, in numbers. `again` is the command that runs this part alone. */
export type PartLine = {
  readonly part: number
  readonly seed: number
  readonly rounds: number
  readonly seconds: number
  readonly kills: number
  readonly classes: Readonly<Record<KillClass | 'idle', number>>
  readonly storms: Storms
  readonly sessions: number
  readonly events: number
  readonly acknowledged: number
  readonly lost: number
  readonly doubled: number
  readonly onceRan: number
  readonly onceTwice: number
  readonly unknown: number
  readonly unknownDone: number
  readonly leasesLost: number
  readonly faults: Readonly<Record<string, number>>
  readonly violations: readonly string[]
  readonly again: string
}

/** The first line. Two runs of which it differs are not one run. */
type Head = { readonly run: string; readonly commit: string; readonly options: string }

export class PartFile {
  readonly done: readonly PartLine[]
  readonly commit: string
  readonly #path: string

  /** Refuses, with a reason, a file that is not the beginning of this very run. */
  constructor(path: string, options: string) {
    this.#path = path
    this.commit = commitHere()
    const head: Head = { run: 'crash', commit: this.commit, options }
    const lines = existsSync(path) ? wholeLines(path) : []
    if (lines.length === 0) writeFileSync(path, `${JSON.stringify(head)}\n`)
    else checkHead(path, lines[0] ?? '', head)
    this.done = lines.slice(1).map((text, i) => parsePart(path, text, i + 2))
  }

  add(line: PartLine): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`)
  }
}

/** The last line is cut off if its end is missing: its writer was ended in the middle of it. */
function wholeLines(path: string): readonly string[] {
  const text = readFileSync(path, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole))
  return whole.split('\n').slice(0, -1)
}

function checkHead(path: string, text: string, head: Head): void {
  const found = parsed(text) as Partial<Head> | null
  if (found?.run !== head.run || typeof found.commit !== 'string' || typeof found.options !== 'string')
    refuse(`${path} is not the file of a run of kills. Name another file, which is then made.`)
  if (found.commit !== head.commit)
    refuse(
      `${path} is of commit ${found.commit}, and this is ${head.commit}. Name another file, or check that one out.`,
    )
  if (found.options !== head.options)
    refuse(`${path} is of a run with other options: ${found.options}. Use those, or name another file.`)
}

function parsePart(path: string, text: string, line: number): PartLine {
  const found = parsed(text) as Partial<PartLine> | null
  const isWhole = typeof found?.part === 'number' && typeof found.seed === 'number' && Array.isArray(found.violations)
  if (!isWhole) refuse(`${path} is damaged at line ${line}. Take that line out to run its part again.`)
  return found as PartLine
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
