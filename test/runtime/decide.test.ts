// What can be decided, and until when: an interrupt withdraws questions, voters are named, and a denial has one status whatever its
// source. How a decision is made and bound to its action is approval.test.ts.
import { describe, expect, it } from 'vitest'
import { Harness, type Policy, type Request, type CompleteStore } from '../../src/index.ts'
import { pendingInTree } from '../../src/sessions/look/pending.ts'
import { ask, childrenOf, endsOf, eventsOf, family, ofType, report, STORAGES, tool, use } from './children-stage.ts'

const asking = tool('publish', { effect: 'once', approval: 'ask' })

/** A harness that records input and drives nothing, as a command beside a worker does. */
function beside(store: CompleteStore): Harness {
  return new Harness({
    model: { name: 'none', call: () => Promise.reject(new Error('not asked')) },
    store,
    worker: { drives: false },
  })
}

describe.each(STORAGES)('an interrupt of a session that waits, on %s', (storage) => {
  it('B-DECIDE-1: takes what it asks out of pending at once, also where nothing drives it, and a late yes is refused with a sentence', async () => {
    const { harness, store } = family({ root: [use('publish'), 'never'] }, { storage, tools: [asking] })
    const parked = await harness.run('Go.')
    const [pending] = parked.pending
    await harness.close()
    const other = beside(store)
    const session = other.session(parked.sessionId)
    await session.interrupt()
    expect(await pendingInTree(store, session.id)).toEqual([])
    await expect(session.decide({ ...pending!, allow: true, by: 'ana' })).rejects.toMatchObject({
      code: 'decision_stale',
      message: expect.stringContaining('interrupted') as string,
    })
    await other.close()
    expect(ofType(await eventsOf(store, parked.sessionId), 'user.tool_confirmation')).toEqual([])
  })

  it('B-DECIDE-1: takes what its children ask out of pending too, before they were told', async () => {
    const { harness, store } = family(
      { root: [ask('dig'), 'never'], dig: [use('publish'), 'never'] },
      { storage, tools: [asking] },
    )
    const parked = await harness.run('Go.')
    const [pending] = parked.pending
    await harness.close()
    const other = beside(store)
    await other.session(parked.sessionId).interrupt()
    expect(await pendingInTree(store, parked.sessionId)).toEqual([])
    for (const id of [parked.sessionId, pending!.sessionId])
      await expect(other.session(id).decide({ ...pending!, allow: true, by: 'ana' })).rejects.toMatchObject({
        code: 'decision_stale',
      })
    await other.close()
  })

  it('B-DECIDE-2: withdraws a question for money, and a late raise is refused', async () => {
    const { harness } = family({ root: ['never'] }, { storage, budget: { sessionUsd: 0 } })
    const broke = await harness.run('Go.')
    expect(broke.pending).toMatchObject([{ callId: 'budget' }])
    const session = harness.session(broke.sessionId)
    await session.interrupt()
    expect((await session.run()).pending).toEqual([])
    await expect(session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })).rejects.toMatchObject({
      code: 'decision_stale',
    })
  })

  it('B-DECIDE-2: a child that waits for money and is interrupted is an error for its parent, which goes on', async () => {
    const roles = { root: [{ ...ask('dig'), cost: 1 }, report], dig: [{ ...use('look'), cost: 60_000 }, 'never'] }
    const budget = { sessionUsd: 0.13 }
    const { harness, store } = family(roles, { storage, tools: [tool('look')], budget })
    const parked = await harness.run('Go.')
    const [child = ''] = await childrenOf(store, parked.sessionId)
    expect(parked.pending).toMatchObject([{ callId: 'budget', sessionId: child }])
    await harness.session(child).interrupt()
    const done = await harness.session(parked.sessionId).run()
    expect(done.status).toBe('completed')
    expect(done.text).toContain('interrupted')
    expect(await endsOf(store, child)).toEqual(['limit'])
  })
})

