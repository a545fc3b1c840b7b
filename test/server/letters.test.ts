// Dead letters of consumers over HTTP: who sees them, and whose decision counts.
import { expect, it } from 'vitest'
import { deadLetters } from '../../src/queues/dead-letters.ts'
import { findAnswerMismatch } from '../../src/server/wire-answer-check.ts'
import type { LetterDecidedAnswer, LettersAnswer } from '../../src/server/wire.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

const letterStage = async () => {
  let isDeaf = true
  const told: string[] = []
  const run = async ({ session }: { readonly session: string }) => {
    if (isDeaf) throw new Error('The desk is closed.')
    told.push(session)
  }
  const one = await served(() => 'Done.', {
    harness: { plugins: [{ name: 'watch', consumers: [{ name: 'desk', attempts: 1, run }] }] },
  })
  const letters = async () => (await one.json<LettersAnswer>('GET', '/v1/letters')).letters
  const open = async (id: string) => {
    await (await one.host.harness.open({ id })).run('Hello.')
    return until(async () => {
      const found = (await letters()).find(({ session }) => session === id)
      if (found === undefined) throw new Error('it is no dead letter yet')
      return found
    })
  }
  const opens = (): void => {
    isDeaf = false
  }
  return { one, letters, open, opens, told }
}

it('B-CONSUME-28: a viewer sees the dead letters, an operator retries and drops one, and who comes second is told who was first', async () => {
  const { one, letters, open, opens, told } = await letterStage()
  const vera = one.token({ name: 'vera', role: 'viewer' })
  const otto = one.token({ name: 'otto', role: 'operator' })
  const first = await open('a')
  const second = await open('b')
  const seen = await one.json<LettersAnswer>('GET', '/v1/letters', { token: vera })
  expect(findAnswerMismatch('Letters', seen)).toBe(null)
  expect(seen).toMatchObject({
    count: 2,
    letters: [
      { session: 'b', consumer: 'desk', tries: 1, reason: 'The desk is closed.' },
      { session: 'a', consumer: 'desk' },
    ],
  })
  opens()
  const decide = (letter: { readonly lane: string; readonly key: string }, decision: string, token?: string) => {
    const body = { lane: letter.lane, key: letter.key, decision }
    return one.ask('POST', '/v1/letters', { body, ...(token === undefined ? {} : { token }) })
  }
  expect((await decide(first, 'drop', vera)).status).toBe(403)
  const [retried, dropped] = await Promise.all([decide(first, 'retry', otto), decide(second, 'drop', otto)])
  for (const [answer, decision] of [
    [retried, 'retry'],
    [dropped, 'drop'],
  ] as const) {
    expect(answer.status).toBe(202)
    const decided = JSON.parse(answer.text) as LetterDecidedAnswer
    expect(findAnswerMismatch('LetterDecided', decided)).toBe(null)
    expect(decided).toEqual({ decision, by: 'otto' })
  }
  await until(async () => expect(await letters()).toEqual([]))
  await until(() => expect(told).toEqual(['a']))
  expect(one.reports).toEqual([])
})

it('B-CONSUME-28: two decisions at once are one, and both are told which', async () => {
  const { one, letters, open } = await letterStage()
  const { lane, key } = await open('a')
  const people = ['ann', 'bob'].map((name) => one.token({ name, role: 'operator' }))
  const answers = await Promise.all(
    (['retry', 'drop'] as const).map((decision, i) =>
      one.ask('POST', '/v1/letters', { body: { lane, key, decision }, token: people[i] ?? '' }),
    ),
  )
  const said = answers.map(({ status, text }) => (status === 202 ? (JSON.parse(text) as LetterDecidedAnswer) : status))
  // One that looked when the first was read already is refused.
  const decided = said.filter((each) => typeof each === 'object')
  expect(decided.length).toBeGreaterThan(0)
  for (const each of decided) expect(each).toEqual(decided[0])
  for (const each of said) if (typeof each === 'number') expect(each).toBe(400)
  await until(async () => expect((await deadLetters(one.host.harness)).every(({ deaths }) => deaths === 2)).toBe(true))
  expect((await letters()).length).toBeLessThan(2)
})

it('B-CONSUME-28: a token of its own sessions sees none, and no other session is taken for a lane', async () => {
  const { one, open } = await letterStage()
  const { lane, key } = await open('a')
  const own = one.token({ name: 'eva', role: 'operator', reach: 'own' })
  const body = { lane, key, decision: 'drop' }
  expect((await one.ask('GET', '/v1/letters', { token: own })).status).toBe(403)
  expect((await one.ask('POST', '/v1/letters', { token: own, body })).status).toBe(403)
  for (const [wrong, status] of [
    [{ ...body, lane: 'a' }, 404],
    [{ ...body, lane: 'none' }, 404],
    [{ ...body, key: 'none' }, 400],
    [{ ...body, decision: 'burn' }, 400],
    [{ lane }, 400],
  ] as const)
    expect([wrong, (await one.ask('POST', '/v1/letters', { body: wrong })).status]).toEqual([wrong, status])
  expect(await one.host.harness.session('a').messages()).toHaveLength(2)
})
