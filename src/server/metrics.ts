// Renders the health of a store, what waits in it, and what this process did, as Prometheus text (format 0.0.4). It has
// numbers and the names of agents and tools: no id, no text of a person or a model.
import type { Harness } from '../harness.ts'
import type { CompleteStore } from '../kernel/index.ts'
import { ApprovalReader, type WaitingApprovals } from './waiting-approvals.ts'
import { COUNTERS, type CounterName, RunCounts, type Series } from './run-counts.ts'
import type { WebhookDesk } from './webhook-endpoints.ts'

type HarnessHealth = Awaited<ReturnType<Harness['health']>>
type Kind = 'gauge' | 'counter'
type MetricRow = readonly [name: string, type: Kind, help: string, value: number | null | undefined]

export const METRICS_MEDIA = 'text/plain; version=0.0.4; charset=utf-8'
const S = 1_000
const MICROS = 1_000_000

/** What /metrics says beside the health: what this process did since it began to listen, and what waits in the store. */
export class RunMetrics {
  readonly #counts: RunCounts
  readonly #approvals: ApprovalReader

  constructor(store: CompleteStore) {
    this.#counts = new RunCounts(store)
    this.#approvals = new ApprovalReader(store)
  }

  /** Counts what this harness commits from now on. Returns a function that ends it. */
  listenTo(harness: object): () => void {
    return this.#counts.listenTo(harness)
  }

  /** If the store cannot be read, what waits in it is left out. */
  async text(): Promise<string> {
    const counted = await this.#counts.read()
    const approvals = await this.#approvals.read().catch(() => null)
    const names = Object.keys(COUNTERS) as CounterName[]
    return [
      ...names.map((name) => familyText(name, 'counter', COUNTERS[name].help, inUnits(name, counted[name]))),
      ...(approvals ? approvalTexts(approvals) : []),
    ].join('')
  }
}

function inUnits(name: CounterName, series: Series): Series {
  return name === 'cost_usd_total' ? new Map([...series].map(([labels, micros]) => [labels, micros / MICROS])) : series
}

function approvalTexts({ waiting, oldestSeconds }: WaitingApprovals): readonly string[] {
  return [
    familyText('approvals_waiting', 'gauge', 'Calls in the store that wait for a decision of a person.', waiting),
    familyText('approvals_oldest_seconds', 'gauge', 'How long the first of them has waited.', oldestSeconds),
  ]
}

/** A name without a series is told too: so a monitoring system knows it before its first value. */
function familyText(name: string, type: Kind, help: string, series: Series): string {
  const lines = [...series].map(([labels, value]) => `terret_${name}{${labels}} ${value}\n`)
  return `# HELP terret_${name} ${help}\n# TYPE terret_${name} ${type}\n${lines.join('')}`
}

/** Unknown values are left out. Counters belong to this process and begin at 0 with it. */
export function metricsText(
  { ok, writeMs, store }: HarnessHealth,
  driving: number,
  deliveries: WebhookDesk['counts'] | null = null,
): string {
  const { network } = store ?? {}
  const rows: readonly MetricRow[] = [
    ['up', 'gauge', 'Whether a write was just made.', ok ? 1 : 0],
    ['write_seconds', 'gauge', 'How long that write took.', writeMs === null ? null : writeMs / S],
    ['driving', 'gauge', 'Sessions that this process drives now.', driving],
    ['sessions', 'gauge', 'Sessions in the store.', store?.sessions],
    ['leases', 'gauge', 'Sessions that a living worker holds.', store?.leases],
    ['due', 'gauge', 'Due sessions that no worker drives.', store?.due],
    ['due_waited_seconds', 'gauge', 'How long the longest waiting of them has been due.', store && store.waitedMs / S],
    ['store_bytes', 'gauge', 'What the store takes on its disk.', store?.bytes],
    ...(network ? networkRows(network) : []),
    ...(deliveries ? deliveryRows(deliveries) : []),
  ]
  const known = rows.flatMap(([name, type, help, value]) =>
    value === null || value === undefined ? [] : [{ name: `terret_${name}`, type, help, value }],
  )
  return known
    .map(({ name, type, help, value }) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`)
    .join('')
}

function deliveryRows({ accepted, duplicates, refused }: WebhookDesk['counts']): readonly MetricRow[] {
  return [
    ['deliveries_total', 'counter', 'Signed deliveries that became sessions.', accepted],
    ['deliveries_duplicate_total', 'counter', 'Signed deliveries that were there before.', duplicates],
    ['deliveries_refused_total', 'counter', 'Deliveries to known endpoints that were refused.', refused],
  ]
}

function networkRows({
  written,
  moved,
  lost,
  connects,
  claims,
  news,
  server,
}: NonNullable<NonNullable<HarnessHealth['store']>['network']>): readonly MetricRow[] {
  return [
    ['claims_total', 'counter', 'Sessions that were asked for.', claims.asked],
    ['claims_vain_total', 'counter', 'Of these, those that another worker had.', claims.vain],
    ['writes_total', 'counter', 'Statements that wrote.', written],
    ['writes_moved_total', 'counter', 'Writes planned anew, as another process was faster.', moved],
    ['answers_lost_total', 'counter', 'Answers of the database that were lost, and asked for again.', lost],
    ['connects_total', 'counter', 'Connections to the database that were made.', connects],
    ['news_total', 'counter', 'How often it was heard what other processes wrote.', news.heard],
    ['news_missed_total', 'counter', 'News that no hint told of, found by looking.', news.missed],
    ['news_lag_seconds_total', 'counter', 'From their commit to their being heard, in all.', news.lagMs / S],
    ['news_lag_seconds_max', 'gauge', 'The longest of these since the process began.', news.lagMsMax / S],
    ['database_connections', 'gauge', 'Connections to the database, of all programs.', server.connections],
    ['database_connections_max', 'gauge', 'How many there can be.', server.connectionsMax],
    ['rows_updated_total', 'counter', 'Rows of sessions that were updated, by all processes.', server.updated],
    ['rows_updated_in_page_total', 'counter', 'Of these, those that no index was written for.', server.updatedInPage],
    ['rows_dead', 'gauge', 'Rows of sessions that wait for vacuum.', server.deadRows],
    ['frozen_age', 'gauge', 'Transactions since the oldest row was frozen.', server.frozenAge],
  ]
}
