// What came of suites, as their runs kept it in this store: the list, one report, two compared. And a session as a case.
import { Fault } from '../../kernel/index.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { HttpRefusal, missingSessionRefusal } from '../refusals.ts'
import { type ApiAnswer, type ApiRequest, requireCard } from '../server-host.ts'
import { findAnswerMismatch } from '../wire-answer-check.ts'
import type { CaseAnswer, EvalRow, EvalRunAnswer, EvalsAnswer } from '../wire-evals.ts'

const ROWS_MAX = 100

export async function handleEvals({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  if (principal.reach === 'own')
    throw new HttpRefusal(403, 'forbidden', 'Runs of suites belong to nobody. They need a token with the reach `all`.')
  const { keptReports } = await import('../../evals/index.ts')
  const { suite = null } = query as { readonly suite?: string }
  const kept = await keptReports(host.store, suite, ROWS_MAX)
  const rows = await Promise.all(kept.map(({ session }) => readRow(host.store, session)))
  return { json: { runs: rows.filter((row) => row !== null), now: host.store.now() } satisfies EvalsAnswer }
}

/** Null for a session that says it keeps a report, and does not: whoever may choose ids and labels can make one. */
async function readRow(store: ApiRequest['host']['store'], session: string): Promise<EvalRow | null> {
  const [created] = (await store.read(session, 0, 1)).events
  const report = created?.type === 'session.created' ? created.metadata?.['report'] : undefined
  if (!isObject(report) || created === undefined) return null
  const row = { ...(report as unknown as Omit<EvalRow, 'session' | 'at'>), session, at: created.at }
  return findAnswerMismatch('Evals', { runs: [row], now: created.at }) === null ? row : null
}

export async function handleEvalRun(asked: ApiRequest): Promise<ApiAnswer> {
  const { compare } = await import('../../evals/index.ts')
  const { before } = asked.query as { readonly before?: string }
  const report = await readRun(asked)
  if (before === undefined) return { json: { report, comparison: null } satisfies EvalRunAnswer }
  const comparison = compare(await readRun({ ...asked, params: { id: before } }), report)
  return { json: { report, comparison } satisfies EvalRunAnswer }
}

/** A session that keeps no report is no run. */
async function readRun(asked: ApiRequest) {
  const { session } = await requireCard(asked)
  const { readKeptReport } = await import('../../evals/index.ts')
  try {
    const report = await readKeptReport(asked.host.store, session)
    if (findAnswerMismatch('EvalRun', { report, comparison: null }) === null) return report
  } catch (error) {
    const isNone = error instanceof Fault && ['session_missing', 'invalid_input'].includes(error.code)
    if (!isNone) throw error
  }
  throw missingSessionRefusal(session)
}

export async function handleCase(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { caseOf } = await import('../../evals/index.ts')
  const found = await caseOf(asked.host.harness.session(session, { stored: true }))
  return { json: found satisfies CaseAnswer }
}
