// The graph of a source: classify, then drop, notify, react or escalate. One delivery is one session of it. It knows
// nothing of HTTP, and accept-trigger.ts writes its sessions.
import { hash } from 'node:crypto'
import { last } from '../graphs/channel.ts'
import { graphAgent } from '../graphs/graph-agent.ts'
import { AS_AGENT, type Graph } from '../graphs/graph-definition.ts'
import { command, END, START } from '../graphs/planner-node.ts'
import { withState } from '../graphs/with-state.ts'
import type { Json } from '../kernel/content.ts'
import { noRouteFault, type RouteTable, workloadOfHint } from '../models/router.ts'
import { resolveModel } from '../models/resolve-model.ts'
import type { Model } from '../ports/model.ts'
import type { Agent } from '../runtime/state/agent.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import type { ToolContext } from '../tools/core/tool.ts'
import { DecisionCache } from './decision-cache.ts'
import {
  evaluateTrigger,
  type TriageEvaluation,
  type TriagePath,
  type TriageSetup,
  waitOrStop,
} from './evaluate-trigger.ts'
import { CAP_WINDOW_MS, RunsAtOnce } from './source-caps.ts'
import type { TriageAction, TriageDecision } from './triage-decision.ts'
import { noticeText, type ShownEvent, targetTask } from './triage-prompt.ts'
import type { CompleteSource, TriggerNotice } from './source-options.ts'

/** How a trigger was judged: in the result of its session, as `output.evaluated`. */
export type TriggerEvaluated = {
  /** What was decided. */
  readonly action: TriageAction
  /** Which answer decided. */
  readonly path: TriagePath
  /** From its arrival to the decision. */
  readonly latencyMs: number
}

const DEFERRALS_MAX = 5
const DEFERRED_MS = 30_000
const DAY_MS = 86_400_000
const BUSY_MS = 1_000
const BUSY_MS_MAX = 60_000
const WAKE = 'trigger'
const NOTICE_AGAIN_MS = [1_000, 10_000]

const CHANNELS = {
  label: last(''),
  /** The beginning of the payload, until it is not needed any more. */
  payload: last(''),
  /** The length of the whole payload. */
  bytes: last(0),
  receivedAt: last(0),
  /** The hash of what the triage is asked. */
  content: last(''),
  /** The source is over a cap until then. */
  notBefore: last(0),
  /** How often no model gave a decision. */
  deferrals: last(0),
  /** How often as many triggers as may work at once did. */
  busy: last(0),
  /** Why the trigger waits. */
  deferred: last<string | null>(null),
  decision: last<TriageDecision | null>(null),
  decidedAt: last<number | null>(null),
  evaluated: last<TriggerEvaluated | null>(null),
  /** The text of the notice, or the answer of the agent. */
  result: last<string | null>(null),
}

const { node, agentsNode, graph } = withState(CHANNELS)

export type TriggerInput = {
  readonly label: string
  readonly payload: string
  readonly bytes: number
  readonly receivedAt: number
  readonly content: string
  readonly notBefore: number
}
type TriageArgs = TriggerInput & { readonly deferrals: number; readonly busy: number }

/** What the triage of one harness has at hand. The graph is made before the harness is. */
type TriagePlace = {
  readonly setup: TriageSetup
  readonly cache: DecisionCache | null
  readonly atOnce: RunsAtOnce | null
}

export function triggerGraph(source: CompleteSource): Graph {
  const places = new WeakMap<object, TriagePlace>()
  const made = (store: object): Graph => buildGraph(source, () => places.get(store) as TriagePlace)
  const drawn = made({})
  return {
    ...drawn,
    [AS_AGENT]: (shared) => {
      const { first, second } = modelsOf(source, shared.table ?? null)
      const { store } = shared
      places.set(store, {
        setup: { first, second, instructions: source.instructions, targets: source.targets },
        cache: source.cache ? new DecisionCache(source.agent, store) : null,
        atOnce: source.caps.atOnce === undefined ? null : new RunsAtOnce(source.caps.atOnce, store),
      })
      return triggerAgent(source, graphAgent(made(store), shared), [first, ...(second ? [second] : [])], shared)
    },
  }
}

function triggerAgent(
  { caps }: CompleteSource,
  agent: Agent,
  asks: readonly Model[],
  { budget }: SharedAgentOptions,
): Agent {
  if (caps.usdPerDay === undefined) return { ...agent, asks }
  return { ...agent, asks, budget: { ...budget, dayUsd: caps.usdPerDay }, ownDay: caps.usdPerDay }
}

function modelsOf({ models }: CompleteSource, table: RouteTable | null): Pick<TriageSetup, 'first' | 'second'> {
  const resolve = (given: string | Model): Model => {
    const workload = workloadOfHint(given)
    if (workload === null) return resolveModel(given)
    const found = table?.modelFor(workload) ?? null
    if (found === null) throw noRouteFault(workload)
    return found
  }
  const [first, second = null] = models
  return { first: resolve(first), second: second === null ? null : resolve(second) }
}

