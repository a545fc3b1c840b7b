// One prompt of `parallel_llm`: a fresh request to the model, tried again while trying can help. It knows nothing of the other
// prompts, of files, or of its caller.
import { hash } from 'node:crypto'
import type { Json, Usage } from '../../kernel/content.ts'
import type { Hint, Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { clip } from '../core/bound.ts'
import { ToolFailure } from '../core/output.ts'
import type { StandardSchema, ToolContext } from '../core/tool.ts'
import { textOf } from '../../view/text.ts'
import { readJson } from '../../view/tolerant-json.ts'

export type Entry = {
  readonly index: number
  readonly ok: boolean
  readonly result?: Json
  /** The answer reached the model's limit and ends early. */
  readonly truncated?: true
  readonly error?: string
  readonly attempts: number
  /** The route that should have answered. */
  readonly fallback_from?: string
}
export type Spent = { readonly usage: Usage; readonly cost: number }
export type Asked = { readonly entry: Entry; readonly spent: Spent }

export type Asking = {
  readonly model: Model | Hint
  readonly instructions: string
  readonly output: StandardSchema | null
  readonly attemptsMax: number
  readonly outputRetries: number
  readonly context: ToolContext
}

const DELAY_MS_MAX = 60_000
const ERROR_CHARS_MAX = 500

/** Failures of the provider are tried again, and answers that do not fit are corrected: each has its own number. */
export async function askOne(asking: Asking, prompt: string, index: number): Promise<Asked> {
  const { context, attemptsMax, outputRetries } = asking
  let messages: Messages = [{ role: 'user', seq: 0, parts: [{ type: 'text', text: prompt }] }]
  let spent = NOTHING
  let [failures, corrections] = [0, 0]
  for (let attempts = 1; ; attempts++) {
    unlessStopped(context.signal)
    const answer = await context.askModel(asking.model, requestOf(asking, messages, `${index}.${attempts}`))
    // What comes after the stop is dropped.
    unlessStopped(context.signal)
    if (answer.type === 'reply') {
      spent = sum(spent, { usage: answer.usage ?? NOTHING.usage, cost: answer.cost ?? 0 })
      const { unfit, ...read } = await readingOf(answer, asking.output)
      if (!unfit || corrections >= outputRetries)
        return { entry: { index, ...read, attempts, ...insteadOf(answer) }, spent }
      corrections += 1
      messages = [...messages, ...corrected(answer, read.error ?? '', attempts)]
      continue
    }
    failures += 1
    if (!answer.retryable || failures >= attemptsMax) {
      const error = clip(`${answer.class}: ${answer.message || 'no message'}`, ERROR_CHARS_MAX)
      return { entry: { index, ok: false, error, attempts }, spent }
    }
    await wait(context.clock, delayOf(answer, `${context.key}/${index}`, failures), context.signal)
  }
}

type Messages = Request['messages']

function insteadOf({ fallback_from }: Reply): Pick<Entry, 'fallback_from'> {
  return fallback_from === undefined ? {} : { fallback_from }
}

/** The answer as it was, and what is wrong with it. */
function corrected({ parts, route }: Reply, error: string, turn: number): Messages {
  const text = `${error} Answer again, with one JSON value that fits and nothing else.`
  return [
    { role: 'assistant', seq: turn * 2 - 1, parts, calls: [], ...(route === undefined ? {} : { route }) },
    { role: 'user', seq: turn * 2, parts: [{ type: 'text', text }] },
  ]
}

function unlessStopped({ aborted }: AbortSignal): void {
  if (aborted) throw new ToolFailure('Interrupted', 'Stopped before all prompts were answered.')
}

function requestOf({ instructions, context }: Asking, messages: Messages, id: string): Request {
  return {
    // A session of its own for every try: nothing of the parent's is in it, and no provider takes it for the parent's.
    session: `${context.key}/${id}`,
    seq: 0,
    instructions,
    tools: [],
    allow: 'none',
    boost: false,
    messages,
  }
}

/** `unfit`: it is an answer, and not what the schema wants. */
type Read = Pick<Entry, 'ok' | 'result' | 'truncated' | 'error'> & { readonly unfit?: true }

/** Text, or what the schema makes of it. Anything else is no answer. */
async function readingOf(reply: Reply, output: StandardSchema | null): Promise<Read> {
  if (reply.calls.length > 0) return { ok: false, error: 'The model asked for a tool, and there is none here.' }
  const text = textOf(reply.parts)
  if (reply.finish === 'refusal')
    return { ok: false, error: clip(`The model refused: ${text || 'no reason'}`, ERROR_CHARS_MAX) }
  if (text.trim() === '') return { ok: false, error: 'The model answered nothing.' }
  const cut = reply.finish === 'length' ? ({ truncated: true } as const) : {}
  if (output === null) return { ok: true, result: text, ...cut }
  // As for an answer that is asked for by instructions: fences and prose around the JSON are read over.
  const value = readJson(text, reply.finish === 'length')
  if (value === undefined) return { ok: false, unfit: true, error: 'The answer is not JSON.', ...cut }
  const checked = await output['~standard'].validate(value)
  if (!checked.issues) return { ok: true, result: checked.value as Json }
  const [issue] = checked.issues
  const path = (issue?.path ?? []).map(String).join('.')
  const what = `The answer does not fit${path === '' ? '' : ` at "${path}"`}: ${issue?.message ?? 'it is not valid'}.`
  return { ok: false, unfit: true, error: clip(what, ERROR_CHARS_MAX) }
}

/** Doubles each time, and up to a quarter more, so that prompts which failed together do not come back together. */
function delayOf({ retryAfterMs = 0 }: ModelFailure, key: string, attempts: number): number {
  const jitter = Number.parseInt(hash('sha256', `${key}/${attempts}`).slice(0, 8), 16) / 2 ** 32
  return Math.min(DELAY_MS_MAX, Math.max(retryAfterMs, Math.round(1_000 * 2 ** (attempts - 1) * (1 + jitter / 4))))
}

function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      cancel()
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const cancel = clock.timer(ms, stop)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}

export const NOTHING: Spent = { usage: { inputTokens: 0, outputTokens: 0 }, cost: 0 }

export function sum(one: Spent, other: Spent): Spent {
  const { inputTokens, outputTokens, cachedTokens = 0, reasoningTokens = 0 } = one.usage
  const more = other.usage
  const cached = cachedTokens + (more.cachedTokens ?? 0)
  const reasoning = reasoningTokens + (more.reasoningTokens ?? 0)
  return {
    usage: {
      inputTokens: inputTokens + more.inputTokens,
      outputTokens: outputTokens + more.outputTokens,
      ...(cached > 0 ? { cachedTokens: cached } : {}),
      ...(reasoning > 0 ? { reasoningTokens: reasoning } : {}),
    },
    cost: one.cost + other.cost,
  }
}
