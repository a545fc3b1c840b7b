// What must hold of a session that a graph drives, from its log alone: what is done is not begun again, nothing begins before what it
// waits for, a delegation is done and reviewed three times at most, a stop leaves an output, and what is undone is undone once, the
// newest first. An input after a run that completed begins anew.
import type { Event, EventOf } from '../src/kernel/event.ts'
import type { PhasesDefinition } from '../src/workflows/phases/phases-definition.ts'
import type { Fail, Watched } from './watched.ts'

export const PHASES: PhasesDefinition['phases'] = [
  { name: 'a', description: 'a', agents: ['hand'] },
  { name: 'b', description: 'b', agents: ['hand', 'hand'], depends_on: ['a'] },
  { name: 'c', description: 'c', agents: ['hand'] },
  { name: 'd', description: 'd', agents: ['hand'], depends_on: ['b', 'c'] },
]
/** What undoes a node of the graph that fails. */
export const UNDO = { book: 'unbook', charge: 'refund', ship: 'recall' } as const

const TIMES_MAX = 3
const SEATS = 3

type Undo = { readonly node: string; readonly unknown: boolean }
type Flow = {
  /** How many calls of a node are open, how many have a result, and how many of these are a success. */
  open: Map<string, number>
  ended: Map<string, number>
  done: Map<string, number>
  /** Nodes that have to be undone, the newest last. Of some it is not known whether they took effect. */
  undo: Undo[]
}

function fresh(): Flow {
  return { open: new Map(), ended: new Map(), done: new Map(), undo: [] }
}

export class Flows {
  readonly tally = { graphs: 0, nodes: 0, stopped: 0, undone: 0 }
  readonly #flows = new Map<string, Flow>()

  /** Before the event is taken. */
  take(session: string, w: Watched, e: Event, fail: Fail): void {
    if (e.type === 'session.created' && e.planner.startsWith('graph:') && !e.fork) {
      this.#flows.set(session, fresh())
      this.tally.graphs += 1
    }
    const flow = this.#flows.get(session)
    if (!flow) return
    const { agent } = w.fold
    if (e.type === 'agent.message') for (const { tool } of e.calls) this.#begins(agent, flow, tool, fail)
    else if (e.type === 'agent.tool_result') this.#ends(agent, flow, w, e, fail)
    else if (e.type === 'run.settled') this.#settled(session, agent, w, e, fail)
  }

  #begins(agent: string, flow: Flow, tool: string, fail: Fail): void {
    this.tally.nodes += 1
    const done = (node: string): number => flow.done.get(node) ?? 0
    const phase = agent === 'flow' ? PHASES.find(({ name }) => name === tool) : undefined
    if (phase) {
      if (done(tool) + (flow.open.get(tool) ?? 0) >= phase.agents.length) fail('F1 a phase that is done begins again')
      const early = phase.depends_on?.find(
        (name) => done(name) < (PHASES.find((p) => p.name === name)?.agents.length ?? 0),
      )
      if (early !== undefined) fail(`F2 phase ${tool} begins before ${early} is done`)
    }
    if (agent === 'delegate' && tool === 'plan') this.#anew(flow)
    if (agent === 'delegate' && tool === 'execute' && done('plan') === 0) fail('F2 work begins without a plan')
    if (agent === 'delegate' && tool === 'review' && done('execute') <= done('review'))
      fail('F2 work is reviewed that was not done')
    if (agent === 'council' && tool === 'members' && flow.ended.has('chair')) this.#anew(flow)
    if (agent === 'council' && tool === 'chair' && (flow.ended.get('members') ?? 0) < SEATS)
      fail('F2 the chair speaks before all members did')
    if (agent === 'saga' && isUndo(tool)) this.#undoes(flow, tool, fail)
    flow.open.set(tool, (flow.open.get(tool) ?? 0) + 1)
  }

  #anew(flow: Flow): void {
    for (const counts of [flow.open, flow.ended, flow.done]) counts.clear()
  }

  #undoes({ undo }: Flow, tool: string, fail: Fail): void {
    this.tally.undone += 1
    const newest = undo.at(-1)?.node
    if (newest === undefined || UNDO[newest as keyof typeof UNDO] !== tool)
      fail(`F4 ${tool} runs, and what is to be undone next is ${newest ?? 'nothing'}`)
  }

  #ends(agent: string, flow: Flow, w: Watched, e: EventOf<'agent.tool_result'>, fail: Fail): void {
    const tool = w.calls.get(e.call)?.proposal.tool ?? ''
    const ok = e.status === 'ok' && e.failure === undefined
    flow.open.set(tool, Math.max(0, (flow.open.get(tool) ?? 0) - 1))
    flow.ended.set(tool, (flow.ended.get(tool) ?? 0) + 1)
    if (ok && (tool !== 'review' || isReview(e.content))) flow.done.set(tool, (flow.done.get(tool) ?? 0) + 1)
    for (const node of ['execute', 'review'])
      if (agent === 'delegate' && (flow.done.get(node) ?? 0) > TIMES_MAX) fail(`F3 ${node} was done a fourth time`)
    if (agent !== 'saga') return
    // One that a stop kept from ending is tried again (B-GRAPH-74).
    if (isUndo(tool) && e.status === 'aborted') return
    if (isUndo(tool)) flow.undo.pop()
    else if (tool in UNDO && (ok || e.status === 'unknown' || e.status === 'timeout')) {
      // A later try that succeeded stands for those before it.
      if (ok) flow.undo = flow.undo.filter(({ node, unknown }) => node !== tool || !unknown)
      flow.undo.push({ node: tool, unknown: !ok })
    }
  }

  #settled(session: string, agent: string, w: Watched, e: EventOf<'run.settled'>, fail: Fail): void {
    const { type } = e.outcome
    const { undo = [] } = this.#flows.get(session) ?? {}
    if (type === 'interrupted' && w.fold.run !== null) {
      this.tally.stopped += 1
      if (agent === 'delegate' && e.output === undefined) fail('F5 a delegation was stopped and says nothing')
    }
    if (e.outcome.type === 'failed' && e.outcome.reason === 'planner_failed' && undo.length > 0)
      fail(`F4 a run failed and left undone: ${undo.map(({ node }) => node).join(', ')}`)
    if (type === 'completed') this.#flows.set(session, fresh())
  }
}

function isUndo(tool: string): boolean {
  return (Object.values(UNDO) as readonly string[]).includes(tool)
}

function isReview(content: unknown): boolean {
  try {
    const { approved } = JSON.parse(String(content)) as { readonly approved?: unknown }
    return typeof approved === 'boolean'
  } catch {
    return false
  }
}
