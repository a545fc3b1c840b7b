// The hooks that are asked before each request: the request is not recorded before they have answered. Their answer is
// recorded with it, so a repeated request, in this process or after a crash in another, is the same and asks no hook
// again.
import type { OwnerBody } from '../../kernel/event.ts'
import type { RequestAdvice } from '../../kernel/landing.ts'
import { type Run, type Session, inputsForRequest } from '../../kernel/session.ts'
import type { CommitDraft } from './commit-draft.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { agentOfRun } from '../state/agent.ts'
import type { FrozenRun } from '../state/frozen-run.ts'
import type { Store } from '../../ports/store.ts'
import { usdOf } from '../../view/usd.ts'
import { HookFailed } from '../hooks/hooks.ts'
import type { RunHooks } from '../state/hook-events.ts'
import type { HookEvents, RequestHookAnswer } from '../state/hook-events.ts'

export type RequestHooksOptions = {
  readonly services: Services
  readonly hooks: RunHooks
  readonly cache: SessionCache
  /** Makes the attempt look again. */
  readonly ring: () => void
  readonly readFrozenRun: () => Promise<FrozenRun>
}

/** One request, and the answer of the hooks; null until they have answered. */
type AskedRequest = { readonly run: number; readonly turn: number; answer: RequestHookAnswer | HookFailed | null }
type StartedRequest = NonNullable<SessionCache['started']>

const WAIT: RequestAdvice = { type: 'wait' }

/** Created when an attempt begins. Another process may have made its open request. */
export async function openRequestHooks(options: RequestHooksOptions): Promise<RequestHooks> {
  const { services, cache } = options
  await cache.count()
  cache.started = await readLastRequest(services.store, cache)
  return new RequestHooks(options)
}

export class RequestHooks {
  readonly #options: RequestHooksOptions
  #asked: AskedRequest | null = null
  /** Commits that already have the note of the request which they record. */
  readonly #noted = new WeakSet<CommitDraft>()

  constructor(options: RequestHooksOptions) {
    this.#options = options
  }

  /**
   * The advice of the hooks for the coming request; `wait` until they have answered. They are asked once for each
   * request.
   */
  adviseRequest(draft: CommitDraft): RequestAdvice | null {
    const { cache, ring } = this.#options
    const { run } = draft.session
    // A run that is out of requests ends, and a repeated request stays as it was.
    if (!run || run.requests >= run.limits.modelRequests || findRepeatedRequest(draft.session, cache.started))
      return null
    if (this.#asked?.run !== run.seq || this.#asked.turn !== run.requests) {
      // All events are written first: a hook must not learn of anything that could still be dropped.
      if (draft.events.length > 0) ring()
      else this.#ask({ run: run.seq, turn: run.requests, answer: null })
      return WAIT
    }
    const { answer } = this.#asked
    if (answer === null) return WAIT
    if (answer instanceof HookFailed) return { type: 'settle', outcome: hookErrorOutcome(answer) }
    const text = choiceNote(answer)
    if (text === '' || this.#noted.has(draft)) return null
    this.#noted.add(draft)
    return { type: 'note', kind: 'context', text }
  }

  /** Applies the choice of the hooks to a request; a repeated request keeps its first choice. */
  applyChoice(session: Session, body: RequestBody): RequestBody {
    const before = findRepeatedRequest(session, this.#options.cache.started)
    if (before) return addChoice(body, before.route, before.tools)
    const { answer = null } = this.#asked ?? {}
    return answer === null || answer instanceof HookFailed ? body : addChoice(body, answer.route, answer.allow)
  }

  #ask(request: AskedRequest): void {
    this.#asked = request
    const settle = (answer: AskedRequest['answer']): void => {
      request.answer = answer
      this.#options.ring()
    }
    askHooks(this.#options).then(settle, (error: unknown) => settle(toHookFailed(error)))
  }
}

/**
 * The request that must be made again: it was made in this run, and no reply came. A request in an imported log does
 * not count.
 */
function findRepeatedRequest({ run, imported = 0 }: Session, started: StartedRequest | null): StartedRequest | null {
  if (!run || run.turn !== null || started === null) return null
  return started.seq > Math.max(run.seq, imported) ? started : null
}

const PAGE = 200

/** The last request of the open run, if no reply came to it: another process may have made it. */
async function readLastRequest(store: Store, { id, session, started }: SessionCache): Promise<StartedRequest | null> {
  const { run, seq } = session
  if (!run || run.turn !== null || (started !== null && started.seq > run.seq)) return started
  for (let end = seq; end > run.seq; end -= PAGE) {
    const start = Math.max(run.seq, end - PAGE)
    const { events } = await store.read(id, start, end - start)
    const found = events.findLast((event) => event.type === 'model.started')
    if (found) return found
  }
  return started
}

async function askHooks({
  services,
  hooks,
  cache,
  readFrozenRun: frameOf,
}: RequestHooksOptions): Promise<RequestHookAnswer> {
  const { definitions } = await frameOf()
  const { messages } = await cache.transcript()
  const { session } = cache
  const { run } = session
  if (!run) return {}
  const { model } = agentOfRun(services, cache)
  const event: HookEvents['before_request'] = {
    ...cache.runIdentity,
    turn: run.requests + 1,
    requestsMax: run.limits.modelRequests,
    usage: hookUsage(run, cache.guard.tokens),
    messages: messages.length + countUnshown(session, run),
    chars: cache.chars,
    model: model.name,
    routes: model.routes ?? [],
    tools: [...definitions.keys()],
  }
  return hooks.beforeRequest(event)
}

function hookUsage({ requests, toolCalls, cost }: Run, tokens: number): HookEvents['before_request']['usage'] {
  return { requests, toolCalls, tokens, costUsd: usdOf(cost) }
}

/** How many messages this request shows for the first time. */
function countUnshown(session: Session, { turn }: Run): number {
  const corrected = turn?.verdict.type === 'retry_user_message' ? 1 : 0
  const { unshown, notes } = session
  return unshown.length + (turn?.results.length ?? 0) + notes.length + inputsForRequest(session).length + corrected
}

function choiceNote({ note = '', allow }: RequestHookAnswer): string {
  if (allow === undefined) return note
  const left =
    allow.length === 0 ? 'Use no tool in your next reply.' : `In your next reply use only: ${allow.join(', ')}.`
  return [note, left].filter((text) => text !== '').join('\n\n')
}

type RequestBody = Extract<OwnerBody, { type: 'model.started' }>

function addChoice(body: RequestBody, route: string | undefined, tools: readonly string[] | undefined): RequestBody {
  const none = tools?.length === 0 ? ({ allow: 'none' } as const) : {}
  return { ...body, ...none, ...(route === undefined ? {} : { route }), ...(tools === undefined ? {} : { tools }) }
}

function toHookFailed(error: unknown): HookFailed {
  return error instanceof HookFailed ? error : new HookFailed('before_request', error)
}

function hookErrorOutcome({ message }: HookFailed): Extract<RequestAdvice, { type: 'settle' }>['outcome'] {
  return { type: 'failed', reason: 'hook_error', failure: { kind: 'Failed', message } }
}
