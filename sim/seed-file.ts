// The file of a long run: a first line that says what is run, then the report of each seed in a line of JSON. A run that was ended goes on
// with the seeds that are not there.
import { appendFileSync, createReadStream, existsSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { refuse } from './arguments.ts'
import { commitHere } from './commit-here.ts'
import type { Report } from './simulate.ts'

/** Two runs of which this differs are not one run. */
type Head = { readonly run: 'sim'; readonly commit: string; readonly options: string }

export class SeedFile {
  readonly #path: string
  readonly #head: Head

  constructor(path: string, options: string, commit = commitHere()) {
    this.#path = path
    this.#head = { run: 'sim', commit, options }
  }

  /** Tells the reports that are there. Refuses, with a reason, a file that is not the beginning of this very run. */
  async read(take: (report: Report) => void): Promise<void> {
    const path = this.#path
    const size = existsSync(path) ? statSync(path).size : 0
    let [line, bytes] = [0, 0]
    if (size > 0)
      for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
        const end = bytes + Buffer.byteLength(text) + 1
        // The end of the last line is missing: its writer was ended in the middle of it.
        if (end > size) truncateSync(path, bytes)
        else if (line === 0) this.#check(parsed(text))
        else take(this.#report(parsed(text), line + 1))
        if (end > size) break
        line += 1
        bytes = end
      }
    if (line === 0) writeFileSync(path, `${JSON.stringify(this.#head)}\n`)
  }

  add(report: Report): void {
    appendFileSync(this.#path, `${JSON.stringify(report)}\n`)
  }

  #check(found: Partial<Head> | null): void {
    const { run, commit, options } = this.#head
    if (found?.run !== run || typeof found.commit !== 'string' || typeof found.options !== 'string')
      refuse(`${this.#path} is not the file of a run of seeds. Name another file, which is then made.`)
    if (found.commit !== commit)
      refuse(
        `${this.#path} is of commit ${found.commit}, and this is ${commit}. Name another file, or check that one out.`,
      )
    if (found.options !== options)
      refuse(`${this.#path} is of a run with other options: "${found.options}". Use those, or name another file.`)
  }

  #report(found: Partial<Report> | null, line: number): Report {
    const isWhole = typeof found?.seed === 'number' && typeof found.hash === 'string' && Array.isArray(found.violations)
    if (!isWhole) refuse(`${this.#path} is damaged at line ${line}. Take that line out to run its seed again.`)
    return found as Report
  }
}

function parsed(text: string): Partial<Head & Report> | null {
  try {
    return JSON.parse(text) as Partial<Head & Report>
  } catch {
    return null
  }
}
