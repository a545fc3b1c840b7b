// Spans in the making: what the events of one run add to them. It decides what a span says; project.ts decides which.
import type { CallKey, Mutable, Outcome, Part, Usage } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { argumentsText, bounded, inputMessages, outputMessage, resultText } from './content.ts'
import { CONTENT, ERROR_TYPE, GEN_AI, PROVIDERS, TERRET } from './names.ts'
import { CallLog, contentOf, type LoggedCall } from '../calls.ts'
import { callSpanIdOf, type Captured, childIdOf, type Exception, type Span } from './span.ts'
import { usdOf } from '../usd.ts'

type Of<T extends Event['type']> = Extract<Event, { type: T }>
type Writable = Record<string, string | number | boolean>

export type Draft = Omit<Mutable<Span>, 'attributes' | 'exceptions'> & { attributes: Writable; exceptions: Exception[] }

export type RunDraft = {
  readonly seq: number
  readonly traceId: string
  readonly session: string
  readonly agent: string
  readonly capture: Captured
  readonly sampled: boolean
  readonly span: Draft
  /** Its model calls and tool calls, in the order they began. */
  readonly drafts: Draft[]
  readonly calls: CallLog
  readonly callSpans: Map<CallKey, Draft>
  readonly epochs: Set<number>
  model: Draft | null
  requests: number
  /** Millionths of a dollar. */
  cost: number
  readonly usage: { input: number; output: number; cacheRead: number; cacheWrite: number; known: boolean }
}

export type RunPlace = Pick<Span, 'traceId' | 'spanId' | 'parentId'> & {
  readonly session: string
  readonly created: Of<'session.created'> | null
  readonly capture: Captured
  readonly sampled: boolean
}

export function openRun(
  { traceId, spanId, parentId, session, created, capture, sampled }: RunPlace,
  e: Of<'run.started'>,
): RunDraft {
  const agent = label(created?.agent ?? 'unknown')
  const attributes: Writable = {
    [GEN_AI.operation]: 'invoke_agent',
    [GEN_AI.agentName]: agent,
    [GEN_AI.conversation]: session,
    [TERRET.run]: e.seq,
    [TERRET.instructionsHash]: e.instructions,
    [TERRET.toolsetHash]: e.toolset,
  }
  if (e.code !== undefined) attributes[TERRET.code] = e.code
  if (e.metadata !== undefined) attributes[TERRET.metadata] = JSON.stringify(e.metadata)
  if (created?.fork) {
    attributes[TERRET.forkSession] = created.fork.session
    attributes[TERRET.forkSeq] = created.fork.seq
  }
  const ids = { traceId, spanId, parentId }
  const span: Draft = { ...newDraft(ids, `invoke_agent ${agent}`, e.at), attributes }
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, known: true }
  const lists = { drafts: [], calls: new CallLog(), callSpans: new Map(), epochs: new Set<number>() }
  const own = { seq: e.seq, traceId, session, agent, capture, sampled, span }
  return { ...own, ...lists, model: null, requests: 0, cost: 0, usage }
}

export function openModel(
  run: RunDraft,
  e: Of<'model.started'>,
  spanId: string,
  shown: readonly (readonly Part[])[],
): void {
  const span: Draft = { ...newDraft(below(run, spanId), 'chat', e.at), kind: 'client' }
  span.attributes = { [GEN_AI.operation]: 'chat', ...inRun(run) }
  if (shown.length > 0) span.attributes[CONTENT.inputMessages] = inputMessages(shown)
  run.model = span
  run.drafts.push(span)
}

