// Begins a cell: who asked for it, which cells are before it, and what it may do. All of it is read from logs, and
// recorded with the first reply, so that a later process need not look again.
import type { CallKey } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { ToolSchema } from '../ports/model.ts'
import type { Card, CompleteStore } from '../ports/store.ts'
import { listChildren } from '../runtime/state/children-below.ts'
import { readBlobs, readTextBlob } from '../runtime/state/content-blobs.ts'
import { conversationOf } from '../runtime/state/run-messages.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { childId, idsDownTo } from '../view/ids.ts'
import { SCRIPT } from '../view/script-cell.ts'
import { AGENT_QUERY, MODEL_QUERY } from './capabilities.ts'
import { type CellBegun, type CellLog, type CellTask, readCellLog, readCellTask } from './cell-log.ts'
import type { CellFailure } from './cell.ts'
import { type CompleteScriptOptions, currentMode, grantLimits, type ScriptLimits } from './script-options.ts'

const SESSIONS_MAX = 16
const IDLE_MS = 30 * 60_000
const CODE_BYTES_MAX = 64 * 1024

export type Refusal = { readonly refused: CellFailure }

type CellPlace = {
  readonly store: CompleteStore
  readonly options: CompleteScriptOptions
  /** The session of the cell, and the tools of its run. */
  readonly session: string
  readonly tools: readonly ToolSchema[]
}

export async function openCell(place: CellPlace, task: CellTask): Promise<CellBegun | Refusal> {
  const { options, session, store } = place
  const mode = currentMode(options)
  if (mode === 'off') return refuse('denied', 'Scripts are turned off here.')
  if (Buffer.byteLength(task.script) > CODE_BYTES_MAX)
    return refuse('script_error', `A cell has at most ${CODE_BYTES_MAX} bytes. Make several cells.`)
  const limits = grantLimits(mode, options.limits, askedLimits(task))
  const above = idsDownTo(session).at(-2)
  if (above === undefined) {
    const names = callableNames(place.tools, null)
    return { cell: 1, chain: [], names, limits, left: { model: limits.modelCalls, tool: limits.toolCalls } }
  }
  const key = session.slice(above.length + 1)
  const asked = await readAskedCall(store, above, key)
  if (asked === null) return refuse('denied', `Only the tool "${SCRIPT}" begins a script.`)
  const names = callableNames(place.tools, await toolsOfRun(store, above))
  const first = task.session_id
  if (first === undefined)
    return { cell: 1, chain: [], names, limits, left: { model: limits.modelCalls, tool: limits.toolCalls } }
  return continueSession({ store, above, key, first, at: asked.at }, limits, names)
}

function refuse(kind: string, message: string): Refusal {
  return { refused: { kind, message, at: null } }
}

