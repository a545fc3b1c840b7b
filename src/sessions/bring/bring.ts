// Writes a conversation from elsewhere as the log of a new session: as settled runs, followed by `session.imported`,
// which marks them as history. Nothing is done on their authority. Loaded by the first session that is opened with
// messages.
import { hash } from 'node:crypto'
import type { BlobRef, CallStatus, Json } from '../../kernel/content.ts'
import { callKey, type EventBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob } from '../../ports/store.ts'
import type { SessionBeginning } from '../../runtime/loop/act-as-owner.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { textBlob } from '../../runtime/state/content-blobs.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import { textOf } from '../../view/shown-text.ts'
import {
  type NeutralMessage,
  type BroughtCall,
  type BroughtMessage,
  type BroughtResult,
  readBroughtMessages,
  badMessage,
} from './shapes.ts'

type BroughtTurn =
  | Extract<NeutralMessage, { role: 'user' }>
  | (Extract<NeutralMessage, { role: 'assistant' }> & { readonly results: readonly BroughtResult[] })

/** A result as the log has it. `status` replaces what `ok` says; a long content is stored beside the log. */
export type HistoryResult = Omit<BroughtResult, 'content'> & {
  readonly content: string | BlobRef
  readonly status?: CallStatus
}
/** A message, or a reply with the results of its calls. Each call has its own id within the reply, and one result. */
export type HistoryTurn =
  | Pick<Extract<NeutralMessage, { role: 'user' }>, 'role' | 'parts'>
  | (Pick<Extract<NeutralMessage, { role: 'assistant' }>, 'role' | 'parts' | 'calls'> & {
      readonly results: readonly HistoryResult[]
    })

/** The beginning of a session that is opened with these messages. */
export function bringMessages(
  services: Services,
  agent: string,
  messages: readonly BroughtMessage[],
): Pick<SessionBeginning, 'history' | 'messages'> & { readonly blobs: readonly Blob[] } {
  const { planner, limits } = services.agent(agent)
  if (planner !== null)
    throw new Fault(
      'invalid_config',
      `Agent "${agent}" is a workflow: it plans from its own log, and takes no messages.`,
    )
  const blobs: Blob[] = []
  const { redactor } = services
  const turns = groupTurns(readBroughtMessages(messages, blobs)).map((turn) => withCleanNames(turn, redactor))
  if (turns.length === 0) return { blobs: [] }
  const history = historyOf(turns, { limits, code: services.code })
  return {
    history: history.events,
    messages: hash('sha256', canonicalJson(redactor.json(JSON.parse(JSON.stringify(turns)) as Json))),
    blobs: [...blobs, ...history.blobs],
  }
}

/** A stranger may have chosen the names of these tools. */
function withCleanNames(turn: BroughtTurn, redactor: Services['redactor']): BroughtTurn {
  if (turn.role === 'user') return turn
  return { ...turn, calls: turn.calls.map((call) => ({ ...call, tool: redactor.text(call.tool) })) }
}

type History = { readonly events: readonly EventBody[]; readonly blobs: readonly Blob[] }

/** The events after `session.created`, and the blobs of the runs: without tools and without instructions. */
export function historyOf(turns: readonly HistoryTurn[], setup: Pick<HistorySetup, 'limits' | 'code'>): History {
  const toolset = textBlob('[]', 'application/json')
  const instructions = textBlob('', 'text/plain')
  const history = new HistoryLog({ toolset: toolset.hash, instructions: instructions.hash, ...setup })
  for (const [i, turn] of turns.entries()) history.add(turn, turns[i + 1])
  return { events: history.end(), blobs: [toolset, instructions] }
}

/** Joins each reply with the results of its calls, which stand right after it. Consecutive replies become one. */
function groupTurns(brought: readonly NeutralMessage[]): readonly BroughtTurn[] {
  const turns: BroughtTurn[] = []
  for (const message of brought) {
    const last = turns.at(-1)
    if (message.role === 'tool') turns.splice(-1, 1, addResult(last, message))
    else {
      checkAllAnswered(last)
      const merges = message.role === 'assistant' && last?.role === 'assistant' && last.calls.length === 0
      if (merges) turns.splice(-1, 1, { ...message, parts: [...last.parts, ...message.parts], results: [] })
      else turns.push(message.role === 'user' ? message : { ...message, results: [] })
      if (message.role === 'assistant') checkIds(message.calls, message.at)
    }
  }
  checkAllAnswered(turns.at(-1))
  return turns
}

