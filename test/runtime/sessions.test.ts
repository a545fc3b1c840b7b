// The verbs on a session that works: input while busy, steering, pausing, interrupting, deciding. What a run comes to is
// results.test.ts; the state machine behind it is the kernel's (test/kernel).
import { describe, expect, it } from 'vitest'
import {
  type Command,
  Harness,
  type Hook,
  type Script,
  scripted,
  type SessionHandle,
  type ToolSource,
} from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'
import { calls, lines, make, moment, STORAGES, storeOf, tool, typesIn, users, waiting } from './scene.ts'

const said: Script = (request) => users(request).join(' + ')
const log = async (session: SessionHandle) => (await session.events()).events
const busy = { name: 'Fault', code: 'session_busy' }

describe.each(STORAGES)('a message to a busy session on %s', (storage) => {
  it('B-VERB-12: next joins the open run at its next request, after gets a run of its own when that one is over', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), said, said], { tools: [slow], store: storeOf(storage) }).open()
    const first = session.run('one')
    await runs.here
    await session.send('later', { when: 'after' })
    await session.send('two', { when: 'next' })
    go()
    expect(await first).toMatchObject({ text: 'one + two' })
    expect(await session.run()).toMatchObject({ text: 'one + two + later' })
    const runsStarted = (await log(session)).filter((event) => event.type === 'run.started')
    expect(runsStarted.map(({ inputs }) => inputs.length)).toEqual([1, 1])
  })

  it('B-VERB-12: now drops the open request, and the next one has both messages', async () => {
    const asked = moment()
    const script: Script = (request, n) => {
      asked.come()
      return n === 0 ? { stall: true } : users(request).join(' + ')
    }
    const session = await make(script, { store: storeOf(storage) }).open()
    const first = session.run('one')
    await asked.here
    await session.send('two', { when: 'now' })
    expect(await first).toMatchObject({ status: 'completed', text: 'one + two', usage: { modelRequests: 1 } })
    expect(await log(session)).toContainEqual(expect.objectContaining({ type: 'model.failed', class: 'superseded' }))
  })

  it('B-VERB-13: idle is refused while a run is open, waits for a person or is paused, and the run does not feel it (AC-41)', async () => {
    const { tool: pay, runs, go, ran } = waiting('pay', { effect: 'once' })
    let prompts = 0
    const session = await make([calls('pay 1'), calls('sign'), 'Done.', 'Next.'], {
      tools: [pay, tool('sign', { approval: 'ask' })],
      store: storeOf(storage),
      hooks: [{ type: 'user_prompt_submit', run: () => void (prompts += 1) }],
    }).open()
    const idle = () => session.send('me too', { when: 'idle' })
    const first = session.run('one', { when: 'idle' })
    await runs.here
    for (let n = 0; n < 3; n++) await expect(idle()).rejects.toMatchObject(busy)
    await expect(session.undo()).rejects.toMatchObject(busy)
    go()
    const parked = await first
    expect(parked).toMatchObject({ status: 'requires_action', calls: [{ tool: 'pay', status: 'ok' }, {}] })
    expect(ran).toEqual(['pay 1'])
    await expect(idle()).rejects.toMatchObject(busy)
    await session.interrupt('pause')
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ stopReason: 'paused' })
    await expect(idle()).rejects.toMatchObject(busy)
    await session.send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(prompts).toBe(1)
    expect(await session.run('two', { when: 'idle' })).toMatchObject({ text: 'Next.' })
  })

  it('B-VERB-13: of many callers at once that only want an idle session exactly one gets in', async () => {
    const store = storeOf(storage)
    const all = moment()
    const script: Script = async () => {
      await all.here
      return 'Done.'
    }
    const harnesses = [make(script, { store }), make(script, { store })] as const
    const { id } = await harnesses[0].open()
    const tries = Array.from({ length: 12 }, (_, n) =>
      (harnesses[n % 2] as Harness).session(id).send(`caller ${n}`, { when: 'idle' }),
    )
    const settled = await Promise.allSettled(tries)
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    expect(refused).toHaveLength(11)
    for (const reason of refused) expect(reason).toMatchObject(busy)
    all.come()
    const session = harnesses[0].session(id)
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
    expect((await typesIn(session)).filter((type) => type === 'user.message')).toHaveLength(1)
  })

  it('B-VERB-14: the same id is the same message, however it is sent, and its receipt names the one event', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), 'Done.'], { tools: [slow], store: storeOf(storage) }).open()
    const first = await session.send('one', { id: 'mine', when: 'idle' })
    await runs.here
    const { seq } = (await session.events()).events.find(({ type }) => type === 'user.message') ?? {}
    expect(first).toEqual({ eventId: `${session.id}:${seq}`, seq, duplicate: false, queued: false })
    for (const when of ['next', 'idle'] as const)
      expect(await session.send('one', { id: 'mine', when })).toMatchObject({ seq, duplicate: true })
    await expect(session.send('another', { id: 'mine' })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(session.send('another', { id: 'mine', when: 'idle' })).rejects.toMatchObject(busy)
    go()
    const result = await session.run()
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    // Sending the id of a finished message again returns its result and repeats nothing.
    expect(await session.run('one', { id: 'mine' })).toEqual(result)
    expect(await session.run('one', { id: 'mine', when: 'idle' })).toEqual(result)
    expect((await typesIn(session)).filter((type) => type === 'user.message')).toHaveLength(1)
  })
})

