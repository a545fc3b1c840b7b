// Keeps the reports of a suite in the store of its trials. A report is the file of a session that has no run, so whoever
// can read the trials can read their report too, from any machine.
import { Fault } from '../kernel/failure.ts'
import type { Harness } from '../harness.ts'
import type { CompleteStore } from '../ports/store.ts'
import { parseJson } from '../view/untrusted-json.ts'
import { evalLabels, reportSession } from './eval-ids.ts'
import { type EvalReport, readReport } from './report.ts'

const FILE = 'report.json'
const PAGE = 200

/** A report that is kept, and the session that keeps it. */
export type KeptReport = {
  /** The session that keeps it, by which it is read. */
  readonly session: string
  /** When it was kept, in ms since 1970. */
  readonly at: number
  /** The name of the suite. */
  readonly suite: string
}

export async function keepReport(harness: Harness, report: EvalReport, run: string): Promise<string> {
  const { suite, blueprint, status, rate, counts } = report
  const { id } = await harness.open({
    id: reportSession(suite, run),
    reuse: true,
    labels: evalLabels('report', suite),
    metadata: { report: { suite, blueprint, status, rate, counts } },
    attachments: [
      { name: FILE, type: 'file', media: 'application/json', data: new TextEncoder().encode(JSON.stringify(report)) },
    ],
  })
  return id
}

/** The newest reports of a store, newest first: of one suite, or of all. */
export async function keptReports(
  store: Pick<CompleteStore, 'page'>,
  suite: string | null,
  limit = PAGE,
): Promise<readonly KeptReport[]> {
  const found: KeptReport[] = []
  let behind: Awaited<ReturnType<CompleteStore['page']>>['next'] = null
  do {
    const where = evalLabels('report', suite)
    const page = await store.page({ where, order: 'newest', limit, ...(behind ? { behind } : {}) })
    for (const { session, at, labels } of page.cards) {
      const of = labels?.['eval'] ?? ''
      // Anyone can give a session such labels, and not everyone an id of this form.
      if (session.startsWith(reportSession(of, ''))) found.push({ session, at, suite: of })
    }
    behind = page.next
  } while (behind !== null && found.length < limit)
  return found.slice(0, limit)
}

/** Throws `session_missing` if this session keeps no report. */
export async function readKeptReport(
  store: Pick<CompleteStore, 'read' | 'blob'>,
  session: string,
): Promise<EvalReport> {
  const [created] = (await store.read(session, 0, 1)).events
  const file = created?.type === 'session.created' ? created.attachments?.find(({ name }) => name === FILE) : undefined
  const blob = file && (await store.blob(file.hash))
  if (!blob) throw new Fault('session_missing', `There is no report ${session}. List them, and give the id of one.`)
  return readReport(parseJson(new TextDecoder().decode(blob.data)))
}
