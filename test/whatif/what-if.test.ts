// What-ifs: a recorded session lived again from one of its events on. Over every event of a long log: every.long.test.ts.
import { describe, expect, it } from 'vitest'
import { awaitPursuit, type CompleteStore, defineTool, Harness, memory, type Request } from '../../src/index.ts'
import { archiveOf, exportSession, readLog, whatIf } from '../../src/replay.ts'
import { z } from 'zod'
import { recorded, saidIn, talking, type Talk, turnOf, wholeText, world } from './stage.ts'

const TALK: Talk = (request) => {
  if (turnOf(request) === 0) return { calls: [{ tool: 'look', args: { what: 'invoice' } }] }
  if (turnOf(request) === 1) return { calls: [{ tool: 'pay', args: { to: 'ann', amount: 3 } }] }
  return 'Done.'
}

describe('a what-if in which nothing changes', () => {
  it('B-WHATIF-1: makes the same requests, byte for byte, from every event on, and writes nothing to the recording', async () => {
    const ran: string[] = []
    const then: Request[] = []
    const { look, pay } = world(ran)
    const agent = { model: talking(TALK, then), tools: [look, pay], instructions: 'Pay what is due.' }
    const { store, session } = await recorded(agent, 'Pay the invoice.')
    const before = await wholeText(store, session)
    const log = await readLog(store, session)
    for (let at = 1; at <= log.length; at++) {
      const now: Request[] = []
      const tried = await whatIf(
        { store, session },
        { at, agent: { ...agent, model: talking(TALK, now), secrets: {} } },
      )
      expect({ at, drift: tried.drift, settled: tried.settled }).toEqual({
        at,
        drift: 0,
        settled: { type: 'completed' },
      })
      expect(now).toEqual(then.slice(then.length - now.length))
      expect(tried.diff.first).toBe(null)
      const events = await readLog(tried.store, tried.session)
      expect(events.map(({ type }) => type)).toEqual(log.map(({ type }) => type))
    }
    expect(ran).toEqual(['look invoice', 'pay ann'])
    expect(await wholeText(store, session)).toBe(before)
  })
})

/** The seq of the first event of this type, or of the nth. */
async function seqOf(store: CompleteStore, session: string, type: string, n = 1): Promise<number> {
  return (await readLog(store, session)).filter((event) => event.type === type)[n - 1]?.seq ?? 0
}

