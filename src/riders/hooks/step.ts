// The hooks that are asked before each request, as a rider: the request is not recorded before they have answered. What they say is
// recorded with it, so a repeated request, in this process or after a crash in another, is the same and asks no hook again.
import type { OwnerBody } from '../../kernel/event.ts'
import { type Run, type Session, steering } from '../../kernel/session.ts'
import type { Commit, Rider, Wait } from '../../engine/commit.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { agentFor, type Services } from '../../engine/wiring.ts'
import type { FrozenRun } from '../../effects/frozen-run.ts'
import type { Store } from '../../ports/store.ts'
import { usdOf } from '../../view/usd.ts'
import type { Word } from '../guard/guard.ts'
import { HookFailed, type HookEvents, type Hooks, type RequestWord } from './hooks.ts'

export type StepOptions = {
  readonly services: Services
  readonly hooks: Hooks
  readonly cache: SessionCache
  /** The attempt looks again. */
  readonly ring: () => void
  readonly frameOf: () => Promise<FrozenRun>
}

/** One request, and what was said of it. */
type Asked = { readonly run: number; readonly turn: number; word: RequestWord | HookFailed | null }
type Started = NonNullable<SessionCache['started']>

const WAIT: Wait = { type: 'wait' }

export async function stepRider(options: StepOptions): Promise<Rider> {
  const { services, cache, ring } = options
  await cache.count()
  cache.started = await lastRequest(services.store, cache)
  let asked: Asked | null = null
  /** Commits that have the note of the request which they record. */
  const told = new WeakSet<Commit>()
  const ask = (now: Asked): void => {
    const settle = (word: Asked['word']): void => {
      now.word = word
      ring()
    }
    said(options).then(settle, (error: unknown) => settle(failureOf(error)))
  }
  return {
    beforeRequest(commit) {
      const { run } = commit.session
      // A run that is out of requests ends, and a repeated request is as it was.
      if (!run || run.requests >= run.limits.modelRequests || repeated(commit.session, cache.started)) return null
      if (asked?.run !== run.seq || asked.turn !== run.requests) {
        // First all that happened is written: a hook is told of nothing that could still be dropped.
        if (commit.events.length > 0) ring()
        else ask((asked = { run: run.seq, turn: run.requests, word: null }))
        return WAIT
      }
      const { word } = asked
      if (word === null) return WAIT
      if (word instanceof HookFailed) return { type: 'settle', outcome: ended(word) }
      const text = noteOf(word)
      if (text === '' || told.has(commit)) return null
      told.add(commit)
      return { type: 'note', kind: 'context', text }
    },
    rewrite({ session }, body) {
      if (body.type !== 'model.started') return body
      const before = repeated(session, cache.started)
      if (before) return chosen(body, before.route, before.tools)
      const { word = null } = asked ?? {}
      return word === null || word instanceof HookFailed ? body : chosen(body, word.route, word.allow)
    },
  }
}

/** The request that must be made again: it was made in this run, and no reply came. What a file says was asked does not count. */
function repeated({ run, imported = 0 }: Session, started: Started | null): Started | null {
  if (!run || run.turn !== null || started === null) return null
  return started.seq > Math.max(run.seq, imported) ? started : null
}

const PAGE = 200

/** The last request of the open run, if no reply came to it: another process may have made it. */
async function lastRequest(store: Store, { id, session, started }: SessionCache): Promise<Started | null> {
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

async function said({ services, hooks, cache, frameOf }: StepOptions): Promise<RequestWord> {
  const { definitions } = await frameOf()
  const { messages } = await cache.transcript()
  const { session } = cache
  const { run } = session
  if (!run) return {}
  const { model } = agentFor(services, cache)
  const event: HookEvents['before_request'] = {
    ...cache.place,
    turn: run.requests + 1,
    requestsMax: run.limits.modelRequests,
    usage: usageOf(run, cache.guard.tokens),
    messages: messages.length + unshownIn(session, run),
    chars: cache.chars,
    model: model.name,
    routes: model.routes ?? [],
    tools: [...definitions.keys()],
  }
  return hooks.beforeRequest(event)
}

function usageOf({ requests, toolCalls, cost }: Run, tokens: number): HookEvents['before_request']['usage'] {
  return { requests, toolCalls, tokens, costUsd: usdOf(cost) }
}

/** What this request shows for the first time. */
function unshownIn(session: Session, { turn }: Run): number {
  const corrected = turn?.verdict.type === 'retry_user_message' ? 1 : 0
  const { unshown, notes } = session
  return unshown.length + (turn?.results.length ?? 0) + notes.length + steering(session).length + corrected
}

function noteOf({ note = '', allow }: RequestWord): string {
  if (allow === undefined) return note
  const left =
    allow.length === 0 ? 'Use no tool in your next reply.' : `In your next reply use only: ${allow.join(', ')}.`
  return [note, left].filter((text) => text !== '').join('\n\n')
}

type Request = Extract<OwnerBody, { type: 'model.started' }>

function chosen(body: Request, route: string | undefined, tools: readonly string[] | undefined): Request {
  const none = tools?.length === 0 ? ({ allow: 'none' } as const) : {}
  return { ...body, ...none, ...(route === undefined ? {} : { route }), ...(tools === undefined ? {} : { tools }) }
}

function failureOf(error: unknown): HookFailed {
  return error instanceof HookFailed ? error : new HookFailed('before_request', error)
}

function ended({ message }: HookFailed): Extract<Word, { type: 'settle' }>['outcome'] {
  return { type: 'failed', reason: 'hook_error', failure: { kind: 'Failed', message } }
}
