// Forks: a new session that goes on from an event of another, without a copy and without a trace in it.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, Harness, memory, type Script, scripted, type CompleteStore } from '../../src/index.ts'
import { callKey } from '../../src/kernel/event.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { readTranscript } from '../../src/view/session-history.ts'
import { redecide } from '../../src/archive/replay-decide.ts'
import { refoldSession } from '../../src/archive/replay-refold.ts'
import { readLog } from '../../src/view/session-log.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { openFile } from '../../sim/forge-file.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

/** Answers with the texts of the users it was shown. */
function echo(store: CompleteStore = memory()): Harness {
  const model = scripted((request) =>
    request.messages
      .flatMap((m) => (m.role === 'user' ? m.parts.flatMap((p) => (p.type === 'text' ? [p.text] : [])) : []))
      .join(' | '),
  )
  const harness = new Harness({ model, store })
  open.push(harness)
  return harness
}

describe('a fork', () => {
  it('B-FORK-1: reads the log it came from up to its event, and goes on apart from it', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    const at = (await first.events()).events.at(-1)?.seq ?? 0
    await first.run('two')
    const fork = await first.fork({ at })
    expect((await fork.run('three')).text).toBe('one | three')
    expect((await first.run('four')).text).toBe('one | two | four')
    expect((await fork.events()).events[0]).toMatchObject({
      type: 'session.created',
      fork: { session: first.id, seq: at },
    })
  })

  it('B-FORK-2: without an event it goes on from the end, and a fork can be forked', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    const second = await first.fork({ id: 'second' })
    await second.run('two')
    const third = await second.fork()
    expect((await third.run('three')).text).toBe('one | two | three')
    expect((await harness.session('second').run('four')).text).toBe('one | two | four')
  })

  it('B-FORK-3: a fork at an event that is not there is refused, and one at the beginning knows nothing', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    for (const at of [99, 0]) await expect(first.fork({ at })).rejects.toMatchObject({ code: 'invalid_input' })
    const early = await first.fork({ at: 1 })
    expect((await early.run('fresh')).text).toBe('fresh')
  })

  it('B-FORK-4: however long the chain is, the last fork knows what was said in the first, and its export brings all of them', async () => {
    const store = memory()
    const harness = echo(store)
    let last = await harness.open()
    await last.run('the code is 42')
    for (let i = 0; i < 80; i++) last = await last.fork()
    expect((await last.run('and now?')).text).toBe('the code is 42 | and now?')
    const there = memory()
    const { parents } = openFile(await exportSession(store, last.id))
    expect(parents).toHaveLength(80)
    await importSession(there, await exportSession(store, last.id))
    expect((await echo(there).session(last.id).run('and there?')).text).toBe('the code is 42 | and now? | and there?')
  })

  it('B-FORK-4: a chain that leads back to itself is damage, and no reader follows it for ever', async () => {
    const store = memory()
    const harness = echo(store)
    const first = await harness.open({ id: 'first' })
    const second = await first.fork({ id: 'second' })
    // The log as it reads after an edit of the store's file: the two sessions are forks of each other.
    const ring: CompleteStore = Object.assign(Object.create(store) as CompleteStore, {
      read: async (session: string, after: number, limit?: number) => {
        const page = await store.read(session, after, limit)
        const turned = (event: Event) =>
          event.type === 'session.created' ? { ...event, fork: { session: 'second', seq: 1 } } : event
        return session === 'first' ? { ...page, events: page.events.map(turned) } : page
      },
    })
    await expect(readTranscript(ring, { id: second.id, upTo: 1 })).rejects.toMatchObject({ code: 'session_damaged' })
    const ringed = { code: 'invalid_input', message: expect.stringContaining('forked from itself') as string }
    await expect(exportSession(ring, second.id)).rejects.toMatchObject(ringed)
  })
})

