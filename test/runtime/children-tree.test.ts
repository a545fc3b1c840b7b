// A whole tree of sessions seen from its root: approvals, interrupts, restarts and the stream.
import { describe, expect, it } from 'vitest'
import type { Harness, Request, Result, CompleteStore, StreamEvent } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { makeFile, open } from '../stores/folder.ts'
import {
  ask,
  childrenOf,
  endsOf,
  eventsOf,
  family,
  gate,
  heard,
  type Line,
  ofType,
  report,
  resultsIn,
  type Roles,
  say,
  STORAGES,
  storeOf,
  toldTo,
  tool,
  use,
} from './children-stage.ts'
import { until } from '../until.ts'

/** Every result of a session, in order. */
const all: Line = (r) =>
  resultsIn(r)
    .map(({ content }) => content)
    .join(', ')
/** A child and a grandchild want to publish; a sibling does not. */
const PUBLISHERS: Roles = {
  root: [ask('one', 'quiet'), all],
  one: [{ calls: [...ask('two').calls, ...use('publish').calls] }, all],
  two: [use('publish'), all],
  quiet: ['nothing'],
}

function publishing(): { readonly ran: string[]; readonly tools: readonly ReturnType<typeof tool>[] } {
  const ran: string[] = []
  const publish = tool('publish', {
    approval: 'ask',
    effect: 'once',
    execute: (_args, { session }) => `published ${ran.push(session)}`,
  })
  return { ran, tools: [publish] }
}

/** Says yes to all that is asked, at the root, until nothing is. */
async function approveAll(harness: Harness, parked: Result): Promise<Result> {
  const session = harness.session(parked.sessionId)
  let result = parked
  while (result.pending.length > 0) {
    for (const pending of result.pending) await session.decide({ ...pending, allow: true, by: 'ana' })
    result = await session.run()
  }
  return result
}

describe.each(STORAGES)('approvals below a root, on %s', (storage) => {
  it('B-CHILD-35: what a child or a grandchild asks stands on the result of the root, with session and path, and is decided there', async () => {
    const { ran, tools } = publishing()
    const { harness, store } = family(PUBLISHERS, { storage, tools })
    const parked = await harness.run('Go.')
    const { sessionId: root } = parked
    const [one = '', quiet = ''] = (await childrenOf(store, root)).filter((id) => id.split('~').length === 2)
    expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
    // The batch waits for its own question first: only then is the grandchild made.
    expect(parked.pending).toMatchObject([{ tool: 'publish', needs: 'approval', sessionId: one, path: [root, one] }])
    const [first] = parked.pending
    expect(ran).toEqual([])
    await harness.session(root).decide({ ...first!, allow: true, by: 'ana' })
    const again = await harness.session(root).run()
    const two = (await childrenOf(store, root)).find((id) => id.startsWith(`${one}~`)) ?? ''
    expect(again.pending).toMatchObject([{ sessionId: two, path: [root, one, two] }])
    expect(ran).toEqual([one])
    const done = await approveAll(harness, again)
    expect(done).toMatchObject({ status: 'completed', text: 'published 2, published 1, nothing' })
    expect(ran).toEqual([one, two])
    for (const id of [root, one, two, quiet]) expect(await endsOf(store, id)).toEqual(['completed'])
  })

  it('B-CHILD-36: a refusal of a grandchild is read by the grandchild, and the tree finishes', async () => {
    const { ran, tools } = publishing()
    const { harness } = family({ ...PUBLISHERS, one: [ask('two'), report] }, { storage, tools })
    const parked = await harness.run('Go.')
    const [pending] = parked.pending
    const session = harness.session(parked.sessionId)
    await session.decide({ ...pending!, allow: false, by: 'ana', why: 'not today' })
    const done = await session.run()
    expect(done.status).toBe('completed')
    expect(done.text).toContain('not today')
    expect(ran).toEqual([])
  })

  it('B-CHILD-37: a decision for a session that is no child of this one, or only has such a name, is refused', async () => {
    const { tools } = publishing()
    const { harness } = family(PUBLISHERS, { storage, tools })
    const parked = await harness.run('Go.')
    const [pending] = parked.pending
    const session = harness.session(parked.sessionId)
    const foreign = await harness.open()
    const child = pending?.sessionId ?? ''
    const wrong = [foreign.id, 'nowhere', `${parked.sessionId}~99.0`]
    for (const sessionId of wrong)
      await expect(session.decide({ ...pending!, sessionId, allow: true, by: 'eve' })).rejects.toMatchObject({
        code: 'invalid_input',
      })
    await expect(foreign.decide({ ...pending!, allow: true, by: 'eve' })).rejects.toMatchObject({
      code: 'invalid_input',
    })
    await expect(
      session.answer({ callId: pending!.callId, content: 'x', sessionId: foreign.id }),
    ).rejects.toMatchObject({
      code: 'invalid_input',
    })
    // A session whose id only looks like a child's is not a child.
    const posing = await harness.open({ id: `${parked.sessionId}~posing` })
    await expect(session.decide({ ...pending!, sessionId: posing.id, allow: true, by: 'eve' })).rejects.toMatchObject({
      code: 'invalid_input',
    })
    await expect(session.decide({ ...pending!, digest: 'other', allow: true, by: 'eve' })).rejects.toMatchObject({
      code: 'decision_stale',
    })
    expect((await session.run()).pending).toMatchObject([{ sessionId: child }])
  })

  it('B-CHILD-38: another harness on the same store decides and drives all of it to its end', async () => {
    const { ran, tools } = publishing()
    const file = makeFile()
    const before = storage === 'sqlite' ? open(file) : storeOf(storage)
    const first = family(PUBLISHERS, { store: before, tools })
    const parked = await first.harness.run('Go.')
    await first.harness.close()
    if (storage === 'sqlite') await before.close()
    const second = family(PUBLISHERS, { store: storage === 'sqlite' ? open(file) : before, tools })
    const done = await approveAll(second.harness, await second.harness.session(parked.sessionId).run())
    expect(done).toMatchObject({ status: 'completed', text: 'published 2, published 1, nothing' })
    expect(ran).toHaveLength(2)
  })
})