function buildGraph(source: CompleteSource, place: () => TriagePlace): Graph {
  const task = ({ decision, ...event }: { decision: TriageDecision | null } & Omit<ShownEvent, 'source'>) => {
    const { target_agent: agent, prompt } = decision as Extract<TriageDecision, { target_agent: string }>
    return [{ agent, task: targetTask({ ...event, source: source.name }, prompt) }]
  }
  const toAgents = (agents: readonly string[], description: string) =>
    agentsNode({
      description,
      agents,
      policy: 'fail-fast',
      over: ({ decision, label, payload, bytes }) => task({ decision, label, payload, bytes }),
      take: ([done]) => ({ payload: '', result: done?.ok ? done.value : null }),
    })
  return graph({
    name: source.agent,
    nodes: {
      triage: node({
        description: 'decides what is to be done about the event',
        // A decision costs money and changes nothing, so a lost one is made again.
        effect: 'idempotent',
        timeoutMs: 10 * CAP_WINDOW_MS,
        to: [END, 'notify', 'triage_react', 'triage_escalate'],
        reads: ({ label, payload, bytes, receivedAt, content, notBefore, deferrals, busy }): TriageArgs => {
          return { label, payload, bytes, receivedAt, content, notBefore, deferrals, busy }
        },
        run: async (args, context) => {
          const asked = place()
          const step = await decideTrigger(source, asked, args, context)
          if (step.leaves) asked.atOnce?.leave(context.session)
          return step.next
        },
      }),
      notify: node({
        description: 'tells people',
        effect: 'idempotent',
        timeoutMs: 3 * CAP_WINDOW_MS,
        reads: ({ decision, label }) => ({ label, text: noticeOf(decision) }),
        run: async ({ label, text }, context) => {
          const { session } = context
          await sendNotice(source, { source: source.name, label, text, session }, context)
          place().atOnce?.leave(session)
          return { result: text }
        },
      }),
      triage_react: toAgents(source.targets.react, 'has an agent do one small task'),
      triage_escalate: toAgents(source.targets.escalate, 'hands the event to an agent that plans'),
    },
    edges: [
      [START, 'triage'],
      ['notify', END],
      ['triage_react', END],
      ['triage_escalate', END],
    ],
  })
}

/** A notice that is not taken is sent again under the same key, and then the trigger is dead. */
async function sendNotice({ notify }: CompleteSource, notice: TriggerNotice, context: ToolContext): Promise<void> {
  const { session: key, signal } = context
  for (const afterMs of NOTICE_AGAIN_MS) {
    try {
      await notify?.(notice, { key, signal })
      return
    } catch {
      await waitOrStop(context, afterMs)
    }
  }
  await notify?.(notice, { key, signal })
}

function noticeOf(decision: TriageDecision | null): string {
  return noticeText(decision?.prompt ?? decision?.reason ?? '')
}

/** `leaves`: the trigger does not work any more for now. */
type TriageStep = { readonly leaves: boolean; readonly next: ReturnType<typeof goOn> }

async function decideTrigger(
  source: CompleteSource,
  { setup, cache, atOnce }: TriagePlace,
  args: TriageArgs,
  context: ToolContext,
): Promise<TriageStep> {
  const now = (): number => context.now?.() ?? context.clock.now()
  if (args.notBefore > now())
    return waits(args.notBefore, 'its source is over its cap of deliveries a minute', { notBefore: args.notBefore })
  if (atOnce && !(await atOnce.enter(context.session, now()))) {
    const busy = args.busy + 1
    const why = 'as many triggers of its source as may work at once do'
    return waits(now() + busyMs(context.session, busy), why, { busy })
  }
  const event = { source: source.name, label: args.label, payload: args.payload, bytes: args.bytes }
  const shared = (await cache?.isFor(context.session)) ? cache : null
  const known = await shared?.find(args.content, now())
  const evaluation: TriageEvaluation = known
    ? { type: 'decided', decision: known, path: 'cached' }
    : await evaluateTrigger({ setup, event, context })
  const at = now()
  if (evaluation.type !== 'decided') return stepWithoutDecision(evaluation, args, at)
  const { decision, path } = evaluation
  if (path !== 'cached') shared?.keep(args.content, decision, at)
  const latencyMs = Math.max(0, at - args.receivedAt)
  return {
    leaves: decision.action === 'drop',
    next: goOn(decision, { action: decision.action, path, latencyMs }, at, args),
  }
}

function goOn(decision: TriageDecision, evaluated: TriggerEvaluated, decidedAt: number, { payload }: TriageArgs) {
  const targets = { drop: END, notify: 'notify', react: 'triage_react', escalate: 'triage_escalate' } as const
  const kept = 'target_agent' in decision ? payload : ''
  const update: { readonly [channel: string]: Json } = { decision, evaluated, decidedAt, payload: kept, deferred: null }
  return command({ update, goto: targets[decision.action] })
}

function stepWithoutDecision(
  { reason, ...more }: Exclude<TriageEvaluation, { type: 'decided' }>,
  { deferrals }: TriageArgs,
  now: number,
): TriageStep {
  if (more.type === 'refused') throw new Error(reason)
  if ('account' in more && more.account === 'day')
    return waits((Math.floor(now / DAY_MS) + 1) * DAY_MS, 'its source has spent what it may spend on this day', {})
  if (deferrals >= DEFERRALS_MAX) throw new Error(`It was deferred ${DEFERRALS_MAX} times. ${reason}`)
  return waits(now + DEFERRED_MS, reason, { deferrals: deferrals + 1 })
}

function waits(due: number, reason: string, update: { readonly [channel: string]: Json }): TriageStep {
  const wake = { due, reason: `The trigger waits: ${reason}`, key: WAKE }
  return { leaves: true, next: command({ update: { ...update, deferred: reason }, goto: END, wake }) }
}

/** Grows with each try. Part of it depends on the session, so that not all come back at once. */
function busyMs(session: string, times: number): number {
  const share = Number.parseInt(hash('sha256', `${session}/${times}`).slice(0, 8), 16) / 2 ** 32
  return Math.round(Math.min(BUSY_MS_MAX, BUSY_MS * 2 ** Math.min(times, 16)) * (0.5 + share / 2))
}
