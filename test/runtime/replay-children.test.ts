// Rerun of sessions that had children: each session of the tree follows its own log. Rerun in general is replay.test.ts.
import { describe, expect, it } from 'vitest'
import { type Event, memory, type CompleteStore } from '../../src/index.ts'
import { callKey } from '../../src/kernel/event.ts'
import { readChildren, readLog, recordingOf, type RerunOptions } from '../../src/replay.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { ask, childrenOf, family, type FamilyOptions, report, resultsIn, tool, use } from './children-stage.ts'
import { until } from '../until.ts'

const SAME = { sameTypes: true, sameCalls: true, sameResults: true, divergence: null }

type Again = RerunOptions & {
  readonly harness?: FamilyOptions
  readonly id?: string
  readonly events?: readonly Event[]
}

/** Once more, in a store of its own. */
async function again(
  store: CompleteStore,
  session: string,
  { harness: options = {}, id, events, ...rest }: Again = {},
) {
  const children = rest.children ?? (await readChildren(store, session))
  const recording = recordingOf(events ?? (await readLog(store, session)), { ...rest, children })
  const there = memory()
  const { harness } = family(recording.model, { ...options, tools: recording.tools, store: there })
  const fresh = await harness.open(id === undefined ? {} : { id })
  const rerun = await recording.run(fresh, there)
  return { rerun, there, id: fresh.id }
}

async function typesOf(store: CompleteStore, session: string): Promise<readonly string[]> {
  return (await readLog(store, session)).map(({ type }) => type)
}

describe('rerun of a session with children', () => {
  it('B-REPLAY-16: a child, and a child of it, happen again by their own logs, whatever they are called', async () => {
    const ran: string[] = []
    const look = tool('look', { execute: () => ran.push('look') })
    const { harness, store } = family(
      { root: [ask('one'), 'end'], one: [use('look'), ask('two'), 'one'], two: ['two'] },
      { tools: [look] },
    )
    const { sessionId } = await harness.run('Go.')
    expect(ran).toHaveLength(1)
    for (const id of ['another', sessionId]) {
      const { rerun, there } = await again(store, sessionId, { tools: [look], id })
      expect(rerun).toMatchObject(SAME)
      const [then, now] = [await childrenOf(store, sessionId), await childrenOf(there, id)]
      expect(now).toHaveLength(2)
      for (const [i, child] of now.entries())
        expect(await typesOf(there, child)).toEqual(await typesOf(store, then[i] ?? ''))
    }
    expect(ran).toHaveLength(1)
  })

  it('B-REPLAY-16: so do several at once, one that failed, and one that was refused', async () => {
    const roles = {
      root: [ask('one', 'two', 'broken', { task: 'x', agent: 'nobody' }), report],
      one: ['first'],
      two: ['second'],
      broken: [{ error: 'bad_request' as const }],
    }
    const { harness, store } = family(roles)
    const { sessionId } = await harness.run('Go.')
    for (let round = 0; round < 5; round++) expect((await again(store, sessionId)).rerun).toMatchObject(SAME)
  })

  it('B-REPLAY-16: so does a child whose place in the log is another one now', async () => {
    const { harness, store } = family({ root: [ask('one'), 'end'], one: ['done'] })
    const { sessionId } = await harness.run('Go.')
    const log = await readLog(store, sessionId)
    const { events, children } = withLoss(log, await readChildren(store, sessionId))
    expect((await again(store, sessionId, { events, children })).rerun).toMatchObject(SAME)
  })

  it('B-REPLAY-16: without the log of a child the recording is refused', async () => {
    const { harness, store } = family({ root: [ask('one'), 'end'], one: [ask('two'), 'one'], two: ['two'] })
    const { sessionId } = await harness.run('Go.')
    const events = await readLog(store, sessionId)
    expect(() => recordingOf(events)).toThrow('its log is missing')
    const [[id, log] = ['', []]] = [...(await readChildren(store, sessionId))]
    expect(() => recordingOf(events, { children: new Map([[id, log]]) })).toThrow('its log is missing')
    expect(() => recordingOf(log, { children: new Map() })).toThrow('its log is missing')
  })

  it('B-REPLAY-16: a child alone is a session like any other', async () => {
    const { harness, store } = family({ root: [ask('one'), 'end'], one: [ask('two'), 'one'], two: ['two'] })
    const { sessionId } = await harness.run('Go.')
    const [child = ''] = await childrenOf(store, sessionId)
    expect((await again(store, child)).rerun).toMatchObject(SAME)
  })
})

