// The port to a model, as types: requests, replies and failures. Types only.
import type { Allow, Frozen, Json, Part, ProviderFailureClass, Usage } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Clock } from './system.ts'

/** A tool as the model is shown it. */
export type ToolSchema = Frozen<{
  /** The name that the model calls. */
  name: string
  /** Tells the model what the tool does and when to use it. */
  description: string
  /** The JSON Schema of the arguments. */
  parameters: Json
}>
/**
 * The shape of the final answer: enforced by the provider (`native`), or requested as the arguments of a call (`tool`).
 */
export type OutputSchema = Frozen<{
  /** Whether the provider enforces the shape, or the model calls a tool with the answer as its arguments. */
  mode: 'native' | 'tool'
  /** The name of the shape, or of that tool. */
  name: string
  /** The JSON Schema of the answer. */
  schema: Json
  /** The provider is asked to allow nothing but this shape. */
  strict: boolean
}>

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
  /** The session that asks. */
  session: string
  /**
   * The root of the session's tree, whose prefix it may share: providers keep caches by it. Absent: the session itself.
   */
  tree?: string
  /** The seq of this call's `model.started`; it addresses the deltas. */
  seq: number
  /** The system prompt. The same text for all requests of a run. */
  instructions: string
  /** The tools that the model is shown. The list is the same for all requests of a run. */
  tools: readonly ToolSchema[]
  /** Which of the tools it may use now. A model that uses another one is corrected. */
  allow: Allow
  /** The last answer was empty because it was cut: give this one more room. */
  boost: boolean
  /** For a chain: the name of the model to ask first. */
  route?: string
  /** The shape of the final answer. Absent: a text. */
  output?: OutputSchema
  /** How to answer this request. Absent settings are the model's own. */
  settings?: AnswerSettings
  /** Grows between calls and never changes: the next request starts with these same entries. Do not mutate it. */
  messages: readonly Message[]
}>

/** `text`: what the model wrote, if it wrote the call as text. A block of several calls stands with its first one. */
export type ReplyCall = Frozen<{
  /** The id that the provider gave to the call. */
  id: string
  /** The name of the tool, as the model wrote it. */
  tool: string
  /** The arguments as the model wrote them: JSON in most cases, but nobody checked that. */
  args: string
  /** The whole call, if the model wrote it as text. A block of several calls stands with its first one. */
  text?: string
}>

/** One whole answer of a model: its parts, the calls that it wants made, and what it cost. */
export type Reply = Frozen<{
  /** Tells a reply from a failure. */
  type: 'reply'
  /** Text, reasoning and files of the answer, in their order. */
  parts: readonly Part[]
  /** The calls that the model wants made, in their order. Empty for an answer. */
  calls: readonly ReplyCall[]
  /** Why the model stopped: it was done, reached its maximum length, wants calls made, or refused. */
  finish: 'stop' | 'length' | 'calls' | 'refusal'
  /** The tokens that the provider counted. Null if it reported none: then they are estimated where the model has a price. */
  usage: Usage | null
  /** The price of the reply, in millionths of a dollar. Absent: it is computed from the usage and the prices of the model. */
  cost?: number
  /** Usage or cost are not all reported, so the whole reservation for the request counts as spent. */
  assumed?: true
  /** The name of the model that answered. Absent if that is the one that was asked. */
  route?: string
  /** The route that should have answered: it failed, or could not take the request. */
  fallback_from?: string
  /** The reply was cached from an earlier call, and no provider was asked. */
  cached?: true
}>

/** `unasked`: the request was held back here before it reached the provider, so it was no attempt. */
export type ModelFailure = Frozen<
  {
    /** Tells a failure from a reply. */
    type: 'failure'
    /** The kind of trouble, which decides what the run does next. */
    class: ProviderFailureClass
    /** What went wrong, for people. It is in the log. */
    message: string
  } & ModelFailureDetails
>
/**
 * `broken`: an answer began to arrive and could not be read to its end, so the provider may charge for it. `elsewhere`:
 * the model itself failed, so another one of a chain is asked.
 */
type ModelFailureDetails = {
  /** True if the same request may succeed later. The run then waits and makes it again. */
  retryable: boolean
  /** How long the provider asked to wait, in ms. Absent: the run chooses the time. */
  retryAfterMs?: number
  /** The text that had arrived before the failure. Absent if no answer had begun. */
  partial?: string
  /** The request was held back before it reached the provider, so it counts as no attempt. */
  unasked?: true
  /** An answer began to arrive and could not be read to its end, so the provider may charge for it. */
  broken?: true
  /** The model itself failed, so another one of a chain is asked. */
  elsewhere?: true
}

/** A piece of a reply in progress. Live only, never in the log. */
export type Delta = Frozen<{
  /** Which stream the text belongs to. `output` is what a call prints while it runs. */
  kind: 'text' | 'reasoning' | 'arguments' | 'output'
  /** Counts the parts and calls of one reply from 0. For `output` it is the index of the call. */
  part: number
  /** The next characters of that part. */
  text: string
  /** With `arguments`: the tool, and which call of the reply it is. Without it pages show no streamed arguments. */
  proposed?: { tool: string; index: number }
}>

/** What a model gets beside the request: a signal to stop, the time, and `emit` for text as it comes. */
export type CallContext = Frozen<{
  /** Aborted when the answer is no longer wanted. */
  signal: AbortSignal
  /** The harness's clock, for waiting. Other processes have other clocks. */
  clock: Clock
  /** The time of the session, by the store's clock. Use it for times that other processes read. */
  now?: () => number
  /** Takes text as it comes, for those who watch. What is never emitted is only shown later. */
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
  /** The name of the model, as logs and bills have it: `provider:model` for those of the package. */
  readonly name: string
  /** For a chain: the names of its models. A request may ask for any of them first. */
  readonly routes?: readonly string[]
  /** Answers one request. It resolves with a failure for trouble of the provider, and heeds `context.signal`. */
  call(request: Request, context: CallContext): Promise<Reply | ModelFailure>
}
