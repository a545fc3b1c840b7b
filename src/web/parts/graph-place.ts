// Where the nodes of a graph stand and how the lines between them run: in layers from START to END, each node beside those it is connected
// to. Loaded when a graph is shown. Graphs that people write have some dozens of nodes: it is small rather than perfect.
import { END, type GraphDrawing, linesOf, nodeNotes, START } from '../../view/graph.ts'
import { layersOf, type Link, type Point, type Size } from './graph-layers.ts'

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
export type Placed = {
  readonly width: number
  readonly height: number
  readonly nodes: readonly PlacedNode[]
  readonly lines: readonly PlacedLine[]
}

const LETTER = 7.6
const MARGIN = 16
/** Between two layers, and between neighbours in one. */
const LAYER_GAP = 46
const NODE_GAP = 26
/** Lines between the same two nodes, beside each other. */
const BESIDE = 16

export function placeAll(drawing: GraphDrawing, direction: 'LR' | 'TB' = 'LR'): Placed {
  const known = [
    { name: START, kind: 'end', notes: [] },
    ...drawing.nodes.map((node) => ({ name: node.name, kind: node.type, notes: nodeNotes(node) })),
    { name: END, kind: 'end', notes: [] },
  ] as const
  const sizes = new Map(known.map(({ name, notes }) => [name, sizeOf(name, notes)] as const))
  const lines = linesOf(drawing)
  // It is worked out from left to right; from top to bottom is the same with both axes exchanged.
  const turn = direction === 'TB'
  const extent = (name: string): Size => {
    const { w, h } = sizes.get(name) ?? NOTHING
    return turn ? { w: h, h: w } : { w, h }
  }
  const names = known.map(({ name }) => name)
  const { at, through, width, height } = layersOf(names, lines, { extent, layerGap: LAYER_GAP, nodeGap: NODE_GAP })
  const turned = ({ x, y }: Point): Point =>
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
      const points = runOf(line, ends, { through: through[i] ?? [], beside: besideOf(lines, i), extent }).map(turned)
      const middle = points[Math.floor(points.length / 2)] ?? ORIGIN
      return { path: pathOf(points), chosen, label, x: middle.x, y: middle.y - 5 }
    }),
  }
}

const ORIGIN: Point = { x: 0, y: 0 }
const NOTHING: Size = { w: 0, h: 0 }

function sizeOf(name: string, notes: readonly string[]): Size {
  const letters = Math.max(name.length + 3, ...notes.map((note) => note.length))
  return { w: Math.max(64, letters * LETTER + 20), h: notes.length > 0 ? 28 + 15 * notes.length : 34 }
}

/** How far beside the straight way: 0 for the only line between two nodes. */
function besideOf(lines: readonly Link[], i: number): number {
  const own = lines[i]
  const joins = ({ from, to }: Link): boolean =>
    own !== undefined && ((from === own.from && to === own.to) || (from === own.to && to === own.from))
  const same = lines.filter(joins).length
  return same === 1 ? 0 : (lines.slice(0, i).filter(joins).length - (same - 1) / 2) * BESIDE
}

type Ends = { readonly from: Point; readonly to: Point }
type Way = {
  readonly through: readonly Point[]
  readonly beside: number
  readonly extent: (name: string) => Size
}

/** From the side of one node to the side of the other. */
function runOf({ from, to }: Link, ends: Ends, { through, beside, extent }: Way): readonly Point[] {
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

/** Through all points, with round corners. */
function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points
  if (!first) return ''
  const last = rest.at(-1) ?? first
  const bends = rest.slice(0, -1).map(({ x, y }, i) => {
    const next = rest[i + 1] ?? last
    return `Q ${x} ${y} ${(x + next.x) / 2} ${(y + next.y) / 2}`
  })
  return `M ${first.x} ${first.y} ${bends.join(' ')} L ${last.x} ${last.y}`
}