describe('people and children', () => {
  const pay = () => tool('pay', { approval: 'ask', effect: 'once' })

  it('B-REPLAY-17: what was decided in a child is decided there again, between what was said above it', async () => {
    const roles = { root: [ask('one'), 'end', 'Later.'], one: [use('pay'), 'paid'] }
    const { harness, store } = family(roles, { tools: [pay()] })
    const { sessionId, pending } = await harness.run('Go.')
    const session = harness.session(sessionId)
    const { callId = '', sessionId: child = '' } = pending[0] ?? {}
    await session.decide({ callId, sessionId: child, allow: true, by: 'ann' })
    await session.run()
    await session.run('And later?')
    const { rerun, there, id } = await again(store, sessionId, { tools: [pay()] })
    expect(rerun).toMatchObject(SAME)
    const [now = ''] = await childrenOf(there, id)
    expect(await typesOf(there, now)).toEqual(await typesOf(store, child))
  })

  it('B-REPLAY-17: a question of a child is answered again by its parent, under the name it has now', async () => {
    const answer = (r: Parameters<typeof resultsIn>[0]) =>
      ask({ task: 'red', session: /"session": "([^"]+)"/.exec(resultsIn(r).at(-1)?.content ?? '')?.[1] ?? '' })
    const roles = {
      root: [ask('paint'), 'Which?', answer, 'end'],
      paint: [use('ask_user', { question: 'Which?' }), 'painted'],
    }
    const { harness, store } = family(roles, { tools: [askUserTool()] })
    const { sessionId } = await harness.run('Go.')
    expect((await harness.session(sessionId).run('Red.')).text).toBe('end')
    expect((await again(store, sessionId, { tools: [askUserTool()] })).rerun).toMatchObject(SAME)
  })

  it('B-REPLAY-17: what was interrupted while a child worked is interrupted again', async () => {
    const { harness, store } = family({ root: [ask('one'), 'end'], one: [{ stall: true }] })
    const session = await harness.open()
    for await (const event of session.stream('Go.'))
      if (event.session !== session.id && event.type === 'model.started') break
    const [child = ''] = await childrenOf(store, session.id)
    await until(async () => expect(await typesOf(store, child)).toContain('run.settled'))
    const { rerun } = await again(store, session.id)
    expect(rerun).toMatchObject(SAME)
    expect(rerun.events.find(({ type }) => type === 'run.settled')).toMatchObject({ outcome: { type: 'interrupted' } })
  })
})

describe('live tools and children', () => {
  it('B-REPLAY-18: those of the children run again', async () => {
    const look = (says: string) => tool('look', { execute: () => says })
    const said = (r: Parameters<typeof resultsIn>[0]) => resultsIn(r).at(-1)?.content ?? ''
    const { harness, store } = family(
      { root: [ask('one'), 'end'], one: [use('look'), said] },
      { tools: [look('then')] },
    )
    const { sessionId } = await harness.run('Go.')
    expect((await again(store, sessionId, { tools: [look('then')], results: 'live' })).rerun).toMatchObject(SAME)
    const { there, id } = await again(store, sessionId, { tools: [look('now')], results: 'live' })
    expect((await again(store, sessionId, { tools: [look('now')], results: 'recorded' })).rerun).toMatchObject(SAME)
    const [child = ''] = await childrenOf(there, id)
    const contents = (await readLog(there, child)).flatMap((e) => (e.type === 'agent.tool_result' ? [e.content] : []))
    expect(contents).toEqual(['now'])
  })
})

/** The same, as if the worker had been lost during its first request: all that follows stands two places later. */
function withLoss(events: readonly Event[], children: ReadonlyMap<string, readonly Event[]>) {
  const asked = events.findIndex(({ type }) => type === 'model.started')
  const { seq = 0 } = events.find(({ type }) => type === 'agent.message') ?? {}
  const [from, to] = [callKey(seq, 0), callKey(seq + 2, 0)]
  const moving = (text: string) => text.replaceAll(`"${from}"`, `"${to}"`).replaceAll(`~${from}`, `~${to}`)
  const later = (value: unknown) => JSON.parse(moving(JSON.stringify(value))) as never
  const started = events[asked]
  if (!started) throw new Error('nobody asked')
  const lost = { ...started, type: 'model.failed', class: 'lost', message: 'lost', retryable: true } as Event
  const moved = events.slice(asked + 1).map((event) => later(shifted(event)) as Event)
  const all = [...events.slice(0, asked + 1), lost, { ...started, shows: [] } as Event, ...moved]
  const below = [...children].map(([id, log]) => [moving(id), later(log) as readonly Event[]] as const)
  return { events: all.map((event, i) => ({ ...event, seq: i + 1 })), children: new Map(below) }
}

/** What refers to a place after the loss. */
function shifted(event: Event): Event {
  if (event.type === 'model.started') return { ...event, shows: event.shows.map((seq) => seq + 2) }
  return event.type === 'agent.tool_result' && event.from !== undefined ? { ...event, from: event.from + 2 } : event
}