describe('tools of a what-if', () => {
  /** It looks once more if its instructions say so. */
  const CAREFUL: Talk = (request) => {
    if (!request.instructions.includes('careful')) return TALK(request)
    if (turnOf(request) === 0) return { calls: [{ tool: 'look', args: { what: 'invoice' } }] }
    if (turnOf(request) === 1) return { calls: [{ tool: 'look', args: { what: 'bank' } }] }
    if (turnOf(request) === 2) return { calls: [{ tool: 'pay', args: { amount: 3, to: 'ann' } }] }
    return 'Done with care.'
  }

  async function payment(ran: string[]) {
    const { look, pay } = world(ran)
    const agent = { model: talking(CAREFUL), tools: [look, pay], instructions: 'Pay.', secrets: {} }
    const { store, session } = await recorded(agent, 'Pay the invoice.')
    return { store, session, agent, careful: { ...agent, instructions: 'Be careful.' } }
  }

  it('B-WHATIF-3: what the recording does not have is an error result, counted, and nothing runs', async () => {
    const ran: string[] = []
    const { store, session, careful } = await payment(ran)
    ran.length = 0
    const at = await seqOf(store, session, 'user.message')
    const tried = await whatIf({ store, session }, { at, agent: careful })
    expect(ran).toEqual([])
    expect(tried).toMatchObject({ drift: 1, changed: [], text: 'Done with care.', settled: { type: 'completed' } })
    expect(tried.missing).toMatchObject([{ tool: 'look', args: { what: 'bank' } }])
    const results = (await readLog(tried.store, tried.session)).filter((event) => event.type === 'agent.tool_result')
    expect(results.map(({ status }) => status)).toEqual(['ok', 'error', 'ok'])
    expect(tried.diff.pairs[tried.diff.first ?? -1]?.differs).toContain('alone')
  })

  it('B-WHATIF-3: a read runs where the recording has no result, if the caller says so', async () => {
    const ran: string[] = []
    const { store, session, careful } = await payment(ran)
    ran.length = 0
    const at = await seqOf(store, session, 'user.message')
    const tried = await whatIf({ store, session }, { at, agent: careful, tools: { look: 'recorded_or_live' } })
    expect(ran).toEqual(['look bank'])
    expect(tried.drift).toBe(0)
  })

  it('B-WHATIF-3: the nth call with the same arguments gets the nth result, and a further one none', async () => {
    const ran: string[] = []
    const { look } = world(ran)
    const twice: Talk = (request) => {
      const more = request.instructions.includes('thrice') ? 3 : 2
      const looked = request.messages.filter(({ role }) => role === 'tool').length
      return looked < more ? { calls: [{ tool: 'look', args: { what: 'same' } }] } : 'Done.'
    }
    const agent = { model: talking(twice), tools: [look], secrets: {} }
    const { store, session } = await recorded(agent, 'Look.')
    const changed = { ...agent, instructions: 'Look thrice.' }
    const tried = await whatIf({ store, session }, { at: 2, agent: changed })
    const results = (await readLog(tried.store, tried.session)).filter((event) => event.type === 'agent.tool_result')
    expect(results.map(({ content }) => content)).toEqual([
      'same number 1',
      'same number 2',
      'The recording has no result for this call, so nothing ran.',
    ])
    expect(ran).toHaveLength(2)
  })

  it('B-WHATIF-4: a function stands in for a tool, from the event on', async () => {
    const ran: string[] = []
    const { store, session, agent } = await payment(ran)
    ran.length = 0
    const declined = async () => {
      throw new Error('declined')
    }
    const at = await seqOf(store, session, 'agent.message', 2)
    const tried = await whatIf({ store, session }, { at, agent, tools: { pay: declined } })
    const [result] = (await readLog(tried.store, session))
      .filter((event) => event.type === 'agent.tool_result')
      .slice(1)
    expect(result).toMatchObject({ status: 'error', content: 'Error: declined' })
    expect(ran).toEqual([])
    expect(tried.drift).toBe(0)
    expect(tried.toCase('declined')).toEqual({
      id: 'declined',
      input: 'Pay the invoice.',
      expected: 'Done.',
      recording: session,
    })
  })

  it('B-WHATIF-5: only a tool of the class read goes live, unless the caller allows effects', async () => {
    const ran: string[] = []
    const { store, session, agent } = await payment(ran)
    ran.length = 0
    const at = await seqOf(store, session, 'user.message')
    for (const mode of ['live', 'recorded_or_live'] as const)
      await expect(whatIf({ store, session }, { at, agent, tools: { pay: mode } })).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('"pay" is of the class once') as string,
      })
    expect(ran).toEqual([])
    await whatIf({ store, session }, { at, agent, tools: { pay: 'live', look: 'live' }, effects: true })
    expect(ran).toEqual(['look invoice', 'pay ann'])
  })

  it('B-WHATIF-25: a tool of a source, which is known only when the source answers, goes live by the same rule', async () => {
    const ran: string[] = []
    const { pay } = world(ran)
    const shop = { ...pay, name: 'shop__pay' }
    const source = { type: 'source', name: 'shop', tools: async () => [shop], close: async () => {} } as const
    const amounts = [3, 4]
    const model = talking((request) =>
      turnOf(request) === 0
        ? { calls: [{ tool: 'shop__pay', args: { to: 'ann', amount: amounts.shift() } }] }
        : 'Done.',
    )
    const agent = { model, tools: [source] }
    const { store, session } = await recorded(agent, 'Pay the invoice.')
    ran.length = 0
    const at = await seqOf(store, session, 'user.message')
    for (const mode of ['live', 'recorded_or_live'] as const) {
      amounts.push(5, 6)
      const tried = await whatIf({ store, session }, { at, agent, tools: { shop__pay: mode } })
      expect(ran).toEqual([])
      const results = (await readLog(tried.store, session)).filter((event) => event.type === 'agent.tool_result')
      expect(results.at(-1)).toMatchObject({ status: 'error' })
    }
    await whatIf({ store, session }, { at, agent, tools: { shop__pay: 'recorded_or_live' }, effects: true })
    expect(ran).toEqual(['pay ann'])
  })

  it('B-WHATIF-6: strict ends at the first answer that the recording does not have', async () => {
    const { store, session, careful } = await payment([])
    const at = await seqOf(store, session, 'user.message')
    const tried = await whatIf({ store, session }, { at, agent: careful, strict: true })
    expect(tried).toMatchObject({ drift: 1, settled: { type: 'interrupted' } })
  })

  it('B-WHATIF-7: without a model the recording answers the same requests, and no others', async () => {
    const { store, session, agent } = await payment([])
    const { model: _model, ...recorded } = agent
    const at = await seqOf(store, session, 'agent.message', 2)
    expect(await whatIf({ store, session }, { at, agent: recorded })).toMatchObject({
      drift: 0,
      text: 'Done.',
      cost: 0,
    })
    const other = await whatIf({ store, session }, { at, agent: recorded, tools: { pay: () => 'not today' } })
    expect(other).toMatchObject({ drift: 1, settled: { type: 'failed', reason: 'provider_error' } })
    expect(other.missing).toEqual([{ session }])
  })

  it('B-WHATIF-8: another message is said in place of what people said', async () => {
    const { store, session, agent } = await payment([])
    const tried = await whatIf({ store, session }, { at: 1, agent, message: 'Pay the other invoice.' })
    const messages = (await readLog(tried.store, session)).filter(({ type }) => type === 'user.message')
    expect(messages).toMatchObject([{ parts: [{ type: 'text', text: 'Pay the other invoice.' }] }])
    const log = await readLog(store, session)
    const after = await whatIf({ store, session }, { at: log.length, agent, message: 'And now?' })
    expect(after).toMatchObject({ text: 'Done.', settled: { type: 'completed' } })
  })
})

