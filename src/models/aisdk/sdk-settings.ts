// The settings of a model of the AI SDK. This file imports no type of the SDK, so that programs without it compile.
import type { Deadlines } from '../http/deadlines.ts'
import type { PriceTable } from '../price.ts'
import type { ToolChoice } from '../protocols/protocol.ts'

export type SdkOrigin = {
  /** The name of the provider, as its package gives it. */
  readonly provider: string
  /** The name of the model at its provider. */
  readonly modelId: string
}

/** Absent settings are left to the provider. */
export type AiSdkSettings = {
  /** How many tokens one answer may have. */
  readonly outputTokensMax?: number
  /** How freely the model chooses its words. */
  readonly temperature?: number
  /** Only the likeliest words that together have this probability are chosen from. */
  readonly topP?: number
  /** Asks for the same words for the same request, as far as the provider can. */
  readonly seed?: number
  /** Texts that end the answer. They are not part of it. */
  readonly stop?: readonly string[]
  /** As in `model`: for the first request after a message of the user. */
  readonly toolChoice?: ToolChoice
  /** More headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Options in the form of the provider's package, such as `{ anthropic: { thinking: … } }`. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /**
   * Tools that the provider runs, by name, as its package makes them: `{ web_search:
   * anthropic.tools.webSearch_20250305() }`.
   */
  readonly providerTools?: Readonly<Record<string, object>>
  /** Your own prices. They win over those of the package. */
  readonly prices?: PriceTable
  /** As for every model. The SDK shows no pings before specification v4: a model that thinks in silence needs a longer `idleMs`. */
  readonly deadlines?: Partial<Deadlines>
}
