// The events of hooks, their possible answers, and the questions of a run to them. Types only: hooks/hooks.ts asks the
// hooks.
import type { Metadata, CallKey, Json } from '../../kernel/content.ts'
import type { ToolAbout } from '../../tools/core/tool.ts'
import type { AnyCall } from '../../view/pending-calls.ts'
import type { ToolList, CallsOf } from '../../tools/core/tool-types.ts'
import type { Result } from './run-result.ts'
import type { Waiting } from '../../kernel/next.ts'
import type { Output } from '../../tools/core/tool-output.ts'

export type RunHookEvent = {
  readonly session: string
  readonly agent: string
  /** The host's metadata for the run, or else for its session. */
  readonly metadata: Metadata
}
/** `about`: the kind of the tool, the server it is of, and the `metadata` of its definition. */
type CallHookEvent = RunHookEvent & { readonly call: CallKey; readonly about: ToolAbout }
type TypedCallEvent<Of extends AnyCall> = Of extends unknown ? CallHookEvent & Of : never
/** The model must correct this call: nothing ran, and its arguments are as the model wrote them. */
type RefusedCall = CallHookEvent & AnyCall & { readonly refused: true }
type RanCall = { readonly refused?: undefined }
/** A copy of the result. Change it in place, or return another. */
type ResultEnvelope = { ok: boolean; content: string; metadata: { [key: string]: Json } }

/**
 * The event of each hook. Every hook gets a copy of its own. The type of a call depends on `tool`, where the tools are
 * known as types.
 */
export type HookEvents<Tools extends ToolList[number] = ToolList[number]> = {
  /** Before a run begins. `prompt` is the text that opens it. */
  readonly run_start: RunHookEvent & { readonly prompt: string }
  /** After `run_start`, with the same text: the hook may cancel the run, or add context before the message. */
  readonly user_prompt_submit: RunHookEvent & { readonly prompt: string }
  /**
   * Before each turn's request is recorded. A repeated request, also after a crash, keeps the answer of its first time.
   */
  readonly before_request: RunHookEvent & {
    /** The turn of the run that this request begins, from 1, and the most that the run may have. */
    readonly turn: number
    readonly requestsMax: number
    /** Usage of this run so far, without its children. */
    readonly usage: {
      readonly requests: number
      readonly toolCalls: number
      readonly tokens: number
      readonly costUsd: number
    }
    /** The length of the conversation that the request will show, in messages and in characters. */
    readonly messages: number
    readonly chars: number
    readonly model: string
    /** The models of a chain, which are the possible values of `route`. Empty for a model that is not a chain. */
    readonly routes: readonly string[]
    /** The tools of the run. */
    readonly tools: readonly string[]
  }
  /**
   * Also asked of calls whose arguments do not fit, before that counts against them: then `raw` is the model's text,
   * and `args` holds all that could be read of it. Such a call does not run, whatever the hook answers.
   */
  readonly before_tool_call: TypedCallEvent<CallsOf<Tools>> & { readonly raw?: string }
  /** After a call has run, before its result is written: the hook may change `output`. `refused`: nothing ran. */
  readonly after_tool_call: ((TypedCallEvent<CallsOf<Tools>> & RanCall) | RefusedCall) & {
    readonly output: ResultEnvelope
  }
  /** After `before_tool_call`, for a call that would start a child of the agent `child`: the hook may cancel it. */
  readonly before_subagent_run: CallHookEvent & AnyCall & { readonly child: string }
  /** After a child has answered a call. */
  readonly after_subagent_run: RunHookEvent & {
    readonly call: CallKey
    readonly child: string
    readonly output: ResultEnvelope
  }
  /** After a run ended at a limit, before `run_end`: its name, what was allowed, and what was reached. */
  readonly limit_reached: RunHookEvent & {
    readonly limit: string
    readonly value: number | null
    readonly count: number
  }
  /** After a run has ended, in whatever way, with the result that its caller gets. */
  readonly run_end: RunHookEvent & { readonly result: Result }
  /** After each reply. `costUsd` is the cost of the run so far, and `cost` the same in millionths of a dollar. */
  readonly stop: RunHookEvent & {
    readonly requests: number
    readonly requestsMax: number
    readonly cost: number
    readonly costUsd: number
    readonly model: string
  }
  /** A reply without calls, which would be the answer. */
  readonly continue_turn: RunHookEvent & {
    readonly text: string
    readonly requests: number
    readonly requestsMax: number
  }
  /**
   * A reply that would be the answer, before it is written: `output` is the value, or the text where no schema is asked
   * for, and `textCheck` is the same as text.
   */
  readonly before_answer: RunHookEvent & {
    readonly text: string
    readonly output: Json
    readonly requests: number
    readonly requestsMax: number
  }
  /** After the answer was given, in the background. */
  readonly post_run: RunHookEvent & {
    readonly prompt: string
    readonly result: Result
    /** One line for each call: its tool and how it ended, and nothing of its content. */
    readonly tools: readonly string[]
    readonly durationMs: number
  }
  /** A worker looked at the session, and there is nothing to do now. Also sent if there was nothing to do before. */
  readonly session_rest: RunHookEvent & { readonly waiting: Waiting }
}