describe('callers at once', () => {
  it('B-VERB-13: one of them gets in also when its run is over before the others are looked at', async () => {
    const session = await make(() => 'Done.').open()
    const tries = Array.from({ length: 5 }, (_, n) => session.run(`caller ${n}`, { when: 'idle' }))
    const settled = await Promise.allSettled(tries)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await session.run('later', { when: 'idle' })).toMatchObject({ status: 'completed' })
  })
})

describe('what cannot be meant', () => {
  it('B-VERB-15: a time, an input or a command that there is not is refused in a sentence, and nothing is written', async () => {
    const session = await make(['never']).open()
    const invalid = { name: 'Fault', code: 'invalid_input' }
    await expect(session.send('x', { when: 'soon' as 'next' })).rejects.toMatchObject(invalid)
    await expect(session.send(' \n ')).rejects.toMatchObject(invalid)
    await expect(session.send([])).rejects.toMatchObject(invalid)
    await expect(session.send([{ type: 'redirect' } as Command])).rejects.toMatchObject(invalid)
    await expect(session.decide({ callId: '3.0', allow: 'no' as unknown as boolean, by: 'x' })).rejects.toMatchObject(
      invalid,
    )
    await expect(session.interrupt('Stop' as 'stop')).rejects.toMatchObject(invalid)
    await expect(session.send([{ type: 'message', input: 'x', when: 'idle' as 'next' }])).rejects.toMatchObject(invalid)
    await expect(session.send(undefined as unknown as [])).rejects.toMatchObject(invalid)
    expect(await typesIn(session)).toEqual(['session.created'])
  })

  it('B-VERB-15: an invalid interrupt mode does not end a pause', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), 'never'], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    await session.interrupt('pause')
    go()
    await running
    await expect(session.interrupt('Stop' as 'stop')).rejects.toThrow(/stop or pause, not "Stop"/)
    expect(await session.run()).toMatchObject({ stopReason: 'paused' })
  })

  it('B-VERB-16: a batch of commands with one that is not valid leaves none of them said (AC-83)', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), said], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    const before = await typesIn(session)
    const good: readonly Command[] = [{ type: 'message', input: 'two' }, { type: 'pause' }, { type: 'cancel' }]
    const bad = [{ type: 'dance' }, { type: 'message', input: '' }, { type: 'message', input: 'x', when: 'soon' }]
    for (const command of bad) {
      for (const batch of [
        [...good, command],
        [command, ...good],
      ] as readonly Command[][])
        await expect(session.send(batch)).rejects.toMatchObject({ code: 'invalid_input' })
    }
    expect(await typesIn(session)).toEqual(before)
    go()
    expect(await running).toMatchObject({ status: 'completed', text: 'one' })
  })
})

