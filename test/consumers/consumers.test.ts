// Consumers in one process: what they are told, in which order, and what happens when they fail. Killed processes are in kill.long.test.ts.
import { describe, expect, it, vi } from 'vitest'
import { deadLetters, decideDeadLetter } from '../../src/consumers/index.ts'
import { type Consumer, defineTool, Fault, Harness, memory, scripted } from '../../src/index.ts'
import { z } from 'zod'
import { exportSession, importSession } from '../../src/replay.ts'
import type { Priced } from '../../src/models/http/hosted-model.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import { laneId } from '../../src/view/lanes.ts'
import { until } from '../until.ts'
import { clockAhead, keeper, laneEvents, stage, told } from './stage.ts'

describe('a consumer', () => {
  it('B-CONSUME-1: is told of each settled run of a root once the commit that settled it is on disk, with what the log has', async () => {
    const log = keeper('log')
    const { harness, reports } = stage([log])
    await harness.open({ id: 's', labels: { team: 'a' }, metadata: { ticket: 7 } })
    await harness.session('s').run('Hello.')
    await told(log, 1)
    expect(log.told).toMatchObject([
      {
        key: expect.stringMatching(/^settled:s:\d+$/) as string,
        settled: {
          session: 's',
          agent: 'default',
          prompt: 'Hello.',
          text: 'done',
          outcome: { type: 'completed' },
          labels: { team: 'a' },
          metadata: { ticket: 7 },
          usage: { modelRequests: 1 },
        },
      },
    ])
    expect(reports).toEqual([])
  })

  it('B-CONSUME-2: is told of the runs of one session in order, and of the runs of many sessions at once', async () => {
    const log = keeper('log')
    const { harness } = stage([log])
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    await Promise.all(
      names.map(async (id) => {
        await harness.open({ id })
        for (const text of ['1', '2', '3']) await harness.session(id).run(text)
      }),
    )
    await told(log, 18)
    for (const id of names)
      expect(log.told.filter(({ settled }) => settled.session === id).map(({ settled }) => settled.prompt)).toEqual([
        '1',
        '2',
        '3',
      ])
    expect(new Set(log.told.map(({ key }) => key)).size).toBe(18)
  })

  it('B-CONSUME-3: is told of an interrupted run with what there is', async () => {
    const log = keeper('log')
    const model = scripted([{ text: 'Half of it.', calls: [{ tool: 'wait', args: {} }] }])
    const wait = defineTool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      effect: 'read',
      execute: (_args, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    })
    const { harness } = stage([log], { model, tools: [wait] })
    const session = await harness.open({ id: 's' })
    const running = session.run('Go.')
    await until(async () =>
      expect((await session.events()).events.some(({ type }) => type === 'agent.tool_use')).toBe(true),
    )
    await session.interrupt()
    await running
    await told(log, 1)
    expect(log.told[0]?.settled).toMatchObject({ outcome: { type: 'interrupted' }, text: 'Half of it.', prompt: 'Go.' })
  })

  it('B-CONSUME-4: one that throws is tried again after 1 s, and neither the answer nor another consumer waits for it', async () => {
    const clock = clockAhead()
    const good = keeper('good')
    const bad = keeper('bad', () => {
      if (bad.told.length < 3) throw new Error('no network')
    })
    const { harness, reports } = stage([bad, good], { system: { clock }, store: memory({ clock }) })
    await harness.open({ id: 's' })
    expect((await harness.session('s').run('Hello.')).text).toBe('done')
    await told(good, 1)
    await until(() => expect(reports.length).toBe(1))
    const lane = (await laneEvents(harness, 'bad', 's')).at(-1)
    expect(lane?.type).toBe('run.settled')
    clock.add(1_000)
    await told(bad, 2)
    await until(() => expect(reports.length).toBe(2))
    await until(async () => expect((await laneEvents(harness, 'bad', 's')).at(-1)?.type).toBe('run.settled'))
    clock.add(10_000)
    await told(bad, 3)
    expect(new Set(bad.told.map(({ key }) => key)).size).toBe(1)
    expect(reports[0]).toEqual([
      'consumer bad',
      expect.stringMatching(/^settled:s:\d+: try 1 of 5 failed: no network$/),
    ])
  })

  it('B-CONSUME-5: after five tries the run is a dead letter, which is said, and later runs are told', async () => {
    const clock = clockAhead()
    const bad = keeper('bad', ({ prompt }) => {
      if (prompt === 'first') throw new Error('never')
    })
    const { harness, reports } = stage([bad], { system: { clock }, store: memory({ clock }) })
    const session = await harness.open({ id: 's' })
    await session.run('first')
    await session.run('second')
    for (const tries of [1, 2, 3, 4, 5]) {
      await until(() => expect(reports.length).toBe(tries))
      await until(async () => expect((await laneEvents(harness, 'bad', 's')).at(-1)?.type).toBe('run.settled'))
      clock.add(600_000)
    }
    await told(bad, 6)
    expect(bad.told.map(({ settled }) => settled.prompt)).toEqual([
      'first',
      'first',
      'first',
      'first',
      'first',
      'second',
    ])
    expect(reports.at(-1)?.[1]).toMatch(/try 5 of 5 failed: never It is a dead letter now: retry it, or drop it\.$/)
    const [letter, ...others] = await deadLetters(harness)
    expect(others).toEqual([])
    expect(letter).toMatchObject({ consumer: 'bad', tries: 5, reason: 'never', deaths: 1, about: { session: 's' } })
  })

  it('B-CONSUME-27: the reason of a dead letter is a text, whatever was thrown', async () => {
    const thrown: readonly (readonly [unknown, string])[] = [
      [{ code: 503, message: 'The shop is closed.', token: 'x' }, 'The shop is closed.'],
      [{ code: 503 }, 'something that is no Error was thrown'],
      [Object.create(null), 'something that is no Error was thrown'],
      [
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('no')
            },
          },
        ),
        'something that is no Error was thrown',
      ],
      [Object.assign(new Error(''), { name: 'Timeout' }), 'Timeout'],
      [new Error(''), 'Error'],
      ['', 'an error without a message'],
      [undefined, 'undefined was thrown'],
      [Symbol('x'), 'Symbol(x) was thrown'],
      [['a'], 'something that is no Error was thrown'],
    ]
    const all = thrown.map(([what], i) => ({
      ...keeper(`bad${i}`, () => {
        throw what
      }),
      attempts: 1,
    }))
    const { harness } = stage(all)
    await (await harness.open({ id: 's' })).run('Hello.')
    const letters = await until(async () => {
      const found = await deadLetters(harness)
      expect(found).toHaveLength(thrown.length)
      return found
    })
    const reasons = Object.fromEntries(letters.map(({ consumer, reason }) => [consumer, reason]))
    expect(reasons).toEqual(Object.fromEntries(thrown.map(([, reason], i) => [`bad${i}`, reason])))
  })

  it('B-CONSUME-6: one that hangs delays its own lane by its time limit, and nobody else', async () => {
    const hung = keeper('hung', ({ session }) => (session === 's' ? new Promise(() => {}) : undefined))
    const { harness, reports } = stage([{ ...hung, timeoutMs: 50 }])
    await harness.open({ id: 's' })
    // Another lane, and the same lane.
    const other = ['a', 'b', 'c', 'd'].find((id) => laneId('hung', id, null) !== laneId('hung', 's', null)) ?? ''
    await harness.open({ id: other })
    await harness.session('s').run('Hello.')
    await told(hung, 1)
    await harness.session(other).run('Hello.')
    await told(hung, 2)
    expect(hung.told[1]?.settled.session).toBe(other)
    await until(() => expect(reports[0]?.[1]).toMatch(/try 1 of 5 failed: It took longer than 50 ms\.$/))
  })

  it('B-CONSUME-7: a dead letter is tried again or dropped by the first decision, and the log says whose it was', async () => {
    const bad = keeper('bad', () => {
      if (bad.told.length < 3) throw new Error('never')
    })
    const { harness } = stage([{ ...bad, attempts: 1 }])
    await harness.open({ id: 's' })
    await harness.session('s').run('Hello.')
    const find = async () => {
      const [letter] = await until(async () => {
        const found = await deadLetters(harness, { consumer: 'bad' })
        expect(found.length).toBe(1)
        return found
      })
      return { lane: letter?.lane ?? '', key: letter?.key ?? '' }
    }
    const letter = await find()
    const both = await Promise.all([
      decideDeadLetter(harness, { ...letter, decision: 'retry', by: 'ann' }),
      decideDeadLetter(harness, { ...letter, decision: 'drop', by: 'bob' }).catch((error: unknown) => error),
    ])
    expect(both[0]).toEqual({ decision: 'retry', by: 'ann' })
    expect(both[1] instanceof Fault || both[1]).toEqual(
      both[1] instanceof Fault ? true : { decision: 'retry', by: 'ann' },
    )
    await told(bad, 2)
    await until(async () => expect((await deadLetters(harness))[0]?.deaths).toBe(2))
    expect(await decideDeadLetter(harness, { ...(await find()), decision: 'drop', by: 'bob' })).toEqual({
      decision: 'drop',
      by: 'bob',
    })
    await until(async () => expect(await deadLetters(harness)).toEqual([]))
    expect(bad.told.length).toBe(2)
    await expect(decideDeadLetter(harness, { ...letter, decision: 'retry', by: 'ann' })).rejects.toThrow(
      /no dead letter/,
    )
    const said = (await laneEvents(harness, 'bad', 's')).flatMap((event) =>
      event.type === 'user.message' && event.by ? [event.by] : [],
    )
    expect(said).toEqual(['session:s', 'ann', 'bob'])
  })

  it('B-CONSUME-8: lanes are in no list, and only a list that names them has them', async () => {
    const log = keeper('log')
    const { harness } = stage([log])
    await harness.open({ id: 's' })
    await harness.session('s').run('Hello.')
    await told(log, 1)
    const ids = async (options: Parameters<Harness['list']>[0]) =>
      (await harness.list(options)).cards.map(({ session }) => session)
    const lane = laneId('log', 's', null)
    expect(await ids({})).toEqual(['s'])
    expect(await ids({ order: 'id' })).toEqual(['s'])
    expect(await ids({ order: 'id', limit: 1 })).toEqual(['s'])
    expect(await ids({ active: true })).toEqual([])
    expect(await ids({ agent: 'consumer:log' })).toEqual([lane])
    expect(await ids({ agent: 'consumer:' })).toEqual([lane])
    expect((await harness.agents()).map(({ name }) => name)).toEqual(['default'])
  })

  it('B-CONSUME-9: nobody can write to a lane, stop, fork or close it, or open a session that could be one', async () => {
    const log = keeper('log')
    const { harness } = stage([log])
    await harness.open({ id: 's' })
    await harness.session('s').run('Hello.')
    await told(log, 1)
    const lane = harness.session(laneId('log', 's', null))
    for (const act of [
      () => lane.send('Hello.'),
      () => lane.run('Hello.'),
      () => lane.send([{ type: 'message', input: 'Hello.' }]),
      () => lane.interrupt(),
      () => lane.interrupt('pause'),
      () => lane.fork(),
      () => lane.close(),
      () => lane.spawn('default', 'Go.'),
      () => lane.undo(),
      () => lane.schedule({ inMs: 0 }),
      () => lane.unschedule('again:1'),
      () => lane.rename('Mine'),
    ])
      await expect(act()).rejects.toThrow(/holds the runs that a consumer is told of/)
    await expect(harness.open({ id: 'consumer.log.3' })).rejects.toThrow(/the lanes of consumers are named like that/)
    await expect(harness.open({ agent: 'consumer:log' })).rejects.toThrow(
      /has no agent "consumer:log"\. "agent" may name: default\./,
    )
  })

  it('B-CONSUME-10: a log that is imported tells nobody of its runs, and the log of a lane is not taken', async () => {
    const log = keeper('log')
    const store = memory()
    const { harness } = stage([log], { store })
    await harness.open({ id: 's' })
    await harness.session('s').run('Hello.')
    await told(log, 1)
    const file = JSON.parse(JSON.stringify(await exportSession(store, 's'))) as unknown
    await importSession(store, file, { id: 'copy' })
    const fork = await harness.session('s').fork({ id: 'fork' })
    await harness.session('copy').run('Again.')
    await fork.run('Again.')
    await told(log, 3)
    expect(log.told.map(({ settled }) => [settled.session, settled.prompt])).toEqual([
      ['s', 'Hello.'],
      ['copy', 'Again.'],
      ['fork', 'Again.'],
    ])
    const lane = laneId('log', 's', null)
    await expect(exportSession(store, lane).then((said) => importSession(memory(), said, { id: 'x' }))).rejects.toThrow(
      /the log of a consumer/,
    )
  })

  it('B-CONSUME-11: a secret does not reach it', async () => {
    const log = keeper('log')
    const { harness } = stage([log], {
      model: scripted(() => 'It is hunter22hunter22.'),
      secrets: { KEY: 'hunter22hunter22' },
    })
    await harness.open({ id: 's', labels: { note: 'hunter22hunter22' }, metadata: { note: 'hunter22hunter22' } })
    await harness.session('s').run('Is it hunter22hunter22?')
    await told(log, 1)
    expect(JSON.stringify(log.told)).not.toContain('hunter22')
    expect(log.told[0]?.settled.text).toBe('It is ⟦secret:KEY⟧.')
  })

  it('B-CONSUME-12: what it asks of models is under its own budget a day', async () => {
    const model: Priced = {
      ...scripted(() => ({ text: 'x', cost: 600_000 })),
      able: { name: 'scripted', native: 'no' },
      outputTokensMax: 600_000,
      secrets: {},
      profile: async () => ({ ...FREE_PROFILE, price: { input: 1, output: 1 } }),
    }
    const answers: string[] = []
    const asks: Consumer = {
      name: 'asks',
      usd: 1,
      attempts: 1,
      run: async ({ session }, { askModel }) => {
        const request = {
          session,
          seq: 0,
          instructions: '',
          tools: [],
          allow: 'none',
          boost: false,
          messages: [],
        } as const
        const said = await askModel(model, request)
        answers.push(said.type === 'reply' ? 'asked' : said.message)
      },
    }
    const { harness } = stage([asks])
    await harness.open({ id: 's' })
    await harness.session('s').run('1')
    await until(() => expect(answers.length).toBe(1))
    await harness.session('s').run('2')
    await until(() => expect(answers.length).toBe(2))
    expect(answers[0]).toBe('asked')
    expect(answers[1]).toMatch(/budget|money|day/i)
  })

  it('B-CONSUME-13: closing the harness waits for what is being told', async () => {
    const seen: string[] = []
    const slow = keeper('slow', async ({ prompt }) => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      seen.push(prompt)
    })
    const { harness } = stage([slow])
    await harness.run('Hello.')
    await harness.close()
    expect(seen).toEqual(['Hello.'])
  })

  it('B-CONSUME-14: hooks and observers of the host are not told of lanes', async () => {
    const seen: string[] = []
    const log = keeper('log')
    const hooks = (
      ['run_start', 'run_end', 'post_run', 'session_rest', 'before_tool_call', 'after_tool_call'] as const
    ).map((type) => ({ type, run: ({ session }: { session: string }) => void seen.push(session) }) as never)
    const { harness } = stage([log], { hooks })
    await harness.open({ id: 's' })
    await harness.session('s').run('Hello.')
    await told(log, 1)
    await harness.close()
    expect(new Set(seen)).toEqual(new Set(['s']))
  })

  it('B-CONSUME-15: a removed session is not told, and one that gets its id again is', async () => {
    let open = (): void => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const log = keeper('log', () => gate)
    const { harness } = stage([log])
    const session = await harness.open({ id: 's' })
    await session.run('1')
    await session.run('2')
    await told(log, 1)
    await harness.remove('s')
    await harness.open({ id: 's' })
    await harness.session('s').run('3')
    open()
    await told(log, 2)
    expect(log.told.map(({ settled }) => settled.prompt)).toEqual(['1', '3'])
    expect(log.told[1]?.key).toMatch(/^settled:s:\d+:1$/)
  })

  it('B-CONSUME-15: a run of a removed session that waits for another try is told no more, and is no dead letter', async () => {
    const log = keeper('log', () => {
      throw new Error('no room')
    })
    const { harness, reports } = stage([log])
    const session = await harness.open({ id: 's' })
    await session.run('1')
    await told(log, 1)
    await until(async () => expect((await harness.list({ agent: 'consumer:log' })).cards[0]?.wakes).toBe(1))
    await harness.remove('s')
    await until(async () => {
      const tries = (await laneEvents(harness, 'log', 's')).filter(({ type }) => type === 'agent.tool_result')
      // The first try, the wait for the second, and the second.
      expect(tries).toMatchObject([{ status: 'ok' }, { status: 'ok' }, { status: 'ok', content: '{"type":"done"}' }])
    })
    expect(await deadLetters(harness)).toEqual([])
    expect(reports).toHaveLength(1)
  })

  it('B-CONSUME-16: a transcript of a lane is cut, and what waits and what is dead outlasts the cut', async () => {
    const bad = keeper('bad', ({ prompt }) => {
      if (prompt === 'bad') throw new Error('never')
    })
    const store = memory()
    const { harness } = stage([{ ...bad, attempts: 1 }], { store })
    const session = await harness.open({ id: 's' })
    await session.run('bad')
    for (let i = 0; i < 360; i++) await session.run(String(i))
    await told(bad, 361)
    const events = await laneEvents(harness, 'bad', 's')
    const cuts = events.filter(({ type }) => type === 'context.compacted')
    expect(cuts.length).toBeGreaterThan(0)
    expect((await deadLetters(harness)).map(({ reason }) => reason)).toEqual(['never'])
    // Another process reads from the cut on.
    const later = stage([{ ...bad, attempts: 1 }], { store })
    await later.harness.session('s').run('later')
    await told(bad, 362)
    expect((await deadLetters(later.harness)).length).toBe(1)
    expect(new Set(bad.told.map(({ key }) => key)).size).toBe(362)
  })

  it('B-CONSUME-17: the form of before is refused with the new one, and so is what is no consumer', () => {
    const refused = (consumers: unknown): string => {
      try {
        new Harness({ model: scripted([]), plugins: [{ name: 'p', consumers: consumers as Consumer[] }] })
      } catch (error) {
        return error instanceof Fault ? `${error.code}: ${error.message}` : String(error)
      }
      return 'taken'
    }
    expect(refused([() => {}])).toMatch(
      /^invalid_config: .*which consumers were before\. Write \{ name, run: \(settled, \{ key, signal \}\) => … \}/,
    )
    expect(refused([{ name: 'a b', run: () => {} }])).toMatch(/must be 1 to 64 letters/)
    expect(refused([{ name: 'a' }])).toMatch(/run" of plugins\[0\] is missing/)
    expect(refused([{ name: 'a', run: () => {}, attempts: 0 }])).toMatch(/attempts/)
    const one = { name: 'a', run: () => {} }
    expect(refused([one, one])).toMatch(/Two consumers are named "a"/)
  })

  it('B-CONSUME-18: a session that another program put where a lane must be gets no message, and the run settles', async () => {
    const log = keeper('log')
    const store = memory()
    const id = laneId('log', 's', null)
    const plain = new Harness({ model: scripted(() => 'done'), store })
    await plain.open({ id: 'x' })
    const created = (await store.read('x', 0, 1)).events[0] as never
    const card = (await store.card('x')) as never as object
    await store.commit([
      {
        session: id,
        lane: 'owner',
        epoch: 0,
        expectedSeq: 0,
        events: [created],
        card: { ...card, session: id, root: id } as never,
      },
    ])
    const { harness, reports } = stage([log], { store })
    await harness.open({ id: 's' })
    expect((await harness.session('s').run('Hello.')).text).toBe('done')
    expect((await store.read(id, 0, 10)).events.length).toBe(1)
    expect(reports[0]?.[1]).toContain(`Session ${id} stands where the lane of a consumer must be.`)
    await plain.close()
    vi.restoreAllMocks()
  })
})
