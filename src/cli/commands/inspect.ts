// `terret inspect`: the status, calls, cost, last answer and pending calls of a session.
import type { Card, Event, Json, Store, Usage } from '../../kernel/index.ts'
import { contextReport } from '../../context/report.ts'
import { type CacheMiss, missIn } from '../../view/context.ts'
import type { ReportState } from '../../graphs/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import type { Call } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { compactionLines, contextLines, missLines } from '../present/context.ts'
import { pendingLines, wayLine } from '../present/ending.ts'
import { EXIT, Refusal } from '../exit.ts'
import { folderOf } from '../state/folders.ts'
import { heldIn, heldLines } from '../present/held.ts'
import { allEvents, eventsOf, foldAll, pendingIn } from '../state/log.ts'
import { outageLine } from '../present/outage.ts'
import { CUT, isStopped, outcomeOf } from '../present/outcome.ts'
import { type Place, readPlace, sessionOf } from '../state/place.ts'
import { type Window, windowIn } from '../state/window.ts'
import { drivenElsewhere } from '../state/program.ts'
import { print, printJson, printSaid, seatOf, shortId } from '../present/print.ts'
import { flowOf } from '../state/flows.ts'
import { isPlanned } from '../state/workflows.ts'
import { stateIn, stopsOf } from '../../view/node-stops.ts'
import { type CallEdit, CallLog, decisionsIn } from '../../view/calls.ts'
import { changesText } from '../../view/edited.ts'
import { troubleText } from '../present/looked.ts'
import { taskOf } from './list.ts'
import { treeIn } from '../state/tree.ts'
import { drawnTree, stateOf } from '../../view/tree.ts'
import { counted, textOf } from '../../view/text.ts'
import { usdOf } from '../../view/usd.ts'
import { usdText } from '../../view/usd.ts'

export function inspect(call: Call): Promise<number> {
  return readPlace(async (place) => {
    const card = await sessionOf(place, call.words[0] ?? '')
    return call.is('tree') ? showTree(call, card, place.store) : showSession(call, place, card)
  })
}

async function showSession(call: Call, place: Place, card: Card): Promise<number> {
  const { session } = card
  const events = await allEvents(place.store, session)
  const pending = await pendingIn(place.store, card.root)
  const folder = await folderOf(place, session)
  if (call.is('context')) return showContext(call, card, await windowIn(place, folder, events), place.store)
  const { compactions, tokens, counted: isCounted } = await contextReport(place.store, session, UNKNOWN)
  const summary = { ...summaryOf(events), compactions }
  const decisions = decidedIn(events)
  const tree = await treeOf(place.store, card, summary)
  const task = await taskOf(place.store, session)
  const workflow = isPlanned(card.agent) ? await workflowIn(events) : null
  const { environment, attachments } = originIn(events)
  if (call.is('json')) {
    const said = { folder, environment, attachments, task, summary, decisions, pending, state: foldAll(events) }
    const treeCost = tree?.cost ?? card.cost
    const money = { treeCost, costUsd: usdOf(card.cost), treeCostUsd: usdOf(treeCost) }
    printJson({ ...card, ...money, ...said, tree, ...(workflow ? { workflow } : {}) })
    return EXIT.ok
  }
  const { created, runs, requests, calls, tools, text, cut, last } = summary
  print(`Session   ${shownId(session)}`)
  const why = card.status === 'idle' ? endedBy(last) : ''
  print(`State     ${stateOf(card)}${why}`)
  if (card.outage) print(`Outage    ${outageLine(card) ?? ''}`)
  if (card.trouble) print(`Trouble   ${troubleText(session, card.trouble)}`)
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
  const did = [counted(runs, 'run'), counted(requests, 'request'), counted(calls, 'call')]
  print(`Events    ${events.length}; ${did.join(', ')}`)
  print(`Spent     ${spentText(summary, card.cost)}`)
  if (tree) print(`In all    ${spentText(tree, tree.cost)}, with ${counted(tree.sessions - 1, 'child session')}`)
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
      `Decided   call ${each.call}, ${oneLine(each.tool)}: ${each.allow ? 'yes' : 'no'} (${each.by.map((name) => oneLine(name)).join(', ')})${'edited' in each ? editText(each.edited) : ''}`,
    )
  if (card.wakes > 0) print(`Wakes     ${card.wakes}`)
  const showing = { folder, ...seatOf(process.stdout, call.is('whole')) }
  const held = await heldIn(place.store, session)
  if (held) print(...(await heldLines(held, showing)))
  for (const each of pending) print(...(await pendingLines(each, showing)), wayLine(each))
  if (!workflow && text.trim() !== '') {
    print('')
    printSaid(text.trim())
    if (cut) print(`! ${CUT}`)
  }
  return EXIT.ok
}

/** For what is shown without the size of a window: no host is asked for it. */
const UNKNOWN: Window = { tokens: Number.POSITIVE_INFINITY, compacts: true }

/** The session and all below it, one line each. */
async function showTree(call: Call, card: Card, store: Store): Promise<number> {
  const rows = await treeIn(store, card)
  if (call.is('json')) for (const row of rows) printJson(row)
  else for (const line of drawnTree(rows, { now: store.now(), safe: oneLine, top: shortId })) print(line)
  return EXIT.ok
}