/** A tool that says when it runs, and when it was told to stop. */
function waiting(): {
  readonly runs: ReturnType<typeof gate>
  readonly stopped: string[]
  readonly tools: readonly ReturnType<typeof tool>[]
} {
  const runs = gate()
  const stopped: string[] = []
  const wait = tool('wait', {
    execute: (_args, { signal, session }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(stopped.push(session)))
        runs.open()
      }),
  })
  return { runs, stopped, tools: [wait] }
}

const DEEP: Roles = { root: [ask('one'), report], one: [ask('two'), report], two: [use('wait'), 'done'] }

describe.each(STORAGES)('a tree that is stopped, on %s', (storage) => {
  it('B-CHILD-39: interrupting a session interrupts its children and theirs, and what they run is aborted (TRAP-28)', async () => {
    const { runs, stopped, tools } = waiting()
    const { harness, store } = family(DEEP, { storage, tools })
    const session = await harness.open()
    const running = session.run('Go.')
    await runs.opened
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    const below = await childrenOf(store, session.id)
    await until(async () => {
      for (const id of [session.id, ...below]) expect(await endsOf(store, id)).toEqual(['interrupted'])
    })
    expect(stopped).toEqual(below.slice(-1))
    // What they still say is kept, and is no second result.
    await until(async () => expect(await toldTo(store, session.id)).toMatchObject([{ ok: false }]))
    expect(ofType(await eventsOf(store, session.id), 'agent.tool_result')).toMatchObject([{ status: 'aborted' }])
  })

  it('B-CHILD-40: a harness that is closed gives all sessions back, and another goes on where they were', async () => {
    const { runs, tools } = waiting()
    const store = storeOf(storage)
    const first = family(DEEP, { store, tools })
    const session = await first.harness.open()
    const running = session.run('Go.')
    await runs.opened
    await first.harness.close()
    expect((await running).status).not.toBe('completed')
    const second = family(DEEP, { store, tools: [tool('wait')] })
    expect(await second.harness.session(session.id).run()).toMatchObject({ status: 'completed', text: 'done' })
    const below = await childrenOf(store, session.id)
    expect(below).toHaveLength(2)
    for (const id of [session.id, ...below]) expect(await endsOf(store, id)).toEqual(['completed'])
    expect(await toldTo(store, session.id)).toHaveLength(1)
  })
})

