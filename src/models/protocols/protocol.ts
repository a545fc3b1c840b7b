// What a wire protocol is: a pure pair of `encode` (a request as one HTTP body) and `step` (one event of the answer). No I/O,
// no clock, no keys: the transport has those. Types only.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { Delta, ModelFailure, Reply, Request } from '../../kernel/ports.ts'

/** One event of a stream as it was framed. `event` is empty where the provider names none. */
export type WireEvent = Frozen<{ event: string; data: string }>

export type Effort = 'off' | 'low' | 'medium' | 'high'

/** What the caller wants of every request to this model. What is absent is left to the provider. */
export type Settings = Frozen<{
  outputTokensMax?: number
  temperature?: number
  reasoning?: Effort | Frozen<{ budgetTokens: number }>
  /** OpenAI Responses: send only what is new, by `previous_response_id`. The provider then stores the conversation. */
  chain?: boolean
  /** Anthropic, OpenRouter: mark the prefix for the prompt cache. Default true where the provider needs the mark. */
  cache?: boolean
  /** More fields of the body, as they are. They come last and win. */
  body?: Readonly<Record<string, Json>>
}>

/** Where a request goes, as far as its bytes depend on it. */
export type Target = Frozen<{
  /** The endpoint's name. Opaque parts are replayed only to the endpoint they came from. */
  endpoint: string
  model: string
  settings: Settings
  quirks: Quirks
  /** What was refused of it, and is left out: the link to a stored response, and what is sealed up to this event. */
  unlinked?: true
  sealedAfter?: number
}>

/** How hosts of one protocol differ, as data: a new host is a line in a table and not code. */
export type Quirks = Frozen<{
  /** The field that bounds the output, where it is not the protocol's own. */
  outputTokensField?: string
  /** Does not know `strict`, `stream_options`, `parallel_tool_calls`, images, … */
  lacks?: readonly (
    | ('strict' | 'stream_usage' | 'images' | 'files' | 'native_output' | 'tool_choice' | 'reasoning' | 'summary')
    /** Refuses a user's message right after a tool's (Mistral). */
    | 'user_after_tool'
  )[]
  /** Ids of calls must look like this; others are mapped. */
  idPattern?: RegExp
  /** OpenRouter's `reasoning_details`, DeepSeek's and others' `reasoning_content`, or `reasoning` as vLLM, Groq and Ollama have it. */
  reasoningField?: 'reasoning_details' | 'reasoning_content' | 'reasoning'
  /** Marks for the prompt cache are understood (Anthropic models behind other hosts). */
  cacheMarks?: true
}>

/** What an opaque part holds: who wrote it, and the provider's own bytes as parsed. It is sent back to nobody else. */
export type Opaque = Frozen<{
  by: string
  model: string
  /** How many calls of the same reply stand before this part. */
  at: number
  /** The provider's own block or item, unchanged. */
  data: Json
}>

export type Encoded = Frozen<{ path: string; headers: Readonly<Record<string, string>>; body: string }>

export interface Protocol<State> {
  readonly name: 'messages' | 'responses' | 'chat'
  /** Deterministic, and append-only: the messages of request n are the start of those of request n + 1, byte for byte. */
  encode(request: Request, target: Target): Encoded
  begin(target: Target): State
  /** Never throws. What is not understood is ignored, what is broken makes `finish` a failure. The state given is not changed. */
  step(state: State, event: WireEvent): readonly [State, readonly Delta[]]
  /** After the last event, or when the stream broke off: without the provider's own end it is a failure. */
  finish(state: State): Reply | ModelFailure
  /** A whole answer that came as one JSON body. */
  whole(body: string, target: Target): Reply | ModelFailure
}
