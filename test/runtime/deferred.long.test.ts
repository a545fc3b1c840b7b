// Runs that cannot begin because something is away: a required MCP server, a source of tools, a strict hook that needs a network.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault, Harness, type HarnessOptions, type Hook, scripted, type CompleteStore } from '../../src/index.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'
import type { ToolSource } from '../../src/tools/core/tool.ts'
import { eventsOf, hasty, ofType, STORAGES, storeOf } from '../models/hosted-stage.ts'
import { McpBench } from '../tools/mcp-bench.ts'
import { asleep } from './wake-stage.ts'

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED 10.0.0.9:443'), { code: 'ECONNREFUSED' })

/** A source that throws what it is told to, so often, and then offers nothing. */
function away(
  times: number,
  error: () => unknown = refused,
): { readonly source: ToolSource; readonly asked: number[] } {
  const asked: number[] = []
  const tools = async () => {
    asked.push(asked.length)
    if (asked.length <= times) throw error()
    return []
  }
  return { source: { type: 'source', name: 'away', tools, close: async () => {} }, asked }
}

/** With a lease that a fast clock does not end. */
function harnessOf({ worker, ...options }: HarnessOptions): Harness {
  const harness = new Harness({ secrets: {}, worker: { leaseMs: 3_600_000, ...worker }, ...options })
  onTestFinished(() => harness.close())
  return harness
}

const ODD = join(import.meta.dirname, '..', 'tools', 'mcp-servers', 'odd.mjs')
const answering = () => scripted(() => 'Done.')
const FOREVER = Number.POSITIVE_INFINITY

