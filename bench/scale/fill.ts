// Many parked sessions, made in bulk: one is parked by a real run, and its rows are written again under other names, with the checksums
// that the store would have given them. It is not how sessions come about; it only leaves what they would have left.
import type pg from 'pg'
import type { Store } from '../../src/ports/store.ts'
import { addSum, logSeed } from '../../src/stores/plan/checksum.ts'
import { agentOf, harnessOn, type Shape, WAKE } from './agent.ts'

const BATCH = 2_000
const ROOM = 100_000
const PATTERN = 'parked-one'

export function sessionOf(n: number): string {
  return `parked-${n}`
}

/** Returns the call that each of them waits with. */
export async function fill(store: Store, bare: pg.Client, count: number, shape: Shape): Promise<string> {
  const harness = harnessOn(store, shape, true)
  const agent = agentOf(0, shape.accounts)
  const { status } = await (await harness.open({ id: PATTERN, agent })).run(WAKE)
  if (status !== 'requires_action') throw new Error(`the session to copy ${status}`)
  await harness.close()
  const call = (await store.card(PATTERN))?.asks[0]
  if (call === undefined) throw new Error('the session to copy asks nothing')
  const texts = await bare.query<{ body: string }>(
    'select e.body from terret.events e join terret.sessions s on s.n = e.n where s.id = $1 order by e.seq',
    [PATTERN],
  )
  const bodies = texts.rows.map(({ body }) => body)
  const numbers = "select setval('terret.numbers', nextval('terret.numbers') + $1)::float8 - $1 as n"
  const first = (await bare.query<{ n: number }>(numbers, [count])).rows[0]?.n ?? Number.NaN
  for (let room = Math.floor(first / ROOM); room <= Math.floor((first + count) / ROOM); room++)
    await bare.query('select terret.make_room($1)', [room])
  for (let from = 0; from < count; from += BATCH) {
    const some = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => from + i)
    await bare.query(COPY, valuesOf(some, { first, bodies, shape }))
  }
  await bare.query('vacuum analyze')
  await bare.query('checkpoint')
  return call
}

type Pattern = { readonly first: number; readonly bodies: readonly string[]; readonly shape: Shape }

function valuesOf(some: readonly number[], { first, bodies, shape }: Pattern): unknown[] {
  const logs = some.map((i) => {
    const agent = agentOf(i, shape.accounts)
    let sum = logSeed(sessionOf(i))
    return bodies.map((pattern, at) => {
      const body = at === 0 ? pattern.replace(agentOf(0, shape.accounts), agent) : pattern
      sum = addSum(sum, body)
      return { n: first + i, seq: at + 1, sum, body }
    })
  })
  const rows = logs.flat()
  return [
    some.map((i) => first + i),
    some.map(sessionOf),
    some.map((i) => agentOf(i, shape.accounts)),
    logs.map((log) => log.at(-1)?.sum),
    rows.map(({ n }) => n),
    rows.map(({ seq }) => seq),
    rows.map(({ sum }) => sum),
    rows.map(({ body }) => body),
    PATTERN,
    agentOf(0, shape.accounts),
  ]
}

const COPY = `with made as (select * from unnest($1::bigint[], $2::text[], $3::text[], $4::int[]) m(n, id, agent, sum)),
  pattern as (select * from terret.sessions where id = $9),
  heads as (insert into terret.sessions (n, v, id, seq, at, sum, epoch, worker, due, urgent, tries, trouble, status, root, agent, hour, card,
      tokens, created, title, owner, folder, parent)
    select m.n, 1, m.id, p.seq, p.at, m.sum, p.epoch, p.worker, p.due, p.urgent, p.tries, p.trouble, p.status, m.id, m.agent, p.hour,
      replace(replace(p.card, '"' || $9 || '"', '"' || m.id || '"'), '"' || $10 || '"', '"' || m.agent || '"'),
      p.tokens, p.created, p.title, p.owner, p.folder, p.parent from made m, pattern p),
  letters as (insert into terret.inbox select m.n, i.id, i.seq from made m, pattern p join terret.inbox i on i.n = p.n),
  finds as (insert into terret.finds select m.n, replace(f.text, $9, m.id) from made m, pattern p join terret.finds f on f.n = p.n)
  insert into terret.events select * from unnest($5::bigint[], $6::int[], $7::int[], $8::text[])`
