// `terret inspect`: the status, calls, cost, last answer and pending calls of a session.
import type { Card, Event, Json, CompleteStore, Usage } from '../../kernel/index.ts'
import { buildContextReport } from '../../context/context-report.ts'
import { type CacheMiss, missIn } from '../../view/request-context.ts'
import type { ReportState } from '../demo/report/report-graph.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { compactionLines, contextLines, missLines } from '../present/context-lines.ts'
import { pendingLines, decideHint } from '../present/result-output.ts'
import { EXIT, CliError } from '../exit.ts'
import { folderOf } from '../state/session-folders.ts'
import { readHeldSession, heldLines } from '../present/held-session.ts'
import { readAllEvents, readEvents, foldAll, readPending } from '../state/read-log.ts'
import { outageLine } from '../present/outage.ts'
import { ANSWER_CUT, isStoppedFailure, outcomeOf } from '../present/outcome.ts'
import { type CommandContext, withStoreToRead, findSession } from '../state/command-context.ts'
import { type ContextLimit, sessionWindow } from '../state/context-size.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { print, printJson, printModelText, outputStyle, shortId } from '../present/print.ts'
import { flowOf } from '../state/workflow-files.ts'
import { isWorkflowAgent } from '../state/workflow-agents.ts'
import { stateIn, stopsOf } from '../../view/node-stops.ts'
import { type CallEdit, CallLog, decisionsIn } from '../../view/call-log.ts'
import { changesText } from '../../view/argument-changes.ts'
import { attemptsText } from '../present/look-text.ts'
import { sessionTask } from './list-command.ts'
import { readSessionTree } from '../state/read-tree.ts'
import { drawTree, stateOf } from '../../view/tree-rows.ts'
import { countNoun, textOf } from '../../view/shown-text.ts'
import { usdOf } from '../../view/usd.ts'
import { usdText } from '../../view/usd.ts'

export function inspectCommand(call: CommandArgs): Promise<number> {
  return withStoreToRead(async (place) => {
    const card = await findSession(place, call.words[0] ?? '')
    return call.is('tree') ? showTree(call, card, place.store) : showSession(call, place, card)
  })
}

async function showSession(call: CommandArgs, place: CommandContext, card: Card): Promise<number> {
  const { session } = card
  const events = await readAllEvents(place.store, session)
  const pending = await readPending(place.store, card.root)
  const folder = await folderOf(place, session)
  if (call.is('context')) return showContext(call, card, await sessionWindow(place, folder, events), place.store)
  const { compactions, tokens, counted: isCounted } = await buildContextReport(place.store, session, UNKNOWN)
  const summary = { ...summarizeEvents(events), compactions }
  const decisions = decisionsByCall(events)
  const tree = await treeTotals(place.store, card, summary)
  const task = await sessionTask(place.store, session)
  const workflow = isWorkflowAgent(card.agent) ? await workflowReport(events) : null
  const { environment, attachments } = sessionOrigin(events)
  if (call.is('json')) {
    const said = { folder, environment, attachments, task, summary, decisions, pending, state: foldAll(events) }
    const treeCost = tree?.cost ?? card.cost
    const money = { treeCost, costUsd: usdOf(card.cost), treeCostUsd: usdOf(treeCost) }
    printJson({ ...card, ...money, ...said, tree, ...(workflow ? { workflow } : {}) })
    return EXIT.ok
  }
  const { created, runs, requests, calls, tools, text, cut, last } = summary
  print(`Session   ${shownId(session)}`)
  const why = card.status === 'idle' ? lastOutcomeText(last) : ''
  print(`State     ${stateOf(card)}${why}`)
  if (card.outage) print(`Outage    ${outageLine(card) ?? ''}`)
  if (card.trouble) print(`Trouble   ${attemptsText(session, card.trouble)}`)
  const elsewhere = drivenElsewhere(place, card)
  if (elsewhere !== null) print(`Driven    ${oneLine(elsewhere, 400)}`)
  print(`Folder    ${oneLine(folder ?? 'not known', 400)}`)
  if (environment !== null) print(`Environment ${oneLine(environment, 400)}`)
  for (const { name = 'a file', media, bytes } of attachments)
    print(`Attached  ${oneLine(name, 300)}, ${oneLine(media)}, ${bytes} bytes`)
  print(`Task      ${oneLine(task, 400)}`)
  print(
    `Began     ${created === null ? '?' : new Date(created).toISOString()}, last event ${new Date(card.at).toISOString()}`,
  )
  const did = [countNoun(runs, 'run'), countNoun(requests, 'request'), countNoun(calls, 'call')]
  print(`Events    ${events.length}; ${did.join(', ')}`)
  print(`Spent     ${spendingText(summary, card.cost)}`)
  if (tree) print(`In all    ${spendingText(tree, tree.cost)}, with ${countNoun(tree.sessions - 1, 'child session')}`)
  if (isCounted) print(`Context   ${tokens} tokens; --context says what they are`)
  if (summary.epochs > 1) print(`Prefix    made ${summary.epochs} times`)
  for (const line of [...compactionLines(compactions), ...missLines(summary.misses)]) print(line)
  if (workflow) for (const line of workflowLines(workflow)) print(line)
  for (const [tool, ends] of workflow ? [] : Object.entries(tools)) {
    print(
      `Tool      ${oneLine(tool)}: ${Object.entries(ends)
        .map(([status, n]) => `${n} ${status}`)
        .join(', ')}`,
    )
  }
  for (const each of decisions)
    print(
      `Decided   call ${each.call}, ${oneLine(each.tool)}: ${each.allow ? 'yes' : 'no'} (${each.by.map((name) => oneLine(name)).join(', ')})${'edited' in each ? callEditText(each.edited) : ''}`,
    )
  if (card.wakes > 0) print(`Wakes     ${card.wakes}`)
  const showing = { folder, ...outputStyle(process.stdout, call.is('whole')) }
  const held = await readHeldSession(place.store, session)
  if (held) print(...(await heldLines(held, showing)))
  for (const each of pending) print(...(await pendingLines(each, showing)), decideHint(each))
  if (!workflow && text.trim() !== '') {
    print('')
    await printModelText(text.trim())
    if (cut) print(`! ${ANSWER_CUT}`)
  }
  return EXIT.ok
}