function addResult(
  turn: BroughtTurn | undefined,
  { at, result }: Extract<NeutralMessage, { role: 'tool' }>,
): BroughtTurn {
  const { calls = [], results = [] } = turn?.role === 'assistant' ? turn : {}
  const isOpen = calls.some(({ id }) => id === result.id) && !results.some(({ id }) => id === result.id)
  if (turn?.role !== 'assistant' || !isOpen)
    throw badMessage(
      at,
      `is the result of "${result.id}", and no call of the reply before it waits for that. Leave it out`,
    )
  return { ...turn, results: [...results, result] }
}

function checkAllAnswered(turn: BroughtTurn | undefined): void {
  if (turn?.role !== 'assistant') return
  const open = turn.calls.find((call) => !turn.results.some(({ id }) => id === call.id))
  if (open)
    throw badMessage(
      turn.at,
      `calls "${open.tool}" (${open.id}) and has no result of it. Add the result after it, or leave the call out`,
    )
}

function checkIds(calls: readonly BroughtCall[], at: number): void {
  const twice = calls.find(({ id }, i) => calls.findIndex((other) => other.id === id) < i)
  if (twice) throw badMessage(at, `has two calls with the id "${twice.id}". Give each an id of its own`)
}

type HistorySetup = Pick<Extract<EventBody, { type: 'run.started' }>, 'toolset' | 'instructions' | 'limits' | 'code'>

/** Builds the events after `session.created`, one run for each question and its answer. */
class HistoryLog {
  readonly #setup: HistorySetup
  readonly #events: EventBody[] = []
  /** Messages and results that no reply has read yet, by seq. */
  #inputs: number[] = []
  #results: number[] = []
  #isOpen = false

  constructor(setup: HistorySetup) {
    this.#setup = setup
  }

  add(turn: HistoryTurn, following: HistoryTurn | undefined): void {
    if (turn.role === 'user') {
      const id = `brought-${this.#events.length}`
      this.#inputs.push(this.#write({ type: 'user.message', id, parts: turn.parts, when: 'next' }))
      return
    }
    const { parts, calls, results } = turn
    if (!this.#isOpen) this.#write({ type: 'run.started', inputs: this.#inputs, wakes: [], ...this.#setup })
    this.#isOpen = true
    this.#write({ type: 'model.started', shows: [...this.#results, ...this.#inputs] })
    this.#inputs = []
    const isLast = calls.length === 0 && following?.role !== 'assistant'
    const proposals = calls.map(({ id, tool, args }) => ({ id, tool, args, effect: 'once', timeoutMs: 0 }) as const)
    const verdict = isLast ? ({ type: 'final', output: textOf(parts) } as const) : ({ type: 'continue' } as const)
    const seq = this.#write({ type: 'agent.message', parts, calls: proposals, verdict })
    this.#results = calls.map(({ id }, i) =>
      this.#writeResult(
        callKey(seq, i),
        results.find((each) => each.id === id),
      ),
    )
    if (isLast) this.#settle()
  }

  /** Messages without an answer start nothing; the next run reads them. */
  end(): readonly EventBody[] {
    const inputs = this.#inputs
    if (this.#isOpen || inputs.length > 0)
      this.#write({ type: 'run.settled', outcome: { type: 'interrupted' }, ...(inputs.length > 0 ? { inputs } : {}) })
    return this.#events
  }

  #settle(): void {
    this.#write({ type: 'run.settled', outcome: { type: 'completed' } })
    this.#isOpen = false
  }

  #writeResult(call: string, result: HistoryResult | undefined): number {
    const { ok = false, content = '', parts = [], status = ok ? 'ok' : 'error' } = result ?? {}
    const files = parts.length > 0 ? { parts } : {}
    return this.#write({ type: 'agent.tool_result', call, status, content, ...files })
  }

  /** Returns the seq of the event. The log begins with `session.created`. */
  #write(body: EventBody): number {
    return this.#events.push(body) + 1
  }
}
