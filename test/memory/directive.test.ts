// The loop directive as a tool: what it asks for lands with its result, and wakes, not a second loop, do the rest.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, memory, output } from '../../src/index.ts'
import { directiveTool } from '../../src/memory/index.ts'
import { refoldSession } from '../../src/archive/replay-refold.ts'
import { redecide, findUnwritten } from '../../src/archive/replay-decide.ts'
import { StillClock } from '../contract/fixture.ts'
import { eventsOf, resultsIn, saidIn, stage } from '../runtime/hooks-stage.ts'
import { observed } from '../runtime/stage.ts'

type Args = Readonly<Record<string, unknown>>

const direct = (args: Args) => ({
  calls: [{ tool: 'loop_directive', args: { summary: 'so far', ...args }, id: 'd' }],
})
const goOn = direct({ outcome: 'continue' })

type Options = Omit<Parameters<typeof directiveTool>[0], 'store'>

function staged(script: Parameters<typeof stage>[0], options: Options = {}) {
  const clock = new StillClock()
  const { store, commits } = observed(memory({ clock }))
  const tools = [directiveTool({ store, ...options })]
  return { ...stage(script, [], { store, tools, system: { clock } }), clock, commits, store }
}

async function types(store: ReturnType<typeof staged>['store'], session: string): Promise<readonly string[]> {
  return (await store.read(session, 0)).events.map(({ type }) => type)
}

