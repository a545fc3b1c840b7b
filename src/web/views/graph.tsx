// The shape of a session. A graph: its nodes and lines, how often each node ran, and which one works or waits now. Any other: its runs,
// turns and calls as a tree, with a way to the children.
import { useMemo } from 'react'
import { Link } from 'wouter'
import type { Event } from '../../server/wire.ts'
import { drawingIn, standingsOf } from '../../view/graph.ts'
import { type Stop, stopsOf } from '../../view/node-stops.ts'
import { counted } from '../../view/text.ts'
import { timelineOf } from '../../view/timeline.ts'
import { useBlobText } from '../data/logs.ts'
import { Took } from '../parts/figures.tsx'
import { Graph } from '../parts/graph.tsx'
import { List } from '../parts/list.tsx'
import { Empty, Loading, Trouble } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Text } from '../parts/text.tsx'
import { callLook } from '../parts/why.ts'
import type { ViewProps } from './props.ts'
import { type Branch, branchesOf } from './tree-branches.ts'
import '../style/views.css'

export function GraphView(props: ViewProps) {
  const { card, events, state } = props
  // A graph keeps its drawing as the instructions of its runs: what ran is drawn, and not what the graph is today.
  const hash = lastRunOf(events)?.instructions ?? state?.run?.instructions ?? null
  const { data, isLoading, isError, error, refetch } = useBlobText(card.session, isGraph(events) ? hash : null)
  const drawing = useMemo(() => (data === undefined ? null : drawingIn(data)), [data])
  const stops = useMemo(() => stopsOf(events), [events])
  const standings = useMemo(() => standingsOf(stops), [stops])
  if (isLoading) return <Loading what="Loading the graph" />
  if (isError) return <Trouble error={error} onRetry={() => void refetch()} />
  if (drawing === null) return <Tree {...props} />
  const last = (node: string): Stop | undefined => stops.findLast((stop) => stop.node === node)
  return (
    <div className="view graph-view">
      <div className="graph-ground">
        <Graph
          drawing={drawing}
          standings={standings}
          onNode={(node) => {
            const stop = last(node)
            if (stop) props.onChoose(seqOf(stop.call))
          }}
        />
      </div>
      <h2 className="view-title">
        {counted(stops.length, 'step')} of <Text text={drawing.name} />
      </h2>
      {stops.length === 0 ? (
        <p className="view-note">No node has run yet.</p>
      ) : (
        <List
          label="Steps of the graph"
          items={stops}
          keyOf={(stop) => stop.call}
          chosen={stops.findLast(({ call }) => seqOf(call) === props.chosen)?.call ?? null}
          row={(stop) => <StopRow stop={stop} onChoose={props.onChoose} />}
        />
      )}
    </div>
  )
}

function StopRow({ stop, onChoose }: { readonly stop: Stop; readonly onChoose: (seq: number) => void }) {
  const { node, call, status, attempts, durationMs, found } = stop
  return (
    <button type="button" className="view-row stop" onClick={() => onChoose(seqOf(call))}>
      <span className="stop-node">
        <Text text={node} />
      </span>
      <Status of={status} />
      <span className="dim">{attempts > 1 ? counted(attempts, 'attempt') : ''}</span>
      <span className="stop-found dim">
        <Text text={found} />
      </span>
      <span className="stop-took">{durationMs === null ? '' : <Took ms={durationMs} />}</span>
    </button>
  )
}

/** The reply that proposed it. */
function seqOf(call: string): number {
  return Number.parseInt(call, 10)
}

function lastRunOf(events: readonly Event[]) {
  const run = events.findLast(({ type }) => type === 'run.started')
  return run?.type === 'run.started' ? run : null
}

/** Where the beginning is not loaded, the instructions tell: those of an agent are no drawing. */
function isGraph([first]: readonly Event[]): boolean {
  return first?.type === 'session.created' ? first.planner !== 'model' : true
}

function Tree({ card, events, cut, waiting, chosen, onChoose }: ViewProps) {
  const branches = useMemo(() => branchesOf(card.session, timelineOf(events)), [card.session, events])
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
  readonly branch: Branch
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
        <Status {...callLook(state, child, waiting)} />
        <span className="branch-says dim">
          <Text text={says()} />
        </span>
        <span className="stop-took">{took === null ? '' : <Took ms={took} />}</span>
      </button>
      {child === null ? null : (
        <Link className="button plain small" href={`/s/${encodeURIComponent(child)}`}>
          Open child
        </Link>
      )}
    </div>
  )
}
