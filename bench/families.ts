// The table of benches, in the order they are printed. A new bench is a file with a Family and a line here, by its first figure.
// A case loads its own family alone: what another one prepares when it is loaded would be in its figures.
import type { Family } from './family.ts'

const FAMILIES: ReadonlyMap<string, () => Promise<Family>> = new Map([
  ['loop', async () => (await import('./loop.ts')).loop],
  ['turn.functions', async () => (await import('./counts.ts')).counts],
  ['fanout', async () => (await import('./fanout.ts')).fanout],
  ['many', async () => (await import('./many.ts')).many],
  ['parked', async () => (await import('./many.ts')).parking],
  ['children', async () => (await import('./children.ts')).children],
  ['children.parked', async () => (await import('./children.ts')).parkedChildren],
  ['stream', async () => (await import('./stream.ts')).stream],
  ['http', async () => (await import('./http.ts')).http],
  ['durable', async () => (await import('./durable.ts')).durable],
  ['durable.bytes', async () => (await import('./durable.ts')).bytes],
  ['durable.group', async () => (await import('./group.ts')).group],
  ['crash.test', async () => (await import('./crash-test.ts')).crashTests],
  ['scripts', async () => (await import('./scripts.ts')).scripts],
  ['triggers', async () => (await import('./triggers.ts')).triggers],
  ['postgres', async () => (await import('./postgres/commits.ts')).commits],
  ['postgres.turn', async () => (await import('./postgres/turns.ts')).turns],
  ['postgres.pooled', async () => (await import('./postgres/turns.ts')).pooled],
  ['postgres.wal', async () => (await import('./postgres/turns.ts')).bytes],
  ['postgres.read', async () => (await import('./postgres/reading.ts')).reading],
  ['postgres.idle', async () => (await import('./postgres/idle.ts')).idle],
  ['resume', async () => (await import('./resume.ts')).resume],
  ['open', async () => (await import('./open.ts')).open],
  ['page.fold', async () => (await import('./page.ts')).page],
  ['due', async () => (await import('./due.ts')).due],
  ['import', async () => (await import('./import.ts')).importing],
  ['install', async () => (await import('./install.ts')).install],
  ['cli', async () => (await import('./cli.ts')).cli],
  ['terminal', async () => (await import('./terminal.ts')).terminal],
  ['watch', async () => (await import('./watch.ts')).idle],
  ['watch.latency', async () => (await import('./watch.ts')).latency],
  ['metrics', async () => (await import('./metrics.ts')).metrics],
  ['router', async () => (await import('./router.ts')).router],
  ['context', async () => (await import('./context.ts')).context],
  ['transcripts', async () => (await import('./transcripts.ts')).transcripts],
])

export async function peerFamily(): Promise<Family> {
  return (await import('./peers.ts')).peers
}

export async function allFamilies(): Promise<readonly Family[]> {
  return Promise.all([...FAMILIES.values()].map((load) => load()))
}

/** By the name of its first figure. */
export async function familyOf(name: string): Promise<Family> {
  return (FAMILIES.get(name) ?? peerFamily)()
}