describe('steering', () => {
  it('B-VERB-17: a cancel drops the whole batch, wherever it stands in it', async () => {
    for (const batch of [
      [{ type: 'cancel' }, { type: 'message', input: 'two' }],
      [{ type: 'message', input: 'two' }, { type: 'pause' }, { type: 'cancel' }, { type: 'resume' }],
    ] as readonly Command[][]) {
      const { tool: slow, runs } = waiting('slow')
      const session = await make([calls('slow'), said], { tools: [slow] }).open()
      const running = session.run('one')
      await runs.here
      await session.send(batch)
      expect(await running).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
      expect(await session.run('three')).toMatchObject({ status: 'completed', text: 'one + three' })
    }
  })

  it('B-VERB-17: a pause and a resume in one batch come to nothing', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), said], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    await session.send([{ type: 'pause' }, { type: 'message', input: 'two' }, { type: 'resume' }])
    go()
    expect(await running).toMatchObject({ status: 'completed', text: 'one + two' })
  })

  it('B-VERB-17: a redirect drops the open request and is marked for the model', async () => {
    const asked = moment()
    const script: Script = (request, n) => {
      asked.come()
      return n === 0 ? { stall: true } : users(request).join(' + ')
    }
    const session = await make(script).open()
    const running = session.run('Write a poem.')
    await asked.here
    await session.send([{ type: 'redirect', text: 'Write a song.' }])
    expect(await running).toMatchObject({ text: 'Write a poem. + [steering:redirect] Write a song.' })
    expect((await typesIn(session)).filter((type) => type === 'model.failed')).toHaveLength(1)
  })

  it('B-VERB-18: a pause lets what runs finish and starts nothing, in whatever process, until a message or a resume', async () => {
    const file = makeFile()
    const { tool: slow, runs, go, ran } = waiting('slow', { sequential: true })
    const first = new Harness({ model: scripted([calls('slow 1', 'slow 2')]), tools: [slow], store: open(file) })
    const { id } = await first.open()
    const running = first.session(id).run('one')
    await runs.here
    await first.session(id).interrupt('pause')
    go()
    expect(await running).toMatchObject({ stopReason: 'paused', flags: { paused: true } })
    expect(ran).toEqual(['slow 1'])
    await first.close()
    const session = make([said, 'Again.'], { tools: [slow], store: open(file) }).session(id)
    expect(await session.run()).toMatchObject({ stopReason: 'paused' })
    // A message for later does not end the pause.
    await session.send('later', { when: 'after' })
    expect(await session.run()).toMatchObject({ stopReason: 'paused' })
    expect(ran).toEqual(['slow 1'])
    await session.send([{ type: 'resume' }])
    // The tool's gate was opened above, so it does not wait again.
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Again.' })
    expect(ran).toEqual(['slow 1', 'slow 2'])
  })

  it.each(STORAGES)('B-VERB-18: on %s a pause also holds what has not begun', async (storage) => {
    let asked = 0
    const hooks: readonly Hook[] = [{ type: 'run_start', run: () => void (asked += 1) }]
    const harness = make([said, 'Again.'], { store: storeOf(storage), hooks })
    const session = await harness.open()
    await session.send([{ type: 'message', input: 'one' }, { type: 'pause' }])
    expect(await session.run()).toMatchObject({ stopReason: 'paused', flags: { paused: true } })
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toMatchObject([
      { status: 'requires_action', due: null },
    ])
    await session.send('later', { when: 'after' })
    expect(await session.run()).toMatchObject({ stopReason: 'paused', usage: { modelRequests: 0 } })
    expect(asked).toBe(0)
    await session.send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Again.' })
    expect(asked).toBe(2)
  })

  it('B-VERB-30: a pause may say why: the first reason stands, a paused result says it, and a resume ends it (TA-26)', async () => {
    const harness = make([said, 'Again.'])
    const session = await harness.open()
    await session.send([
      { type: 'message', input: 'one' },
      { type: 'pause', reason: 'The reviewer is at lunch.' },
    ])
    await session.send([{ type: 'pause', reason: 'Another one.' }, { type: 'pause' }])
    expect(await session.run()).toMatchObject({ stopReason: 'paused', reason: 'The reviewer is at lunch.' })
    await session.send([{ type: 'resume' }, { type: 'pause' }])
    const unsaid = await session.run()
    expect([unsaid.stopReason, 'reason' in unsaid]).toEqual(['paused', false])
    await session.send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ status: 'completed' })
    await expect(session.send([{ type: 'pause', reason: '' }])).rejects.toThrow('"reason"')
  })

  it('B-VERB-18: a pause also holds the run that comes after, until it is resumed or stopped', async () => {
    for (const goesOn of [true, false]) {
      const asked = moment()
      const answer = moment()
      const script: Script = async (request, n) => {
        asked.come()
        if (n === 0) await answer.here
        return users(request).join(' + ')
      }
      const session = await make(script).open()
      const running = session.run('one')
      await asked.here
      await session.send([{ type: 'pause' }, { type: 'message', input: 'two', when: 'after' }])
      answer.come()
      expect(await running).toMatchObject({ status: 'completed', text: 'one' })
      expect(await session.run()).toMatchObject({ stopReason: 'paused', flags: { paused: true } })
      expect((await typesIn(session)).filter((type) => type === 'run.started')).toHaveLength(1)
      if (goesOn) await session.send([{ type: 'resume' }])
      else await session.interrupt()
      const end = goesOn ? { status: 'completed', text: 'one + two' } : { status: 'interrupted' }
      expect(await session.run()).toMatchObject(end)
    }
  })

  it('B-VERB-18: a message after a stop of a paused session is taken up', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), said], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    await session.interrupt('pause')
    await session.interrupt()
    await session.send('two', { when: 'after' })
    go()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'one + two' })
  })
})

