// What the simulator found in children and hooks, each as the smallest run that shows it again.
import { describe, expect, it } from 'vitest'
import type { Hook } from '../../src/index.ts'
import type { OwnerWrite, Write } from '../../src/ports/store.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import {
  ask,
  childrenOf,
  endsOf,
  eventsOf,
  family,
  gate,
  type Line,
  ofType,
  report,
  resultsIn,
  STORAGES,
  storeOf,
  tool,
  use,
} from './children-stage.ts'
import { observed } from './stage.ts'
import { until } from '../until.ts'

describe.each(STORAGES)('what the simulator found, on %s', (storage) => {
  it('B-SIM-8: a child that is made and let go in one commit is told to stop in it, and asks no model', async () => {
    const ran: string[] = []
    const handed = gate()
    const inner = storeOf(storage)
    let grown = false
    // While the hand-over is on its way the hook of its sibling fails, and the log grows: both are written anew, in one commit.
    const { store } = observed(inner, async (writes) => {
      const [write] = writes
      if (grown || !write?.events.some(({ type }) => type === 'agent.custom_tool_use')) return
      grown = true
      handed.open()
      await new Promise((resolve) => setImmediate(resolve))
      const more = { type: 'user.message', id: 'more', parts: [], when: 'after' } as const
      await inner.commit([{ session: write.session, lane: 'inbox', events: [more] }])
    })
    const strict: Hook = {
      type: 'before_tool_call',
      strict: true,
      tools: ['act'],
      run: async () => {
        await handed.opened
        throw new Error('no')
      },
    }
    const lets: Hook = { type: 'before_subagent_run', run: () => {} }
    const act = tool('act', { effect: 'once', execute: () => void ran.push('act') })
    const both = { calls: [...ask('dig').calls, ...use('act').calls] }
    const { harness } = family(
      { root: [both, 'Done.'], dig: ['Found it.'] },
      { store, hooks: [lets, strict], tools: [act] },
    )
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'hook_error' })
    const [child = ''] = await childrenOf(store, result.sessionId)
    await harness.session(child).run()
    expect(await endsOf(store, child)).toEqual(['interrupted'])
    expect(ofType(await eventsOf(store, child), 'model.started')).toEqual([])
    expect(ran).toEqual([])
  })

  it('B-SIM-9: what a hook lets go does not start in a session that was paused meanwhile; it is asked again when it goes on', async () => {
    const asked: string[] = []
    const ran: string[] = []
    const inner = storeOf(storage)
    let paused = false
    const { store } = observed(inner, async (writes) => {
      const [write] = writes
      if (paused || !write?.events.some(({ type }) => type === 'agent.tool_use')) return
      paused = true
      const pause = { type: 'user.interrupt', id: 'pause', mode: 'pause' } as const
      await inner.commit([{ session: write.session, lane: 'inbox', events: [pause] }])
    })
    const { harness } = family(
      { root: [use('act'), 'Done.'] },
      {
        store,
        hooks: [{ type: 'before_tool_call', run: ({ call }) => void asked.push(call) }],
        tools: [tool('act', { effect: 'once', execute: () => void ran.push('act') })],
      },
    )
    const first = await harness.run('Go.')
    expect([first.flags.paused, ran]).toEqual([true, []])
    const session = harness.session(first.sessionId)
    expect(await session.run('Go on.')).toMatchObject({ status: 'completed', text: 'Done.' })
    expect([asked.length, ran]).toEqual([2, ['act']])
  })

  it('B-SIM-10: what a child owes a call that answered it too late is in the commit that gives the child back', async () => {
    const commits: (readonly Write[])[] = []
    const { store } = observed(storeOf(storage), (writes) => void commits.push(writes))
    const held = gate()
    const answer: Line = (r) => {
      const [, session = ''] = /"session": "([^"]+)"/.exec(resultsIn(r).at(-1)?.content ?? '') ?? []
      return ask({ task: 'red', session })
    }
    const { harness } = family(
      { root: [ask('paint'), answer, report], paint: [use('ask_user', { question: 'Which colour?' }), 'It is green.'] },
      {
        store,
        tools: [askUserTool()],
        hooks: [
          { type: 'before_subagent_run', run: ({ args }) => ('session' in Object(args) ? held.opened : undefined) },
        ],
      },
    )
    const session = await harness.open()
    const running = session.run('Go.')
    await until(async () => expect(ofType(await eventsOf(store, session.id), 'agent.message')).toHaveLength(2))
    const [child = ''] = await childrenOf(store, session.id)
    const [callId = ''] = (await store.card(child))?.waits ?? []
    await harness.session(child).answer({ callId, content: 'green' })
    await harness.session(child).run()
    held.open()
    expect(await running).toMatchObject({ status: 'completed', text: 'It is green.' })
    const [last] = ofType(await eventsOf(store, session.id), 'user.custom_tool_result').slice(-1)
    const told = commits.flat().filter((write): write is OwnerWrite => {
      return write.lane === 'owner' && (write.sends ?? []).some(({ event }) => event.id === last?.id)
    })
    expect(told.map(({ session: by, events, release }) => [by, events.length, release])).toEqual([[child, 0, true]])
  })
})
