// The scripted model: a real Model whose replies are written down beforehand. For tests, examples and the simulator;
// it knows nothing of any provider.
import type { Json, Part, Usage } from '../kernel/content.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../kernel/ports.ts'

export type ScriptedCall = { readonly tool: string; readonly args?: Json; readonly id?: string }

/** One reply. A plain string is a final text. */
export type Step =
  | string
  | {
      readonly text?: string
      readonly reasoning?: string
      readonly calls?: readonly ScriptedCall[]
      /** Streamed piece by piece before the reply; by default the text is one piece. */
      readonly deltas?: readonly string[]
      readonly delayMs?: number
      /** What an abort during the delay does: ends the call (default), lets it answer at once all the same, or makes it throw. */
      readonly onAbort?: 'stop' | 'answer' | 'throw'
      readonly usage?: Usage
      readonly cost?: number
      readonly finish?: Reply['finish']
    }
  | {
      readonly error: ModelFailure['class']
      readonly message?: string
      readonly retryAfterMs?: number
      readonly delayMs?: number
    }
  /** Says these pieces and never more: only an abort ends it. */
  | { readonly stall: true; readonly deltas?: readonly string[] }

export type Script = readonly (Step | StepFunction)[] | StepFunction
/** Sees the request and how many steps were taken before. */
export type StepFunction = (request: Request, taken: number) => Step | Promise<Step>

/** Replies by a list, in order, or by a function. A list that ran out is a `bad_request`, so a test that asks too often fails loudly. */
export function scripted(script: Script, name = 'scripted'): Model {
  let taken = 0
  return {
    name,
    async call(request, context) {
      const n = taken
      taken += 1
      const entry = typeof script === 'function' ? script : script[n]
      if (entry === undefined) return failure('bad_request', `The script has ${n} steps and was asked for one more.`)
      const step = typeof entry === 'function' ? await entry(request, n) : entry
      if (typeof step === 'string') return say({ text: step }, request, context)
      if ('stall' in step) {
        for (const text of step.deltas ?? []) context.emit({ kind: 'text', part: 0, text })
        await aborted(context.signal)
        return failure('other', 'aborted')
      }
      if (step.delayMs) {
        await context.sleep(step.delayMs)
        const onAbort = context.signal.aborted ? ('onAbort' in step && step.onAbort) || 'stop' : null
        if (onAbort === 'throw') throw new DOMException('The call was aborted.', 'AbortError')
        if (onAbort === 'stop' && !('error' in step)) return failure('other', 'aborted')
      }
      if (!('error' in step)) return say(step, request, context)
      const failed = failure(step.error, step.message ?? `scripted ${step.error}`)
      return step.retryAfterMs === undefined ? failed : { ...failed, retryAfterMs: step.retryAfterMs }
    },
  }
}

type Said = Extract<Exclude<Step, string>, { text?: string }>

function say(step: Said, request: Request, context: CallContext): Reply {
  const { text = '', reasoning, calls = [] } = step
  const pieces = step.deltas ?? (text === '' ? [] : [text])
  const part = reasoning === undefined ? 0 : 1
  if (reasoning !== undefined) context.emit({ kind: 'reasoning', part: 0, text: reasoning })
  for (const piece of pieces) context.emit({ kind: 'text', part, text: piece })
  const whole = step.deltas ? step.deltas.join('') : text
  const parts: Part[] = []
  if (reasoning !== undefined) parts.push({ type: 'reasoning', text: reasoning })
  if (whole !== '') parts.push({ type: 'text', text: whole })
  const asked: ReplyCall[] = []
  for (const { id, tool, args } of calls) {
    asked.push({ id: id ?? `call_${request.seq}_${asked.length}`, tool, args: JSON.stringify(args ?? {}) })
  }
  const finish = step.finish ?? (calls.length > 0 ? 'calls' : 'stop')
  const reply = { type: 'reply', parts, calls: asked, finish, usage: step.usage ?? null } as const
  return step.cost === undefined ? reply : { ...reply, cost: step.cost }
}

const RETRYABLE: ReadonlySet<ModelFailure['class']> = new Set(['rate_limit', 'server', 'network', 'timeout'])

function failure(kind: ModelFailure['class'], message: string): ModelFailure {
  return { type: 'failure', class: kind, message, retryable: RETRYABLE.has(kind) }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
