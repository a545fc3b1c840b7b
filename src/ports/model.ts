// The port to a model, as types: requests, replies and failures. Types only.
import type { Allow, Frozen, Json, Part, ProviderFailureClass, Usage } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Clock } from './system.ts'

/** A tool as the model is shown it. */
export type ToolSchema = Frozen<{ name: string; description: string; parameters: Json }>
/**
 * The shape of the final answer: enforced by the provider (`native`), or requested as the arguments of a call (`tool`).
 */
export type OutputSchema = Frozen<{ mode: 'native' | 'tool'; name: string; schema: Json; strict: boolean }>

/** From least to most. */
export type Effort = 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
/** Whether a model may, must or must not call a tool, or must call this one. */
export type ToolChoice = 'auto' | 'required' | 'none' | Frozen<{ tool: string }>
/** How a model answers. Absent settings are left to the model's own, and to its provider. */
export type AnswerSettings = Frozen<{
  /** How long one answer may be, thoughts included. */
  outputTokensMax?: number
  /** How freely the model chooses its words, where it lets that be set. */
  temperature?: number
  /** Only the likeliest words that together have this probability are chosen from. */
  topP?: number
  /** Asks the host for the same words for the same request, as far as it can. */
  seed?: number
  /** Texts that end the answer. They are not part of it. */
  stop?: readonly string[]
  /**
   * `required` and a named tool apply to the first request after a user message. After results the model chooses
   * freely; otherwise no run would end.
   */
  toolChoice?: ToolChoice
  /** False: at most one call in a reply. */
  parallelToolCalls?: boolean
  /** How much the model thinks. */
  reasoning?: Effort | Frozen<{ budgetTokens: number }>
}>

/** What a model is asked: instructions, tools and messages, for one turn of a session. */
export type Request = Frozen<{
  session: string
  /**
   * The root of the session's tree, whose prefix it may share: providers keep caches by it. Absent: the session itself.
   */
  tree?: string
  /** The seq of this call's `model.started`; it addresses the deltas. */
  seq: number
  instructions: string
  tools: readonly ToolSchema[]
  allow: Allow
  boost: boolean
  /** For a chain: the name of the model to ask first. */
  route?: string
  output?: OutputSchema
  /** How to answer this request. Absent settings are the model's own. */
  settings?: AnswerSettings
  /** Grows between calls and never changes: the next request starts with these same entries. Do not mutate it. */
  messages: readonly Message[]
}>

/** `text`: what the model wrote, if it wrote the call as text. A block of several calls stands with its first one. */
export type ReplyCall = Frozen<{ id: string; tool: string; args: string; text?: string }>

/** One whole answer of a model: its parts, the calls that it wants made, and what it cost. */
export type Reply = Frozen<{
  type: 'reply'
  parts: readonly Part[]
  calls: readonly ReplyCall[]
  finish: 'stop' | 'length' | 'calls' | 'refusal'
  usage: Usage | null
  cost?: number
  assumed?: true
  route?: string
  /** The route that should have answered: it failed, or could not take the request. */
  fallback_from?: string
  /** The reply was cached from an earlier call, and no provider was asked. */
  cached?: true
}>

/** `unasked`: the request was held back here before it reached the provider, so it was no attempt. */
export type ModelFailure = Frozen<
  { type: 'failure'; class: ProviderFailureClass; message: string } & ModelFailureDetails
>
/**
 * `broken`: an answer began to arrive and could not be read to its end, so the provider may charge for it. `elsewhere`:
 * the model itself failed, so another one of a chain is asked.
 */
type ModelFailureDetails = {
  retryable: boolean
  retryAfterMs?: number
  partial?: string
  unasked?: true
  broken?: true
  elsewhere?: true
}

/**
 * A piece of a reply in progress. Live only, never in the log. `part` counts the parts and calls of one reply. `output`
 * is what a call prints while it runs; its `part` is the index of the call. `proposed` comes with `arguments`: the
 * tool, and which call of the reply it is. Without it, pages show no streamed arguments.
 */
export type Delta = Frozen<{
  kind: 'text' | 'reasoning' | 'arguments' | 'output'
  part: number
  text: string
  proposed?: { tool: string; index: number }
}>

/** What a model gets beside the request: a signal to stop, the time, and `emit` for text as it comes. */
export type CallContext = Frozen<{
  signal: AbortSignal
  /** The harness's clock, for waiting. Other processes have other clocks. */
  clock: Clock
  /** The time of the session, by the store's clock. Use it for times that other processes read. */
  now?: () => number
  emit: (delta: Delta) => void
  /** Waits by the harness's clock; ends early when the call is aborted. */
  sleep: (ms: number) => Promise<void>
  /** The W3C header of that name for the request. Absent: the request has none. */
  traceparent?: string | undefined
}>

/** The purpose a model is chosen for. Routes have a model for each, and `hint:NAME` asks for it. */
export type Workload = 'chat' | 'reasoning' | 'agentic' | 'coding' | 'burst' | 'summarization' | 'vision'

/** The model of a kind of work, in place of the name of a model. `route` says which model that is. */
export type Hint = `hint:${Workload}`

/**
 * Returns exactly one Reply or ModelFailure. Never throws for provider trouble; a throw counts as a failure of class
 * `other`.
 */
export interface Model {
  readonly name: string
  /** For a chain: the names of its models. A request may ask for any of them first. */
  readonly routes?: readonly string[]
  call(request: Request, context: CallContext): Promise<Reply | ModelFailure>
}