async function carded(store: CompleteStore, id: string, status: string) {
  for (;;) {
    const card = await store.card(id)
    if (card?.status === status) return card
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('a run that cannot begin', () => {
  it('B-OUTAGE-20: waits for a required MCP server that is down at first, and then completes (S4-16, AC-116)', async () => {
    const bench = new McpBench()
    onTestFinished(() => bench.close())
    bench.lists(['echo'])
    const up = join(bench.folder, 'up')
    const script = 'test -e "$0" || { echo "the database is starting" >&2; exit 1; }; exec "$@"'
    const args = ['-c', script, up, process.execPath, ODD, bench.folder]
    const server = bench.server({ command: '/bin/sh', args, required: true })
    const clock = hasty(10)
    const store = storeOf('memory', clock)
    const harness = harnessOf({
      model: answering(),
      tools: [server],
      store,
      system: { clock },
      worker: { lingerMs: 0 },
    })
    const session = await harness.open()
    const running = session.run('Hello.', { patienceMs: 600_000 })
    const card = await carded(store, session.id, 'rescheduling')
    expect(card.outage).toMatchObject({ tries: 1, begins: false })
    expect(card.outage?.reason).toContain('the database is starting')
    expect(existsSync(up)).toBe(false)
    writeFileSync(up, '')
    expect(await running).toMatchObject({ status: 'completed', text: 'Done.' })
    expect((await store.card(session.id))?.outage).toBeUndefined()
  })

  it.each(STORAGES)(
    'B-OUTAGE-21: on %s leaves a wake pending, tries it with growing waits, and the wake is neither lost nor tried hot (AC-112, TRAP-23, TRAP-24)',
    async (storage) => {
      const clock = hasty(40)
      const store = storeOf(storage, clock)
      const { source, asked } = away(6)
      // The clock is 40 times as fast: leases and waits for the file would end too soon on a busy machine if it were faster.
      const worker = { lingerMs: 100, leaseMs: 3_600_000 }
      const harness = harnessOf({ model: answering(), tools: [source], store, system: { clock }, worker })
      await asleep(store, 's', [{ due: clock.now() }])
      await harness.work({ idleMs: 150_000 })
      expect(await store.card('s')).toMatchObject({ outcome: 'completed', wakes: 0 })
      expect(asked).toHaveLength(7)
      const events = await eventsOf(store, 's')
      const waits = ofType(events, 'run.deferred').map(({ at, retryAt }) => retryAt - at)
      expect(waits).toHaveLength(6)
      // 2, 4, 8, 16, 30 and 30 seconds, with up to a quarter more, and a little less for the time it took to write them.
      for (const [i, least] of [1_000, 3_000, 7_000, 15_000, 29_000, 29_000].entries())
        expect(waits[i]).toBeGreaterThan(least)
      expect(ofType(events, 'run.started')).toMatchObject([{ wakes: ['w'] }])
    },
  )

  it('B-OUTAGE-22: ends when the patience of the message is over, says why, and consumes its wake with it', async () => {
    const clock = hasty(200)
    const store = storeOf('memory', clock)
    const { source } = away(FOREVER)
    const harness = harnessOf({
      model: answering(),
      tools: [source],
      store,
      system: { clock },
      limits: { outageMs: 20_000 },
    })
    await asleep(store, 's', [{ due: clock.now() }])
    await harness.work({ idleMs: 600_000 })
    const settled = ofType(await eventsOf(store, 's'), 'run.settled')
    expect(settled).toMatchObject([
      { wakes: ['w'], outcome: { reason: 'prepare_failed', failure: { kind: 'Unavailable' } } },
    ])
    expect(JSON.stringify(settled)).toMatch(/ECONNREFUSED.*Given up after \d+ tries\./)
    expect(await store.card('s')).toMatchObject({ outcome: 'failed', wakes: 0, due: null })
    const result = await harness.run('Hello.', { limits: { outageMs: 0 } })
    expect(result).toMatchObject({ status: 'failed', stopReason: 'prepare_failed' })
    expect(result.status === 'failed' && result.failure.message).toContain('Given up after 1 try.')
  })

  it.each([
    ['a bad configuration', () => new Fault('invalid_config', 'No such server.')],
    ['a refusal', () => Object.assign(new Error('no'), { status: 401 })],
    ['an error without a code', () => new Error('undefined is not a function')],
    ['a tool that says no', () => new ToolFailure('Denied', 'no')],
    ['something that is no error', () => 'ECONNREFUSED'],
  ])('B-OUTAGE-23: ends at once for %s, and consumes its wake', async (_name, error) => {
    const store = storeOf('memory')
    const { source, asked } = away(FOREVER, error)
    const harness = harnessOf({ model: answering(), tools: [source], store })
    await asleep(store, 's', [{ due: store.now() }])
    await harness.work({ idleMs: 0 })
    expect(ofType(await eventsOf(store, 's'), 'run.settled')).toMatchObject([{ wakes: ['w'] }])
    expect(await store.card('s')).toMatchObject({ outcome: 'failed', wakes: 0, due: null })
    expect(asked).toHaveLength(1)
  })

  it('B-OUTAGE-24: waits for what a strict hook needs, tells hooks of a run only when its tools are there, and a hook that is wrong consumes its wake', async () => {
    const clock = hasty(200)
    const store = storeOf('memory', clock)
    let told = 0
    const recall: Hook = {
      type: 'user_prompt_submit',
      strict: true,
      run: () => {
        told += 1
        if (told < 3) throw new TypeError('fetch failed', { cause: refused() })
        return { context: 'Remembered.' }
      },
    }
    const { source } = away(4)
    const harness = harnessOf({ model: answering(), tools: [source], store, system: { clock }, hooks: [recall] })
    expect(await harness.run('Hello.', { patienceMs: 600_000 })).toMatchObject({ status: 'completed' })
    expect(told).toBe(3)
    const wrong: Hook = {
      type: 'run_start',
      strict: true,
      run: () => {
        throw new Error('wrong')
      },
    }
    const other = harnessOf({ model: answering(), store, system: { clock }, hooks: [wrong] })
    await asleep(store, 's', [{ due: clock.now() }])
    await other.work({ idleMs: 0 })
    expect(ofType(await eventsOf(store, 's'), 'run.settled')).toMatchObject([
      { wakes: ['w'], outcome: { reason: 'hook_error' } },
    ])
  })

  it('B-OUTAGE-25: can be interrupted, and then nothing waits any more', async () => {
    const store = storeOf('memory')
    const { source } = away(FOREVER)
    const harness = harnessOf({ model: answering(), tools: [source], store })
    const session = await harness.open()
    const running = session.run('Hello.', { patienceMs: 600_000 })
    await carded(store, session.id, 'rescheduling')
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(await store.card(session.id)).toMatchObject({ status: 'idle', due: null })
    expect((await store.card(session.id))?.outage).toBeUndefined()
  })

  it('B-OUTAGE-26: a run that goes on after a restart waits for its tools too, before its model is asked', async () => {
    const clock = hasty(200)
    const store = storeOf('memory', clock)
    // On a busy machine the first wait may be over before the run is put off: then the model is asked again.
    const first = harnessOf({
      model: scripted(() => ({ error: 'server' })),
      store,
      system: { clock },
      worker: { lingerMs: 0 },
    })
    const { sessionId, status } = await first.run('Hello.', { patienceMs: 0 })
    expect(status).toBe('sleeping')
    await first.close()
    const { source } = away(3)
    const next = harnessOf({ model: answering(), tools: [source], store, system: { clock } })
    await next.work({ idleMs: 600_000 })
    expect(await store.card(sessionId)).toMatchObject({ outcome: 'completed' })
    const failed = ofType(await eventsOf(store, sessionId), 'model.failed')
    expect(failed[0]).toMatchObject({ class: 'server' })
    expect(failed.filter((e) => e.class !== 'server')).toMatchObject(
      [1, 2, 3].map(() => ({ class: 'other', retryable: true })),
    )
  })
})