/** Used where the context size is not shown, so that no host is asked for it. */
const UNKNOWN: ContextLimit = { tokens: Number.POSITIVE_INFINITY, compacts: true }

/** Shows the session and all sessions below it, one on each line. */
async function showTree(call: CommandArgs, card: Card, store: CompleteStore): Promise<number> {
  const rows = await readSessionTree(store, card)
  if (call.is('json')) for (const row of rows) printJson(row)
  else for (const line of drawTree(rows, { now: store.now(), safe: oneLine, top: shortId })) print(line)
  return EXIT.ok
}

/** Shows the content of the session's next request. */
async function showContext(
  call: CommandArgs,
  { session, agent }: Card,
  window: ContextLimit,
  store: CompleteStore,
): Promise<number> {
  if (isWorkflowAgent(agent))
    throw new CliError(
      EXIT.usage,
      `Session ${shortId(session)} is a workflow: no model reads it, so it has no context.`,
    )
  const report = await buildContextReport(store, session, window)
  if (call.is('json')) printJson(report)
  else for (const line of [`Session   ${shownId(session)}`, ...contextLines(report)]) print(line)
  return EXIT.ok
}

/** The environment and the attachments with which the session was opened. */
function sessionOrigin([created]: readonly Event[]) {
  const { environment = null, attachments = [] } = created?.type === 'session.created' ? created : NO_ORIGIN
  return { environment, attachments }
}

const NO_ORIGIN: Pick<Extract<Event, { type: 'session.created' }>, 'environment' | 'attachments'> = {}

/** The nodes of a workflow, their artifacts and the state. `history` shows the log. */
export async function workflowReport(events: readonly Event[]) {
  const { reportNodeText } = await import('../demo/report/report-graph.ts')
  const [created] = events
  const isFlow = created?.type === 'session.created' && flowOf(created.agent) !== null
  const state = stateIn<ReportState>(events) ?? {}
  return { nodes: stopsOf(events, isFlow ? () => '' : reportNodeText), artifacts: state.artifacts ?? [], state }
}

function workflowLines({ nodes, artifacts }: Awaited<ReturnType<typeof workflowReport>>): readonly string[] {
  return [
    ...nodes.map(({ node, status, attempts, durationMs, found }) => {
      const tries = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
      const took = durationMs === null ? '' : `${durationMs} ms`
      return `Node      ${node.padEnd(9)} ${status.padEnd(7)} ${tries.padEnd(10)} ${took.padStart(8)}  ${oneLine(found, 300)}`.trimEnd()
    }),
    ...artifacts.map(({ name, bytes, sha256, path }) => {
      return `Artifact  ${oneLine(name).padEnd(9)} ${bytes} bytes, sha256 ${sha256.slice(0, 16)}…${path ? `, for ${oneLine(path, 300)}` : ''}`
    }),
  ]
}