describe('a fork of a session with open calls', () => {
  const done: string[] = []
  const act = (name: string, more: { approval?: 'ask'; effect?: 'read' | 'once' } = {}) =>
    defineTool({
      name,
      description: name,
      input: z.object({}),
      ...more,
      execute: (_args, { session }) => {
        done.push(`${name} in ${session}`)
        return `${name} done`
      },
    })
  const tools = [act('pay', { approval: 'ask' }), act('look', { effect: 'read' }), askUserTool()]
  const both: Script = [{ text: 'Both.', calls: [{ tool: 'pay' }, { tool: 'look' }] }, 'First.', 'Second.']

  function harnessOf(script: Script, store: CompleteStore, drives = true): Harness {
    const harness = new Harness({ model: scripted(script), store, tools, secrets: {}, worker: { drives } })
    open.push(harness)
    return harness
  }

  it('B-FORK-5: asks about each of them again, whatever was decided there, and leaves that session as it is', async () => {
    done.length = 0
    const store = memory()
    const first = await harnessOf(both, store).open({ id: 'first' })
    const [pending] = (await first.run('Go.')).pending
    const yes = { callId: pending?.callId ?? '', allow: true, by: 'ann', digest: pending?.digest ?? '' }
    await harnessOf([], store, false).session('first').decide(yes)
    // Approved there, and not run yet.
    const at = (await readLog(store, 'first')).findLast(({ type }) => type === 'user.tool_confirmation')?.seq ?? 0
    const fork = await harnessOf(['In the fork.'], store).session('first').fork({ id: 'second', at })
    const { seq = 0 } = (await readLog(store, 'second')).find(({ type }) => type === 'agent.message') ?? {}
    await expect(fork.decide({ ...yes, callId: callKey(seq, 0) })).rejects.toMatchObject({ code: 'decision_stale' })
    const asked = await fork.run()
    expect(asked.pending.map(({ tool, sessionId, votes }) => [tool, sessionId, votes])).toEqual([
      ['pay', 'second', []],
      ['look', 'second', []],
    ])
    expect(done.filter((each) => each.endsWith('second'))).toEqual([])
    const [pay, look] = asked.pending.map(({ callId, digest = '' }) => ({ callId, digest, by: 'ann' }))
    if (pay) await fork.decide({ ...pay, allow: false })
    if (look) await fork.decide({ ...look, allow: true })
    const ended = await fork.run()
    expect(ended).toMatchObject({ status: 'completed', calls: [{ status: 'denied' }, { status: 'ok' }] })
    const shown = await fork.messages()
    expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant'])
    expect((await first.run()).status).toBe('completed')
    expect(done.toSorted()).toEqual(['look in first', 'look in second', 'pay in first'])
    for (const id of ['first', 'second']) {
      expect((await refoldSession(store, id)).difference).toBeNull()
      expect(redecide(await readLog(store, id))).toEqual([])
    }
    expect(openFile(await exportSession(store, 'second')).parents.map(({ session }) => session)).toEqual(['first'])
  })

  it('B-FORK-5: takes along what is done there, does not do again what ran there, and keeps a question that a person has', async () => {
    const store = memory()
    const calls = [{ tool: 'look' }, { tool: 'ask_user', args: { question: 'Which?' } }, { tool: 'slow' }]
    let go = (): void => {}
    const slow = defineTool({
      name: 'slow',
      description: 'slow',
      input: z.object({}),
      execute: () => new Promise<string>((resolve) => (go = () => resolve('slow done'))),
    })
    const harness = new Harness({
      model: scripted([{ calls }, 'Over.', 'Over here.']),
      store,
      tools: [...tools, slow],
      secrets: {},
    })
    open.push(harness)
    const first = await harness.open({ id: 'first' })
    const running = first.run('Go.')
    while (!(await readLog(store, 'first')).some(({ type }) => type === 'agent.tool_result'))
      await new Promise(setImmediate)
    const fork = await first.fork({ id: 'second' })
    const asked = await fork.run()
    expect(asked.calls.map(({ tool, status }) => [tool, status])).toEqual([
      ['look', 'ok'],
      ['ask_user', null],
      ['slow', 'unknown'],
    ])
    expect(asked.pending).toMatchObject([{ tool: 'ask_user', needs: 'answer' }])
    await fork.answer({ callId: asked.pending[0]?.callId ?? '', content: 'This one.' })
    expect((await fork.run()).status).toBe('completed')
    const [callId = ''] = (await store.card('first'))?.waits ?? []
    await first.answer({ callId, content: 'That one.' })
    // Only now, or the first session would rest in between and wait for the answer alone.
    go()
    expect((await running).status).toBe('completed')
  })
})