describe('decisions of a what-if', () => {
  const asked = (ran: string[]) =>
    defineTool({
      name: 'pay',
      description: 'Pays somebody.',
      input: z.object({ to: z.string(), amount: z.number() }),
      approval: 'ask',
      execute: ({ to }) => {
        ran.push(to)
        return `paid ${to}`
      },
    })
  const PAYS: Talk = (request) => {
    const amount = request.instructions.includes('double') ? 6 : 3
    return turnOf(request) === 0 ? { calls: [{ tool: 'pay', args: { to: 'ann', amount } }] } : 'Done.'
  }

  async function decided(allow: boolean) {
    const ran: string[] = []
    const agent = { model: talking(PAYS), tools: [asked(ran)], instructions: 'Pay.', secrets: {} }
    const store = memory()
    const harness = new Harness({ ...agent, store })
    const session = await harness.open()
    const { pending } = await session.run('Go.')
    for (const call of pending) await session.decide({ ...call, allow, by: 'ann' })
    await session.run()
    await harness.close()
    return { store, session: session.id, agent, ran }
  }

  it('B-WHATIF-9: a recorded decision counts for a call with the same digest', async () => {
    for (const allow of [true, false]) {
      const { store, session, agent } = await decided(allow)
      const tried = await whatIf({ store, session }, { at: 2, agent })
      expect(tried).toMatchObject({ drift: 0, parked: [], settled: { type: 'completed' } })
      expect(tried.diff.first).toBe(null)
    }
  })

  it('B-WHATIF-9: a call with other arguments parks, and the result says so', async () => {
    const { store, session, agent, ran } = await decided(true)
    const tried = await whatIf({ store, session }, { at: 2, agent: { ...agent, instructions: 'Pay double.' } })
    expect(tried.settled).toBe(null)
    expect(tried.parked).toMatchObject([
      {
        session,
        tool: 'pay',
        args: { to: 'ann', amount: 6 },
        why: expect.stringContaining('other arguments') as string,
      },
    ])
    expect(ran).toEqual(['ann'])
  })
})

describe('a what-if of a session that pursued an outcome', () => {
  const GRADES: Talk = (request) => {
    if (!request.instructions.startsWith('You grade a result')) return `Round ${saidIn(request).length} is done.`
    const met = saidIn(request).join().includes('Round 2 is done') ? 'yes' : 'no'
    const criteria = [{ criterion: 'two rounds', met, why: 'counted' }]
    return { calls: [{ tool: 'final_result', args: { criteria, summary: '' } }] }
  }

  it('B-WHATIF-24: begins the next rounds as they began, grades none again, and does not begin at a grader', async () => {
    const then: Request[] = []
    const agent = { model: talking(GRADES, then), secrets: {} }
    const store = memory()
    const harness = new Harness({ ...agent, store })
    const session = await harness.open()
    await session.pursue({ description: 'Work.', rubric: '- two rounds' })
    const { end, history } = await awaitPursuit(session)
    await harness.close()
    expect([end, history.length]).toEqual(['satisfied', 2])
    for (const model of [talking(GRADES), undefined]) {
      const asked = then.length
      const given = model ? { ...agent, model } : { secrets: {} }
      const tried = await whatIf({ store, session: session.id }, { at: 2, agent: given, runs: 'all' })
      expect([tried.drift, tried.diff.first, tried.text]).toEqual([0, null, 'Round 2 is done.'])
      expect(await tried.store.list({ limit: 9 })).toHaveLength(1)
      expect(then).toHaveLength(asked)
    }
    const grader = history[0]?.session ?? ''
    await expect(whatIf({ store, session: grader }, { at: 2, agent })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('Ask what if of the session that it grades.') as string,
    })
  })
})

