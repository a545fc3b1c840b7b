// Where two features meet: the window of a model and the messages that a summary leaves, what is shared and what is taken in later, and
// locked rows and many writes.
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted } from '../src/index.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../src/context/summary.ts'
import { openLearnings } from '../src/memory/learnings.ts'
import { countRequestChars } from '../src/runtime/money/usage-estimate.ts'
import { admit, create, message } from './contract/fixture.ts'
import { connections, newSchema, openPostgres } from './postgres/opened.ts'
import { noPostgres } from './postgres/server.ts'
import { makeFolder } from './stores/folder.ts'
import { GOOD_SUMMARY } from './context/long-stage.ts'

const WINDOW = 32_000
const LONG = 40_000

/** A model with this window, whose replies are long: as texts, or as the arguments of its first `calls` calls. */
function talkative(calls: number) {
  let [turn, refused] = [0, 0]
  const model = scripted((request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return GOOD_SUMMARY
    if (countRequestChars(request) > WINDOW * 4) {
      refused += 1
      return { error: 'overflow', message: 'too long' }
    }
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: LONG / 4 }
    turn += 1
    if (turn <= calls) return { usage, calls: [{ tool: 'keep', args: { text: 'y'.repeat(LONG) } }] }
    return { usage, text: calls > 0 ? 'done' : 'z'.repeat(LONG) }
  })
  const keep = defineTool({
    name: 'keep',
    description: 'keeps a text',
    input: z.object({ text: z.string() }),
    effect: 'read',
    execute: () => 'kept',
  })
  const compaction = { windowTokens: WINDOW }
  const harness = new Harness({ model, tools: [keep], store: memory(), breaker: false, context: { compaction } })
  onTestFinished(() => harness.close())
  return { harness, refusals: () => refused }
}

describe('a context that a few long replies fill', () => {
  it('B-SEAM-1: is summarised and goes on, though it has no more messages than a summary leaves', async () => {
    const { harness, refusals } = talkative(0)
    const { sessionId } = await harness.run('go')
    for (let i = 0; i < 7; i++) expect((await harness.session(sessionId).run('next')).status).toBe('completed')
    expect(refusals()).toBe(0)
  })

  it('B-SEAM-1: goes on too where the arguments of its calls are what is long', async () => {
    const { harness, refusals } = talkative(6)
    expect(await harness.run('go')).toMatchObject({ status: 'completed', text: 'done' })
    expect(refusals()).toBe(0)
  })
})

describe('a message that is too large for the window, and is not one text', () => {
  const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const picture = { type: 'image', media: 'image/png', data: DOT } as const
  const text = { type: 'text', text: 'x'.repeat(9_000) } as const

  it.each([
    ['two pictures are sent as they are', Array.from({ length: 2 }, () => picture), 'completed'],
    ['six pictures wait for a person', Array.from({ length: 6 }, () => picture), 'requires_action'],
    ['twenty texts share the room', Array.from({ length: 20 }, () => text), 'completed'],
  ])('B-SEAM-3: %s', async (_, parts, status) => {
    const harness = new Harness({
      model: scripted(['done']),
      store: memory(),
      context: { compaction: { windowTokens: 8_000 } },
    })
    onTestFinished(() => harness.close())
    const session = await harness.open()
    const result = await session.run([{ type: 'text', text: 'What is this?' }, ...parts])
    expect(result.status).toBe(status)
    expect((await session.events()).events.length).toBeLessThan(20)
  })
})

describe('a learning that a person shared', () => {
  const read = { kind: 'lesson', key: 'db', title: 'Database', detail: 'It is Postgres.' } as const
  const unread = { ...read, detail: 'Its password is swordfish.' } as const
  const teacher = (session: string) => ({ session, agent: 'a', owner: 'ann' })

  it('B-SEAM-2: shares no other wording with the same key that is taken in later and is older', () => {
    const file = join(makeFolder(), 'learnings.db')
    const learnings = openLearnings(file)
    onTestFinished(() => learnings.close())
    const shown = () => learnings.find({ agent: 'a', owner: 'bob' }, ['database'], 10).map(({ detail }) => detail)
    learnings.take(teacher('later'), [{ learning: read, seq: 2, at: 200 }], 2)
    learnings.inTransaction(() => learnings.share('a', 'later', 2))
    expect(shown()).toEqual([read.detail])
    learnings.take(teacher('earlier'), [{ learning: unread, seq: 2, at: 100 }], 2)
    expect(shown()).toEqual([])
    expect(learnings.list('a', 'ann').map(({ detail }) => detail)).toEqual([unread.detail])
  })
})

describe.skipIf(noPostgres)('many messages for a session whose row is locked', () => {
  it('B-SEAM-4: are written in the order in which they were sent', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 'a')
    const other = await connections()
    await other.open()
    const names = Array.from({ length: 3_000 }, (_, i) => `m${i}`)
    const sent = await other.lane.transaction(async (sql) => {
      await sql.ask('', `select 1 from ${schema}.sessions where id = 'a' for update`)
      const all = names.map((name) => admit(store, 'a', message(name)))
      await sql.ask('', 'select pg_sleep(2)')
      return all
    })
    await Promise.all(sent)
    const { events } = await store.read('a', 1)
    expect(events.flatMap((event) => (event.type === 'user.message' ? [event.id] : []))).toEqual(names)
  })
})