/** What its next request holds. */
async function showContext(call: Call, { session, agent }: Card, window: Window, store: Store): Promise<number> {
  if (isPlanned(agent))
    throw new Refusal(EXIT.usage, `Session ${shortId(session)} is a workflow: no model reads it, so it has no context.`)
  const report = await contextReport(store, session, window)
  if (call.is('json')) printJson(report)
  else for (const line of [`Session   ${shownId(session)}`, ...contextLines(report)]) print(line)
  return EXIT.ok
}

/** The environment and attachments it was opened with. */
function originIn([created]: readonly Event[]) {
  const { environment = null, attachments = [] } = created?.type === 'session.created' ? created : NO_ORIGIN
  return { environment, attachments }
}

const NO_ORIGIN: Pick<Extract<Event, { type: 'session.created' }>, 'environment' | 'attachments'> = {}

/** For a workflow: its nodes, their artifacts and the state. `history` shows the log. */
export async function workflowIn(events: readonly Event[]) {
  const { reportFound } = await import('../../graphs/index.ts')
  const [created] = events
  const isFlow = created?.type === 'session.created' && flowOf(created.agent) !== null
  const state = stateIn<ReportState>(events) ?? {}
  return { nodes: stopsOf(events, isFlow ? () => '' : reportFound), artifacts: state.artifacts ?? [], state }
}

function workflowLines({ nodes, artifacts }: Awaited<ReturnType<typeof workflowIn>>): readonly string[] {
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

/** Of this session and all sessions below it; null if it has no children. Dollars are those of the cards. */
async function treeOf(store: Store, card: Card, own: Tokens) {
  const below = await cardsBelow(store, card)
  if (below.length === 0) return null
  const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = own
  const tokens = { inputTokens, outputTokens, cachedTokens, reasoningTokens }
  const sum = { sessions: 1 + below.length, cost: card.cost, ...tokens }
  for (const { session, cost } of below) {
    sum.cost += cost
    try {
      for await (const event of eventsOf(store, session)) if ('usage' in event) addTokens(sum, event.usage)
    } catch (error) {
      // The log of a child is damaged: count its good events; `doctor` reports the damage.
      if (!(error instanceof Refusal)) throw error
    }
  }
  return sum
}

/** Input tokens include those read from a cache, output tokens those spent on reasoning. */
type Tokens = { inputTokens: number; outputTokens: number; cachedTokens: number; reasoningTokens: number }
const NO_TOKENS: Tokens = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }

function spentText({ inputTokens, outputTokens, cachedTokens, reasoningTokens }: Tokens, cost: number): string {
  const cached = cachedTokens > 0 ? ` (${cachedTokens} cached)` : ''
  const thought = reasoningTokens > 0 ? ` (${reasoningTokens} reasoning)` : ''
  // Tokens of a model at an address of one's own have no price here; what is behind the address may ask for money.
  const price = cost === 0 && inputTokens + outputTokens > 0 ? 'price unknown' : usdText(cost)
  return `${inputTokens} tokens in${cached}, ${outputTokens} out${thought}, ${price}`
}

function addTokens(sum: Tokens, used: Usage | undefined): void {
  sum.inputTokens += used?.inputTokens ?? 0
  sum.outputTokens += used?.outputTokens ?? 0
  sum.cachedTokens += used?.cachedTokens ?? 0
  sum.reasoningTokens += used?.reasoningTokens ?? 0
}

type Settled = Extract<Event, { type: 'run.settled' }>['outcome']

function endedBy(last: Settled | null): string {
  if (last?.type === 'failed') return `: ${oneLine(last.failure.message, 400)}`
  return last?.type === 'halted' ? `: ${oneLine(last.reason, 400)}` : ''
}

/** Counted from the log alone. */
export function summaryOf(events: readonly Event[]) {
  const types: Record<string, number> = {}
  const tools: Record<string, Record<string, number>> = {}
  const log = new CallLog()
  const sum = { created: null as number | null, runs: 0, epochs: 0, requests: 0, calls: 0, ...NO_TOKENS }
  const misses: CacheMiss[] = []
  let text = ''
  /** The text is from a stopped answer. */
  let cut = false
  let last: Settled | null = null
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
      const end = endOf(event)
      ends[end] = (ends[end] ?? 0) + 1
    } else if (event.type === 'model.failed' && isStopped(event) && event.partial?.trim()) {
      text = event.partial
      cut = true
    }
  }
  return { ...sum, misses, events: types, tools, text, cut, last }
}

/** A command is counted by its exit code. */
function endOf(event: Extract<Event, { type: 'agent.tool_result' }>): string {
  const { good, command, trouble } = outcomeOf(event)
  return event.status === 'ok' && command && !good ? trouble : event.status
}

/** Who decided each call, and what they changed in it. */
function decidedIn(events: readonly Event[]) {
  const log = new CallLog()
  for (const event of events) log.take(event)
  return [...decisionsIn(events)].map(([key, { tool, counted: said }]) => {
    const { edit, proposal } = log.at(key) ?? { edit: null, proposal: { args: null } }
    const edited = edit ? { edited: { ...edit, asked: proposal.args } } : {}
    return { call: key, tool, allow: said.at(-1)?.allow ?? false, by: said.map(({ by }) => by), ...edited }
  })
}

function editText({ by, args, asked }: CallEdit & { readonly asked: Json }): string {
  return `, edited by ${oneLine(by)}: ${oneLine(changesText(asked, args), 300)}`
}