/** The tokens of this session and all sessions below it; null if it has no children. Costs are those of the cards. */
async function treeTotals(store: CompleteStore, card: Card, own: TokenCounts) {
  const below = await cardsBelow(store, card)
  if (below.length === 0) return null
  const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = own
  const tokens = { inputTokens, outputTokens, cachedTokens, reasoningTokens }
  const sum = { sessions: 1 + below.length, cost: card.cost, ...tokens }
  for (const { session, cost } of below) {
    sum.cost += cost
    try {
      for await (const event of readEvents(store, session)) if ('usage' in event) addTokens(sum, event.usage)
    } catch (error) {
      // The log of a child is damaged: its good events count, and `doctor` reports the damage.
      if (!(error instanceof CliError)) throw error
    }
  }
  return sum
}

/** Input tokens include those read from a cache; output tokens include reasoning tokens. */
type TokenCounts = { inputTokens: number; outputTokens: number; cachedTokens: number; reasoningTokens: number }
const NO_TOKENS: TokenCounts = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }

function spendingText({ inputTokens, outputTokens, cachedTokens, reasoningTokens }: TokenCounts, cost: number): string {
  const cached = cachedTokens > 0 ? ` (${cachedTokens} cached)` : ''
  const thought = reasoningTokens > 0 ? ` (${reasoningTokens} reasoning)` : ''
  // Tokens of a model at a custom address have no price here, but the host may charge for them.
  const price = cost === 0 && inputTokens + outputTokens > 0 ? 'price unknown' : usdText(cost)
  return `${inputTokens} tokens in${cached}, ${outputTokens} out${thought}, ${price}`
}

function addTokens(sum: TokenCounts, used: Usage | undefined): void {
  sum.inputTokens += used?.inputTokens ?? 0
  sum.outputTokens += used?.outputTokens ?? 0
  sum.cachedTokens += used?.cachedTokens ?? 0
  sum.reasoningTokens += used?.reasoningTokens ?? 0
}

type RunOutcome = Extract<Event, { type: 'run.settled' }>['outcome']

function lastOutcomeText(last: RunOutcome | null): string {
  if (last?.type === 'failed') return `: ${oneLine(last.failure.message, 400)}`
  return last?.type === 'halted' ? `: ${oneLine(last.reason, 400)}` : ''
}

/** Counts events, calls and tokens from the log alone. */
export function summarizeEvents(events: readonly Event[]) {
  const types: Record<string, number> = {}
  const tools: Record<string, Record<string, number>> = {}
  const log = new CallLog()
  const sum = { created: null as number | null, runs: 0, epochs: 0, requests: 0, calls: 0, ...NO_TOKENS }
  const misses: CacheMiss[] = []
  let text = ''
  /** True if the text is from a stopped answer. */
  let cut = false
  let last: RunOutcome | null = null
  for (const event of events) {
    types[event.type] = (types[event.type] ?? 0) + 1
    const [call] = log.take(event)
    sum.created ??= event.at
    if ('usage' in event) addTokens(sum, event.usage)
    if (event.type === 'run.started') {
      sum.runs += 1
      if (event.model !== undefined) sum.epochs += 1
    } else if (event.type === 'run.settled') last = event.outcome
    else if (event.type === 'agent.message') {
      sum.requests += 1
      sum.calls += event.calls.length
      misses.push(...missIn(event))
      const said = textOf(event.parts)
      if (said.trim() !== '') {
        text = said
        cut = false
      }
    } else if (event.type === 'agent.tool_result') {
      const ends = (tools[call?.proposal.tool ?? '?'] ??= {})
      const end = resultStatus(event)
      ends[end] = (ends[end] ?? 0) + 1
    } else if (event.type === 'model.failed' && isStoppedFailure(event) && event.partial?.trim()) {
      text = event.partial
      cut = true
    }
  }
  return { ...sum, misses, events: types, tools, text, cut, last }
}

/** The status of a result. A failed command counts by its exit code. */
function resultStatus(event: Extract<Event, { type: 'agent.tool_result' }>): string {
  const { good, command, trouble } = outcomeOf(event)
  return event.status === 'ok' && command && !good ? trouble : event.status
}

/** The decision about each call: by whom, and with which changes. */
function decisionsByCall(events: readonly Event[]) {
  const log = new CallLog()
  for (const event of events) log.take(event)
  return [...decisionsIn(events)].map(([key, { tool, counted: said }]) => {
    const { edit, proposal } = log.at(key) ?? { edit: null, proposal: { args: null } }
    const edited = edit ? { edited: { ...edit, asked: proposal.args } } : {}
    return { call: key, tool, allow: said.at(-1)?.allow ?? false, by: said.map(({ by }) => by), ...edited }
  })
}

function callEditText({ by, args, asked }: CallEdit & { readonly asked: Json }): string {
  return `, edited by ${oneLine(by)}: ${oneLine(changesText(asked, args), 300)}`
}
