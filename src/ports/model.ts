// The door to a model, as types: what it is asked, what it says, and how it fails. Nothing of it runs.
import type { Allow, Frozen, Json, Part, ProviderFailureClass, Usage } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Clock } from './system.ts'

export type ToolSchema = Frozen<{ name: string; description: string; parameters: Json }>
/** The shape of the final answer: kept by the provider (`native`), or asked for as the arguments of a call (`tool`). */
export type OutputSchema = Frozen<{ mode: 'native' | 'tool'; name: string; schema: Json; strict: boolean }>

/** From least to most. */
export type Effort = 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
export type ToolChoice = 'auto' | 'required' | 'none' | Frozen<{ tool: string }>
/** How a model answers. Absent settings are left to the model as it was made, and to its provider. */
export type AnswerSettings = Frozen<{
  outputTokensMax?: number
  temperature?: number
  topP?: number
  seed?: number
  /** Texts that end the answer. They are not part of it. */
  stop?: readonly string[]
  /**
   * `required` and a tool by name hold for the first request after a message of the user. After results the model chooses by
   * itself: else no run would end.
   */
  toolChoice?: ToolChoice
  /** False: at most one call in a reply. */
  parallelToolCalls?: boolean
  reasoning?: Effort | Frozen<{ budgetTokens: number }>
}>

export type Request = Frozen<{
  session: string
  /** The session at the top of its tree, whose prefix it may share: providers keep caches by it. Absent: it is its own. */
  tree?: string
  /** seq of this call's `model.started`: addresses its deltas. */
  seq: number
  instructions: string
  tools: readonly ToolSchema[]
  allow: Allow
  boost: boolean
  /** Of a chain: the name of the model to ask first. */
  route?: string
  output?: OutputSchema
  /** How to answer this request. What is not set is as the model was made. */
  settings?: AnswerSettings
  /** Grows between calls and never changes: the next request starts with these same entries. Not to be mutated. */
  messages: readonly Message[]
}>

export type ReplyCall = Frozen<{ id: string; tool: string; args: string }>

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
  /** It was kept from an earlier call, and no provider was asked. */
  cached?: true
}>

/** `unasked`: it was held back here, before the provider was asked, so it was no attempt. */
export type ModelFailure = Frozen<{ type: 'failure'; class: ProviderFailureClass; message: string } & Hints>
/**
 * `broken`: an answer had begun to arrive, and could not be read to its end, so the provider may charge for it. `elsewhere`: the model itself failed, so another one of a
 * chain is asked.
 */
type Hints = {
  retryable: boolean
  retryAfterMs?: number
  partial?: string
  unasked?: true
  broken?: true
  elsewhere?: true
}

/**
 * A piece of a reply in progress. Live only: never in the log. `part` counts the parts and calls of one reply. `output` is what a
 * call prints while it runs: there `part` is the index of the call. `proposed` is there for `arguments`: the tool, and which of the
 * calls of the reply it is. A model that does not say it streams no arguments to pages.
 */
export type Delta = Frozen<{
  kind: 'text' | 'reasoning' | 'arguments' | 'output'
  part: number
  text: string
  proposed?: { tool: string; index: number }
}>

export type CallContext = Frozen<{
  signal: AbortSignal
  /** The harness's clock, for waiting. Other processes have other clocks. */
  clock: Clock
  /** The time of the session, by the store's clock. What is written down and read by other processes goes by it. */
  now?: () => number
  emit: (delta: Delta) => void
  /** Waits by the harness's clock; ends early when the call is aborted. */
  sleep: (ms: number) => Promise<void>
  /** The W3C header of that name, for the request. Absent: it carries none. */
  traceparent?: string | undefined
}>

/** What a model is wanted for. Routes have a model for each, and `hint:NAME` asks for it. */
export type Workload = 'chat' | 'reasoning' | 'agentic' | 'coding' | 'burst' | 'summarization' | 'vision'

export type Hint = `hint:${Workload}`

/** Ends with exactly one Reply or ModelFailure. Never throws for provider trouble; a throw is treated as a failure of class `other`. */
export interface Model {
  readonly name: string
  /** Of a chain: the names of its models, each of which a request may ask for first. */
  readonly routes?: readonly string[]
  call(request: Request, context: CallContext): Promise<Reply | ModelFailure>
}
