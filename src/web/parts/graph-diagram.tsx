// Draws a graph: its nodes, its links and the status of each node. The layout code is loaded when the first graph is
// shown.
import { useEffect, useState } from 'react'
import type { GraphDrawing, NodeStanding } from '../../view/graph-drawing.ts'
import type { PlacedGraph, PlacedNode } from './place-graph.ts'
import { Text } from './exact-text.tsx'

export type GraphDiagramProps = {
  readonly drawing: GraphDrawing
  readonly standings?: ReadonlyMap<string, NodeStanding>
  readonly onNode?: ((name: string) => void) | undefined
}

const NONE: ReadonlyMap<string, NodeStanding> = new Map()

export function GraphDiagram({ drawing, standings = NONE, onNode }: GraphDiagramProps) {
  const [placed, setPlaced] = useState<PlacedGraph | null>(null)
  useEffect(() => {
    let isHere = true
    void import('./place-graph.ts').then(({ placeGraph }) => {
      // On a phone the graph runs from top to bottom.
      if (isHere) setPlaced(placeGraph(drawing, matchMedia('(max-width: 767px)').matches ? 'TB' : 'LR'))
    })
    return () => {
      isHere = false
    }
  }, [drawing])
  if (placed === null) return <div className="graph" role="status" aria-label="Drawing the graph" />
  const { width, height, nodes, lines } = placed
  return (
    <div className="graph" tabIndex={0} role="region" aria-label={`Graph ${drawing.name}`}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={`Graph ${drawing.name}`}
      >
        <defs>
          <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 L8 4 L0 8 z" className="graph-head" />
          </marker>
        </defs>
        {lines.map(({ path, chosen, label, x, y }, i) => (
          <g key={i}>
            <path d={path} className={chosen ? 'graph-line chosen' : 'graph-line'} markerEnd="url(#graph-arrow)" />
            {label === '' ? null : (
              <text x={x} y={y} className="graph-label">
                {label}
              </text>
            )}
          </g>
        ))}
        {nodes.map((node) => (
          <NodeShape key={node.name} node={node} standing={standings.get(node.name)} onNode={onNode} />
        ))}
      </svg>
      <ol className="out-of-sight">
        {nodes.map(({ name }) => (
          <li key={name}>
            <Text text={`${name}: ${standings.get(name)?.status ?? 'not run'}`} />
          </li>
        ))}
      </ol>
    </div>
  )
}

type NodeShapeProps = Pick<GraphDiagramProps, 'onNode'> & {
  readonly node: PlacedNode
  readonly standing: NodeStanding | undefined
}

function NodeShape({ node: { name, x, y, w, h, notes, kind }, standing, onNode }: NodeShapeProps) {
  const state = standing === undefined ? '' : standing.now ? ' now' : standing.status === 'ok' ? ' done' : ' wrong'
  return (
    <g
      className={`graph-node ${kind}${state}`}
      transform={`translate(${x - w / 2} ${y - h / 2})`}
      onClick={() => onNode?.(name)}
    >
      <rect width={w} height={h} rx={kind === 'end' ? h / 2 : 8} />
      <text x={w / 2} y={notes.length > 0 ? 19 : h / 2 + 5} className="graph-name">
        {name}
        {standing && standing.times > 1 ? ` ×${standing.times}` : ''}
      </text>
      {notes.map((note, i) => (
        <text key={note} x={w / 2} y={36 + i * 15} className="graph-note">
          {note}
        </text>
      ))}
    </g>
  )
}
