// The parts of a server beside the verbs of sessions: the owner of a token, spending, due sessions, and files.
import type { Json } from '../kernel/index.ts'
import type { DueAnswer, Me, OpenedAnswer, SessionAnswer, TriggersAnswer, UsageAnswer } from '../server/wire.ts'
import type { CaseAnswer, EvalRunAnswer, EvalsAnswer } from '../server/wire-evals.ts'
import type { ServerConnection } from './server-connection.ts'

/** What a server says about itself: health, agents, cost and whose token this is. */
export class ServerInfo {
  readonly #wires: ServerConnection

  constructor(wires: ServerConnection) {
    this.#wires = wires
  }

  /** Returns the owner of this client's token. */
  me(): Promise<Me> {
    return this.#wires.json('me')
  }

  /** Returns the spending by day, agent and model. */
  usage(days?: number): Promise<UsageAnswer> {
    return this.#wires.json('usage', { query: { days } })
  }

  /** The sessions that look again by themselves, the earliest first. */
  due(): Promise<DueAnswer> {
    return this.#wires.json('due')
  }

  /** The sources of triggers with their counts, and the last fifty triggers. */
  triggers(query: { readonly source?: string; readonly decision?: string } = {}): Promise<TriggersAnswer> {
    return this.#wires.json('triggers', { query })
  }

  /** Runs a dead trigger again where it failed. */
  async retryTrigger(id: string): Promise<void> {
    await this.#wires.json('retryTrigger', { params: { id } })
  }

  /** Closes a dead trigger. Its log stays. */
  async dropTrigger(id: string): Promise<void> {
    await this.#wires.json('dropTrigger', { params: { id } })
  }

  /** The last hundred runs of suites whose reports are kept there. */
  evals(suite?: string): Promise<EvalsAnswer> {
    return this.#wires.json('evals', { query: { suite } })
  }

  /** The report of a run of a suite, and how it compares with an earlier one. */
  evalRun(id: string, before?: string): Promise<EvalRunAnswer> {
    return this.#wires.json('evalRun', { params: { id }, query: { before } })
  }

  /** A session as a case of a suite. */
  caseOf(id: string): Promise<CaseAnswer> {
    return this.#wires.json('case', { params: { id } })
  }

  /** The card of a session, its pending calls and its accounts, in one answer. */
  session(id: string): Promise<SessionAnswer> {
    return this.#wires.json('session', { params: { id } })
  }

  /** Asks the server to look at a session now. It does not wait for the session to rest. */
  async wake(id: string): Promise<void> {
    await this.#wires.json('wake', { params: { id } })
  }

  /** A whole session as a file: `jsonl` has an event in each line, and `json` can be imported. */
  async export(id: string, format: 'jsonl' | 'json' = 'jsonl'): Promise<string> {
    return (await this.#wires.ask('export', { params: { id }, query: { format } })).text()
  }

  /** Imports a session from an exported file and returns its id. The session is held until it is resumed. */
  async import(file: Json): Promise<string> {
    return (await this.#wires.json<OpenedAnswer>('import', { body: file })).session
  }
}
