// Bars of a session with its children nested in it, from logs written by hand: every sum is that of what is below it.
import { describe, expect, it } from 'vitest'
import { timelineOf } from '../../src/view/timeline.ts'
import { type ChildRows, treeBars } from '../../src/view/waterfall.ts'
import { card } from '../contract/fixture.ts'
import { proposal, Tale } from '../tracing/tale.ts'

const usage = (tokens: number) => ({ usage: { inputTokens: tokens, outputTokens: 1 } })

function worked(id: string, cost: number, tokens: number): ChildRows & { readonly card: { readonly cost: number } } {
  const tale = new Tale(id)
  tale.begin([tale.say('dig')])
  tale.ask()
  tale.reply([], { cost, ...usage(tokens) })
  tale.settle()
  return { card: card(id, { root: 's', cost, tokens: tokens + 1, agent: 'digger' }), rows: timelineOf(tale.events) }
}

/** A session that asks one child, then two at once, and is summarised in between. */
function told(): Tale {
  const tale = new Tale('s')
  tale.begin([tale.say('go')])
  tale.ask()
  const one = tale.reply([proposal('dig', { gate: { type: 'outside', child: 'digger' } })], {
    cost: 1_000,
    ...usage(99),
  })
  tale.add({ type: 'agent.custom_tool_use', call: `${one}.0` })
  tale.at += 5_000
  const answer = { type: 'user.custom_tool_result', id: 'a', call: `${one}.0`, ok: true, content: 'dug' } as const
  const from = tale.add(answer)
  tale.add({ type: 'agent.tool_result', call: `${one}.0`, status: 'ok', content: '', from })
  tale.add({ type: 'context.compacted', summary: 'short', cost: 300, ...usage(9) })
  tale.ask()
  tale.reply([], { cost: 2_000, ...usage(199) })
  tale.settle()
  return tale
}

describe('the bars of a tree', () => {
  it('B-PAGE2-3: children are nested below their calls with tokens and cost, and the outermost bars add up to the tree', () => {
    const tale = told()
    const call = tale.events.find(({ type }) => type === 'agent.message')?.seq
    const child = worked(`s~${call}.0`, 40_000, 500)
    const grand = { card: card(`s~${call}.0~4.0`, { root: 's', cost: 5_000, tokens: 50, agent: 'deep' }), rows: null }
    const bars = treeBars('s', timelineOf(tale.events), [child, grand])
    const shown = bars.map(({ kind, depth, cost, session }) => [kind, depth, cost, session])
    expect(shown).toEqual([
      ['run', 0, 48_300, 's'],
      ['model', 1, 1_000, 's'],
      ['child', 2, 45_000, 's'],
      ['run', 3, 40_000, child.card.session],
      ['model', 4, 40_000, child.card.session],
      ['child', 3, 5_000, grand.card.session],
      ['compacted', 1, 300, 's'],
      ['model', 1, 2_000, 's'],
    ])
    const outer = bars.filter(({ depth }) => depth === 0)
    expect(outer.reduce((sum, { cost }) => sum + cost, 0)).toBe(1_000 + 300 + 2_000 + 40_000 + 5_000)
    expect(outer.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(100 + 10 + 200 + 501 + 50)
    expect(bars.flatMap(({ turn }) => turn ?? [])).toEqual([1, 1, 2])
    expect(new Set(bars.map(({ key }) => key)).size).toBe(bars.length)
  })

  it('B-PAGE2-3: two children of one call have a bar each, a child of a call that is not loaded comes last, and closed ones keep their sums', () => {
    const tale = told()
    const call = tale.events.find(({ type }) => type === 'agent.message')?.seq
    const children = [`s~${call}.0.0`, `s~${call}.0.1`, 's~1.7'].map((id, i) => ({
      ...worked(id, 10 ** i, 9),
      rows: null,
    }))
    const bars = treeBars('s', timelineOf(tale.events), children)
    expect(bars.filter(({ kind }) => kind === 'child').map(({ depth, cost }) => [depth, cost])).toEqual([
      [2, 11],
      [3, 1],
      [3, 10],
      [0, 100],
    ])
    const outer = bars.filter(({ depth }) => depth === 0)
    expect(outer.reduce((sum, { cost }) => sum + cost, 0)).toBe(3_300 + 111)
  })

  it('B-PAGE2-4: a request that somebody stopped is interrupted, and no failure', () => {
    const tale = new Tale('s')
    tale.begin([tale.say('go')])
    for (const kind of ['interrupted', 'superseded', 'server'] as const) {
      tale.ask()
      tale.add({ type: 'model.failed', class: kind, message: 'x', retryable: true })
    }
    const turns = timelineOf(tale.events).filter((row) => row.type === 'turn')
    expect(turns.map(({ state }) => state)).toEqual(['interrupted', 'interrupted', 'failed'])
  })
})
