// A conversation that took place elsewhere, as the log of a new session. It is written as runs that have settled, and `session.imported`
// after them says that it is history: nothing is done on its word. Loaded by the first session that is opened with messages.
import { hash } from 'node:crypto'
import type { Json } from '../../kernel/content.ts'
import { callKey, type EventBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob } from '../../ports/store.ts'
import type { Beginning } from '../../engine/owner.ts'
import { type Services, textBlob } from '../../engine/wiring.ts'
import { canonicalJson } from '../../tools/core/canonical.ts'
import { textOf } from '../../view/text.ts'
import {
  type Brought,
  type BroughtCall,
  type BroughtMessage,
  type BroughtResult,
  readMessages,
  wrong,
} from './shapes.ts'

type Turn =
  | Extract<Brought, { role: 'user' }>
  | (Extract<Brought, { role: 'assistant' }> & { readonly results: readonly BroughtResult[] })

/** What a session that is opened with these messages begins with. */
export function bringMessages(
  services: Services,
  agent: string,
  messages: readonly BroughtMessage[],
): Pick<Beginning, 'history' | 'messages'> & { readonly blobs: readonly Blob[] } {
  const { planner, limits } = services.agent(agent)
  if (planner !== null)
    throw new Fault(
      'invalid_config',
      `Agent "${agent}" is a workflow: it plans from its own log, and takes no messages.`,
    )
  const blobs: Blob[] = []
  const turns = turnsOf(readMessages(messages, blobs))
  if (turns.length === 0) return { blobs: [] }
  const toolset = textBlob('[]', 'application/json')
  const instructions = textBlob('', 'text/plain')
  const history = new HistoryLog({
    toolset: toolset.hash,
    instructions: instructions.hash,
    limits,
    code: services.code,
  })
  for (const [i, turn] of turns.entries()) history.add(turn, turns[i + 1])
  const events = history.end()
  return {
    history: events,
    messages: hash('sha256', canonicalJson(services.redactor.json(JSON.parse(JSON.stringify(turns)) as Json))),
    blobs: [...blobs, toolset, instructions],
  }
}

/** Each reply with the results of its calls, which stand right after it. Replies that follow each other are one. */
function turnsOf(brought: readonly Brought[]): readonly Turn[] {
  const turns: Turn[] = []
  for (const message of brought) {
    const last = turns.at(-1)
    if (message.role === 'tool') turns.splice(-1, 1, answered(last, message))
    else {
      checkAnswered(last)
      const merges = message.role === 'assistant' && last?.role === 'assistant' && last.calls.length === 0
      if (merges) turns.splice(-1, 1, { ...message, parts: [...last.parts, ...message.parts], results: [] })
      else turns.push(message.role === 'user' ? message : { ...message, results: [] })
      if (message.role === 'assistant') checkIds(message.calls, message.at)
    }
  }
  checkAnswered(turns.at(-1))
  return turns
}

function answered(turn: Turn | undefined, { at, result }: Extract<Brought, { role: 'tool' }>): Turn {
  const { calls = [], results = [] } = turn?.role === 'assistant' ? turn : {}
  const isOpen = calls.some(({ id }) => id === result.id) && !results.some(({ id }) => id === result.id)
  if (turn?.role !== 'assistant' || !isOpen)
    throw wrong(at, `is the result of "${result.id}", and no call of the reply before it waits for that. Leave it out`)
  return { ...turn, results: [...results, result] }
}

function checkAnswered(turn: Turn | undefined): void {
  if (turn?.role !== 'assistant') return
  const open = turn.calls.find((call) => !turn.results.some(({ id }) => id === call.id))
  if (open)
    throw wrong(
      turn.at,
      `calls "${open.tool}" (${open.id}) and has no result of it. Add the result after it, or leave the call out`,
    )
}

function checkIds(calls: readonly BroughtCall[], at: number): void {
  const twice = calls.find(({ id }, i) => calls.findIndex((other) => other.id === id) < i)
  if (twice) throw wrong(at, `has two calls with the id "${twice.id}". Give each an id of its own`)
}

type Setup = Pick<Extract<EventBody, { type: 'run.started' }>, 'toolset' | 'instructions' | 'limits' | 'code'>

/** The events after `session.created`, one run for each question and its answer. */
class HistoryLog {
  readonly #setup: Setup
  readonly #events: EventBody[] = []
  /** Messages and results that no reply has read yet, by seq. */
  #inputs: number[] = []
  #results: number[] = []
  #isOpen = false

  constructor(setup: Setup) {
    this.#setup = setup
  }

  add(turn: Turn, following: Turn | undefined): void {
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

  /** Messages without an answer start nothing: the next run reads them. */
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

  #writeResult(call: string, result: BroughtResult | undefined): number {
    const { ok = false, content = '', parts = [] } = result ?? {}
    const files = parts.length > 0 ? { parts } : {}
    return this.#write({ type: 'agent.tool_result', call, status: ok ? 'ok' : 'error', content, ...files })
  }

  /** Its seq: the log begins with `session.created`. */
  #write(body: EventBody): number {
    return this.#events.push(body) + 1
  }
}
