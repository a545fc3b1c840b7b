// The agents page: each agent with its model, tools, effects, approvals, limits, children and graph.
import { useMemo } from 'react'
import type { WireAgent } from '../../server/wire.ts'
import { drawingIn } from '../../view/graph-drawing.ts'
import { isObject, ownOf } from '../../view/untrusted-json.ts'
import { countNoun } from '../../view/shown-text.ts'
import { useAgents } from '../data/queries.ts'
import { moneyText } from '../parts/figures.tsx'
import { GraphDiagram } from '../parts/graph-diagram.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { Link } from 'wouter'
import '../style/house.css'

export function AgentsPage() {
  const { data, isPending, isError, error, refetch } = useAgents()
  const agents = data?.agents ?? []
  return (
    <div className="page">
      <PageHead title="Agents" about={data ? countNoun(agents.length, 'agent') : undefined} />
      {isPending ? <Loading what="Loading agents" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && agents.length === 0 ? (
        <Empty title="No agents" command="terret agents">
          This server has none of its own. Agents are Markdown files in the folder it was started in.
        </Empty>
      ) : null}
      <div className="stack scrolls wide">
        {agents.map((agent) => (
          <AgentCard key={agent.name} agent={agent} />
        ))}
      </div>
    </div>
  )
}

function AgentCard({ agent }: { readonly agent: WireAgent }) {
  const { name, model, planner, tools, sources, children, graph } = agent
  const drawing = useMemo(() => (isObject(graph) ? drawingIn(graph['json']) : null), [graph])
  return (
    <article className="panel agent" id={`agent-${name}`}>
      <header className="panel-head">
        <h2>
          <Text text={name} />
        </h2>
        <code className="dim">
          <Text text={planner === 'model' ? model : planner} />
        </code>
        <span className="spread" />
        <Link href={`/?${new URLSearchParams({ agent: name }).toString()}`}>Its sessions</Link>
      </header>
      {drawing ? <GraphDiagram drawing={drawing} /> : null}
      <Tools name={name} tools={tools} />
      <dl className="agent-facts">
        {limitRows(agent).map(([limit, value]) => (
          <div key={limit}>
            <dt>{limit}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        {children.length > 0 ? (
          <div>
            <dt>Starts</dt>
            <dd>
              <Text text={children.join(', ')} />
            </dd>
          </div>
        ) : null}
        {sources.length > 0 ? (
          <div>
            <dt>Tools from</dt>
            <dd>
              <Text text={sources.join(', ')} />
            </dd>
          </div>
        ) : null}
      </dl>
    </article>
  )
}

const ASKS: Readonly<Record<string, string>> = {
  ask: 'asks first',
  always: 'always asks',
  never: 'is refused',
  by_arguments: 'asks by its arguments',
  auto: 'runs unasked',
}

function Tools({ name, tools }: Pick<WireAgent, 'name' | 'tools'>) {
  if (tools.length === 0) return <p className="dim">It has no tools.</p>
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={`Tools of ${name}`}>
      <table className="table tools">
        <thead>
          <tr>
            <th>Tool</th>
            <th>Effect</th>
            <th>Approval</th>
            <th>What it says it does</th>
          </tr>
        </thead>
        <tbody>
          {tools.map(({ name: tool, effect, approval, outside, description }) => {
            const asks = typeof approval === 'string' ? approval : 'by_arguments'
            return (
              <tr key={tool}>
                <td>
                  <code>
                    <Text text={tool} />
                  </code>
                </td>
                <td className={effect === 'once' ? 'warned' : 'dim'}>
                  <Text text={effect} />
                </td>
                <td className={asks === 'auto' ? 'dim' : 'warned'}>
                  {outside ? 'answered outside' : (ownOf(ASKS, asks) ?? <Text text={asks} />)}
                </td>
                <td className="dim table-wide">
                  <Text text={description} />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** The limits that people set. */
function limitRows({ limits, budget }: Pick<WireAgent, 'limits' | 'budget'>): readonly (readonly [string, string])[] {
  const { modelRequests, toolCalls, tokens, activeMs, parallel, depth } = limits
  const money = isObject(budget) ? Object.entries(budget) : []
  const number = (value: number): string => value.toLocaleString('en')
  return [
    ['Requests a run', number(modelRequests)] as const,
    ...(typeof toolCalls === 'number' ? [['Calls a run', number(toolCalls)] as const] : []),
    ...(typeof tokens === 'number' ? [['Tokens a run', number(tokens)] as const] : []),
    ['Active time', `${Math.round(activeMs / 60_000)} min`] as const,
    ['Calls at once', number(parallel)] as const,
    ...(depth === undefined ? [] : [['Depth of children', number(depth)] as const]),
    ...money.flatMap(([name, value]) =>
      typeof value === 'number' ? [[`Budget: ${name}`, moneyText(value)] as const] : [],
    ),
  ]
}
