// Where the nodes of a graph are drawn. How that looks is in the long tests.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { drawingIn, type GraphDrawing } from '../../src/view/graph-drawing.ts'
import { placeGraph } from '../../src/web/parts/place-graph.ts'
import { runs } from '../runs.ts'

function drawingOf(count: number, pairs: readonly (readonly [number, number])[]): GraphDrawing {
  const name = (i: number): string => `node ${i % count}`
  const nodes = Array.from({ length: count }, (_, i) => ({ name: name(i), type: 'run', description: '' }))
  const edges = [
    { type: 'edge', from: 'START', to: name(0) },
    ...pairs.map(([from, to]) => ({ type: 'edge', from: name(from), to: name(to) })),
    { type: 'edge', from: name(count - 1), to: 'END' },
  ]
  return drawingIn({ name: 'g', nodes, edges }) as GraphDrawing
}

const index = fc.nat({ max: 30 })

it('B-WEB-58: in any graph, with rings or without, no two nodes lie on each other, all lie within the drawing, START first and END last', () => {
  const graphs = fc.record({
    count: fc.integer({ min: 1, max: 12 }),
    pairs: fc.array(fc.tuple(index, index), { maxLength: 24 }),
    direction: fc.constantFrom('LR' as const, 'TB' as const),
  })
  const check = fc.property(graphs, ({ count, pairs, direction }) => {
    const { nodes, lines, width, height } = placeGraph(drawingOf(count, pairs), direction)
    for (const [i, { x, y, w, h }] of nodes.entries()) {
      expect(x - w / 2 >= 0 && x + w / 2 <= width + 0.01 && y - h / 2 >= 0 && y + h / 2 <= height + 0.01).toBe(true)
      for (const other of nodes.slice(i + 1))
        expect(Math.abs(x - other.x) >= (w + other.w) / 2 || Math.abs(y - other.y) >= (h + other.h) / 2).toBe(true)
    }
    const along = nodes.map(({ x, y }) => (direction === 'LR' ? x : y))
    expect(along.at(-1)).toBe(Math.max(...along))
    expect(lines.every(({ path, x, y }) => !/NaN|Infinity/.test(`${path} ${x} ${y}`))).toBe(true)
  })
  fc.assert(check, { numRuns: runs(500) })
})

it('B-WEB-59: a chain is a straight row, and two lines between the same nodes do not lie on each other', () => {
  const { nodes, lines } = placeGraph(
    drawingOf(4, [
      [0, 1],
      [1, 2],
      [2, 3],
      [2, 1],
    ]),
  )
  expect(new Set(nodes.map(({ y }) => Math.round(y))).size).toBe(1)
  expect(nodes.map(({ name }) => name)).toEqual(['START', 'node 0', 'node 1', 'node 2', 'node 3', 'END'])
  expect(nodes.map(({ x }) => x)).toEqual(nodes.map(({ x }) => x).toSorted((a, b) => a - b))
  const [there, back] = [lines[2], lines[4]]
  expect(there?.y).not.toBe(back?.y)
})
