// Builds spans: the events of one run add to them. This file decides the content of a span; project-spans.ts decides
// which spans exist.
import type { CallKey, Mutable, Outcome, Part, Usage } from '../../kernel/content.ts'
import type { EventOf } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { argumentsText, boundText, inputMessages, outputMessage, resultText } from './span-content.ts'
import { CONTENT, ERROR_TYPE, GEN_AI, PROVIDERS, TERRET } from './attribute-names.ts'
import { CallLog, contentOf, type LoggedCall } from '../call-log.ts'
import { callSpanIdOf, type CapturedContent, childIdOf, type Exception, type Span } from './span.ts'
import { usdOf } from '../usd.ts'

type SpanAttributes = Record<string, string | number | boolean>

export type SpanDraft = Omit<Mutable<Span>, 'attributes' | 'exceptions'> & {
  attributes: SpanAttributes
  exceptions: Exception[]
}

export type RunDraft = {
  readonly seq: number
  readonly traceId: string
  readonly session: string
  readonly agent: string
  readonly capture: CapturedContent
  readonly sampled: boolean
  readonly span: SpanDraft
  /** Its model calls and tool calls, in the order they began. */
  readonly drafts: SpanDraft[]
  readonly calls: CallLog
  readonly callSpans: Map<CallKey, SpanDraft>
  readonly epochs: Set<number>
  model: SpanDraft | null
  requests: number
  /** In millionths of a dollar. */
  cost: number
  readonly usage: { input: number; output: number; cacheRead: number; cacheWrite: number; known: boolean }
}

export type RunSpanContext = Pick<Span, 'traceId' | 'spanId' | 'parentId'> & {
  readonly session: string
  readonly created: EventOf<'session.created'> | null
  readonly capture: CapturedContent
  readonly sampled: boolean
}

export function openRunSpan(
  { traceId, spanId, parentId, session, created, capture, sampled }: RunSpanContext,
  e: EventOf<'run.started'>,
): RunDraft {
  const agent = labelText(created?.agent ?? 'unknown')
  const attributes: SpanAttributes = {
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
  const span: SpanDraft = { ...newDraft(ids, `invoke_agent ${agent}`, e.at), attributes }
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, known: true }
  const lists = { drafts: [], calls: new CallLog(), callSpans: new Map(), epochs: new Set<number>() }
  const own = { seq: e.seq, traceId, session, agent, capture, sampled, span }
  return { ...own, ...lists, model: null, requests: 0, cost: 0, usage }
}

export function openModelSpan(
  run: RunDraft,
  e: EventOf<'model.started'>,
  spanId: string,
  shown: readonly (readonly Part[])[],
): void {
  const span: SpanDraft = { ...newDraft(idsBelow(run, spanId), 'chat', e.at), kind: 'client' }
  span.attributes = { [GEN_AI.operation]: 'chat', ...runAttributes(run) }
  if (shown.length > 0) span.attributes[CONTENT.inputMessages] = inputMessages(shown)
  run.model = span
  run.drafts.push(span)
}

export function closeModelSpan(run: RunDraft, e: EventOf<'agent.message'>): void {
  run.requests += 1
  run.cost += e.cost ?? 0
  countUsage(run, e.usage)
  const span = run.model
  if (!span) return
  addRoute(run, span, e.route)
  if (e.route !== undefined) span.attributes[GEN_AI.responseModel] = modelOf(e.route)
  if (e.usage) addUsage(span.attributes, e.usage)
  if (e.finish !== undefined) span.attributes[GEN_AI.finishReasons] = e.finish
  if (e.cost !== undefined) span.attributes[TERRET.costUsd] = usdOf(e.cost)
  if (e.cached) span.attributes[TERRET.cached] = true
  if (run.capture.prompts) span.attributes[CONTENT.outputMessages] = outputMessage(e.parts, e.calls)
  span.endedAt = e.at
  run.model = null
}

export function failModelSpan(run: RunDraft, e: EventOf<'model.failed'>): void {
  run.cost += e.cost ?? 0
  const span = run.model
  if (!span) return
  addRoute(run, span, e.route)
  if (e.class === 'superseded' || e.class === 'interrupted') span.attributes[TERRET.stopped] = e.class
  else markError(span, { at: e.at, type: e.class, message: e.message }, run.capture.prompts)
  if (run.capture.prompts && e.partial !== undefined)
    span.attributes[CONTENT.outputMessages] = outputMessage([{ type: 'text', text: e.partial }], [])
  span.endedAt = e.at
  run.model = null
}

/** One span, however often the call is started. */
export function openCallSpan(run: RunDraft, { key, proposal }: LoggedCall, at: number): SpanDraft {
  const known = run.callSpans.get(key)
  if (known) return known
  const tool = labelText(proposal.tool)
  const span = newDraft(idsBelow(run, callSpanIdOf(run.session, key)), `execute_tool ${tool}`, at)
  span.attributes = { [GEN_AI.operation]: 'execute_tool', [GEN_AI.toolName]: tool, [GEN_AI.toolType]: 'function' }
  span.attributes[GEN_AI.toolCallId] = labelText(proposal.id)
  Object.assign(span.attributes, runAttributes(run), { [TERRET.call]: key, [TERRET.callEffect]: proposal.effect })
  const { child, answers } = outsideOf(proposal) ?? {}
  if (child !== undefined) span.attributes[TERRET.childSession] = childIdOf(run.session, key)
  if (answers) span.attributes[TERRET.childSession] = answers.session
  if (run.capture.args) span.attributes[CONTENT.toolArguments] = argumentsText(proposal.args)
  run.callSpans.set(key, span)
  run.drafts.push(span)
  return span
}

