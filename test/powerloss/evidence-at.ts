// What was known outside of the machine when power was lost: the lines of evidence whose writes stand in the log before the cut. What was
// acknowledged by then must be in the store; what was begun may be.
import { posix } from 'node:path'
import type { ErrorLine, JournalLine, MarkLine, OracleLine } from '../crash/evidence.ts'
import type { Call } from './call-log.ts'
import { KEPT_FILE, type KeptLine } from './kept.ts'
import { EVIDENCE } from './record-sqlite.ts'

export type EvidenceAt = {
  readonly journal: readonly JournalLine[]
  readonly oracle: readonly OracleLine[]
  readonly errors: readonly ErrorLine[]
  readonly kept: readonly KeptLine[]
  /** By worker. */
  readonly marks: ReadonlyMap<string, readonly MarkLine[]>
}

/** The evidence of one recording. */
export class Evidence {
  readonly #pieces: readonly { readonly n: number; readonly name: string; readonly text: string }[]

  constructor(calls: readonly Call[]) {
    this.#pieces = calls.flatMap(({ kind, path, data }, n) =>
      kind === 'write' && isEvidence(path) ? [{ n, name: posix.basename(path), text: data.toString() }] : [],
    )
  }

  /** Of the first calls, so many. */
  at(cut: number): EvidenceAt {
    const texts = new Map<string, string>()
    for (const { n, name, text } of this.#pieces) if (n < cut) texts.set(name, (texts.get(name) ?? '') + text)
    const read = <Line>(name: string): readonly Line[] => linesOf<Line>(texts.get(name) ?? '')
    return {
      journal: read('journal.jsonl'),
      oracle: read('oracle.jsonl'),
      errors: read('errors.jsonl'),
      kept: read(KEPT_FILE),
      marks: new Map([...texts.keys()].flatMap((name) => (name.startsWith('marks-') ? [[name, read(name)]] : []))),
    }
  }

  /** What was acknowledged before this backup began. */
  beforeBackup(file: string): EvidenceAt {
    const line: KeptLine = { type: 'backup', file }
    const begin = this.#pieces.find(({ name, text }) => name === KEPT_FILE && text.includes(JSON.stringify(line)))
    return this.at(begin?.n ?? 0)
  }
}

/** A file system may hand a long line over in pieces. What has no end yet is not known yet. */
function linesOf<Line>(text: string): readonly Line[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
}

export function isEvidence(path: string): boolean {
  return path === EVIDENCE || path.startsWith(`${EVIDENCE}/`)
}

/** How many events were promised: to the client and the keeper, and to workers. */
export function countPromised({ journal, marks }: EvidenceAt): number {
  const promised = new Set(journal.flatMap((line) => (line.type === 'ack' ? [`${line.session} ${line.id}`] : [])))
  let events = promised.size
  for (const lines of marks.values()) {
    const kept = new Set(lines.flatMap((line) => (line.type === 'end' && line.ok ? [line.n] : [])))
    for (const line of lines)
      if (line.type === 'begin' && kept.has(line.n)) for (const { digests } of line.writes) events += digests.length
  }
  return events
}

/** The same without these sessions, whose logs are gone as they should be. */
export function evidenceWithout(evidence: EvidenceAt, gone: ReadonlySet<string>): EvidenceAt {
  if (gone.size === 0) return evidence
  const marksLeft = (line: MarkLine): MarkLine =>
    line.type === 'begin' ? { ...line, writes: line.writes.filter(({ session }) => !gone.has(session)) } : line
  return {
    ...evidence,
    journal: evidence.journal.filter(({ session }) => !gone.has(session)),
    oracle: evidence.oracle.filter(({ key }) => !gone.has(key.slice(0, key.indexOf(':')))),
    marks: new Map([...evidence.marks].map(([name, lines]) => [name, lines.map(marksLeft)])),
  }
}
