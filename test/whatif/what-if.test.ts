// What-ifs: a recorded session lived again from one of its events on. Over every event of a long log: every.long.test.ts.
import { describe, expect, it } from 'vitest'
import type { Request } from '../../src/index.ts'
import { readLog, whatIf } from '../../src/replay.ts'
import { recorded, talking, type Talk, turnOf, wholeText, world } from './stage.ts'

const TALK: Talk = (request) => {
  if (turnOf(request) === 0) return { calls: [{ tool: 'look', args: { what: 'invoice' } }] }
  if (turnOf(request) === 1) return { calls: [{ tool: 'pay', args: { to: 'ann', amount: 3 } }] }
  return 'Done.'
}

describe('a what-if in which nothing changes', () => {
  it('B-WHATIF-1: makes the same requests, byte for byte, from every event on, and writes nothing to the recording', async () => {
    const ran: string[] = []
    const then: Request[] = []
    const { look, pay } = world(ran)
    const agent = { model: talking(TALK, then), tools: [look, pay], instructions: 'Pay what is due.' }
    const { store, session } = await recorded(agent, 'Pay the invoice.')
    const before = await wholeText(store, session)
    const log = await readLog(store, session)
    for (let at = 1; at <= log.length; at++) {
      const now: Request[] = []
      const tried = await whatIf({ store, session }, { at, agent: { ...agent, model: talking(TALK, now), secrets: {} } })
      expect({ at, drift: tried.drift, settled: tried.settled }).toEqual({ at, drift: 0, settled: { type: 'completed' } })
      expect(now).toEqual(then.slice(then.length - now.length))
      expect(tried.diff.first).toBe(null)
      const events = await readLog(tried.store, tried.session)
      expect(events.map(({ type }) => type)).toEqual(log.map(({ type }) => type))
    }
    expect(ran).toEqual(['look invoice', 'pay ann'])
    expect(await wholeText(store, session)).toBe(before)
  })
})