describe.each(STORAGES)('a call that needs two people, on %s', (storage) => {
  const policy: Policy = { rules: [{ effect: 'ask', tool: 'publish', class: 'release', n: 2 }] }

  it('B-DECIDE-3: names every voter in what is pending and in the result, and counts as decided only then', async () => {
    const { harness } = family(
      { root: [use('publish'), 'done'] },
      { storage, tools: [tool('publish')], approvals: { policy } },
    )
    const { sessionId, pending } = await harness.run('Go.')
    const session = harness.session(sessionId)
    await session.decide({ ...pending[0]!, allow: true, by: 'ann', why: 'tested' })
    const half = await session.run()
    expect(half.pending).toMatchObject([{ votes: ['ann'] }])
    expect(half.calls[0]).not.toHaveProperty('approved')
    await session.decide({ ...pending[0]!, allow: true, by: 'bob' })
    const [done] = (await session.run()).calls
    expect(done).toMatchObject({ status: 'ok', approved: { allow: true, by: 'bob', voters: ['ann', 'bob'] } })
  })

  it('B-DECIDE-3: names the one who refused after another allowed it', async () => {
    const { harness } = family(
      { root: [use('publish'), 'done'] },
      { storage, tools: [tool('publish')], approvals: { policy } },
    )
    const { sessionId, pending } = await harness.run('Go.')
    const session = harness.session(sessionId)
    await session.decide({ ...pending[0]!, allow: true, by: 'ann' })
    await session.decide({ ...pending[0]!, allow: false, by: 'bob', why: 'not today' })
    const [call] = (await session.run()).calls
    const approved = { allow: false, by: 'bob', why: 'not today', voters: ['ann', 'bob'] }
    expect(call).toMatchObject({ status: 'denied', approved })
  })
})

describe('a call that is not allowed', () => {
  const publish = tool('publish', { effect: 'once' })
  const no: Policy = { rules: [{ effect: 'deny', tool: 'publish' }] }
  const whose = {
    'a rule': { tools: [publish], approvals: { policy: no } },
    'a hook': { tools: [publish], hooks: [{ type: 'before_tool_call', run: () => ({ cancel: 'no' }) } as const] },
    'a person': { tools: [asking] },
  }

  it.each(Object.entries(whose))('B-DECIDE-4: is denied, whatever said no: %s', async (_, options) => {
    let read: readonly unknown[] = []
    const look = (request: Request) => {
      read = request.messages.flatMap((message) => (message.role === 'tool' ? [message.status] : []))
      return 'done'
    }
    const { harness, store } = family({ root: [use('publish'), look] }, options)
    const first = await harness.run('Go.')
    const session = harness.session(first.sessionId)
    for (const pending of first.pending) await session.decide({ ...pending, allow: false, by: 'ana' })
    const { calls } = await session.run()
    expect(calls).toMatchObject([{ status: 'denied', failure: { kind: 'Denied' } }])
    expect(ofType(await eventsOf(store, first.sessionId), 'agent.tool_result')).toMatchObject([{ status: 'denied' }])
    expect(read).toEqual(['denied'])
  })
})

describe('a yes for the run, and a child that is asked about', () => {
  it.each([
    ['a no', false, 1],
    ['a yes', true, 1],
    ['a no two levels down', false, 2],
  ] as const)('B-APPROVE-18: %s to the child decides whether the yes still counts', async (_, allow, depth) => {
    const child = depth === 1 ? [use('publish'), 'dug'] : [ask('hole'), 'dug']
    const scripts = {
      root: [use('publish'), ask('dig'), use('publish'), 'done'],
      dig: child,
      hole: [use('publish'), 'deep'],
    }
    const { harness } = family(scripts, { tools: [asking] })
    const first = await harness.run('Go.')
    const session = harness.session(first.sessionId)
    const wide = { allow: true, by: 'ana', scope: 'run', remember: { effect: 'allow' } } as const
    await session.decide({ ...first.pending[0]!, ...wide })
    const second = await session.run()
    expect(second.pending).toMatchObject([{ path: { length: depth + 1 } }])
    await session.decide({ ...second.pending[0]!, allow, by: 'ana' })
    const third = await session.run()
    expect(third.pending).toMatchObject([{ sessionId: session.id, tool: 'publish' }])
    expect('covered' in third.pending[0]!).toBe(allow)
    await harness.close()
  })

  it('B-APPROVE-18: a no to the child ends the yes also where the child was out of money before it could answer', async () => {
    const cost = 1_000
    const scripts = {
      root: [
        { ...use('publish'), cost },
        { ...ask('dig'), cost },
        { ...use('publish'), cost },
      ],
      dig: [
        { ...use('publish'), cost: 60_000 },
        { text: 'dug', cost },
      ],
    }
    const { harness } = family(scripts, { tools: [asking], budget: { treeUsd: 0.13 } })
    const first = await harness.run('Go.')
    const session = harness.session(first.sessionId)
    const wide = { allow: true, by: 'ana', scope: 'run', remember: { effect: 'allow' } } as const
    await session.decide({ ...first.pending[0]!, ...wide })
    await session.decide({ ...(await session.run()).pending[0]!, allow: false, by: 'ana' })
    expect((await session.run()).pending).toMatchObject([{ callId: 'budget' }])
    await session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })
    const { pending } = await session.run()
    expect(pending).toMatchObject([{ sessionId: session.id, tool: 'publish' }])
    expect('covered' in pending[0]!).toBe(false)
    await harness.close()
  })
})
