// What-ifs over HTTP: who may ask, what may run, and what is refused.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import type { Model, Request } from '../../src/index.ts'
import { openApi } from '../../src/server/open-api.ts'
import type { OpenedAnswer, ResultAnswer, WhatIfAnswer, WireError } from '../../src/server/wire.ts'
import { until } from '../until.ts'
import { talking, type Talk, turnOf, wholeText, world } from '../whatif/stage.ts'
import { PEOPLE, served } from './served.ts'

const TALK: Talk = (request) => {
  const careful = request.instructions.includes('careful')
  if (turnOf(request) === 0) return { calls: [{ tool: 'look', args: { what: careful ? 'twice' : 'once' } }] }
  if (turnOf(request) === 1) return { calls: [{ tool: 'pay', args: { to: 'ann', amount: 3 } }] }
  return careful ? 'Done with care.' : 'Done.'
}

async function stage(more: { readonly model?: Model } = {}) {
  const ran: string[] = []
  const asked: Request[] = []
  const { look, pay } = world(ran)
  const model = more.model ?? talking(TALK, asked)
  const one = await served([], { harness: { model, tools: [look, pay], instructions: 'Pay.' } as object })
  const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
  await one.json<ResultAnswer>('GET', `/v1/sessions/${session}/result?wait=20`)
  return { one, session, ran, asked, path: `/v1/sessions/${session}/what-if` }
}

const sayOf = ({ text }: { readonly text: string }): string => (JSON.parse(text) as WireError).error.message

describe('POST /v1/sessions/:id/what-if', () => {
  it('B-WHATIF-21: lives a session again in memory: without a model the recording answers, with one that is asked', async () => {
    const { one, session, ran, asked, path } = await stage()
    const before = await wholeText(one.host.store, session)
    const [requests, calls] = [asked.length, ran.length]
    const same = await one.json<WhatIfAnswer>('POST', path, { body: { at: 2 } })
    expect(same).toMatchObject({ drift: 0, from: 2, changed: [], text: 'Done.', settled: { type: 'completed' } })
    expect(asked).toHaveLength(requests)
    const body = { at: 2, model: 'talking', instructions: 'Be careful.', tools: { look: 'recorded_or_live' } }
    const other = await one.json<WhatIfAnswer>('POST', path, { body })
    expect(other).toMatchObject({ drift: 0, text: 'Done with care.', settled: { type: 'completed' } })
    expect(other.events[0]?.seq).toBe(3)
    expect(ran.slice(calls)).toEqual(['look twice'])
    expect(await wholeText(one.host.store, session)).toBe(before)
    const { components } = openApi('1', '/') as { readonly components: object }
    const check = new Ajv2020({ strict: false }).compile({ $ref: '#/components/schemas/WhatIf', components })
    expect([check(other), check.errors]).toEqual([true, null])
  })

  it('B-WHATIF-21: no role can make a tool run that changes something, and only operators of the session may ask', async () => {
    const { one, session, ran, path } = await stage()
    const calls = ran.length
    const refused: readonly [object, number, string][] = [
      [{ at: 2, effects: true }, 400, 'effects'],
      [{ at: 2, tools: { pay: 'live' } }, 400, 'is of the class once'],
      [{ at: 999 }, 400, 'there is no event 999'],
      [{ at: 2, model: 'nobody' }, 400, 'no model "nobody"'],
      [{ at: 2, tools: { nothing: 'live' } }, 400, 'There is no tool "nothing"'],
      [{}, 400, 'at'],
    ]
    for (const [body, status, why] of refused) {
      const answer = await one.ask('POST', path, { body })
      expect([body, answer.status]).toEqual([body, status])
      expect(sayOf(answer)).toContain(why)
    }
    for (const person of PEOPLE) {
      const { status } = await one.ask('POST', path, { token: one.token(person), body: { at: 2 } })
      const isOperator = person.role === 'operator' || person.role === 'admin'
      expect([person.name, [200, 404].includes(status)]).toEqual([person.name, isOperator])
    }
    expect((await one.ask('POST', `/v1/sessions/${session}x/what-if`, { body: { at: 2 } })).status).toBe(404)
    expect(ran).toHaveLength(calls)
  })

  it('B-WHATIF-21: two at once are lived by one server, and one whose caller has left is ended', async () => {
    let holds = false
    const stopped: string[] = []
    const inner = talking(TALK)
    const model: Model = {
      name: 'talking',
      call: async (request, context) => {
        if (holds) {
          await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }))
          stopped.push(request.session)
        }
        return inner.call(request, context)
      },
    }
    const { one, path } = await stage({ model })
    holds = true
    const ask = (signal?: AbortSignal) =>
      fetch(`http://127.0.0.1:${one.server.port}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${one.tokens.own}`, 'content-type': 'application/json' },
        body: JSON.stringify({ at: 2, model: 'talking' }),
        ...(signal ? { signal } : {}),
      })
    const leaving = [new AbortController(), new AbortController()]
    const both = leaving.map(({ signal }) => ask(signal).catch(() => null))
    await until(async () => expect((await ask(AbortSignal.timeout(5_000))).status).toBe(429))
    for (const each of leaving) each.abort()
    await Promise.all(both)
    await until(() => expect(stopped.length).toBeGreaterThanOrEqual(2))
    holds = false
    await until(async () => expect((await ask()).status).toBe(200))
  })
})