describe('the loop directive', () => {
  it('B-DIRECTIVE-1: without one, or with "sleep", the session sleeps and the text is the answer (S4-9, S4-11)', async () => {
    const { harness, store } = staged(['Done.', direct({ outcome: 'sleep' }), 'Done again.'])
    const plain = await harness.run('Do it.')
    expect(plain).toMatchObject({ status: 'completed', text: 'Done.' })
    const slept = await harness.run('Do it again.')
    expect(slept).toMatchObject({ status: 'completed', text: 'Done again.' })
    for (const { sessionId } of [plain, slept]) {
      expect(await types(store, sessionId)).not.toContain('wake.scheduled')
      expect(await store.card(sessionId)).toMatchObject({ status: 'idle', due: null })
    }
  })

  it('B-DIRECTIVE-2: what a directive asks for is in the commit of its result, and in no other', async () => {
    const wakes = [{ reason: 'is it built?', delay_seconds: 600, key: 'build' }]
    const learnings = [{ kind: 'lesson', title: 'Builds are slow', detail: 'Wait ten minutes.', promote: true }]
    const staging = staged([direct({ outcome: 'sleep', wakes, learnings }), 'It is building.'])
    const { sessionId } = await staging.harness.run('Build it.')
    expect(staging.commits).toContainEqual(['agent.tool_result', 'wake.scheduled', 'note.added', 'model.started'])
    const [wake] = await eventsOf(staging, sessionId, 'wake.scheduled')
    expect(wake).toMatchObject({ key: 'wake:build', reason: 'is it built?', due: staging.clock.time + 600_000 })
    const [note] = await eventsOf(staging, sessionId, 'note.added')
    expect(note?.kind).toBe('learning')
    expect(JSON.parse(note?.text ?? '')).toEqual({ ...learnings[0] })
    expect(await staging.store.card(sessionId)).toMatchObject({ status: 'rescheduling', due: wake?.due, wakes: 1 })
  })

  it('B-DIRECTIVE-3: "continue" is a wake that is due now: the session goes on in a run of its own', async () => {
    const staging = staged([goOn, 'One.', 'Two.'])
    const { sessionId } = await staging.harness.run('Count.')
    const starts = await eventsOf(staging, sessionId, 'run.started')
    expect(starts.map(({ inputs, wakes }) => [inputs.length, wakes])).toEqual([
      [1, []],
      [0, ['follow-up:1']],
    ])
    expect(saidIn(staging.requests.at(-1)).at(-1)).toContain('session.follow_up')
    expect(await staging.store.card(sessionId)).toMatchObject({ status: 'idle', due: null })
  })

  it('B-DIRECTIVE-4: a session goes on by itself three times in a row and then sleeps, until a message comes (S4-10)', async () => {
    const staging = staged(Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? goOn : `Answer ${i}.`)))
    const { sessionId } = await staging.harness.run('Go on for ever.')
    expect(await eventsOf(staging, sessionId, 'run.started')).toHaveLength(4)
    expect(resultsIn(staging.requests.at(-1)).at(-1)).toContain('3 times in a row')
    expect(await staging.store.card(sessionId)).toMatchObject({ status: 'idle', due: null })
    await staging.harness.session(sessionId).run('Once more.')
    const starts = await eventsOf(staging, sessionId, 'run.started')
    expect(starts.slice(4).map(({ wakes }) => wakes)).toEqual([[], ['follow-up:1'], ['follow-up:2'], ['follow-up:3']])
  })

  it('B-DIRECTIVE-30: how often a session goes on, and how long it waits where the model does not say, are options (S4-10)', async () => {
    const waits = staged([goOn, 'Later.', goOn, 'Over.'], { followUpsMax: 1, followUpSeconds: 300 })
    const { sessionId } = await waits.harness.run('Go on.')
    expect(await waits.store.card(sessionId)).toMatchObject({ due: waits.clock.time + 300_000 })
    waits.clock.advance(300_000)
    await waits.harness.work({ session: sessionId })
    expect(await eventsOf(waits, sessionId, 'run.started')).toHaveLength(2)
    expect(resultsIn(waits.requests.at(-1)).at(-1)).toContain('1 times in a row')
    expect(await waits.store.card(sessionId)).toMatchObject({ due: null })
    expect(() => staged([], { followUpsMax: -1 })).toThrow('"followUpsMax"')
  })

  it('B-DIRECTIVE-5: with follow_up_seconds the follow-up waits that long', async () => {
    const staging = staged([direct({ outcome: 'continue', follow_up_seconds: 300 }), 'Later.', 'Now.'])
    const { sessionId } = await staging.harness.run('Wait.')
    expect(await eventsOf(staging, sessionId, 'run.started')).toHaveLength(1)
    await staging.harness.work({ session: sessionId })
    expect(await eventsOf(staging, sessionId, 'run.started')).toHaveLength(1)
    staging.clock.advance(300_000)
    await staging.harness.work({ session: sessionId })
    expect(await eventsOf(staging, sessionId, 'run.started')).toHaveLength(2)
  })

  it('B-DIRECTIVE-6: wakes with one key are one wake, and the model reads why it is woken (S4-8, S4-22, AC-117)', async () => {
    const wake = { reason: 'mail', delay_seconds: 60, note: 'the invoice', key: 'mail' }
    const again = { reason: 'mail again', delay_seconds: 120, key: 'mail' }
    const staging = staged([direct({ outcome: 'sleep', wakes: [wake, again] }), 'Waiting.', 'No mail.'])
    const { sessionId } = await staging.harness.run('Is there mail?')
    expect(await staging.store.card(sessionId)).toMatchObject({ wakes: 1, due: staging.clock.time + 60_000 })
    staging.clock.advance(60_000)
    await staging.harness.work({ session: sessionId })
    expect(saidIn(staging.requests.at(-1)).at(-1)).toContain('mail: the invoice')
    expect(await staging.store.card(sessionId)).toMatchObject({ status: 'idle', wakes: 0 })
  })

  it('B-DIRECTIVE-13: of wakes whose time has come an urgent one is first, and a second wake of a key is not promised (S4-8, S4-21)', async () => {
    const wake = (priority: string) => ({ reason: 'look', delay_seconds: 60, key: 'look', priority })
    const sleeper = staged([
      direct({ outcome: 'sleep', wakes: [{ ...wake('normal'), delay_seconds: 70 }] }),
      'one',
      direct({ outcome: 'sleep', wakes: [wake('high'), wake('high')] }),
      'two',
    ])
    const first = await sleeper.harness.run('first')
    const second = await sleeper.harness.run('second')
    expect(resultsIn(sleeper.requests.at(-1)).join()).toContain('Unless one waits under "look" already, you will')
    expect(await sleeper.store.card(second.sessionId)).toMatchObject({ urgent: true, wakes: 1 })
    expect(await sleeper.store.card(first.sessionId)).not.toHaveProperty('urgent')
    sleeper.clock.advance(90_000)
    expect((await sleeper.store.due(9)).sessions).toEqual([second.sessionId, first.sessionId])
  })

  it('B-DIRECTIVE-7: what is not a directive is refused, nothing of it happens, and the model may correct it (TRAP-30)', async () => {
    const wake = { reason: 'r', delay_seconds: 60 }
    const wrong: readonly Args[] = [
      { outcome: 'maybe' },
      { outcome: 'sleep', wakes: [wake, wake, wake, wake] },
      { outcome: 'sleep', wakes: [{ reason: 'soon', delay_seconds: 1 }] },
      { outcome: 'sleep', wakes: [{ reason: 'late', delay_seconds: 86_401 }] },
      { outcome: 'sleep', learnings: [{ kind: 'rumour', title: 't', detail: 'd' }] },
      { outcome: 'sleep', learnings: [{ kind: 'lesson', title: 't'.repeat(121), detail: 'd' }] },
      { outcome: 'sleep', learnings: [{ kind: 'lesson', title: 't', detail: 'd'.repeat(401) }] },
      { outcome: 'sleep', unknown: true },
    ]
    for (const args of wrong) {
      const staging = staged([direct(args), direct({ outcome: 'sleep', wakes: [wake] }), 'Done.'])
      const { sessionId, calls } = await staging.harness.run('Do it.')
      expect(calls.map(({ status }) => status)).toEqual(['error', 'ok'])
      expect(await eventsOf(staging, sessionId, 'wake.scheduled')).toHaveLength(1)
      expect(await eventsOf(staging, sessionId, 'note.added')).toHaveLength(0)
    }
  })

  it('B-DIRECTIVE-8: no key of a model is that of a follow-up, and wakes that wait together have a bound', async () => {
    const spoofed = staged([
      direct({ outcome: 'sleep', wakes: [{ reason: 'r', delay_seconds: 60, key: 'follow-up:3' }] }),
      '.',
    ])
    const { sessionId } = await spoofed.harness.run('Do it.')
    expect((await eventsOf(spoofed, sessionId, 'wake.scheduled')).map(({ key }) => key)).toEqual(['wake:follow-up:3'])
    const many = [1, 2, 3].map((n) => ({ reason: `r${n}`, delay_seconds: 60 * n }))
    const bounded = staged(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? direct({ outcome: 'sleep', wakes: many }) : '.')),
    )
    const session = await bounded.harness.open()
    for (let i = 0; i < 4; i++) await session.run('More.')
    expect(await bounded.store.card(session.id)).toMatchObject({ wakes: 8 })
    expect(resultsIn(bounded.requests.at(-1)).at(-1)).toContain('Not queued: 3')
  })

  it('B-DIRECTIVE-9: an interrupt clears what a directive has scheduled (S4-15, AC-115)', async () => {
    const staging = staged([direct({ outcome: 'sleep', wakes: [{ reason: 'r', delay_seconds: 60 }] }), 'Waiting.'])
    const { sessionId } = await staging.harness.run('Wait.')
    await staging.harness.session(sessionId).interrupt()
    await staging.harness.work({ session: sessionId })
    expect(await staging.store.card(sessionId)).toMatchObject({ wakes: 0, due: null })
  })

  it('B-DIRECTIVE-10: a call may add wakes and learnings to its session, and nothing else', async () => {
    const follows = [{ type: 'session.closed' }, { type: 'note.added', kind: 'limit', text: 'x' }]
    const more = [
      { type: 'wake.scheduled', due: Number.NaN, reason: 'r', key: 'k' },
      { type: 'note.added', kind: 'learning', text: '' },
    ]
    let given: unknown = null
    const tool = defineTool({
      name: 'sneak',
      description: 'Adds what it likes',
      input: z.object({}),
      effect: 'read',
      execute: () => output({ content: 'done', follows: [given] as never }),
    })
    for (const follow of [...follows, ...more]) {
      given = follow
      const staging = stage([{ calls: [{ tool: 'sneak' }] }, 'Done.'], [], { tools: [tool] })
      const { sessionId, calls } = await staging.harness.run('Go.')
      expect(calls[0]).toMatchObject({ status: 'error' })
      const { events } = await staging.store.read(sessionId, 0)
      expect(events.map(({ type }) => type)).not.toContain(follow.type)
    }
  })

  it('B-DIRECTIVE-11: a hook that changes the result leaves what the call adds; a result that is withheld takes it along', async () => {
    const wakes = [{ reason: 'r', delay_seconds: 60 }]
    const script = [direct({ outcome: 'sleep', wakes }), 'Done.']
    const clock = new StillClock()
    const build = (run: () => string) => {
      const store = memory({ clock })
      const hook = { type: 'after_tool_call', run } as const
      return stage(script, [hook], { store, tools: [directiveTool({ store })], system: { clock }, strict: true })
    }
    const masked = build(() => JSON.stringify({ ok: true, content: 'masked', metadata: {} }))
    const first = await masked.harness.run('Go.')
    expect(resultsIn(masked.requests.at(-1))).toEqual(['masked'])
    expect(await eventsOf(masked, first.sessionId, 'wake.scheduled')).toHaveLength(1)
    const broken = build(() => {
      throw new Error('no')
    })
    const second = await broken.harness.run('Go.')
    expect(second.status).toBe('failed')
    expect(await eventsOf(broken, second.sessionId, 'wake.scheduled')).toHaveLength(0)
  })

  it('B-DIRECTIVE-12: a log with directives refolds, and would be decided the same again', async () => {
    const learnings = [{ kind: 'lesson', title: 't', detail: 'd' }]
    const wakes = [{ reason: 'r', delay_seconds: 60 }]
    const staging = staged([direct({ outcome: 'continue', wakes, learnings }), 'One.', 'Two.', 'Three.'])
    const { sessionId } = await staging.harness.run('Go.')
    staging.clock.advance(60_000)
    await staging.harness.work({ session: sessionId })
    const { events } = await staging.store.read(sessionId, 0)
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(3)
    expect(redecide(events)).toEqual([])
    expect(findUnwritten(events)).toEqual([])
    expect((await refoldSession(staging.store, sessionId)).difference).toBeNull()
  })
})