export function replied(run: RunDraft, e: Of<'agent.message'>): void {
  run.requests += 1
  run.cost += e.cost ?? 0
  count(run, e.usage)
  const span = run.model
  if (!span) return
  routed(run, span, e.route)
  if (e.route !== undefined) span.attributes[GEN_AI.responseModel] = modelOf(e.route)
  if (e.usage) spent(span.attributes, e.usage)
  if (e.finish !== undefined) span.attributes[GEN_AI.finishReasons] = e.finish
  if (e.cost !== undefined) span.attributes[TERRET.costUsd] = usdOf(e.cost)
  if (e.cached) span.attributes[TERRET.cached] = true
  if (run.capture.prompts) span.attributes[CONTENT.outputMessages] = outputMessage(e.parts, e.calls)
  span.endedAt = e.at
  run.model = null
}

export function failed(run: RunDraft, e: Of<'model.failed'>): void {
  run.cost += e.cost ?? 0
  const span = run.model
  if (!span) return
  routed(run, span, e.route)
  if (e.class === 'superseded' || e.class === 'interrupted') span.attributes[TERRET.stopped] = e.class
  else wrong(span, { at: e.at, type: e.class, message: e.message }, run.capture.prompts)
  if (run.capture.prompts && e.partial !== undefined)
    span.attributes[CONTENT.outputMessages] = outputMessage([{ type: 'text', text: e.partial }], [])
  span.endedAt = e.at
  run.model = null
}

/** One span, however often it is started. */
export function openCall(run: RunDraft, { key, proposal }: LoggedCall, at: number): Draft {
  const known = run.callSpans.get(key)
  if (known) return known
  const tool = label(proposal.tool)
  const span = newDraft(below(run, callSpanIdOf(run.session, key)), `execute_tool ${tool}`, at)
  span.attributes = { [GEN_AI.operation]: 'execute_tool', [GEN_AI.toolName]: tool, [GEN_AI.toolType]: 'function' }
  span.attributes[GEN_AI.toolCallId] = label(proposal.id)
  Object.assign(span.attributes, inRun(run), { [TERRET.call]: key, [TERRET.callEffect]: proposal.effect })
  const { child, answers } = outsideOf(proposal) ?? {}
  if (child !== undefined) span.attributes[TERRET.childSession] = childIdOf(run.session, key)
  if (answers) span.attributes[TERRET.childSession] = answers.session
  if (run.capture.args) span.attributes[CONTENT.toolArguments] = argumentsText(proposal.args)
  run.callSpans.set(key, span)
  run.drafts.push(span)
  return span
}

/** A call that never ran has no length: it came about and was over with its result. */
export function closeCall(run: RunDraft, call: LoggedCall, e: Of<'agent.tool_result'>): void {
  const span = openCall(run, call, e.at)
  const content = contentOf(call)
  span.endedAt = e.at
  span.attributes[TERRET.callStatus] = e.status
  span.attributes[TERRET.callStarts] = call.starts
  if (typeof content !== 'string') span.attributes[TERRET.resultHash] = content.hash
  const type = e.failure?.kind ?? e.status
  const size = typeof content === 'string' ? `${content.length} chars` : `${content.bytes} bytes`
  const how = e.status === 'ok' ? `ok (${size})` : `failed (${type})`
  span.attributes[TERRET.summary] = `${label(call.proposal.tool)}: ${how}`
  const { args, results } = run.capture
  if (e.status !== 'ok') wrong(span, { at: e.at, type, message: e.failure?.message ?? '' }, args && results)
  const text = results ? resultText(content) : null
  if (text !== null) span.attributes[CONTENT.toolResult] = text
}

export function settled(run: RunDraft, e: Of<'run.settled'>): void {
  const { span } = run
  span.endedAt = e.at
  span.attributes[TERRET.outcome] = e.outcome.type
  const trouble = troubleOf(e.outcome)
  const { prompts, args, results } = run.capture
  if (trouble) wrong(span, { at: e.at, ...trouble }, prompts && args && results)
}

