// What was spent, by day, agent and model: each log is counted once, and what is removed is not counted.
import { expect, it } from 'vitest'
import type { OpenedAnswer, UsageAnswer } from '../../src/server/wire.ts'
import { type Served, served } from './served.ts'

const reply = { text: 'Hello.', usage: { inputTokens: 3, outputTokens: 2 }, cost: 500_000 }

async function usageOf(one: Served, token?: string): Promise<UsageAnswer> {
  return one.json<UsageAnswer>('GET', '/v1/usage', token === undefined ? {} : { token })
}

async function runOne(one: Served, body: object, token?: string): Promise<string> {
  const ask = { body: { input: 'Hi.', ...body }, ...(token === undefined ? {} : { token }) }
  const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', ask)
  await one.json('GET', `/v1/sessions/${session}/result?wait=10`)
  return session
}

it('B-USAGE-1: usage counts each reply once, however often it is asked for, and what a session spends later too', async () => {
  const one = await served(() => reply)
  expect(await usageOf(one)).toMatchObject({ rows: [], complete: true, hourUsd: 0 })
  const session = await runOne(one, {})
  for (let i = 0; i < 2; i++)
    expect(await usageOf(one)).toMatchObject({ rows: [{ inputTokens: 3, outputTokens: 2, replies: 1, usd: 0.5 }] })
  await one.json('POST', `/v1/sessions/${session}/messages`, { body: { input: 'And now?' } })
  await one.json('GET', `/v1/sessions/${session}/result?wait=10`)
  await runOne(one, {})
  expect(await usageOf(one)).toMatchObject({ rows: [{ inputTokens: 9, replies: 3, usd: 1.5 }], hourUsd: 1.5 })
  const both = await Promise.all([usageOf(one), usageOf(one)])
  expect(both.map(({ rows }) => rows[0]?.replies)).toEqual([3, 3])
})

it('B-USAGE-2: usage leaves out what was removed, and a token that reaches its own sessions sees their usage alone', async () => {
  const one = await served(() => reply)
  const vera = one.token({ name: 'vera', role: 'operator', reach: 'own' })
  const first = await runOne(one, {})
  await runOne(one, { id: 'vera:s' }, vera)
  expect((await usageOf(one)).rows).toMatchObject([{ replies: 2 }])
  expect(await usageOf(one, vera)).toMatchObject({ rows: [{ replies: 1 }], hourUsd: 0.5 })
  await expect
    .poll(async () => (await one.ask('DELETE', `/v1/sessions/${first}`)).status, { timeout: 10_000 })
    .toBe(200)
  expect(await usageOf(one)).toMatchObject({ rows: [{ replies: 1, usd: 0.5 }], hourUsd: 0.5 })
  await expect.poll(async () => (await one.ask('DELETE', '/v1/sessions/vera:s')).status, { timeout: 10_000 }).toBe(200)
  expect(await usageOf(one)).toMatchObject({ rows: [], hourUsd: 0 })
})

it('B-USAGE-3: usage asked for more days than before looks at sessions again that did not change', async () => {
  const one = await served(() => reply)
  await runOne(one, {})
  for (const days of [1, 30, 1]) {
    const { rows } = await one.json<UsageAnswer>('GET', `/v1/usage?days=${days}`)
    expect(rows).toMatchObject([{ replies: 1 }])
  }
})