describe('a tree that waits', () => {
  it('B-CHILD-41: while a child waits for its provider the root sleeps until then, and no person is asked for anything', async () => {
    const roles: Roles = { root: [ask('dig'), report], dig: [{ error: 'rate_limit', retryAfterMs: 60_000 }] }
    const { harness, store } = family(roles, { worker: { lingerMs: 0 } })
    const result = await harness.run('Go.', { patienceMs: 30_000 })
    const [child = ''] = await childrenOf(store, result.sessionId)
    const { due, outage } = (await store.card(child)) ?? {}
    expect(result).toMatchObject({ status: 'sleeping', pending: [], until: due })
    expect(outage?.reason).toContain(result.status === 'sleeping' ? result.reason : '?')
  })

  it('B-PATIENCE-11: a caller leaves when its patience is over, also if it is the provider of a child that does not answer, and says why', async () => {
    const roles: Roles = { root: [ask('dig'), report], dig: Array(20).fill({ error: 'server', message: 'down' }) }
    const { harness, store } = family(roles)
    const result = await harness.run('Go.', { patienceMs: 1_500 })
    expect(result).toMatchObject({ status: 'sleeping', reason: expect.stringContaining('down') as unknown })
    const [child = ''] = await childrenOf(store, result.sessionId)
    expect((await store.card(child))?.outage?.tries).toBeGreaterThan(1)
    expect((await store.card(result.sessionId))?.outcome).toBeNull()
  })

  it('B-CHILD-42: while a child is paused the root says so, and goes on when it is resumed', async () => {
    const { runs, tools } = waiting()
    let paused = (): void => {}
    const rest = tool('rest', {
      execute: () =>
        new Promise<string>((resolve) => {
          paused = () => resolve('rested')
          runs.open()
        }),
    })
    const { harness, store } = family(
      { root: [ask('dig'), report], dig: [use('rest'), 'dug'] },
      { tools: [...tools, rest] },
    )
    const session = await harness.open()
    const running = session.run('Go.')
    await runs.opened
    const [child = ''] = await childrenOf(store, session.id)
    await harness.session(child).interrupt('pause')
    paused()
    expect(await running).toMatchObject({ status: 'requires_action', stopReason: 'paused', flags: { paused: true } })
    await harness.session(child).send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'dug' })
  })

  it('B-CHILD-43: a strict hook that fails beside concurrent children ends the run and them, and nothing hangs (AC-59)', async () => {
    const begun = [gate(), gate()]
    const stall =
      (i: number): Line =>
      () =>
        say({ stall: true }, begun[i]?.open())
    const roles: Roles = {
      root: [{ calls: [...ask('a', 'b').calls, ...use('look').calls] }],
      a: [stall(0)],
      b: [stall(1)],
    }
    const look = tool('look', { execute: () => Promise.all(begun.map(({ opened }) => opened)).then(() => 'seen') })
    const { harness, store } = family(roles, {
      tools: [look],
      hooks: [{ type: 'after_tool_call', strict: true, run: () => Promise.reject(new Error('no more')) }],
    })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'hook_error' })
    const below = await childrenOf(store, result.sessionId)
    expect(below).toHaveLength(2)
    await until(async () => {
      for (const id of below) expect(await endsOf(store, id)).toEqual(['interrupted'])
    })
  })

  it('B-CHILD-44: strict hooks that fail in concurrent children are error results for their parent (AC-59)', async () => {
    const helper = { description: 'helps' }
    const calls = [1, 2, 3].map((n) => ({ task: `${n}`, agent: 'helper' }))
    const { harness } = family(
      {
        root: [
          ask(...calls),
          (r) =>
            resultsIn(r)
              .map(({ ok }) => ok)
              .join(),
        ],
        1: [use('look')],
        2: [use('look')],
        3: [use('look')],
      },
      {
        tools: [tool('look')],
        subagents: { helper },
        hooks: [
          { type: 'before_tool_call', strict: true, agents: ['helper'], run: () => Promise.reject(new Error('no')) },
        ],
      },
    )
    expect(await harness.run('Go.')).toMatchObject({ status: 'completed', text: 'false,false,false' })
  })
})

type Seen = Extract<StreamEvent, { readonly source: unknown }>

function of(events: readonly StreamEvent[], session: string): readonly Seen[] {
  return events.filter((event) => event.session === session)
}

async function logOf(store: CompleteStore, session: string): Promise<readonly string[]> {
  return (await eventsOf(store, session)).map(({ type }) => type)
}

