// Row 45: names that are SQL, and a database whose rows were changed.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { defineTool, Harness, sqlite, type CompleteStore } from '../../src/index.ts'
import { addSum, logSeed } from '../../src/stores/plan/checksum.ts'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { digestOf } from '../../src/tools/core/admit.ts'
import { makeOldSession } from '../old-session.ts'
import type { Case, Row } from './case.ts'
import { Desk, sender, sentEvil } from './desk.ts'
import type { World } from './world.ts'

function database(world: World, name = 'sessions.db'): Database {
  const db = new (loadDriver())(join(world.root, name))
  world.defer(() => db.close())
  return db
}

/** Statements are built from text, as in the store that was broken this way. */
class NaiveStore {
  readonly #db: Database

  constructor(world: World) {
    this.#db = database(world, 'naive.db')
    this.#db.exec('CREATE TABLE IF NOT EXISTS events (session TEXT, id TEXT, body TEXT)')
  }

  append(session: string, id: string, body: string): void {
    this.#db.exec(`INSERT INTO events VALUES ('${session}', '${id}', '${body}')`)
  }

  list(after: string): readonly string[] {
    return this.#query(`SELECT session FROM events WHERE session > '${after}' AND session LIKE 'mine%'`)
  }

  bodies(session: string): readonly string[] {
    return this.#query(`SELECT body AS session FROM events WHERE session = '${session}'`)
  }

  #query(sql: string): readonly string[] {
    try {
      return (this.#db.prepare(sql).all() as { readonly session: string }[]).map((row) => row.session)
    } catch {
      return []
    }
  }
}

type Told = { canary: readonly string[]; seen: readonly string[] }
const told = new WeakMap<World, Told>()

/** A session `theirs` holds the secret. What is left of it, and what of it is seen by a hostile name? */
async function theirs(world: World, name: string, use: 'session' | 'message' | 'list' | 'read'): Promise<void> {
  if (!world.defended) {
    const store = new NaiveStore(world)
    store.append('theirs', '1', world.secret)
    if (use === 'session') store.append(name, '1', 'x')
    if (use === 'message') store.append('mine', name, 'x')
    const seen = use === 'list' ? store.list(name) : use === 'read' ? store.bodies(name) : []
    told.set(world, { canary: store.bodies('theirs'), seen })
    return
  }
  const store = sqlite(join(world.root, 'sessions.db'))
  const harness = new Harness({ model: world.model(() => 'done'), store })
  const session = await harness.open({ id: 'theirs' })
  await session.run(world.secret)
  if (use === 'session') {
    // Refused today, but an older version took it.
    await makeOldSession(store, name)
    await harness.session(name, { stored: true }).run('x')
  }
  if (use === 'message') await (await harness.open({ id: 'mine' })).run('x', { id: name })
  told.set(world, { canary: await bodies(store, 'theirs'), seen: await seen(store, name, use) })
  await harness.close()
  await store.close()
}

async function bodies(store: CompleteStore, session: string): Promise<readonly string[]> {
  return (await store.read(session, 0)).events.map((event) => JSON.stringify(event))
}

async function seen(store: CompleteStore, name: string, use: string): Promise<readonly string[]> {
  if (use === 'read') return bodies(store, name).catch(() => [])
  if (use !== 'list') return []
  return (await store.list({ root: name, limit: 100 })).map((card) => card.session)
}

const lost = (world: World): boolean => !(told.get(world)?.canary ?? []).join().includes(world.secret)
const shown = (world: World): boolean => /theirs|canary-/.test((told.get(world)?.seen ?? []).join())

const INJECTIONS: readonly Case[] = [
  {
    name: 'opens a session whose id drops a table',
    attack: (world) => theirs(world, "x', '', ''); DROP TABLE events; --", 'session'),
    harmed: lost,
  },
  {
    name: 'opens a session whose id deletes the others',
    attack: (world) => theirs(world, "x', '', ''); DELETE FROM events; --", 'session'),
    harmed: lost,
  },
  {
    name: 'sends a message whose id changes the others',
    attack: (world) => theirs(world, "x', ''); UPDATE events SET body = 'evil'; --", 'message'),
    harmed: lost,
  },
  {
    name: 'lists after a name that is always true',
    attack: (world) => theirs(world, "x' OR '1' = '1' OR '1' = '", 'list'),
    harmed: shown,
  },
  {
    name: 'lists by a name that joins another table',
    attack: (world) => theirs(world, "x' UNION SELECT body FROM events --", 'list'),
    harmed: shown,
  },
  {
    name: 'reads a session whose id is always true',
    attack: (world) => theirs(world, "x' OR '1' = '1", 'read'),
    harmed: shown,
  },
]