describe('an interrupt', () => {
  const stopped = { status: 'interrupted', stopReason: 'cancelled', pending: [] }

  it('B-VERB-19: before the first request: no model is asked, and the message is known to the next run', async () => {
    const asked = moment()
    let free = (): void => {}
    let slow = true
    const source: ToolSource = {
      type: 'source',
      name: 'slow',
      tools: () => {
        asked.come()
        return slow ? new Promise((resolve) => (free = () => resolve([]))) : Promise.resolve([])
      },
      close: () => Promise.resolve(),
    }
    let requests = 0
    const script: Script = (request) => {
      requests += 1
      return users(request).join(' + ')
    }
    const session = await make(script, { tools: [source] }).open()
    const running = session.run('one')
    await asked.here
    await session.interrupt()
    expect(await running).toMatchObject({ ...stopped, usage: { modelRequests: 0 } })
    slow = false
    free()
    expect(requests).toBe(0)
    expect(await session.run('two')).toMatchObject({ status: 'completed', text: 'one + two' })
    expect(await typesIn(session)).not.toContain('model.failed')
  })

  it('B-VERB-19: during a reply: what was half said is marked as cut, and what was done before is kept', async () => {
    const spoke = moment()
    const seen: (readonly string[])[] = []
    let n = 0
    const model = {
      name: 'speaker',
      call: async (request: Parameters<typeof users>[0], context: { signal: AbortSignal; emit: (d: Said) => void }) => {
        n += 1
        seen.push(lines(request.messages))
        const reply = { type: 'reply', parts: [], finish: 'stop', usage: null } as const
        if (n === 1) return { ...reply, finish: 'calls', calls: [{ id: 'a', tool: 'look', args: '{"n":1}' }] } as const
        if (n === 3) return { ...reply, parts: [{ type: 'text', text: 'Whole.' }], calls: [] } as const
        context.emit({ kind: 'text', part: 0, text: 'Half a' })
        spoke.come()
        await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
        return { type: 'failure', class: 'network', message: 'The connection was cut.', retryable: true } as const
      },
    }
    const session = await make(model, { tools: [tool('look')] }).open()
    const stream = session.stream('one', { deltas: true })
    const heard: string[] = []
    const reading = (async () => {
      for await (const event of stream) if (event.type === 'delta') heard.push(event.text)
    })()
    await spoke.here
    await session.interrupt()
    expect(await stream.result).toMatchObject({ ...stopped, calls: [{ status: 'ok' }] })
    await reading
    expect(heard).toEqual(['Half a'])
    expect(await session.run('two')).toMatchObject({ status: 'completed', text: 'Whole.' })
    const [cut, notice] = (seen.at(-1) ?? []).slice(3, 5)
    expect([...(seen.at(-1) ?? []).slice(0, 3), cut]).toEqual([
      'user: one',
      'assistant:  look()',
      'tool: look 1',
      'assistant: Half a',
    ])
    expect(notice).toContain('kind="cut"')
    expect(seen.at(-1)?.at(-1)).toBe('user: two')
  })

  it('B-VERB-19: during a tool: it is told to stop, each call has a result, and none of the others starts', async () => {
    const { tool: slow, runs, ran } = waiting('slow', { sequential: true })
    const session = await make([calls('slow 1', 'slow 2'), said], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    await session.interrupt()
    const result = await running
    expect(result).toMatchObject(stopped)
    expect(result.calls.map(({ status }) => status)).toEqual(['aborted', 'aborted'])
    expect(ran).toEqual([])
    expect(await session.run('two')).toMatchObject({ status: 'completed' })
  })

  it.each(STORAGES)(
    'B-VERB-20: while parked on %s: the question and the answer that were waited for are gone, and late ones are refused (AC-113, AC-115)',
    async (storage) => {
      const ran: string[] = []
      const pay = tool('pay', { approval: 'ask', effect: 'once', execute: ({ n }) => void ran.push(`pay ${n}`) })
      const { execute: _execute, ...outside } = tool('host')
      const host = { ...outside, outside: true, execute: () => undefined }
      const store = storeOf(storage)
      const session = await make([calls('pay', 'pay'), 'One.', calls('host'), 'Two.'], {
        tools: [pay, host],
        store,
      }).open()
      for (const text of ['one', 'two']) {
        const parked = await session.run(text)
        expect(parked.status).toBe('requires_action')
        const { callId = '', needs } = parked.pending[0] ?? {}
        await session.send('waits', { when: 'after', id: text })
        await session.interrupt()
        expect(await session.run()).toMatchObject(stopped)
        expect(await store.card(session.id)).toMatchObject({ status: 'idle', due: null, asks: [], waits: [], wakes: 0 })
        const late =
          needs === 'approval'
            ? session.decide({ callId, allow: true, by: 'ana' })
            : session.answer({ callId, content: 'late' })
        await expect(late).rejects.toMatchObject({ code: 'decision_stale' })
        expect(await session.run(`${text} again`)).toMatchObject({ status: 'completed' })
      }
      expect(ran).toEqual([])
    },
  )
})

describe.each(STORAGES)('a decision on %s', (storage) => {
  const pays = (ran: string[]) =>
    tool('pay', { approval: 'ask', effect: 'once', execute: ({ n }) => void ran.push(`pay ${n}`) })

  it('B-VERB-21: of those that come at once from several harnesses one is taken, and the others are told so (AC-113)', async () => {
    const ran: string[] = []
    const store = storeOf(storage)
    const tools = [pays(ran)]
    const parked = await make([calls('pay 1')], { tools, store }).run('Go.')
    const [call] = parked.pending
    const harnesses = [make(['Done.'], { tools, store }), make(['Done.'], { tools, store })]
    const clicks = harnesses.flatMap((harness, i) =>
      ['ana', 'bob', 'eve'].map((by, n) =>
        harness.session(parked.sessionId).decide({ callId: call?.callId ?? '', allow: (i + n) % 2 === 0, by }),
      ),
    )
    const settled = await Promise.allSettled(clicks)
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    expect(refused).toHaveLength(5)
    for (const reason of refused) expect(reason).toMatchObject({ code: 'decision_stale' })
    const session = (harnesses[0] as Harness).session(parked.sessionId)
    expect(await session.run()).toMatchObject({ status: 'completed' })
    const taken = (await log(session)).filter((event) => event.type === 'user.tool_confirmation')
    expect(taken).toHaveLength(1)
    expect(ran).toEqual(taken[0]?.allow ? ['pay 1'] : [])
  })

  it('B-VERB-22: what was approved runs as it was stored, also when the model asks anew with other arguments (AC-114)', async () => {
    const ran: string[] = []
    const store = storeOf(storage)
    const tools = [pays(ran)]
    const first = make([calls('pay 1')], { tools, store })
    const parked = await first.run('Pay one.')
    await first.close()
    // The second worker's model asks for a larger payment.
    const session = make([calls('pay 1000'), 'Done.'], { tools, store }).session(parked.sessionId)
    await session.send('Hurry.')
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    const again = await session.run()
    expect(again).toMatchObject({ status: 'requires_action', pending: [{ args: { n: 1000 } }] })
    expect(ran).toEqual(['pay 1'])
    await session.decide({ callId: again.pending[0]?.callId ?? '', allow: false, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(ran).toEqual(['pay 1'])
  })
})

type Said = { readonly kind: 'text'; readonly part: number; readonly text: string }
