// The interface of a wire protocol: `encode` makes the HTTP body of a request, `step` takes one event of the answer.
// Pure: the transport has I/O, clock and keys. Types only.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { ProviderTool } from './provider-tools.ts'
import type { AnswerSettings, Delta, Effort, ModelFailure, Reply, Request } from '../../ports/model.ts'

/** One framed event of a stream. `event` is empty if the provider sent no name. */
export type WireEvent = Frozen<{ event: string; data: string }>

/** efforts.ts knows which efforts a host takes. */
export type { Effort, ToolChoice } from '../../ports/model.ts'

/** The caller's settings for every request to this model. Absent settings are left to the provider. */
export type RequestSettings = Frozen<
  AnswerSettings & {
    /** The name that the host gives to the tier. */
    serviceTier?: string
    /** OpenAI Responses: send only new turns, by `previous_response_id`. The provider then stores the messages. */
    chain?: boolean
    /** Anthropic, OpenRouter: mark the prefix for the prompt cache. Default true where the provider needs the mark: for 5 minutes. */
    cache?: boolean | Frozen<{ ttl: '5m' | '1h' }>
    /** More fields of the body, merged into the existing ones (write-json.ts). They take precedence. */
    body?: Readonly<Record<string, Json>>
    /** Tools that the provider runs itself. */
    providerTools?: readonly ProviderTool[]
  }
>

/** The destination of a request, as far as its bytes depend on it. */
export type ModelTarget = Frozen<{
  /** The endpoint's name. Opaque parts are replayed only to the endpoint they came from. */
  endpoint: string
  model: string
  settings: RequestSettings
  quirks: Quirks
  /**
   * The parts that the provider refused and that are left out: the link to a stored response, and sealed reasoning up
   * to this event.
   */
  unlinked?: true
  sealedAfter?: number
  /** The unchanged content of a turn that the provider paused: it is sent back, and the turn continues from it. */
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
  /** The efforts that the host takes. If not set, they are unknown and left to the host. */
  efforts?: readonly Effort[]
  /** The service tiers of the host; empty if it has none. If not set, they are unknown and left to the host. */
  serviceTiers?: readonly string[]
  /** The field of the seed, if it is not `seed` (Mistral). */
  seedField?: string
  /**
   * OpenRouter's `reasoning_details`, `reasoning_content` of DeepSeek and others, or `reasoning` of vLLM, Groq and
   * Ollama.
   */
  reasoningField?: 'reasoning_details' | 'reasoning_content' | 'reasoning'
  /** Reasoning goes back as parts of type `thinking` in the content, to the model that wrote it (Mistral). */
  thoughtParts?: true
  /** The tools that the host runs itself. If not set, it runs none. */
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

export type EncodedRequest = Frozen<{ path: string; headers: Readonly<Record<string, string>>; body: string }>

/** `paused`: the provider paused its turn with this content, and continues when it is sent back. */
export type ProtocolAnswer = (Reply & Frozen<{ paused?: readonly Json[] }>) | ModelFailure

export interface Protocol<State> {
  readonly name: 'messages' | 'responses' | 'chat'
  /**
   * Deterministic, and append-only: the messages of request n are the start of those of request n + 1, byte for byte.
   */
  encode(request: Request, target: ModelTarget): EncodedRequest
  begin(target: ModelTarget): State
  /**
   * Never throws. Unknown events are ignored; a broken event makes `finish` a failure. The given state is not changed.
   */
  step(state: State, event: WireEvent): readonly [State, readonly Delta[]]
  /** Whether the provider sent its own end, or an error: later events do not change the answer. */
  over(state: State): boolean
  /** After the last event, or when the stream broke. Without the provider's end event the result is a failure. */
  finish(state: State): ProtocolAnswer
  /** A whole answer that came as one JSON body. */
  whole(body: string, target: ModelTarget): ProtocolAnswer
}
