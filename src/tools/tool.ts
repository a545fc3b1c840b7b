// One representation of a tool, and the only one. What happens around it (admission, intent, retries) is not here.
import { hash } from 'node:crypto'
import type { CallKey, EffectClass, Frozen, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'

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

export type ToolContext = Frozen<{
  session: string
  call: CallKey
  /** The same for every try of this call: hand it to services that accept an idempotency key. */
  key: string
  signal: AbortSignal
}>

export type Tool = Frozen<{
  name: string
  description: string
  parameters: Json
  effect: EffectClass
  sequential: boolean
  timeoutMs: number
  approval: 'auto' | 'ask'
  /** Answered from outside with `session.answer`; nothing is executed here. */
  outside: boolean
  /** Changes whenever what the model was told about the tool changes. */
  definition: string
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
  readonly approval?: 'auto' | 'ask'
  /** "Did call K happen?" Asked after a crash, before anyone is bothered. Returns the result, or undefined for "I cannot say". */
  readonly reconcile?: (args: Args, context: ToolContext) => unknown
  /** Without it the tool is answered from outside. */
  readonly execute?: (args: Args, context: ToolContext) => unknown
}

export function defineTool<Args>(definition: ToolDefinition<Args>): Tool {
  const {
    name,
    description,
    input,
    effect = 'once',
    sequential = false,
    timeoutMs = 60_000,
    approval = 'auto',
  } = definition
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Fault('invalid_config', `Tool name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
  }
  const parameters = (input['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }) as Json
  const { execute, reconcile } = definition
  return {
    name,
    description,
    parameters,
    effect,
    sequential,
    timeoutMs,
    approval,
    outside: execute === undefined,
    definition: hash(
      'sha256',
      JSON.stringify([name, description, parameters, effect, sequential, timeoutMs, approval]),
    ),
    validate: (args) => input['~standard'].validate(args),
    // Sound: only what `validate` returned is ever passed in.
    execute: (args, context) => execute?.(args as Args, context),
    reconcile: reconcile ? (args, context) => reconcile(args as Args, context) : null,
  }
}
