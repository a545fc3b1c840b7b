// What one request showed, from logs written by hand. The report of the next request is tested in test/context.
import { expect, it } from 'vitest'
import { bySource, requestAt, requestsIn } from '../../src/view/request-context.ts'
import { Tale } from '../tracing/tale.ts'

function told(): Tale {
  const tale = new Tale('s')
  const said = tale.say('hello')
  tale.begin([said])
  tale.ask([said])
  const call = { id: 'c', tool: 'search', args: { q: 'x' }, effect: 'read', timeoutMs: 1 } as const
  const reply = tale.reply([call], { usage: { inputTokens: 40, outputTokens: 5 } })
  tale.use(`${reply}.0`, 'found'.repeat(100))
  const note = tale.add({ type: 'note.added', kind: 'limit', text: 'Two requests are left.' })
  tale.ask([7, note])
  const usage = { inputTokens: 200, outputTokens: 5, cachedTokens: 30, cacheWriteTokens: 150 }
  tale.reply([], { usage, cost: 90, missed: { why: 'history', at: 1, tokens: 40, cost: 12 } })
  return tale
}

it('B-VIEW-30: a request is shown as the model saw it: its messages in order with source and size, and the prefix by hash', () => {
  const { events } = told()
  expect(requestsIn(events)).toEqual([4, 9])
  const request = requestAt(events, 9)
  expect(request?.parts.map(({ source, name, seq }) => [source, name, seq])).toEqual([
    ['user', undefined, 2],
    ['assistant', undefined, 5],
    ['result', 'search', 7],
    ['notice', undefined, 8],
  ])
  expect(request?.parts[2]).toMatchObject({ chars: 500, message: { role: 'tool', content: 'found'.repeat(100) } })
  expect(request?.prefix).toMatchObject({ toolset: 'a'.repeat(64), instructions: 'b'.repeat(64) })
  expect(bySource(request?.parts ?? []).find(({ source }) => source === 'result')).toMatchObject({
    count: 1,
    chars: 500,
  })
  expect(requestAt(events, 5)).toBeNull()
  expect(requestAt(events, 999)).toBeNull()
})

it('B-VIEW-31: and what the provider read from its cache, how much of the request before it repeats, and where, why and for how much the cache missed', () => {
  const { events } = told()
  expect(requestAt(events, 4)).toMatchObject({ kept: null, answer: { type: 'reply', inputTokens: 40, missed: null } })
  expect(requestAt(events, 9)).toMatchObject({
    kept: 1,
    answer: {
      type: 'reply',
      inputTokens: 200,
      cachedTokens: 30,
      cacheWriteTokens: 150,
      cost: 90,
      missed: { seq: 10, why: 'history', at: 1, tokens: 40, cost: 12 },
    },
  })
  expect(requestAt(events.slice(0, 9), 9)?.answer).toBeNull()
})

it('B-VIEW-32: after a compaction the parts of a request say what stands for what was cut, and none before it is kept', () => {
  const tale = told()
  tale.add({ type: 'context.compacted', cut: 9, summary: 'They said hello.', before: 200, after: 20 })
  const said = tale.say('go on')
  tale.ask([said])
  const request = requestAt(tale.events, tale.events.length)
  expect(request?.kept).toBe(0)
  expect(request?.parts.map(({ source }) => source)).toEqual(['summary', 'notice', 'assistant', 'user'])
})
