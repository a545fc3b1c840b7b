// The transcript and its projection: deterministic, complete, and a prefix of the next one.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestBytes } from '../../sim/bytes.ts'
import { buildRequest } from '../../src/runtime/turn/build-request.ts'
import { Transcript } from '../../src/kernel/transcript.ts'
import { ask, asking, call, type Logbook } from '../kernel/logbook.ts'

const setup = { instructions: 'Be brief.', tools: [] }

function requests(log: Logbook): readonly string[] {
  const transcript = new Transcript()
  return log.events.flatMap((event) => {
    transcript.take(event)
    return event.type === 'model.started' ? [requestBytes(buildRequest('s', setup, transcript, event))] : []
  })
}

describe('the projection', () => {
  it('B-PROJECT-1: the request for turn n+1 starts with the exact bytes of turn n (TRAP-3)', () => {
    const log = asking()
    for (const tool of ['a', 'b', 'c']) {
      const turn = log.reply([call(tool), call(`${tool}2`)])
      log.settle()
      log.say('while it runs')
      log.result(`${turn}.1`)
      log.result(`${turn}.0`)
      log.settle()
    }
    const bytes = requests(log)
    expect(bytes).toHaveLength(4)
    for (let i = 1; i < bytes.length; i++) expect(bytes[i]?.startsWith(bytes[i - 1] ?? 'x')).toBe(true)
  })

  it('B-PROJECT-2: every result has an earlier call with the same id, in model order, also after an interrupt (S1-6, TRAP-2)', () => {
    const log = asking({ parallel: 1 })
    const turn = log.reply([call('a'), call('b'), ask('c')])
    log.settle()
    log.inbox({ type: 'user.interrupt', id: 'i', mode: 'stop' })
    log.settle()
    log.say('again')
    log.begin()
    log.settle()
    const transcript = new Transcript()
    for (const event of log.events) transcript.take(event)
    expect(transcript.messages.map((m) => (m.role === 'tool' ? m.call : m.role))).toEqual([
      'user',
      'assistant',
      `${turn}.0`,
      `${turn}.1`,
      `${turn}.2`,
      'user',
    ])
  })

  it('B-PROJECT-3: a compaction is a view: cut, summary and cleared results, never a result without its call', () => {
    const log = asking()
    const first = log.reply([call('a')])
    log.settle()
    log.result(`${first}.0`, 'old and long')
    log.settle()
    const second = log.reply([call('b')])
    log.settle()
    const kept = log.result(`${second}.0`, 'newer')
    const cut = new Transcript()
    for (const event of log.events) cut.take(event)
    cut.take({
      seq: log.session.seq + 1,
      at: 0,
      epoch: 1,
      type: 'context.compacted',
      cut: second,
      summary: 'so far',
      cost: 0,
    })
    cut.take({ seq: log.session.seq + 2, at: 0, epoch: 1, type: 'model.started', shows: [kept], allow: 'all', held: 0 })
    expect(cut.messages.map((m) => (m.role === 'tool' ? m.call : m.role))).toEqual(['user', 'assistant', `${second}.0`])
    const cleared = new Transcript()
    for (const event of log.events) cleared.take(event)
    cleared.take({ seq: log.session.seq + 1, at: 0, epoch: 1, type: 'context.compacted', cleared: second, cost: 0 })
    const result = cleared.messages.find((m) => m.role === 'tool')
    expect(result?.content).toBe(`[Old tool result content cleared] call:${result?.call}`)
  })

  it('B-PROJECT-4: a failed tool stays failed in what the model is shown (TRAP-11)', () => {
    const log = asking()
    const turn = log.reply([call('a')])
    log.settle()
    log.owner({ type: 'agent.tool_result', call: `${turn}.0`, status: 'error', content: 'no such file' })
    log.settle()
    const transcript = new Transcript()
    for (const event of log.events) transcript.take(event)
    expect(transcript.messages.at(-1)).toMatchObject({ role: 'tool', ok: false, content: 'no such file' })
  })

  it('B-PROJECT-5: for any order of landings and any number of calls the projection is the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(fc.nat(), { maxLength: 8 }), (width, order) => {
        const log = asking({ parallel: 16 })
        const turn = log.reply(Array.from({ length: width }, (_, i) => call(`t${i}`)))
        log.settle()
        const left = Array.from({ length: width }, (_, i) => i)
        for (const pick of [...order, ...left]) {
          const [index] = left.splice(pick % Math.max(1, left.length), 1)
          if (index !== undefined) log.result(`${turn}.${index}`, `r${index}`)
        }
        log.settle()
        const transcript = new Transcript()
        for (const event of log.events) transcript.take(event)
        const shown = transcript.messages.flatMap((m) => (m.role === 'tool' ? [m.content] : []))
        expect(shown).toEqual(Array.from({ length: width }, (_, i) => `r${i}`))
      }),
    )
  })
})
