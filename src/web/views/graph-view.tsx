// The graph view. For a workflow's graph: nodes and links, how often each node ran, and which one is working or
// waiting. For other sessions: runs, turns and calls as a tree, with links to children.
import { useMemo } from 'react'
import { Link } from 'wouter'
import type { Event } from '../../server/wire.ts'
import { drawingIn, standingsOf } from '../../view/graph-drawing.ts'
import { type NodeStop, stopsOf } from '../../view/node-stops.ts'
import { countNoun } from '../../view/shown-text.ts'
import { timelineOf } from '../../view/timeline.ts'
import { useBlobText } from '../data/other-logs.ts'
import { TimeTaken } from '../parts/figures.tsx'
import { GraphDiagram } from '../parts/graph-diagram.tsx'
import { List } from '../parts/virtual-list.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { Text } from '../parts/exact-text.tsx'
import { callStatusOf } from '../parts/status-words.ts'
import type { ViewProps } from './view-props.ts'
import { type TreeBranch, buildTreeBranches } from './tree-branches.ts'
import '../style/views.css'

export function GraphView(props: ViewProps) {
  const { card, events, state } = props
  // A graph session stores its drawing as the instructions of its runs, so the graph that ran is drawn, not the graph
  // of today.
  const hash = lastRunOf(events)?.instructions ?? state?.run?.instructions ?? null
  const { data, isLoading, isError, error, refetch } = useBlobText(card.session, isGraph(events) ? hash : null)
  const drawing = useMemo(() => (data === undefined ? null : drawingIn(data)), [data])
  const stops = useMemo(() => stopsOf(events), [events])
  const standings = useMemo(() => standingsOf(stops), [stops])
  if (isLoading) return <Loading what="Loading the graph" />
  if (isError) return <ErrorPanel error={error} onRetry={() => void refetch()} />
  if (drawing === null) return <SessionTree {...props} />
  const last = (node: string): NodeStop | undefined => stops.findLast((stop) => stop.node === node)
  return (
    <div className="view graph-view">
      <div className="graph-ground">
        <GraphDiagram
          drawing={drawing}
          standings={standings}
          onNode={(node) => {
            const stop = last(node)
            if (stop) props.onChoose(replySeqOf(stop.call))
          }}
        />
      </div>
      <h2 className="view-title">
        {countNoun(stops.length, 'step')} of <Text text={drawing.name} />
      </h2>
      {stops.length === 0 ? (
        <p className="view-note">No node has run yet.</p>
      ) : (
        <List
          label="Steps of the graph"
          items={stops}
          keyOf={(stop) => stop.call}
          chosen={stops.findLast(({ call }) => replySeqOf(call) === props.chosen)?.call ?? null}
          row={(stop) => <StopRow stop={stop} onChoose={props.onChoose} />}
        />
      )}
    </div>
  )
}

function StopRow({ stop, onChoose }: { readonly stop: NodeStop; readonly onChoose: (seq: number) => void }) {
  const { node, call, status, attempts, durationMs, found } = stop
  return (
    <button type="button" className="view-row stop" onClick={() => onChoose(replySeqOf(call))}>
      <span className="stop-node">
        <Text text={node} />
      </span>
      <StatusLabel of={status} />
      <span className="dim">{attempts > 1 ? countNoun(attempts, 'attempt') : ''}</span>
      <span className="stop-found dim">
        <Text text={found} />
      </span>
      <span className="stop-took">{durationMs === null ? '' : <TimeTaken ms={durationMs} />}</span>
    </button>
  )
}

/** The seq of the reply that proposed the call. */
function replySeqOf(call: string): number {
  return Number.parseInt(call, 10)
}

function lastRunOf(events: readonly Event[]) {
  const run = events.findLast(({ type }) => type === 'run.started')
  return run?.type === 'run.started' ? run : null
}

/** Without the beginning of the log the instructions decide: those of an agent do not parse as a drawing. */
function isGraph([first]: readonly Event[]): boolean {
  return first?.type === 'session.created' ? first.planner !== 'model' : true
}

function SessionTree({ card, events, cut, waiting, chosen, onChoose }: ViewProps) {
  const branches = useMemo(() => buildTreeBranches(card.session, timelineOf(events)), [card.session, events])
  if (branches.length === 0)
    return <Empty title="Nothing has run yet">Its runs, turns and calls appear here as they begin.</Empty>
  return (
    <div className="view">
      <p className="view-note">
        This session is no graph: a model chose each step. {cut ? 'Earlier events are not loaded. ' : ''}
        Below are its runs, turns and calls.
      </p>
      <List
        label="Runs, turns and calls"
        items={branches}
        keyOf={({ key }) => key}
        chosen={branches.findLast(({ seq }) => seq === chosen)?.key ?? null}
        row={(branch) => <BranchRow branch={branch} waiting={waiting} onChoose={onChoose} />}
      />
    </div>
  )
}

type BranchProps = Pick<ViewProps, 'waiting'> & {
  readonly branch: TreeBranch
  readonly onChoose: (seq: number) => void
}

function BranchRow({ branch, waiting, onChoose }: BranchProps) {
  const { depth, seq, name, state, says, took, child } = branch
  return (
    <div className={`branch depth-${depth}`}>
      <button type="button" className="view-row" onClick={() => onChoose(seq)}>
        <span className="branch-name">
          <Text text={name} />
        </span>
        <StatusLabel {...callStatusOf(state, child, waiting)} />
        <span className="branch-says dim">
          <Text text={says()} />
        </span>
        <span className="stop-took">{took === null ? '' : <TimeTaken ms={took} />}</span>
      </button>
      {child === null ? null : (
        <Link className="button plain small" href={`/s/${encodeURIComponent(child)}`}>
          Open child
        </Link>
      )}
    </div>
  )
}
