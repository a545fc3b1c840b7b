// What came of suites, as their runs kept it in this store: the list, one report, two compared. And a session as a case.
import { Fault } from '../../kernel/index.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { HttpRefusal, missingSessionRefusal } from '../refusals.ts'
import { type ApiAnswer, type ApiRequest, requireCard } from '../server-host.ts'
import type { CaseAnswer, EvalRow, EvalRunAnswer, EvalsAnswer } from '../wire-evals.ts'

const ROWS_MAX = 100

export async function handleEvals({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  requireReach(principal.reach)
  const { keptReports } = await import('../../evals/index.ts')
  const { suite = null } = query as { readonly suite?: string }
  const kept = await keptReports(host.store, suite, ROWS_MAX)
  const rows = await Promise.all(kept.map(({ session }) => readRow(host.store, session)))
  return { json: { runs: rows.filter((row) => row !== null), now: host.store.now() } satisfies EvalsAnswer }
}

/** Null for a session that says it keeps a report, and does not. */
async function readRow(store: ApiRequest['host']['store'], session: string): Promise<EvalRow | null> {
  const [created] = (await store.read(session, 0, 1)).events
  const report = created?.type === 'session.created' ? created.metadata?.['report'] : undefined
  if (!isObject(report) || created === undefined) return null
  // The cast is sound for what `runSuite` wrote, and only that has the labels.
  return { ...(report as unknown as Omit<EvalRow, 'session' | 'at'>), session, at: created.at }
}

export async function handleEvalRun(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, principal, query, params } = asked
  requireReach(principal.reach)
  const { compare, readKeptReport } = await import('../../evals/index.ts')
  const { before } = query as { readonly before?: string }
  const read = async (id: string) => {
    try {
      return await readKeptReport(host.store, id)
    } catch (error) {
      throw error instanceof Fault && error.code === 'session_missing' ? missingSessionRefusal(id) : error
    }
  }
  const report = await read(params['id'] ?? '')
  const comparison = before === undefined ? null : compare(await read(before), report)
  return { json: { report, comparison } satisfies EvalRunAnswer }
}

export async function handleCase(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { caseOf } = await import('../../evals/index.ts')
  const found = await caseOf(asked.host.harness.session(session, { stored: true }))
  return { json: found satisfies CaseAnswer }
}

/** A run of a suite belongs to nobody. */
function requireReach(reach: 'own' | 'all'): void {
  if (reach === 'own')
    throw new HttpRefusal(403, 'forbidden', 'Runs of suites belong to nobody. They need a token with the reach `all`.')
}