/** The run's own span, with the sums of its replies. */
export function totalled(run: RunDraft): Draft {
  const { span, usage } = run
  const { attributes } = span
  if (run.epochs.size > 0) attributes[TERRET.attempts] = run.epochs.size
  attributes[TERRET.modelRequests] = run.requests
  if (run.requests > 0 && usage.known) {
    spent(attributes, { inputTokens: usage.input, outputTokens: usage.output })
    if (usage.cacheRead > 0) attributes[GEN_AI.cacheReadTokens] = usage.cacheRead
    if (usage.cacheWrite > 0) attributes[GEN_AI.cacheWriteTokens] = usage.cacheWrite
  }
  attributes[TERRET.costUsd] = usdOf(run.cost)
  return span
}

/** One reply that did not say what it used makes the sum unknown. A log may come from elsewhere: nothing is taken on trust. */
function count(run: RunDraft, usage: Usage | undefined): void {
  const sum = run.usage
  if (!usage || !isCount(usage.inputTokens) || !isCount(usage.outputTokens)) sum.known = false
  else {
    sum.input += usage.inputTokens
    sum.output += usage.outputTokens
    sum.cacheRead += usage.cachedTokens ?? 0
    sum.cacheWrite += usage.cacheWriteTokens ?? 0
  }
}

/** The total only when both of its parts are known. */
function spent(attributes: Writable, usage: Usage): void {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage
  const counts: readonly (readonly [string, number | undefined])[] = [
    [GEN_AI.inputTokens, inputTokens],
    [GEN_AI.outputTokens, outputTokens],
    [GEN_AI.totalTokens, isCount(inputTokens) && isCount(outputTokens) ? inputTokens + outputTokens : undefined],
    [GEN_AI.cacheReadTokens, cachedTokens],
    [GEN_AI.cacheWriteTokens, cacheWriteTokens],
    [GEN_AI.reasoningTokens, reasoningTokens],
  ]
  for (const [name, value] of counts) if (isCount(value)) attributes[name] = value
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** `host:model`, as models are named here. A run says which one it asked last. */
function routed(run: RunDraft, span: Draft, route: string | undefined): void {
  if (route === undefined) return
  const model = modelOf(route)
  const host = route.slice(0, Math.max(0, route.indexOf(':')))
  for (const { attributes } of [span, run.span]) {
    if (host !== '') attributes[GEN_AI.provider] = label(PROVIDERS[host] ?? host)
    attributes[GEN_AI.requestModel] = model
  }
  span.name = `chat ${model}`
}

function modelOf(route: string): string {
  return label(route.slice(route.indexOf(':') + 1))
}

/** Without captured content the class must do: a message may repeat what a tool was given or found. */
function wrong(span: Draft, { at, type, message }: Exception, captured: boolean): void {
  span.status = 'error'
  span.attributes[ERROR_TYPE] = type
  const said = captured && message !== undefined && message !== ''
  span.exceptions.push(said ? { at, type, message: bounded(message) } : { at, type })
}

function troubleOf(outcome: Outcome): { readonly type: string; readonly message?: string } | null {
  switch (outcome.type) {
    case 'failed':
      return { type: outcome.reason, message: outcome.failure.message }
    case 'limit':
      return { type: `limit_${outcome.limit}` }
    case 'halted':
      return { type: 'halted', message: outcome.reason }
    default:
      return null
  }
}

function newDraft(ids: Pick<Span, 'traceId' | 'spanId' | 'parentId'>, name: string, startedAt: number): Draft {
  const open = { kind: 'internal', startedAt, endedAt: null, status: 'unset' } as const
  return { ...ids, name, ...open, attributes: {}, exceptions: [] }
}

function below(run: RunDraft, spanId: string): Pick<Span, 'traceId' | 'spanId' | 'parentId'> {
  return { traceId: run.traceId, spanId, parentId: run.span.spanId }
}

function inRun(run: RunDraft): Writable {
  return { [GEN_AI.agentName]: run.agent, [GEN_AI.conversation]: run.session }
}

const LABEL_CHARS_MAX = 128

/** Names and ids that a model may have made up: one line, and not a place to carry content. */
function label(text: string): string {
  return text.slice(0, LABEL_CHARS_MAX).replace(/[\p{Cc}\p{Cs}]/gu, '?')
}
