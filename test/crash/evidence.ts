// The evidence of a crash run: files outside the store, one JSON line per fact. Written by the part that knows the fact (the tool
// itself, the client, the worker), read by the checks. Nothing here goes through the code under test.
import { hash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { EffectClass } from '../../src/kernel/content.ts'

/** The effect itself: a handler began, or ended, for this key. */
export type OracleLine = {
  readonly key: string
  readonly effect: EffectClass
  readonly pid: number
  readonly phase: 'start' | 'end'
}

/** What the client asked for, and what it was promised. `seq` is where the store said the event stands. */
export type JournalLine =
  | { readonly type: 'try'; readonly session: string; readonly id: string; readonly digest: string }
  | { readonly type: 'ack'; readonly session: string; readonly id: string; readonly seq: number; readonly verb: string }
  /** A refusal that is not "busy, try again": nothing here should ever be refused. */
  | { readonly type: 'refused'; readonly session: string; readonly id: string; readonly reason: string }

/** What a worker did at its store: which sessions it took and gave back, which commits it began, and which of them it was promised. */
export type MarkLine =
  | { readonly type: 'claim'; readonly session: string; readonly epoch: number; readonly at: number }
  | { readonly type: 'release'; readonly session: string }
  | { readonly type: 'begin'; readonly n: number; readonly writes: readonly Written[] }
  | { readonly type: 'end'; readonly n: number; readonly ok: boolean }
/** The events of one session in one commit: where the first stands, and a digest of each. `release`: it gave the session back. */
export type Written = {
  readonly session: string
  readonly seq: number
  readonly digests: readonly string[]
  readonly release?: true
}

/** What an attempt threw. `kind` is the name of the error: a Bug is never expected. */
export type ErrorLine = {
  readonly kind: string
  readonly code: string
  readonly session: string
  readonly text: string
}

export type Places = {
  readonly database: string
  readonly oracle: string
  readonly journal: string
  readonly errors: string
  /** Of the worker with this serial number (process.ts). */
  readonly marks: (serial: number) => string
}

export function placesIn(folder: string): Places {
  return {
    database: join(folder, 'crash.db'),
    oracle: join(folder, 'oracle.jsonl'),
    journal: join(folder, 'journal.jsonl'),
    errors: join(folder, 'errors.jsonl'),
    marks: (serial) => join(folder, `marks-${serial}.jsonl`),
  }
}

/** Appends with one write call each: what was written survives a SIGKILL, because the page cache is the system's. */
export class Appender<Line> {
  readonly #fd: number

  constructor(path: string) {
    this.#fd = openSync(path, 'a', 0o600)
  }

  add(line: Line): void {
    // The newline in front separates it from a line that a kill cut short.
    const bytes = Buffer.from(`\n${JSON.stringify(line)}\n`)
    if (writeSync(this.#fd, bytes) !== bytes.length) throw new Error('evidence was written only in part')
  }
}

/** Reads what came since the last time. A line without its end is left for later. */
export class Tail<Line> {
  readonly #path: string
  #fd = -1
  #offset = 0
  #rest = ''

  constructor(path: string) {
    this.#path = path
  }

  read(): readonly Line[] {
    if (this.#fd < 0) this.#fd = openSync(this.#path, 'a+', 0o600)
    const size = fstatSync(this.#fd).size - this.#offset
    if (size <= 0) return []
    const bytes = Buffer.alloc(size)
    const got = readSync(this.#fd, bytes, 0, size, this.#offset)
    this.#offset += got
    const lines = (this.#rest + bytes.toString('utf8', 0, got)).split('\n')
    this.#rest = lines.pop() ?? ''
    return parseLines(lines)
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
  }
}

export function readLines<Line>(path: string): readonly Line[] {
  try {
    return parseLines(readFileSync(path, 'utf8').split('\n'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** A line cut short by a kill says nothing: its writer died before it went on. */
function parseLines<Line>(lines: readonly string[]): readonly Line[] {
  return lines.flatMap((line): readonly Line[] => {
    if (line === '') return []
    try {
      return [JSON.parse(line) as Line]
    } catch {
      return []
    }
  })
}

/** No protection against forgery is needed here: it only has to be short, and different for different values. */
const DIGEST_LENGTH = 20

/** The same for two values that are the same JSON, whatever the order of their fields. */
export function digestOf(value: unknown): string {
  return hash('sha256', JSON.stringify(sorted(value))).slice(0, DIGEST_LENGTH)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, item]) => [name, sorted(item)]))
}
