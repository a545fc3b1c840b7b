// Counts for /metrics what this process did to sessions: the events that its harnesses commit, from the moment it begins
// to listen. What is imported, or copied by a fork, is in no such commit, so nothing is counted a second time.
import {
  Fault,
  type CallKey,
  type CallStatus,
  type CompleteStore,
  type EventOf,
  type OwnerEvent,
} from '../kernel/index.ts'
import { harnessParts } from '../harness.ts'

/** The label of everything that has no series of its own, and that of tools that do not exist. */
export const OTHER = '(other)'
const REST = `agent="${OTHER}"`
const NO_TOOL = '(unknown)'
/** So many agents have series of their own: those that came first. */
export const AGENTS_MAX = 30
const LABEL_CHARS_MAX = 100
/** The tools of so many open calls are remembered. Those of others are read from the log. */
const OPEN_CALLS_MAX = 10_000

/**
 * What is counted, for each agent. `zeros`: the series that each agent has from the beginning, since a number that
 * appears at 1 has never grown for Prometheus. `most`: so many series at most, and then those of the rest.
 */
export const COUNTERS = {
  runs_total: {
    help: 'Runs that this process settled, by how they ended.',
    zeros: ['completed', 'interrupted', 'limit', 'halted', 'failed'].map((end) => `,end="${end}"`),
  },
  input_tokens_total: { help: 'Tokens that models read, from their cache or anew.', zeros: [''] },
  cached_tokens_total: { help: 'Of these, those that providers read from their cache.', zeros: [''] },
  output_tokens_total: { help: 'Tokens that models wrote.', zeros: [''] },
  cost_usd_total: { help: 'What models cost, in dollars.', zeros: [''] },
  tool_calls_total: { help: 'Calls that got their result, by tool and status.', zeros: [], most: 350 },
  unknown_calls_total: { help: 'Calls that may have happened or not, as their process was lost.', zeros: [''] },
  model_failures_total: { help: 'Requests to models that failed, by class.', zeros: [], most: 100 },
  compactions_total: {
    help: 'Compactions of a full context.',
    zeros: ['ok', 'failed'].map((result) => `,result="${result}"`),
  },
  cache_misses_total: { help: 'Requests whose beginning the cache of the provider should have had.', zeros: [''] },
} satisfies Record<string, Counter>
type Counter = { readonly help: string; readonly zeros: readonly string[]; readonly most?: number }
export type CounterName = keyof typeof COUNTERS

/** The labels of a series as they are written, and its value. */
export type Series = ReadonlyMap<string, number>

export class RunCounts {
  readonly #store: Pick<CompleteStore, 'read'>
  readonly #series: Record<CounterName, Map<string, number>>
  /** The labels of those agents that have series of their own. */
  readonly #agents = new Map<string, string>()
  /** The tools of open calls: a result has only the key of its call. */
  readonly #tools = new Map<string, string>()
  readonly #recalls = new Set<Promise<void>>()

  constructor(store: Pick<CompleteStore, 'read'>) {
    this.#store = store
    const none = Object.keys(COUNTERS).map((name) => [name, new Map<string, number>()])
    this.#series = Object.fromEntries(none) as Record<CounterName, Map<string, number>>
  }

  /** Counts what this harness commits from now on. Returns a function that ends it. */
  listenTo(harness: object): () => void {
    const parts = harnessParts(harness)
    if (parts === null) throw new Fault('invalid_config', 'Only a harness of this process can be counted.')
    return parts.listen((session, agent, events) => this.count(session, agent, events))
  }

  /** Counts what was committed to a session of this agent. */
  count(session: string, agent: string, events: readonly OwnerEvent[]): void {
    const label = this.#agentLabel(agent)
    for (const event of events) this.#count(session, label, event)
  }

  /** Waits for the tools that are being read from logs. */
  async read(): Promise<Readonly<Record<CounterName, Series>>> {
    await Promise.all(this.#recalls)
    return this.#series
  }

  #agentLabel(agent: string): string {
    const known = this.#agents.get(agent)
    if (known !== undefined) return known
    const label = this.#agents.size < AGENTS_MAX ? labelText('agent', agent) : REST
    if (label !== REST) this.#agents.set(agent, label)
    for (const [name, { zeros }] of Object.entries(COUNTERS))
      for (const more of zeros) this.#add(name as CounterName, label, more, 0)
    return label
  }

