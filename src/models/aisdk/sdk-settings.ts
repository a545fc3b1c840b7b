// The settings of a model of the AI SDK. This file imports no type of the SDK, so that programs without it compile.
import type { Deadlines } from '../http/deadlines.ts'
import type { PriceTable } from '../price.ts'
import type { ToolChoice } from '../protocols/protocol.ts'

export type SdkOrigin = { readonly provider: string; readonly modelId: string }

/** Absent settings are left to the provider. */
export type AiSdkSettings = {
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: number
  readonly stop?: readonly string[]
  /** As in `model`: for the first request after a message of the user. */
  readonly toolChoice?: ToolChoice
  readonly headers?: Readonly<Record<string, string>>
  /** Options in the form of the provider's package, such as `{ anthropic: { thinking: … } }`. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /**
   * Tools that the provider runs, by name, as its package makes them: `{ web_search:
   * anthropic.tools.webSearch_20250305() }`.
   */
  readonly providerTools?: Readonly<Record<string, object>>
  readonly prices?: PriceTable
  /** As for every model. The SDK shows no pings before specification v4: a model that thinks in silence needs a longer `idleMs`. */
  readonly deadlines?: Partial<Deadlines>
}
