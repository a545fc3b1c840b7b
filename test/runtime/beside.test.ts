// A call that hooks still look at while a sibling of it is asked about again, because it would act in another place now.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted } from '../../src/index.ts'
import { until } from '../until.ts'

class Gate<T> {
  open: (value: T) => void = () => {}
  readonly passed = new Promise<T>((resolve) => {
    this.open = resolve
  })
}

const seen = { ran: [] as string[], asked: 0, place: 'here' }
const looked = new Gate<string>()
const allowed = new Gate<undefined>()
const written = new Gate<undefined>()
const input = z.object({})

const publish = defineTool({
  name: 'publish',
  description: 'publish',
  input,
  effect: 'idempotent',
  approval: 'ask',
  place: () => seen.place,
  execute: () => 'published',
})
const look = defineTool({ name: 'look', description: 'look', input, effect: 'read', execute: () => looked.passed })
const put = defineTool({
  name: 'put',
  description: 'put',
  input,
  effect: 'idempotent',
  execute: () => {
    seen.ran.push('put')
    return 'put'
  },
})

/** Its commits wait as soon as a call starts: meanwhile both land, the new question, and after it the word of the hook. */
function slowStore() {
  const store = memory()
  const commit = store.commit.bind(store)
  store.commit = async (writes) => {
    if (writes.some(({ events }) => events.some(({ type }) => type === 'agent.tool_use'))) await written.passed
    return commit(writes)
  }
  return store
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

it('B-REVIEW-9: a call that is let go while a sibling is asked about again does not start: it is looked at once more after the answer', async () => {
  const ask = (): Promise<undefined> => {
    seen.asked += 1
    return allowed.passed
  }
  const harness = new Harness({
    model: scripted([{ calls: [{ tool: 'publish' }, { tool: 'look' }, { tool: 'put' }] }, 'Done.']),
    tools: [publish, look, put],
    store: slowStore(),
    hooks: [{ type: 'before_tool_call', tools: ['put'], run: ask }],
  })
  const session = await harness.open()
  const approve = async (): Promise<void> => {
    const [pending] = (await session.status()).pending
    await session.decide({ callId: pending?.callId ?? '', allow: true, by: 'ada' })
  }
  expect(await session.run('Go.')).toMatchObject({ status: 'requires_action' })
  await approve()
  seen.place = 'elsewhere'
  const waits = session.run()
  await until(() => expect(seen.asked).toBe(1))
  await pause(100)
  allowed.open(undefined)
  await pause(50)
  written.open(undefined)
  await until(async () => expect((await session.events()).events.map(({ type }) => type)).toContain('call.reviewed'))
  await pause(50)
  looked.open('seen')
  expect(await waits).toMatchObject({ status: 'requires_action' })
  expect(seen.ran).toEqual([])
  await approve()
  expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
  expect(seen).toMatchObject({ ran: ['put'], asked: 2 })
  await harness.close()
})