  #count(session: string, agent: string, event: OwnerEvent): void {
    if ('usage' in event) {
      this.#add('input_tokens_total', agent, '', event.usage?.inputTokens ?? 0)
      this.#add('cached_tokens_total', agent, '', event.usage?.cachedTokens ?? 0)
      this.#add('output_tokens_total', agent, '', event.usage?.outputTokens ?? 0)
    }
    if ('cost' in event) this.#add('cost_usd_total', agent, '', event.cost ?? 0)
    if (event.type === 'run.settled') this.#add('runs_total', agent, `,end="${event.outcome.type}"`)
    else if (event.type === 'agent.message') {
      if (event.missed !== undefined) this.#add('cache_misses_total', agent, '')
      for (const index of event.calls.keys()) this.#keepTool(`${session} ${event.seq}.${index}`, toolOf(event, index))
    } else if (event.type === 'agent.tool_result') this.#countResult(session, agent, event)
    else if (event.type === 'model.failed' && event.unasked === undefined)
      this.#add('model_failures_total', agent, `,class="${event.class}"`)
    else if (event.type === 'context.compacted') {
      const result = compactionResult(event)
      if (result !== null) this.#add('compactions_total', agent, `,result="${result}"`)
    }
  }

  #countResult(session: string, agent: string, { call, status }: EventOf<'agent.tool_result'>): void {
    if (status === 'unknown') this.#add('unknown_calls_total', agent, '')
    const key = `${session} ${call}`
    const tool = this.#tools.get(key)
    this.#tools.delete(key)
    if (tool !== undefined) return this.#countCall(agent, tool, status)
    // Another process recorded the reply with this call, or this one did before it began to count.
    const recall = this.#recallTool(session, call).then((name) => this.#countCall(agent, name, status))
    this.#recalls.add(recall)
    void recall.finally(() => this.#recalls.delete(recall))
  }

  #countCall(agent: string, tool: string, status: CallStatus): void {
    const ends = `,status="${status}"`
    this.#add('tool_calls_total', agent, `,${labelText('tool', tool)}${ends}`, 1, `,tool="${OTHER}"${ends}`)
  }

  #keepTool(key: string, tool: string): void {
    this.#tools.set(key, tool)
    const [oldest = ''] = this.#tools.size > OPEN_CALLS_MAX ? this.#tools.keys() : []
    if (oldest !== '') this.#tools.delete(oldest)
  }

  async #recallTool(session: string, call: CallKey): Promise<string> {
    const [seq = 0, index = 0] = call.split('.').map(Number)
    const page = await this.#store.read(session, seq - 1, 1).catch(() => null)
    const [reply] = page?.events ?? []
    return reply?.type === 'agent.message' ? toolOf(reply, index) : OTHER
  }

  /** A series that is not there and has no place is counted in that of the rest. */
  #add(name: CounterName, agent: string, more: string, n = 1, rest = more): void {
    const series = this.#series[name]
    const { most = Number.POSITIVE_INFINITY }: Counter = COUNTERS[name]
    const own = `${agent}${more}`
    const key = series.has(own) || series.size < most ? own : `${REST}${rest}`
    series.set(key, (series.get(key) ?? 0) + n)
  }
}

/** Setting or removing a pin is no compaction. */
function compactionResult(event: EventOf<'context.compacted'>): 'ok' | 'failed' | null {
  if (event.cut !== undefined || event.cleared !== undefined || event.fitted !== undefined) return 'ok'
  return event.failed === undefined ? null : 'failed'
}

/**
 * A tool that does not exist has a name that a model made up, which no label may hold. In a reply that was cut off, what
 * was refused may be such a call too: then the cut is all that is recorded of it.
 */
function toolOf({ calls, finish }: EventOf<'agent.message'>, index: number): string {
  const { tool = OTHER, gate, timeoutMs } = calls[index] ?? {}
  if (gate?.type !== 'refuse' || timeoutMs !== 0) return tool
  return gate.failure.kind === 'NotFound' || finish === 'length' ? NO_TOOL : tool
}

/** As Prometheus reads it. A name that is long, or holds what no line shows, is one of the rest. */
export function labelText(label: string, name: string): string {
  const isShown = name.length <= LABEL_CHARS_MAX && !/[\p{C}\u2028\u2029]/u.test(name)
  return `${label}="${isShown ? name.replace(/[\\"]/g, '\\$&') : OTHER}"`
}
