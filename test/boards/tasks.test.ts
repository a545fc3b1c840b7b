// Tasks: what works in the background, as rows over cards, and the orders one can give.
import { describe, expect, it } from 'vitest'
import { tasks, tasksIn } from '../../src/boards/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { Harness, memory, type Model, scripted } from '../../src/index.ts'

/** Answers as the message says: at once, late, never, or not at all. */
const model: Model = scripted(({ messages }) => {
  const text = JSON.stringify(messages)
  if (text.includes('hang')) return { stall: true }
  if (text.includes('slow')) return { text: 'slow one', delayMs: 5_000 }
  if (text.includes('fail')) return { error: 'auth', message: 'no key' }
  if (text.includes('ask') && messages.length === 1)
    return { calls: [{ tool: 'ask_user', args: { question: 'Which?' } }] }
  return 'quick one'
})
const made = (store = memory()) => ({ store, harness: new Harness({ model, store, tools: [askUserTool()] }) })

describe('tasks', () => {
  it('B-BOARD-40: a task has the status of its session: running, awaiting, completed, failed and cancelled', async () => {
    const { harness } = made()
    const all = tasks(harness)
    const [done, failed, waits, hangs] = await Promise.all(['go', 'fail', 'ask', 'hang'].map((what) => all.spawn(what)))
    await all.await(done as string)
    await all.await(failed as string)
    expect(await all.await(waits as string)).toMatchObject({ status: 'Awaiting' })
    expect(await all.status(hangs as string)).toBe('Running')
    await all.cancel(hangs as string)
    expect(await all.await(hangs as string)).toMatchObject({ status: 'Cancelled' })
    const rows = await all.list()
    const stands = new Map(rows.map(({ id, status, kind }) => [id, `${kind} ${status}`]))
    expect([done, failed, waits, hangs].map((id) => stands.get(id as string))).toEqual([
      'agent Completed',
      'agent Failed',
      'agent Awaiting',
      'agent Cancelled',
    ])
    expect(await all.list({ parent: waits as string })).toMatchObject([
      { kind: 'external_process', what: 'ask_user', status: 'Awaiting' },
    ])
    await harness.close()
  })

  it('B-BOARD-41: an ended task takes no more orders', async () => {
    const { harness } = made()
    const all = tasks(harness)
    const id = await all.spawn('go')
    await all.await(id)
    await expect(all.cancel(id)).rejects.toMatchObject({ code: 'invalid_input', detail: 'TaskEnded' })
    await expect(all.steer(id, 'More.')).rejects.toMatchObject({ detail: 'TaskEnded' })
    await expect(all.status('nobody')).rejects.toMatchObject({ code: 'session_missing' })
    await harness.close()
  })

  it('B-BOARD-42: a race gives the value of the first that completes and stops the others (E17)', async () => {
    const { harness } = made()
    const all = tasks(harness)
    const ids = await Promise.all(['slow', 'go', 'hang'].map((what) => all.spawn(what)))
    expect(await all.race(ids)).toMatchObject({ id: ids[1], status: 'Completed', value: 'quick one' })
    for (const loser of [ids[0], ids[2]])
      expect(await all.await(loser as string)).toMatchObject({ status: 'Cancelled' })
    expect(await all.race([await all.spawn('fail')])).toBeNull()
    await harness.close()
  })

  it('B-BOARD-43: after a restart a task that was left is pending, and is taken up when it is awaited', async () => {
    const store = memory()
    const before = new Harness({ model, store, worker: { drives: false } })
    const id = await tasks(before).spawn('go')
    expect(await tasks(before).status(id)).toBe('Pending')
    await before.close()
    const { harness } = made(store)
    expect(await tasks(harness).await(id)).toMatchObject({ status: 'Completed', value: 'quick one' })
    expect(
      await tasksIn({ list: async (filter) => (await harness.list(filter)).cards, read: store.read.bind(store) }),
    ).toMatchObject([{ id, status: 'Completed', parent: null }])
    await harness.close()
  })

  it('B-BOARD-45: a cancel that was asked for right before a restart counts when the task is taken up (AC-93)', async () => {
    const { store, harness } = made()
    const id = await tasks(harness).spawn('hang')
    await expect.poll(() => tasks(harness).status(id)).toBe('Running')
    await harness.close()
    const between = new Harness({ model, store, worker: { drives: false } })
    await tasks(between).cancel(id)
    expect(await tasks(between).status(id)).toBe('CancelRequested')
    await between.close()
    const { harness: after } = made(store)
    expect(await tasks(after).await(id)).toMatchObject({ status: 'Cancelled' })
    await expect(tasks(after).steer(id, 'More.')).rejects.toMatchObject({ detail: 'TaskEnded' })
    await after.close()
  })
})
