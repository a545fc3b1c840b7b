// The interface of a wire protocol: `encode` makes the HTTP body of a request, `step` takes one event of the answer. Pure: I/O, clock
// and keys belong to the transport. Types only.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { ProviderTool } from './provider-tools.ts'
import type { AnswerSettings, Delta, Effort, ModelFailure, Reply, Request } from '../../ports/model.ts'

/** One framed event of a stream. `event` is empty if the provider sent no name. */
export type WireEvent = Frozen<{ event: string; data: string }>

/** Which efforts a host takes is in efforts.ts. */
export type { Effort, ToolChoice } from '../../ports/model.ts'

/** The caller's settings for every request to this model. Absent settings are left to the provider. */
export type Settings = Frozen<
  AnswerSettings & {
    /** As the host calls it. */
    serviceTier?: string
    /** OpenAI Responses: send only new turns, by `previous_response_id`. The provider then stores the conversation. */
    chain?: boolean
    /** Anthropic, OpenRouter: mark the prefix for the prompt cache. Default true where the provider needs the mark: for 5 minutes. */
    cache?: boolean | Frozen<{ ttl: '5m' | '1h' }>
    /** More fields of the body, merged into those that are there (json.ts). They win. */
    body?: Readonly<Record<string, Json>>
    /** Tools that the provider runs itself. */
    providerTools?: readonly ProviderTool[]
  }
>

/** The destination of a request, as far as its bytes depend on it. */
export type Target = Frozen<{
  /** The endpoint's name. Opaque parts are replayed only to the endpoint they came from. */
  endpoint: string
  model: string
  settings: Settings
  quirks: Quirks
  /** Refused and left out: the link to a stored response, and sealed reasoning up to this event. */
  unlinked?: true
  sealedAfter?: number
  /** The turn that the provider paused, as it was: sent back, and gone on from. */
  paused?: readonly Json[]
}>

/** The differences between hosts of one protocol, as data: a new host needs no code. */
export type Quirks = Frozen<{
  /** The field that limits the output, if it is not the protocol's own. */
  outputTokensField?: string
  /** Not supported by the host. */
  lacks?: readonly (
    | ('strict' | 'stream_usage' | 'images' | 'files' | 'native_output' | 'tool_choice' | 'reasoning' | 'summary')
    | ('seed' | 'stop' | 'parallel')
    /** A user message right after a tool result is refused (Mistral). */
    | 'user_after_tool'
  )[]
  /** Call ids must match this; others are remapped. */
  idPattern?: RegExp
  /** The efforts that the host takes; not set: unknown, and left to the host. */
  efforts?: readonly Effort[]
  /** The service tiers of the host; empty: it has none. Not set: unknown, and left to the host. */
  serviceTiers?: readonly string[]
  /** The field of the seed, if it is not `seed` (Mistral). */
  seedField?: string
  /** OpenRouter's `reasoning_details`, DeepSeek's and others' `reasoning_content`, or `reasoning` as vLLM, Groq and Ollama have it. */
  reasoningField?: 'reasoning_details' | 'reasoning_content' | 'reasoning'
  /** Reasoning goes back as parts of type `thinking` in the content, to the model that wrote it (Mistral). */
  thoughtParts?: true
  /** The tools that the host runs itself; not set: none. */
  providerTools?: readonly ProviderTool['type'][]
  /** Takes sounds as `input_audio` (Chat Completions). */
  audio?: true
  /** Takes cache marks (Anthropic models behind other hosts). */
  cacheMarks?: true
}>

/** Provider data kept on a part: its origin and the parsed data, or null. It is sent back only to that origin. */
export type Opaque = Frozen<{
  by: string
  model: string
  /** The number of calls before this part in the reply. */
  at: number
  /** The provider's own block or item, unchanged. */
  data: Json
}>

export type Encoded = Frozen<{ path: string; headers: Readonly<Record<string, string>>; body: string }>

/** `paused`: the provider paused its turn with this content, and goes on when it is sent back. */
export type Answered = (Reply & Frozen<{ paused?: readonly Json[] }>) | ModelFailure

export interface Protocol<State> {
  readonly name: 'messages' | 'responses' | 'chat'
  /** Deterministic, and append-only: the messages of request n are the start of those of request n + 1, byte for byte. */
  encode(request: Request, target: Target): Encoded
  begin(target: Target): State
  /** Never throws. Unknown events are ignored; a broken event makes `finish` a failure. The given state is not changed. */
  step(state: State, event: WireEvent): readonly [State, readonly Delta[]]
  /** The provider said its own end, or an error: nothing that follows changes the answer. */
  over(state: State): boolean
  /** After the last event, or when the stream broke. Without the provider's end event it is a failure. */
  finish(state: State): Answered
  /** A whole answer that came as one JSON body. */
  whole(body: string, target: Target): Answered
}