export type HookCancel = { readonly cancel: string }
type NoAnswer = undefined
/** The possible answers of each hook. A hook that can only answer nothing just watches. */
export type HookAnswers = {
  readonly run_start: NoAnswer
  readonly user_prompt_submit: HookCancel | { readonly context: string } | NoAnswer
  readonly before_request: RequestHookAnswer | NoAnswer
  readonly before_tool_call: HookCancel | NoAnswer
  /** An envelope, or the JSON of one. */
  readonly after_tool_call: Output | string | NoAnswer
  readonly before_subagent_run: HookCancel | NoAnswer
  readonly after_subagent_run: NoAnswer
  readonly limit_reached: NoAnswer
  readonly run_end: NoAnswer
  readonly stop: { readonly stop: string } | NoAnswer
  /** The model reads this text and goes on instead of ending. The limit on requests still holds. */
  readonly continue_turn: { readonly continue: string } | NoAnswer
  /** The run ends without the answer; another answer takes its place; or the model is told what to correct, and asked again. */
  readonly before_answer:
    | { readonly block: string }
    | { readonly replace: Json }
    | { readonly retry: string }
    | NoAnswer
  readonly post_run: NoAnswer
  readonly session_rest: NoAnswer
}

/** The decision of the hooks about an answer. */
export type GuardedAnswer =
  | { readonly type: 'pass' }
  | { readonly type: 'replace'; readonly output: Json }
  | { readonly type: 'retry'; readonly text: string }
  | { readonly type: 'block'; readonly reason: string }

/** For one request alone. Nothing that was sent before changes. */
export type RequestHookAnswer = {
  /** The model of the chain that is asked first. */
  readonly route?: string
  /** Only these tools may be used. The model is told so, and any other call is refused. */
  readonly allow?: readonly string[]
  /** More text for the model, from this request on. */
  readonly note?: string
}

export type HookType = keyof HookEvents
export type HookOn<T extends HookType, Tools extends ToolList[number] = ToolList[number]> = {
  readonly type: T
  /** Only for these tools. Default: all. */
  readonly tools?: readonly string[]
  /** Only for these agents: those of the run, and for hooks about a subagent the subagent. Default: all. */
  readonly agents?: readonly string[]
  /**
   * If it throws, its run ends. Default false: the error is reported, and the run goes on as if it had answered nothing.
   * A `before_answer` is always strict, and a hook that watches the end of a run is never.
   */
  readonly strict?: boolean
  readonly run: (event: HookEvents<Tools>[T]) => HookAnswers[T] | void | Promise<HookAnswers[T] | void>
}
/**
 * Code of yours that is told about something in a run, and may answer: about a request, a call, a result, an answer
 * or an end.
 */
export type Hook<Tools extends ToolList[number] = ToolList[number]> = {
  readonly [T in HookType]: HookOn<T, Tools>
}[HookType]

/**
 * The hooks of a harness, as a run asks them. The class `Hooks`, which answers the questions, describes each of them.
 */
export interface RunHooks {
  has(type: HookType, agent: string, tool?: string): boolean
  tell(type: 'run_start', event: HookEvents['run_start']): Promise<void>
  prompt(
    event: HookEvents['user_prompt_submit'],
    woken: boolean,
  ): Promise<HookCancel | { readonly contexts: readonly string[] }>
  beforeRequest(event: HookEvents['before_request']): Promise<RequestHookAnswer>
  whyCancelled(
    type: 'before_tool_call' | 'before_subagent_run',
    event: HookEvents[typeof type],
    wanted: () => boolean,
  ): Promise<string | null>
  rewriteResult(event: Omit<HookEvents['after_tool_call'], 'output'>, output: Output): Promise<Output>
  whyStopped(event: HookEvents['stop']): Promise<string | null>
  continueText(event: HookEvents['continue_turn']): Promise<string | null>
  guardAnswer(
    event: HookEvents['before_answer'],
    check: ((value: Json) => Promise<{ readonly output: Json } | { readonly problem: string }>) | null,
    answersFor: readonly string[],
  ): Promise<GuardedAnswer>
}