function askedLimits({ limits = {} }: CellTask): Partial<ScriptLimits> {
  const { cells, model_calls: modelCalls, tool_calls: toolCalls, depth, concurrency } = limits
  const all = { cells, modelCalls, toolCalls, depth, concurrency }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** The tools of the cell's run that the run above it has too. */
function callableNames(tools: readonly ToolSchema[], above: ReadonlySet<string> | null): readonly string[] {
  const names = tools.map(({ name }) => name).filter((name) => name !== MODEL_QUERY && name !== AGENT_QUERY)
  return above === null ? names : names.filter((name) => above.has(name))
}

/** When the call was made. Null if it is no call of the tool `script`. */
async function readAskedCall(store: CompleteStore, above: string, key: CallKey): Promise<{ at: number } | null> {
  const [seq = 0, index = 0] = key.split('.').map(Number)
  const [reply] = (await store.read(above, seq - 1, 1)).events
  const isScript = reply?.type === 'agent.message' && reply.calls[index]?.tool === SCRIPT
  return isScript ? { at: reply.at } : null
}

/** The names that the open run of a session froze. */
async function toolsOfRun(store: CompleteStore, id: string): Promise<ReadonlySet<string>> {
  const { run } = await readSessionHead(store, id)
  const text = run ? await readTextBlob(store, run.toolset) : null
  const frozen = JSON.parse(text ?? '[]') as readonly { readonly name: string }[]
  return new Set(frozen.map(({ name }) => name))
}

type Continuing = {
  readonly store: CompleteStore
  readonly above: string
  readonly key: CallKey
  /** The key of the call that began the script session. */
  readonly first: string
  readonly at: number
}

async function continueSession(
  { store, above, key, first, at }: Continuing,
  limits: ScriptLimits,
  names: readonly string[],
): Promise<CellBegun | Refusal> {
  const before = (await readCellCards(store, above)).filter((cell) => isBefore(cell.key, key))
  const own = before.filter((cell) => cell.first === first)
  const last = own.at(-1)
  if (last === undefined || own[0]?.key !== first)
    return refuse(
      'script_error',
      `This session has no script session "${first.slice(0, 64)}": begin one without session_id.`,
    )
  if (own.some(({ card }) => card.status === 'running' || card.status === 'requires_action' || card.due !== null))
    return refuse('session_busy', `Another cell of the script session "${first}" runs: wait for its result.`)
  const later = new Set(before.filter((cell) => isBefore(last.key, cell.key)).map((cell) => cell.first))
  if (later.size >= SESSIONS_MAX)
    return refuse(
      'script_error',
      `The script session "${first}" was dropped: ${SESSIONS_MAX} others were used since. Begin a new one.`,
    )
  if (at - last.card.at > IDLE_MS)
    return refuse(
      'script_error',
      `The script session "${first}" was dropped: it was not used for 30 minutes. Begin a new one.`,
    )
  const logs = await Promise.all(own.map(({ card }) => readLogOf(store, card.session)))
  if (logs.some(({ task, end }) => end !== null && readCellTask(task).close_session === true))
    return refuse('script_error', `The script session "${first}" was closed. Begin a new one.`)
  if (own.length >= limits.cells)
    return refuse('limit_exceeded', `A script session has at most ${limits.cells} cells. Begin a new one.`)
  const used = logs.flatMap(({ parts }) => parts.flatMap(({ calls }) => calls))
  const model = used.filter(({ of }) => of === 'model').length
  const left = {
    model: Math.max(0, limits.modelCalls - model),
    tool: Math.max(0, limits.toolCalls - (used.length - model)),
  }
  const chain = own.flatMap(({ card }, i) => (logs[i]?.end && !logs[i].end.lost ? card.session : []))
  return { cell: own.length + 1, chain, names, limits, left }
}

type CellCard = { readonly card: Card; readonly key: CallKey; readonly first: string }

/** The cells that a session has begun, in the order of their calls. */
async function readCellCards(store: CompleteStore, above: string): Promise<readonly CellCard[]> {
  const found: CellCard[] = []
  for await (const card of listChildren(store, above)) {
    if (card.agent !== SCRIPT) continue
    const key = card.session.slice(above.length + 1)
    const [, message] = (await store.read(card.session, 0, 2)).events
    const [part] = message?.type === 'user.message' ? message.parts : []
    const { session_id: first = key } = readCellTask(part?.type === 'text' ? part.text : '')
    found.push({ card, key, first })
  }
  return found.sort((a, b) => (isBefore(a.key, b.key) ? -1 : 1))
}

function isBefore(one: CallKey, other: CallKey): boolean {
  const [[seq = 0, index = 0], [otherSeq = 0, otherIndex = 0]] = [
    one.split('.').map(Number),
    other.split('.').map(Number),
  ]
  return seq < otherSeq || (seq === otherSeq && index < otherIndex)
}

export function scriptSessionOf(session: string, { session_id: first }: CellTask): string {
  const above = idsDownTo(session).at(-2)
  return above === undefined || first === undefined ? session : childId(above, first)
}

/** The log of a cell that has ended. */
export async function readLogOf(store: CompleteStore, session: string): Promise<CellLog> {
  const events: Event[] = []
  for (let page = await store.read(session, 0); page.events.length > 0; ) {
    events.push(...page.events)
    page = await store.read(session, page.events.at(-1)?.seq ?? 0)
  }
  const messages = conversationOf(events)
  return readCellLog(await readBlobs(store, messages, ({ seq }) => seq))
}
