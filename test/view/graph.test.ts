// Drawings of graphs from the JSON that runs keep, and how their nodes stand.
import { expect, it } from 'vitest'
import { reportGraph, reportWithModelGraph } from '../../src/cli/demo/report/report-graph.ts'
import { delegateGraph, toJson, toMermaid } from '../../src/graphs/index.ts'
import { drawingIn, graphLines, mermaidOf, standingsOf } from '../../src/view/graph-drawing.ts'
import { stopsOf } from '../../src/view/node-stops.ts'
import { Tale } from '../tracing/tale.ts'

const graphs = [reportGraph({ root: '.' }), reportWithModelGraph({ root: '.' }), delegateGraph()]

it('B-VIEW-40: the JSON of a graph is enough to draw it: the same Mermaid, every line with the nodes it joins', () => {
  for (const graph of graphs) {
    const drawing = drawingIn(JSON.stringify(toJson(graph)))
    expect(drawing && mermaidOf(drawing)).toBe(toMermaid(graph))
    const names = new Set(['START', 'END', ...graph.nodes.keys()])
    const lines = drawing ? graphLines(drawing) : []
    expect(lines.length).toBeGreaterThan(graph.nodes.size - 1)
    for (const { from, to } of lines) expect([names.has(from), names.has(to)]).toEqual([true, true])
  }
})

it('B-VIEW-41: what is no graph draws nothing, and what is wrong in one is left out', () => {
  for (const json of ['', '{', '[]', null, 7, { nodes: {} }]) expect(drawingIn(json)).toBeNull()
  const nodes = [{ name: 'a', type: 'bomb', approval: 'toString', agent: 7, to: ['nowhere', 'END'] }, 'x']
  const edges = [
    { from: 'START', to: 'a' },
    { from: 'a', to: 'gone' },
    { type: 'join', from: ['a'], to: 'END' },
  ]
  const drawing = drawingIn({ nodes, edges, onInterrupt: 'gone' })
  expect(drawing?.nodes).toEqual([{ name: 'a', type: 'run', description: '', gate: 'auto', agents: [], to: ['END'] }])
  expect(drawing?.edges.map(({ type, from, to }) => [type, from, to])).toEqual([
    ['edge', ['START'], ['a']],
    ['join', ['a'], ['END']],
  ])
  expect(drawing?.onInterrupt).toBeNull()
})

it('B-VIEW-42: every node stands as it did when it ran last, with how often it ran; the one that works or waits is marked', () => {
  const tale = new Tale('s')
  tale.begin()
  for (const node of ['plan', 'draft', 'review', 'draft']) {
    tale.ask()
    const call = { id: node, tool: node, args: {}, effect: 'read', timeoutMs: 1 } as const
    const seq = tale.reply([call])
    if (tale.events.length < 16) tale.use(`${seq}.0`)
  }
  const standings = standingsOf(stopsOf(tale.events))
  expect(standings.get('plan')).toEqual({ status: 'ok', times: 1, now: false })
  expect(standings.get('draft')).toEqual({ status: 'open', times: 2, now: true })
})