describe('a what-if that is aborted', () => {
  it('B-WHATIF-23: asks no model if it was before it began, and begins no other run if it was in one', async () => {
    const then: Request[] = []
    const { look, pay } = world()
    const agent = { model: talking(TALK, then), tools: [look, pay], instructions: 'Pay what is due.', secrets: {} }
    const { store, session } = await recorded(agent, ['Pay the invoice.', 'And the next one.'])
    const asked = then.length
    const early = await whatIf({ store, session }, { at: 2, agent, runs: 'all', signal: AbortSignal.abort() })
    expect([early.settled, early.text, then.length - asked]).toEqual([null, '', 0])
    const stop = new AbortController()
    const model = talking((request) => {
      if (turnOf(request) === 2) stop.abort()
      return TALK(request)
    })
    const tried = await whatIf(
      { store, session },
      { at: 2, agent: { ...agent, model }, runs: 'all', signal: stop.signal },
    )
    const runs = (await readLog(tried.store, session)).filter(({ type }) => type === 'run.started')
    expect(runs).toHaveLength(1)
  })
})

describe('bad input of a what-if', () => {
  async function two() {
    const { look } = world()
    const talk: Talk = (request) => {
      if (request.messages.some(({ role }) => role === 'assistant')) return 'Done.'
      const task = JSON.stringify(request.messages)
      return task.includes('small') ? 'small' : { calls: [{ tool: 'subagent', args: { task: 'small' } }] }
    }
    const agent = { model: talking(talk), tools: [look], subagents: true as const, secrets: {} }
    return { agent, ...(await recorded(agent, 'Go.')) }
  }

  it('B-WHATIF-10: is refused with one sentence that says what to do', async () => {
    const { store, session, agent } = await two()
    const [child = ''] = (await store.list({ root: session, limit: 9 })).flatMap((card) =>
      card.session === session ? [] : [card.session],
    )
    const log = { store, session }
    const { subagents: _subagents, ...alone } = agent
    const file = await exportSession(store, session)
    const archive = (await archiveOf(store, session)).records
    const changed = JSON.parse(JSON.stringify(archive).replace('small', 'other')) as typeof archive
    const newer = JSON.parse(JSON.stringify(archive).replace('"version":1', '"version":2')) as typeof archive
    const cases: readonly [Promise<unknown>, RegExp][] = [
      [whatIf(log, { at: 999, agent }), /has the events 1 to \d+: there is no event 999/],
      [whatIf(log, { at: 0, agent }), /"at"/],
      [whatIf(log, { at: 1, agent, signal: {} as AbortSignal }), /^invalid_config: .*"signal"/],
      [whatIf({ store } as never, { at: 1, agent }), /^invalid_config: .*"session" of the log of whatIf is missing/],
      [whatIf({ store: {}, session } as never, { at: 1, agent }), /^invalid_config: .*"store" of the log of whatIf/],
      [whatIf({ store, session: 'nobody' }, { at: 1, agent }), /There is no session nobody/],
      [whatIf({ store, session: child }, { at: 1, agent }), /is a child.* Ask what if of session/],
      [whatIf(file, { at: 3, agent }), /its log is missing. Give the whole tree/],
      [whatIf(changed, { at: 3, agent }), /checksum does not match/],
      [whatIf(newer, { at: 3, agent }), /a newer version of Terret wrote it/],
      [whatIf(log, { at: 3, agent, tools: { lok: () => '' } }), /There is no tool "lok": the agent has: .*look/],
      [whatIf(log, { at: 3, agent, tools: { look: 'dead' as 'live' } }), /"look"/],
      [whatIf(log, { at: 3, agent, tools: { subagent: 'live' } }), /starts children/],
      [whatIf(log, { at: 11, agent: alone }), /belongs to agent/],
    ]
    for (const [tried, why] of cases) {
      const error = await tried.then(
        () => 'it was accepted',
        (thrown: Error & { readonly code?: string }) => `${thrown.code}: ${thrown.message}`,
      )
      expect(error).toMatch(why)
    }
    expect(await whatIf(archive, { at: 3, agent })).toMatchObject({ drift: 0, settled: { type: 'completed' } })
  })
})
