// One representation of a tool, and the only one. What happens around it (admission, intent, retries) is not here.
import { hash } from 'node:crypto'
import type { BlobRef, CallKey, EffectClass, Frozen, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../kernel/ports.ts'

/** The part of the Standard Schema contract that is used here. Any library that speaks it will do; none is loaded. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly validate: (value: unknown) => Validation<Output> | Promise<Validation<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    readonly jsonSchema?: { readonly input: (options: { target: 'draft-2020-12' }) => Record<string, unknown> }
  }
}
type Validation<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

export type Approval = 'auto' | 'ask'

export type ToolContext = Frozen<{
  session: string
  call: CallKey
  /** The same for every try of this call: hand it to services that accept an idempotency key. */
  key: string
  signal: AbortSignal
  /** The harness's clock: a tool that waits waits by it. */
  clock: Clock
  /** Keeps a large text beside the log, in the same commit as the result. `recall` reads it back, also in later calls. */
  keep: (text: string, media?: string) => BlobRef
  recall: (hash: string) => Promise<string | null>
}>

export type Tool = Frozen<{
  name: string
  description: string
  parameters: Json
  effect: EffectClass
  sequential: boolean
  timeoutMs: number
  /** Must somebody be asked before this call runs? A policy may speak first. */
  approval: (args: Json) => Approval
  /** How often the model may try again after a retryable failure; null for the run's own limit. */
  retries: number | null
  /** How often the harness itself runs a failed `read` or `idempotent` handler. Never more than once for `once`. */
  attempts: number
  /** Added to the instructions of every run that has this tool. */
  instructions: string
  /** Answered from outside with `session.answer`; nothing is executed here. */
  outside: boolean
  /** Changes whenever what the model was told about the tool changes. */
  definition: string
  /** The tool's own other shapes of arguments, brought into the declared one before repair and validation. */
  normalise: ((args: Json) => Json) | null
  validate: (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  execute: (args: unknown, context: ToolContext) => unknown
  reconcile: ((args: unknown, context: ToolContext) => unknown) | null
}>

export type ToolDefinition<Args> = {
  readonly name: string
  readonly description: string
  readonly input: StandardSchema<Args>
  /** Default `once`: at most once, and `unknown` after a crash in the window. */
  readonly effect?: EffectClass
  readonly sequential?: boolean
  readonly timeoutMs?: number
  /** Or by the arguments: what is asked for decides whether somebody must be. */
  readonly approval?: Approval | ((args: Args) => Approval)
  readonly retries?: number
  readonly attempts?: number
  readonly instructions?: string
  readonly normalise?: (args: Json) => Json
  /** "Did call K happen?" Asked after a crash, before anyone is bothered. Returns the result, or undefined for "I cannot say". */
  readonly reconcile?: (args: Args, context: ToolContext) => unknown
  /**
   * Returns text, any JSON, or an envelope made with `output(…)`. Throws `ToolFailure` for what the model should know,
   * `ModelRetry` for what it should correct. Without it the tool is answered from outside.
   */
  readonly execute?: (args: Args, context: ToolContext) => unknown
}

const DEFAULTS = {
  effect: 'once',
  sequential: false,
  timeoutMs: 60_000,
  approval: 'auto',
  attempts: 1,
  instructions: '',
} as const

export function defineTool<Args>(definition: ToolDefinition<Args>): Tool {
  const { name, description, input, execute, reconcile, normalise = null, retries = null } = definition
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Fault('invalid_config', `Tool name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
  }
  const { effect, sequential, timeoutMs, approval, attempts, instructions } = { ...DEFAULTS, ...definition }
  if (effect === 'once' && attempts > 1) {
    throw new Fault('invalid_config', `Tool "${name}" runs at most once, so it cannot have ${attempts} attempts.`)
  }
  const parameters = (input['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }) as Json
  const asks = typeof approval === 'function' ? approval : () => approval
  const told = [name, description, parameters, effect, sequential, timeoutMs, instructions]
  if (typeof approval === 'string') told.push(approval)
  return {
    name,
    description,
    parameters,
    effect,
    sequential,
    timeoutMs,
    // Sound: only what `validate` returned is ever passed in.
    approval: (args) => asks(args as Args),
    retries,
    attempts,
    instructions,
    outside: execute === undefined,
    definition: hash('sha256', JSON.stringify(told)),
    normalise,
    validate: (args) => input['~standard'].validate(args),
    execute: (args, context) => execute?.(args as Args, context),
    reconcile: reconcile ? (args, context) => reconcile(args as Args, context) : null,
  }
}