/** A call that never ran has no duration: it begins and ends with its result. */
export function closeCallSpan(run: RunDraft, call: LoggedCall, e: EventOf<'agent.tool_result'>): void {
  const span = openCallSpan(run, call, e.at)
  const content = contentOf(call)
  span.endedAt = e.at
  span.attributes[TERRET.callStatus] = e.status
  span.attributes[TERRET.callStarts] = call.starts
  if (typeof content !== 'string') span.attributes[TERRET.resultHash] = content.hash
  const type = e.failure?.kind ?? e.status
  const size = typeof content === 'string' ? `${content.length} chars` : `${content.bytes} bytes`
  const how = e.status === 'ok' ? `ok (${size})` : `failed (${type})`
  span.attributes[TERRET.summary] = `${labelText(call.proposal.tool)}: ${how}`
  const { args, results } = run.capture
  if (e.status !== 'ok') markError(span, { at: e.at, type, message: e.failure?.message ?? '' }, args && results)
  const text = results ? resultText(content) : null
  if (text !== null) span.attributes[CONTENT.toolResult] = text
}

export function closeRunSpan(run: RunDraft, e: EventOf<'run.settled'>): void {
  const { span } = run
  span.endedAt = e.at
  span.attributes[TERRET.outcome] = e.outcome.type
  const trouble = outcomeError(e.outcome)
  const { prompts, args, results } = run.capture
  if (trouble) markError(span, { at: e.at, ...trouble }, prompts && args && results)
}

/** The run's own span, with the sums over its replies. */
export function totalRunSpan(run: RunDraft): SpanDraft {
  const { span, usage } = run
  const { attributes } = span
  if (run.epochs.size > 0) attributes[TERRET.attempts] = run.epochs.size
  attributes[TERRET.modelRequests] = run.requests
  if (run.requests > 0 && usage.known) {
    addUsage(attributes, { inputTokens: usage.input, outputTokens: usage.output })
    if (usage.cacheRead > 0) attributes[GEN_AI.cacheReadTokens] = usage.cacheRead
    if (usage.cacheWrite > 0) attributes[GEN_AI.cacheWriteTokens] = usage.cacheWrite
  }
  attributes[TERRET.costUsd] = usdOf(run.cost)
  return span
}

/** One reply without usage makes the sum unknown. A log may come from elsewhere, so its numbers are checked. */
function countUsage(run: RunDraft, usage: Usage | undefined): void {
  const sum = run.usage
  if (!usage || !isCount(usage.inputTokens) || !isCount(usage.outputTokens)) sum.known = false
  else {
    sum.input += usage.inputTokens
    sum.output += usage.outputTokens
    sum.cacheRead += usage.cachedTokens ?? 0
    sum.cacheWrite += usage.cacheWriteTokens ?? 0
  }
}

/** The total is set only when both parts are known. */
function addUsage(attributes: SpanAttributes, usage: Usage): void {
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

/** Routes are named `host:model`. A run shows the one it asked last. */
function addRoute(run: RunDraft, span: SpanDraft, route: string | undefined): void {
  if (route === undefined) return
  const model = modelOf(route)
  const host = route.slice(0, Math.max(0, route.indexOf(':')))
  for (const { attributes } of [span, run.span]) {
    if (host !== '') attributes[GEN_AI.provider] = labelText(PROVIDERS[host] ?? host)
    attributes[GEN_AI.requestModel] = model
  }
  span.name = `chat ${model}`
}

function modelOf(route: string): string {
  return labelText(route.slice(route.indexOf(':') + 1))
}

/** Without captured content only the class is recorded: a message may repeat a tool's input or output. */
function markError(span: SpanDraft, { at, type, message }: Exception, captured: boolean): void {
  span.status = 'error'
  span.attributes[ERROR_TYPE] = type
  const said = captured && message !== undefined && message !== ''
  span.exceptions.push(said ? { at, type, message: boundText(message) } : { at, type })
}

function outcomeError(outcome: Outcome): { readonly type: string; readonly message?: string } | null {
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

function newDraft(ids: Pick<Span, 'traceId' | 'spanId' | 'parentId'>, name: string, startedAt: number): SpanDraft {
  const open = { kind: 'internal', startedAt, endedAt: null, status: 'unset' } as const
  return { ...ids, name, ...open, attributes: {}, exceptions: [] }
}

function idsBelow(run: RunDraft, spanId: string): Pick<Span, 'traceId' | 'spanId' | 'parentId'> {
  return { traceId: run.traceId, spanId, parentId: run.span.spanId }
}

function runAttributes(run: RunDraft): SpanAttributes {
  return { [GEN_AI.agentName]: run.agent, [GEN_AI.conversation]: run.session }
}

const LABEL_CHARS_MAX = 128

/** Names and ids may be made up by a model: they are cut to one short line, so that they cannot carry content. */
function labelText(text: string): string {
  return text.slice(0, LABEL_CHARS_MAX).replace(/[\p{Cc}\p{Cs}]/gu, '?')
}
