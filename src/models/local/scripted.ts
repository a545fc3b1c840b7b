// The scripted model: a real Model that plays a list of prepared replies. For tests, examples and the simulator.
import type { Json, Part, Usage } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../../ports/model.ts'
import { failure } from '../http/failures.ts'
import {
  anyCheck,
  nonEmptyCheck,
  listCheck,
  msCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck,
  optionsCheck,
} from '../../options.ts'

/** A call that a scripted model wants made. */
export type ScriptedCall = {
  /** The name of the tool. It need not exist: a test may ask for an unknown one. */
  readonly tool: string
  /** The arguments, valid or not. Default: an empty object. */
  readonly args?: Json
  /** The id of the call, as a provider would give it. Default: one made of the request's seq and the call's place. */
  readonly id?: string
}

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
      /** On an abort during the delay: end the call (default), answer at once, or throw. */
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
  /** Streams these pieces and then hangs until an abort. */
  | { readonly stall: true; readonly deltas?: readonly string[] }

/**
 * The answers of a scripted model: a list, taken in order, or a function of the request. A list begins again in each
 * process; a function does not have to.
 */
export type Script = readonly (Step | StepFunction)[] | StepFunction
/** Gets the request and the number of steps taken before. */
export type StepFunction = (request: Request, taken: number) => Step | Promise<Step>

type DetailedStep = Exclude<Step, string>
type ReplyStep = Extract<DetailedStep, { text?: string }>
type FailureStep = Extract<DetailedStep, { error: unknown }>

const checkReplyStep = optionsChecker<ReplyStep>('a step', {
  text: textCheck,
  reasoning: textCheck,
  calls: listCheck(optionsCheck<ScriptedCall>({ tool: requiredCheck(textCheck), args: anyCheck, id: textCheck })),
  deltas: listCheck(textCheck),
  delayMs: msCheck,
  onAbort: oneOf<NonNullable<ReplyStep['onAbort']>>({ answer: true, stop: true, throw: true }),
  // A script may also play a provider that reports an invalid usage or cost.
  usage: anyCheck,
  cost: anyCheck,
  finish: oneOf<Reply['finish']>({ stop: true, calls: true, length: true, refusal: true }),
})
const checkFailureStep = optionsChecker<FailureStep>('a step', {
  error: requiredCheck(nonEmptyCheck),
  message: textCheck,
  retryAfterMs: msCheck,
  delayMs: msCheck,
})
const checkStall = optionsChecker<Extract<DetailedStep, { stall: true }>>('a step', {
  stall: requiredCheck(anyCheck),
  deltas: listCheck(textCheck),
})

function checkStep(step: unknown, of: string): void {
  if (typeof step === 'string') return
  const kind = step !== null && typeof step === 'object' ? step : {}
  if (hasOnlyCalls(kind)) return
  if ('stall' in kind) return checkStall(step, of)
  if ('error' in kind) return checkFailureStep(step, of)
  checkReplyStep(step, of)
}

/** Nearly every step of a long script is a call or two: that is seen here, without the table of options. */
function hasOnlyCalls(step: object): boolean {
  const { calls } = step as { readonly calls?: unknown }
  if (!Array.isArray(calls)) return false
  for (const name in step) if (name !== 'calls') return false
  for (let i = 0; i < calls.length; i++) {
    const call = (calls[i] ?? {}) as Partial<ScriptedCall>
    if (typeof call.tool !== 'string') return false
    for (const name in call) if (name !== 'tool' && name !== 'args') return false
  }
  return true
}

function checkScript(script: unknown): void {
  if (typeof script === 'function') return
  if (!Array.isArray(script))
    throw new Fault('invalid_config', 'A script is a list of steps, or a function that gives one.')
  for (const [i, step] of (script as readonly unknown[]).entries())
    if (typeof step !== 'function') checkStep(step, `step ${i + 1} of scripted`)
}

/**
 * Replies from a list in order, or by a function. After the end of the list a call is a `bad_request`, so a test with
 * too many calls fails.
 */
export function scripted(script: Script, name = 'scripted'): Model {
  checkScript(script)
  const wrong = nonEmptyCheck(name, 'name', 'scripted')
  if (wrong !== null) throw new Fault('invalid_config', `The name of a scripted model ${wrong}.`)
  let taken = 0
  return {
    name,
    async call(request, context) {
      const n = taken
      taken += 1
      const entry = typeof script === 'function' ? script : script[n]
      if (entry === undefined) return failure('bad_request', `The script has ${n} steps and was asked for one more.`)
      const step = typeof entry === 'function' ? await entry(request, n) : entry
      if (typeof entry === 'function') checkStep(step, 'a step of scripted')
      if (typeof step === 'string') return playReply({ text: step }, request, context)
      if ('stall' in step) {
        for (const text of step.deltas ?? []) context.emit({ kind: 'text', part: 0, text })
        await waitForAbort(context.signal)
        return failure('other', 'aborted')
      }
      if (step.delayMs) {
        await context.sleep(step.delayMs)
        const onAbort = context.signal.aborted ? ('onAbort' in step && step.onAbort) || 'stop' : null
        if (onAbort === 'throw') throw new DOMException('The call was aborted.', 'AbortError')
        if (onAbort === 'stop' && !('error' in step)) return failure('other', 'aborted')
      }
      if (!('error' in step)) return playReply(step, request, context)
      return failure(step.error, step.message ?? `scripted ${step.error}`, step.retryAfterMs)
    },
  }
}

function playReply(step: ReplyStep, request: Request, context: CallContext): Reply {
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
  for (let i = 0; i < calls.length; i++) {
    const { id = `call_${request.seq}_${i}`, tool, args } = calls[i] as ScriptedCall
    asked.push({ id, tool, args: JSON.stringify(args ?? {}) })
  }
  const finish = step.finish ?? (calls.length > 0 ? 'calls' : 'stop')
  const reply = { type: 'reply', parts, calls: asked, finish, usage: step.usage ?? null } as const
  return step.cost === undefined ? reply : { ...reply, cost: step.cost }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