describe('the stream of a tree', () => {
  const roles: Roles = {
    root: [ask('one'), 'end'],
    one: [ask('two'), { deltas: ['o', 'ne'] }],
    two: [{ deltas: ['t', 'wo'] }],
  }

  it('B-CHILD-45: events of children name their agent, run, and the session, run and call they work for, in one sequence from 1 (AC-54)', async () => {
    const helper = { description: 'helps' }
    const { harness, store } = family(
      { ...roles, root: [ask({ task: 'one', agent: 'helper' }), 'end'] },
      { subagents: { helper } },
    )
    const stream = harness.stream('Go.')
    const events = await heard(stream)
    const { sessionId: root } = await stream.result
    const [one = '', two = ''] = await childrenOf(store, root)
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
    expect(of(events, one).map(({ type }) => type)).toEqual(await logOf(store, one))
    expect(of(events, two).map(({ type }) => type)).toEqual(await logOf(store, two))
    const run = async (id: string) => ofType(await eventsOf(store, id), 'run.started')[0]?.seq
    const call = async (id: string) => ofType(await eventsOf(store, id), 'agent.custom_tool_use')[0]?.call
    expect(of(events, root).at(-1)?.source).toEqual({ agent: 'default', run: await run(root), parent: null })
    expect(of(events, root)[0]?.source).toEqual({ agent: 'default', run: null, parent: null })
    expect(of(events, one).at(-1)?.source).toEqual({
      agent: 'helper',
      run: await run(one),
      parent: { session: root, run: await run(root), call: await call(root) },
    })
    expect(of(events, two).at(-1)?.source).toEqual({
      agent: 'helper',
      run: await run(two),
      parent: { session: one, run: await run(one), call: await call(one) },
    })
  })

  it('B-CHILD-46: subagents: false leaves their events out; deltas brings what they say too (AC-54)', async () => {
    const { harness, store } = family(roles)
    const hidden = await heard(harness.stream('Go.', { subagents: false, deltas: true }))
    expect(new Set(hidden.map(({ session }) => session)).size).toBe(1)
    const stream = harness.stream('Go.', { deltas: true })
    const events = await heard(stream)
    const [one = '', two = ''] = await childrenOf(store, (await stream.result).sessionId)
    const said = (id: string) =>
      of(events, id)
        .flatMap((event) => (event.type === 'delta' ? [event.text] : []))
        .join('')
    expect([said(one), said(two)]).toEqual(['one', 'two'])
    expect(of(events, two).find(({ type }) => type === 'delta')?.source.parent?.session).toBe(one)
  })

  it('B-CHILD-47: leaving the stream that started a run interrupts the whole tree (AC-52)', async () => {
    const { runs, tools } = waiting()
    const { harness, store } = family(DEEP, { tools })
    const stream = harness.stream('Go.')
    for await (const event of stream) if (event.type === 'agent.tool_use') break
    await runs.opened
    const { sessionId, status } = await stream.result
    expect(status).toBe('interrupted')
    await until(async () => {
      for (const id of await childrenOf(store, sessionId)) expect(await endsOf(store, id)).toEqual(['interrupted'])
    })
  })

  it('B-CHILD-48: a child that goes on with an answer is in the stream from the answer on, under the call that gave it', async () => {
    const answer = (r: Request) =>
      ask({ task: 'red', session: /"session": "([^"]+)"/.exec(resultsIn(r).at(-1)?.content ?? '')?.[1] ?? '' })
    const { harness, store } = family(
      { root: [ask('paint'), 'Which?', answer, 'end'], paint: [use('ask_user', { question: 'Which?' }), 'painted'] },
      { tools: [askUserTool()] },
    )
    const { sessionId: root } = await harness.run('Go.')
    const events = await heard(harness.session(root).stream('Red.'))
    const [child = ''] = await childrenOf(store, root)
    const uses = ofType(await eventsOf(store, root), 'agent.custom_tool_use')
    const log = await logOf(store, child)
    expect(of(events, child).map(({ type }) => type)).toEqual(log.slice(log.indexOf('user.custom_tool_result')))
    for (const { source } of of(events, child))
      expect(source).toMatchObject({ agent: 'subagent', parent: { session: root, call: uses[1]?.call } })
  })

  it('B-CHILD-53: a reader that comes between a reply and the hand-over of its call sees the child', async () => {
    const policy = { rules: [{ tool: 'subagent', effect: 'ask' }] } as const
    const { harness, store } = family({ root: [ask('one'), 'end'], one: ['done'] }, { approvals: { policy } })
    const { sessionId: root, pending } = await harness.run('Go.')
    const session = harness.session(root)
    const after = (await eventsOf(store, root)).length
    await session.decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ann' })
    const events = await heard(session.stream(undefined, { after }))
    const [child = ''] = await childrenOf(store, root)
    expect(of(events, root)[0]?.seq).toBe(after + 1)
    expect(of(events, child).map(({ type }) => type)).toEqual(await logOf(store, child))
    // A reader that comes after the hand-over gets it too, until the call has its result.
    const log = await eventsOf(store, root)
    const handed = ofType(log, 'agent.custom_tool_use')[0]?.seq ?? 0
    const late = of(await heard(session.stream(undefined, { after: handed })), child)
    expect(late.map(({ type }) => type)).toEqual(await logOf(store, child))
    const told = ofType(log, 'agent.tool_result')[0]?.seq ?? 0
    expect(of(await heard(session.stream(undefined, { after: told })), child)).toEqual([])
  })

  it.each([0, 1])(
    'B-STREAM-15: a stream that broke off anywhere goes on from the places of each session, with no gap and no duplicate (%s runs later)',
    async (more) => {
      const lines = {
        root: [ask('one', 'three'), 'end', 'more'],
        one: [ask('two'), 'one'],
        two: [use('look'), 'two'],
        three: ['three'],
      }
      const { harness, store } = family(lines, { tools: [tool('look')] })
      const first = harness.stream('Go.')
      const seen = await heard(first)
      const { sessionId: root } = await first.result
      for (let i = 0; i < more; i++) await harness.session(root).run('And?')
      const all = new Set<string>()
      for (const id of [root, ...(await childrenOf(store, root))])
        for (const { seq } of await eventsOf(store, id)) all.add(`${id} ${seq}`)
      // The first stream began with its message.
      all.delete(`${root} 1`)
      for (let cut = 1; cut <= seen.length; cut++) {
        const had = seen.slice(0, cut)
        const after = Object.fromEntries(had.map(({ session, seq }) => [session, seq]))
        const rest = await heard(harness.session(root).stream(undefined, { after }))
        const read = [...had, ...rest].map(({ session, seq }) => `${session} ${seq}`)
        expect(new Set(read)).toEqual(all)
        expect(read).toHaveLength(all.size)
      }
    },
  )

  it('B-STREAM-15: a stream that goes on while a child works shows what the child does from then on', async () => {
    const { opened, open } = gate()
    const begun = gate()
    const wait = tool('wait', {
      execute: async () => {
        begun.open()
        await opened
        return 'waited'
      },
    })
    const { harness, store } = family({ root: [ask('dig'), 'end'], dig: [use('wait'), 'dug'] }, { tools: [wait] })
    const session = await harness.open()
    const running = session.run('Go.')
    await begun.opened
    const [child = ''] = await childrenOf(store, session.id)
    const after = {
      [session.id]: (await eventsOf(store, session.id)).length,
      [child]: (await eventsOf(store, child)).length,
    }
    const streams = [session.stream(undefined, { after }), session.stream(undefined, { after: after[session.id] ?? 0 })]
    const reading = streams.map((stream) => heard(stream))
    open()
    await running
    const [exact = [], whole = []] = await Promise.all(reading)
    const log = await eventsOf(store, child)
    expect(of(exact, child).map(({ seq }) => seq)).toEqual(log.slice(after[child]).map(({ seq }) => seq))
    expect(of(whole, child).map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq))
    for (const bad of [-1, 1.5, '3', Number.NaN]) {
      const stream = session.stream(undefined, { after: { [child]: bad as number } })
      await expect(stream.result).rejects.toMatchObject({ code: 'invalid_input' })
    }
  })

  it("B-STREAM-10: on a child's own stream each event names the session and call it works for, from wherever it is read", async () => {
    const { harness, store } = family({ root: [ask('one'), 'end'], one: ['done'] })
    const { sessionId: root } = await harness.run('Go.')
    const [child = ''] = await childrenOf(store, root)
    const [handed] = ofType(await eventsOf(store, root), 'agent.custom_tool_use')
    for (const after of [0, 1, 4]) {
      const events = await heard(harness.session(child).stream(undefined, { after }))
      expect(events[0]?.seq).toBe(after + 1)
      for (const { source } of events)
        expect(source).toMatchObject({ agent: 'subagent', parent: { session: root, call: handed?.call, run: null } })
    }
  })
})

describe('many children', () => {
  it('B-CHILD-52: of 50 children as many work at once as calls may, the others follow, and all results come in order (S0-30)', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `task ${i}`)
    let now = 0
    let most = 0
    const full = gate()
    const work: Line = async (r) => {
      most = Math.max(most, ++now)
      if (now === 16) full.open()
      await full.opened
      now -= 1
      return `${r.session} is done`
    }
    const roles: Roles = { root: [ask(...names), all], ...Object.fromEntries(names.map((name) => [name, [work]])) }
    const { harness, store } = family(roles)
    const result = await harness.run('Go.')
    expect(result.status).toBe('completed')
    expect(most).toBe(16)
    const calls = ofType(await eventsOf(store, result.sessionId), 'agent.custom_tool_use').map(({ call }) => call)
    expect(calls).toHaveLength(50)
    expect(result.text).toBe(names.map((_, i) => `${result.sessionId}~5.${i} is done`).join(', '))
  })
})
