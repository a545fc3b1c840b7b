// One prompt of `parallel_llm`: a fresh request to the model, retried while a retry can help. It does not know the
// other prompts, files, or its caller.
import { hash } from 'node:crypto'
import type { Json, Usage } from '../../kernel/content.ts'
import type { Hint, Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { clip } from '../core/bound-content.ts'
import { ToolFailure } from '../core/tool-output.ts'
import type { StandardSchema, ToolContext } from '../core/tool.ts'
import { textOf } from '../../view/shown-text.ts'
import { readTolerantJson } from '../../view/tolerant-json.ts'

export type PromptEntry = {
  readonly index: number
  readonly ok: boolean
  readonly result?: Json
  /** The answer reached the model's length limit and ends early. */
  readonly truncated?: true
  readonly error?: string
  readonly attempts: number
  /** The route that was asked first and did not answer. */
  readonly fallback_from?: string
}
export type PromptSpending = { readonly usage: Usage; readonly cost: number }
export type PromptAnswer = { readonly entry: PromptEntry; readonly spent: PromptSpending }

export type PromptSetup = {
  readonly model: Model | Hint
  readonly instructions: string
  readonly output: StandardSchema | null
  readonly attemptsMax: number
  readonly outputRetries: number
  readonly context: ToolContext
}

const DELAY_MS_MAX = 60_000
const ERROR_CHARS_MAX = 500

/** Retries failures of the provider and corrects answers that do not fit. Each of the two has its own limit. */
export async function askPrompt(asking: PromptSetup, prompt: string, index: number): Promise<PromptAnswer> {
  const { context, attemptsMax, outputRetries } = asking
  let messages: Messages = [{ role: 'user', seq: 0, parts: [{ type: 'text', text: prompt }] }]
  let spent = NO_SPENDING
  let [failures, corrections] = [0, 0]
  for (let attempts = 1; ; attempts++) {
    throwIfStopped(context.signal)
    const answer = await context.askModel(asking.model, promptRequest(asking, messages, `${index}.${attempts}`))
    // An answer that arrives after the stop is dropped.
    throwIfStopped(context.signal)
    if (answer.type === 'reply') {
      spent = sumSpending(spent, { usage: answer.usage ?? NO_SPENDING.usage, cost: answer.cost ?? 0 })
      const { unfit, ...read } = await readModelReply(answer, asking.output)
      if (!unfit || corrections >= outputRetries)
        return { entry: { index, ...read, attempts, ...fallbackField(answer) }, spent }
      corrections += 1
      messages = [...messages, ...correctionMessages(answer, read.error ?? '', attempts)]
      continue
    }
    failures += 1
    if (!answer.retryable || failures >= attemptsMax) {
      const error = clip(`${answer.class}: ${answer.message || 'no message'}`, ERROR_CHARS_MAX)
      return { entry: { index, ok: false, error, attempts }, spent }
    }
    await waitOrAbort(context.clock, retryDelay(answer, `${context.key}/${index}`, failures), context.signal)
  }
}

type Messages = Request['messages']

function fallbackField({ fallback_from }: Reply): Pick<PromptEntry, 'fallback_from'> {
  return fallback_from === undefined ? {} : { fallback_from }
}

/** The invalid answer, followed by a message that says what is wrong with it. */
function correctionMessages({ parts, route }: Reply, error: string, turn: number): Messages {
  const text = `${error} Answer again, with one JSON value that fits and nothing else.`
  return [
    { role: 'assistant', seq: turn * 2 - 1, parts, calls: [], ...(route === undefined ? {} : { route }) },
    { role: 'user', seq: turn * 2, parts: [{ type: 'text', text }] },
  ]
}

function throwIfStopped({ aborted }: AbortSignal): void {
  if (aborted) throw new ToolFailure('Interrupted', 'Stopped before all prompts were answered.')
}

function promptRequest({ instructions, context }: PromptSetup, messages: Messages, id: string): Request {
  return {
    // Each try has its own session id: it carries nothing of the parent, and no provider confuses the two.
    session: `${context.key}/${id}`,
    seq: 0,
    instructions,
    tools: [],
    allow: 'none',
    boost: false,
    messages,
  }
}

/** `unfit`: the model answered, but the answer does not match the schema. */
type ReplyReading = Pick<PromptEntry, 'ok' | 'result' | 'truncated' | 'error'> & { readonly unfit?: true }

/** Returns the text, or the value the schema makes of it. Any other reply is a failure. */
async function readModelReply(reply: Reply, output: StandardSchema | null): Promise<ReplyReading> {
  if (reply.calls.length > 0) return { ok: false, error: 'The model asked for a tool, and there is none here.' }
  const text = textOf(reply.parts)
  if (reply.finish === 'refusal')
    return { ok: false, error: clip(`The model refused: ${text || 'no reason'}`, ERROR_CHARS_MAX) }
  if (text.trim() === '') return { ok: false, error: 'The model answered nothing.' }
  const cut = reply.finish === 'length' ? ({ truncated: true } as const) : {}
  if (output === null) return { ok: true, result: text, ...cut }
  // As with answers whose JSON is only requested in the instructions, fences and prose around the JSON are ignored.
  const value = readTolerantJson(text, reply.finish === 'length')
  if (value === undefined) return { ok: false, unfit: true, error: 'The answer is not JSON.', ...cut }
  const checked = await output['~standard'].validate(value)
  if (!checked.issues) return { ok: true, result: checked.value as Json }
  const [issue] = checked.issues
  const path = (issue?.path ?? []).map(String).join('.')
  const what = `The answer does not fit${path === '' ? '' : ` at "${path}"`}: ${issue?.message ?? 'it is not valid'}.`
  return { ok: false, unfit: true, error: clip(what, ERROR_CHARS_MAX) }
}

/**
 * The delay doubles each time. Up to a quarter more is added, so that prompts that failed together do not retry
 * together.
 */
function retryDelay({ retryAfterMs = 0 }: ModelFailure, key: string, attempts: number): number {
  const jitter = Number.parseInt(hash('sha256', `${key}/${attempts}`).slice(0, 8), 16) / 2 ** 32
  return Math.min(DELAY_MS_MAX, Math.max(retryAfterMs, Math.round(1_000 * 2 ** (attempts - 1) * (1 + jitter / 4))))
}

function waitOrAbort(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
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

export const NO_SPENDING: PromptSpending = { usage: { inputTokens: 0, outputTokens: 0 }, cost: 0 }

export function sumSpending(one: PromptSpending, other: PromptSpending): PromptSpending {
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