/** An attacker with write access to the file puts another action under an approval that is still open. */
async function poisoned(world: World, poison: (db: Database, session: string) => void): Promise<void> {
  const path = join(world.root, 'sessions.db')
  const script = [{ calls: [{ tool: 'send', args: { to: 'docs' } }] }, 'done', 'done']
  const store = sqlite(path)
  const desk = await Desk.open(world, script, { store })
  const { callId } = await desk.first()
  await desk.harness.close()
  await store.close()
  poison(database(world), desk.session.id)
  const after = sqlite(path)
  // A tool that asks is asked again about a call that has no gate (B-APPROVE-30): the control does without that, too.
  const tool = world.defended ? sender(world) : { ...sender(world), approval: () => 'auto' as const }
  const harness = new Harness({ model: world.model(['done', 'done']), tools: [tool], store: after })
  const session = harness.session(desk.session.id)
  await session.decide({ callId, allow: true, by: 'bob' }).catch(() => {})
  await session.run().catch(() => {})
  await harness.close()
  await after.close()
}

/** The attacker recomputes the log's checksums, so that they do not reveal the change. */
function resum(db: Database, session: string): void {
  let sum = logSeed(session)
  for (const row of db.prepare('SELECT pos, body FROM events ORDER BY pos').all() as { pos: number; body: string }[]) {
    sum = addSum(sum, row.body)
    db.prepare('UPDATE events SET sum = ? WHERE pos = ?').run(sum, row.pos)
  }
}

/** The other action comes with a digest that fits it: that alone would not give it away. */
function rewritten(name: string, changed = 'body'): Case {
  return {
    name,
    attack: (world) =>
      poisoned(world, (db, session) => {
        const [docs, evil] = ['docs', 'evil'].map((to) => digestOf(sender(world), { args: { to } }))
        const body = `replace(replace(${changed}, '"docs"', '"evil"'), '${docs}', '${evil}')`
        db.exec(`DROP TRIGGER events_keep; DROP TRIGGER events_stay; UPDATE events SET body = ${body}`)
        if (world.defended) return
        resum(db, session)
        // Without the mark beside the file the change could not be noticed either.
        rmSync(join(world.root, 'sessions.db-mark'), { force: true })
      }),
    harmed: sentEvil,
  }
}

/** Long results lie beside the log. */
const blob: Case = {
  name: 'changes a long result beside the log',
  attack: async (world) => {
    const path = join(world.root, 'sessions.db')
    const long = defineTool({
      name: 'long',
      description: 'long',
      input: z.object({}),
      execute: () => 'a'.repeat(100_000),
    })
    const store = sqlite(path)
    const options = { tools: [long], results: { compression: 'off' } } as const
    const model = world.model([{ calls: [{ tool: 'long' }] }, 'done'])
    const harness = new Harness({ ...options, model, store })
    const { sessionId } = await harness.run('go')
    await harness.close()
    await store.close()
    const db = database(world)
    const data = Buffer.from(world.secret.padEnd(100_000))
    const sum = world.defended ? '' : `, sum = ${crc32(data) | 0}`
    db.prepare(`UPDATE blobs SET data = ?${sum} WHERE length(data) = 100000`).run(data)
    const after = sqlite(path)
    const again = new Harness({ ...options, model: world.model(['done']), store: after })
    await again
      .session(sessionId)
      .run('what was it?')
      .catch(() => {})
    await again.close()
    await after.close()
  },
  harmed: (world) => world.leaked,
}

export const stores: Row = {
  row: 45,
  title: 'names that are SQL, rows that were changed',
  cases: [
    ...INJECTIONS,
    rewritten('puts another action into the log'),
    rewritten('puts an approval of another action into the log', `replace(body, '"gate"', '"gone"')`),
    blob,
  ],
}
