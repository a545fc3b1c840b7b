// Computes the positions of a graph's nodes and the paths of its links: in layers from START to END. Loaded when a
// graph is shown. Graphs have some dozens of nodes, so it is small rather than perfect.
import { END, type GraphDrawing, graphLines, nodeNotes, START } from '../../view/graph-drawing.ts'
import { layOutGraph, type GraphLink, type GraphPoint, type GraphSize } from './graph-layers.ts'

export type PlacedNode = {
  readonly name: string
  readonly kind: 'end' | 'run' | 'question' | 'agent' | 'map'
  readonly notes: readonly string[]
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}
export type PlacedLine = {
  readonly path: string
  readonly chosen: boolean
  readonly label: string
  readonly x: number
  readonly y: number
}
export type PlacedGraph = {
  readonly width: number
  readonly height: number
  readonly nodes: readonly PlacedNode[]
  readonly lines: readonly PlacedLine[]
}

const LETTER = 7.6
const MARGIN = 16
/** The gaps between layers, and between neighbours in a layer. */
const LAYER_GAP = 46
const NODE_GAP = 26
/** The distance between parallel links of the same two nodes. */
const BESIDE = 16

export function placeGraph(drawing: GraphDrawing, direction: 'LR' | 'TB' = 'LR'): PlacedGraph {
  const known = [
    { name: START, kind: 'end', notes: [] },
    ...drawing.nodes.map((node) => ({ name: node.name, kind: node.type, notes: nodeNotes(node) })),
    { name: END, kind: 'end', notes: [] },
  ] as const
  const sizes = new Map(known.map(({ name, notes }) => [name, nodeSize(name, notes)] as const))
  const lines = graphLines(drawing)
  // The layout is computed from left to right; top to bottom swaps the axes.
  const turn = direction === 'TB'
  const extent = (name: string): GraphSize => {
    const { w, h } = sizes.get(name) ?? NOTHING
    return turn ? { w: h, h: w } : { w, h }
  }
  const names = known.map(({ name }) => name)
  const { at, through, width, height } = layOutGraph(names, lines, { extent, layerGap: LAYER_GAP, nodeGap: NODE_GAP })
  const turned = ({ x, y }: GraphPoint): GraphPoint =>
    turn ? { x: y + MARGIN, y: x + MARGIN } : { x: x + MARGIN, y: y + MARGIN }
  return {
    width: (turn ? height : width) + 2 * MARGIN,
    height: (turn ? width : height) + 2 * MARGIN,
    nodes: known.map((node) => ({
      ...node,
      ...turned(at.get(node.name) ?? ORIGIN),
      ...(sizes.get(node.name) ?? NOTHING),
    })),
    lines: lines.map(({ chosen, label, ...line }, i) => {
      const ends = { from: at.get(line.from) ?? ORIGIN, to: at.get(line.to) ?? ORIGIN }
      const points = linePoints(line, ends, { through: through[i] ?? [], beside: lineOffset(lines, i), extent }).map(
        turned,
      )
      const middle = points[Math.floor(points.length / 2)] ?? ORIGIN
      return { path: linePath(points), chosen, label, x: middle.x, y: middle.y - 5 }
    }),
  }
}

const ORIGIN: GraphPoint = { x: 0, y: 0 }
const NOTHING: GraphSize = { w: 0, h: 0 }

function nodeSize(name: string, notes: readonly string[]): GraphSize {
  const letters = Math.max(name.length + 3, ...notes.map((note) => note.length))
  return { w: Math.max(64, letters * LETTER + 20), h: notes.length > 0 ? 28 + 15 * notes.length : 34 }
}

/** The offset from the straight line: 0 for the only link between two nodes. */
function lineOffset(lines: readonly GraphLink[], i: number): number {
  const own = lines[i]
  const joins = ({ from, to }: GraphLink): boolean =>
    own !== undefined && ((from === own.from && to === own.to) || (from === own.to && to === own.from))
  const same = lines.filter(joins).length
  return same === 1 ? 0 : (lines.slice(0, i).filter(joins).length - (same - 1) / 2) * BESIDE
}

type LineEnds = { readonly from: GraphPoint; readonly to: GraphPoint }
type LineCourse = {
  readonly through: readonly GraphPoint[]
  readonly beside: number
  readonly extent: (name: string) => GraphSize
}

/** Runs from the side of one node to the side of the other. */
function linePoints(
  { from, to }: GraphLink,
  ends: LineEnds,
  { through, beside, extent }: LineCourse,
): readonly GraphPoint[] {
  if (from === to) {
    const { w, h } = extent(from)
    const { x, y } = ends.from
    const above = y - h / 2
    return [
      { x: x - w / 4, y: above },
      { x: x - w / 4, y: above - 18 },
      { x: x + w / 4, y: above - 18 },
      { x: x + w / 4, y: above },
    ]
  }
  const way = ends.to.x >= ends.from.x ? 1 : -1
  const start = { x: ends.from.x + (way * extent(from).w) / 2, y: ends.from.y + beside / 2 }
  const end = { x: ends.to.x - (way * extent(to).w) / 2, y: ends.to.y + beside / 2 }
  const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 + beside }
  return [start, ...(through.length > 0 ? through.map(({ x, y }) => ({ x, y: y + beside })) : [middle]), end]
}

/** A path through all points with rounded corners. */
function linePath(points: readonly GraphPoint[]): string {
  const [first, ...rest] = points
  if (!first) return ''
  const last = rest.at(-1) ?? first
  const bends = rest.slice(0, -1).map(({ x, y }, i) => {
    const next = rest[i + 1] ?? last
    return `Q ${x} ${y} ${(x + next.x) / 2} ${(y + next.y) / 2}`
  })
  return `M ${first.x} ${first.y} ${bends.join(' ')} L ${last.x} ${last.y}`
}
