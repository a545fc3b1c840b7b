// A call that hooks still look at while a sibling of it is asked about again, because it would act in another place now.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted } from '../../src/index.ts'
import { until } from '../until.ts'

it('B-REVIEW-9: a call that is let go while a sibling is asked about again does not start: it is looked at once more after the answer', async () => {
  let endLook = (_text: string): void => {}
  const looked = new Promise<string>((resolve) => {
    endLook = resolve
  })
  let allow = (): void => {}
  const allowed = new Promise<undefined>((resolve) => {
    allow = () => resolve(undefined)
  })
  const input = z.object({})
  const ran: string[] = []
  let place = 'here'
  let asked = 0
  const publish = defineTool({
    name: 'publish',
    description: 'publish',
    input,
    effect: 'idempotent',
    approval: 'ask',
    place: () => place,
    execute: () => `published ${place}`,
  })
  const put = defineTool({
    name: 'put',
    description: 'put',
    input,
    effect: 'idempotent',
    execute: () => {
      ran.push('put')
      return 'put'
    },
  })
  const look = defineTool({ name: 'look', description: 'look', input, effect: 'read', execute: () => looked })
  // While the first commit of the next worker is on its way, both land: the new question, and after it the word of the hook.
  const store = memory()
  const commit = store.commit.bind(store)
  let release = (): void => {}
  const written = new Promise<void>((resolve) => {
    release = resolve
  })
  store.commit = async (writes) => {
    const starts = writes.some(({ events }) => events.some(({ type }) => type === 'agent.tool_use'))
    if (starts) await written
    return commit(writes)
  }
  const calls = [{ tool: 'publish' }, { tool: 'look' }, { tool: 'put' }]
  const harness = new Harness({
    model: scripted([{ calls }, 'Done.']),
    tools: [publish, look, put],
    store,
    hooks: [
      {
        type: 'before_tool_call',
        tools: ['put'],
        run: () => {
          asked += 1
          return allowed
        },
      },
    ],
  })
  const session = await harness.open()
  const approve = async (): Promise<void> => {
    const { pending } = await session.state()
    await session.decide({ callId: pending[0]?.callId ?? '', digest: pending[0]?.digest ?? '', allow: true, by: 'ada' })
  }
  expect(await session.run('Go.')).toMatchObject({ status: 'requires_action' })
  await approve()
  place = 'elsewhere'
  const waits = session.run()
  const types = async () => (await session.read()).events.map(({ type }) => type)
  await until(() => expect(asked).toBe(1))
  await new Promise((done) => setTimeout(done, 100))
  allow()
  await new Promise((done) => setTimeout(done, 50))
  release()
  await until(async () => expect(await types()).toContain('call.reviewed'))
  await new Promise((done) => setTimeout(done, 50))
  expect(ran).toEqual([])
  endLook('seen')
  expect(await waits).toMatchObject({ status: 'requires_action' })
  expect(ran).toEqual([])
  await approve()
  expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
  expect([ran, asked]).toEqual([['put'], 2])
  await harness.close()
})
