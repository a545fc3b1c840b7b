// The type of a tool, and the only one. Admission, intents and retries are elsewhere.
import { hash } from 'node:crypto'
import type { EffectClass, FailureKind, FileState, Frozen, Json, RunChoice } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import {
  anyCheck,
  functionCheck,
  type Check,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  withoutUndefined,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  orFunction,
  orNull,
  objectCheck,
  tableCheck,
  textCheck,
  waitCheck,
} from '../../options.ts'
import { schemaTrouble } from './schema-shape.ts'
import {
  fromAnyJsonSchema,
  fromJsonSchema,
  type JsonSchema,
  type StandardSchema,
  type Validation,
} from './json-schema.ts'
import { toJsonSchema } from './to-json-schema.ts'
import type { OutputMetadata, Output } from './tool-output.ts'
import { jsonRecord } from './plain-values.ts'
import { ALIASES, type Aliases } from '../repair/repair.ts'
import { isObject } from '../../view/untrusted-json.ts'
import type { ToolContext, ToolRoot } from './tool-context.ts'

export type { ToolContext } from './tool-context.ts'
export type { StandardSchema } from './json-schema.ts'

/** `auto` runs unless a rule says otherwise, `ask` is asked unless a rule allows it, `always` is always asked, `never` is refused. */
export type Approval = 'auto' | 'ask' | 'always' | 'never'

/** A field for types only: the `deps` that a tool needs from the harness, if known. No tool has it at run time. */
interface HasDeps {
  /** Only for types: the `deps` that the tool needs from the harness. Never there at run time. */
  readonly '~deps'?: TakesDeps<never>
}

/** A source of tools that are known only at run time, such as those of an MCP server. */
export interface ToolSource extends HasDeps {
  /** Tells a source from a tool. */
  readonly type: 'source'
  /** The name of the source, for messages about it and for lists. */
  readonly name: string
  /**
   * Returns the current tools; called once before each run. It connects if it must, and is cheap if nothing changed. It
   * waits by the harness's clock, as tools do. Throws a Fault if the run cannot do without it; an optional source
   * returns the tools it has.
   */
  tools(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]>
  /** The tools or servers that were missing at the last call, one sentence each. People read it; the model does not. */
  warnings?(): readonly string[]
  /** Closes the source and leaves no process and no socket behind. */
  close(): Promise<void>
}

/** The kind of a tool. Tools that a host defines are `user`. */
export type ToolKind = 'user' | 'subagent' | 'parallel_llm' | 'mcp'

/** Facts about a tool for the host that its model does not see. */
export type ToolAbout = { readonly kind: ToolKind } & Pick<Tool, 'mcp' | 'metadata'>

/**
 * How a handler's failure is handled: the model reads it, the run ends with it, or the model reads the text that this
 * function returns.
 */
export type OnError = 'return' | 'fail' | ((failure: ToolError) => string)
export type ToolError = { readonly kind: FailureKind; readonly message: string; readonly metadata: OutputMetadata }

/** The result of undoing one change of a call. */
export type Undone = Frozen<{
  /** What was changed: the path of a file in most cases. */
  what: string
  /** What became of it. `changed_since`: it was left alone. `not_kept`: there is nothing to restore it from. */
  result: 'restored' | 'removed' | 'changed_since' | 'not_kept'
}>

/** A tool as a harness uses it. `defineTool` makes one, with types; write one yourself only to generate tools. */
export interface Tool extends HasDeps {
  /** The name that the model calls: 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /** The JSON Schema of the arguments as the model is shown it, without those that the host supplies. */
  readonly parameters: Json
  /** How often a call may run. */
  readonly effect: EffectClass
  /** Its calls, or those with such arguments, make their whole batch sequential: nothing runs beside them. */
  readonly sequential: boolean | ((args: Json) => boolean)
  /** After so many ms a call is aborted, and after a short grace given up. */
  readonly timeoutMs: number
  /** Must a person be asked before this call runs? A policy is asked first. */
  readonly approval: (args: Json) => Approval | Promise<Approval>
  /** Set if `approval` depends on the arguments. */
  readonly byArguments?: true
  /** How often the model may try again after a retryable failure; null means the run's own limit. */
  readonly retries: number | null
  /** How often the harness itself runs a failed `read` or `idempotent` handler. For `once` it is 1. */
  readonly attempts: number
  /** Added to the instructions of every run that has this tool. */
  readonly instructions: string
  /** The answer comes from outside with `session.answer`; nothing runs here. */
  readonly outside: boolean
  /** The agent whose child session answers the call. */
  readonly child?: (args: Json) => string
  /**
   * The one agent that the tool starts, beside those that its own agent may start. Only the main agent of a harness and
   * agents of the tier `chat` that list the tool have it, and none in plan mode.
   */
  readonly starts?: string
  /** The options of the run that a call starts in a child. */
  readonly choice?: (args: Json) => RunChoice
  /** The child reads this conversation, and its answer is the answer of the run. */
  readonly handoff?: true
  /** The tool gives orders to children: runtime/turn/child-orders.ts makes the orders. */
  readonly orders?: true
  /** The tool writes the run's product: it stays when other tools are withdrawn near the end of a run. */
  readonly deliverable?: true
  /** The tool is meant to be called repeatedly: the loop breaker does not count it. */
  readonly polling?: true
  /** The tool reads kept texts, at the path `blob:<hash>`: long results name it for reading on. */
  readonly readsKept?: true
  /**
   * The tool is always offered, whatever lists and a run's own choice leave out, because results of other tools name
   * it.
   */
  readonly always?: true
  /** An interrupt waits for the call instead of aborting it. Its timeout still holds. */
  readonly blocks?: true
  /** A hash that changes whenever the model's description of the tool changes. */
  readonly definition: string
  /** Other names of its fields, together with those that every tool knows. Absent if the tool declares none. */
  readonly aliases?: Aliases
  /** Where the tool acts and with what, beside its arguments. An approval for one place does not count for another. */
  readonly place?: () => Json
  /** The folder that its relative paths start from: rules follow links from there. */
  readonly root?: string
  /** The files that a call would change, as they are now: an approval is for exactly these. */
  readonly filesChanged?: (args: Json) => Promise<readonly FileState[]>
  /**
   * Returns the tool for a session that works elsewhere; null if there is none there. Absent: the tool is the same
   * everywhere.
   */
  readonly rooted?: (root: ToolRoot) => Tool | null
  /** Returns the tool for the skills of these names only; null if there are none of them. */
  readonly filtered?: (skills: readonly string[]) => Tool | null
  /** Turns the tool's other argument shapes into the declared one, before repair and validation. */
  readonly normalise: ((args: Json) => Json) | null
  /** Checks the arguments of the model, and returns them as they are recorded, or what is wrong with them. */
  readonly validate: (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  /** Checks the handler's result; null accepts anything. */
  readonly checkOutput: ((value: unknown) => Validation<unknown> | Promise<Validation<unknown>>) | null
  /** Names of the secrets the tool may see. */
  readonly secrets: readonly string[]
  /** Undoes a call of this tool, from the metadata of its result, unless the change was overwritten since. */
  readonly undo: ((metadata: OutputMetadata, context: ToolContext) => Promise<readonly Undone[]>) | null
  /** Runs the call. `args` are what `validate` returned. The result is text, JSON or an envelope of `output`. */
  readonly execute: (args: unknown, context: ToolContext) => unknown
  /** Asked after a crash whether a call happened: returns its result, or undefined for "unknown". Null: a person is asked. */
  readonly reconcile: ((args: unknown, context: ToolContext) => unknown) | null
  /** Absent: `return`, or the setting of its agent. */
  readonly onError?: OnError
  /** Absent: `user`. */
  readonly kind?: ToolKind
  /** The MCP server of the tool, and the server's own name for it. */
  readonly mcp?: { readonly server: string; readonly tool: string }
  /** The host's own data about the tool, for hooks and lists. No model reads it. */
  readonly metadata?: OutputMetadata
}

/**
 * A tool with known types, as `defineTool` returns it: its name, its arguments as they are recorded, and the `deps`
 * that it needs from the harness. At run time it is a tool like any other, without the last two fields. `Hidden` are
 * the arguments that the host supplies, if any.
 */
export interface TypedTool<Name extends string, Args, Deps = unknown, Hidden extends string = string> extends Tool {
  /** The name that the model calls: 1 to 64 letters, digits, `_` or `-`. */
  readonly name: Name
  /** Only for types: the arguments as they are recorded. Never there at run time. */
  readonly '~args'?: ModelArgs<Args, Hidden>
  /** Only for types: the `deps` that the tool needs from the harness. Never there at run time. */
  readonly '~deps'?: TakesDeps<Deps>
}

/** A function type, so that needs combine: one `deps` must satisfy the needs of all tools. */
export type TakesDeps<Deps> = (deps: Deps) => void

/**
 * The return type of a handler whose results must fit a schema with the input `Made`. It is read-only, since results
 * are never changed.
 */
type HandlerResult<Made> = unknown extends Made
  ? unknown
  : DeepReadonly<Made> | Output | Promise<DeepReadonly<Made> | Output>
type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
/** The arguments without those that the host supplies. */
type ModelArgs<Args, Hidden extends string> = string extends Hidden ? Args : Omit<Args, Hidden>

/**
 * `Made` is the input of the schema `output`, `Deps` is the part of `deps` that the handler needs, `Hidden` are the
 * names in `injected`.
 */
export type ToolDefinition<
  Args,
  Name extends string = string,
  Made = unknown,
  Deps = unknown,
  Hidden extends string = string,
  Return = unknown,
> = {
  /** The name that the model calls: 1 to 64 letters, digits, `_` or `-`. */
  readonly name: Name
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /** Any Standard Schema, or a plain JSON Schema for external tools. */
  readonly input: StandardSchema<Args> | JsonSchema
  /** The schema of results. It also checks the type of the handler. */
  readonly output?: StandardSchema<unknown, Made> | JsonSchema
  /** Default `once`: runs at most once, and is `unknown` after a crash while it ran. */
  readonly effect?: EffectClass
  /**
   * Set it for every tool that changes what another call of the same reply may read. It may depend on the arguments.
   * Default: no.
   */
  readonly sequential?: boolean | ((args: Args) => boolean)
  /** After so many ms the call is aborted, and after a short grace given up. Default 60,000. */
  readonly timeoutMs?: number
  /** A function decides by the arguments whether a person must be asked. */
  readonly approval?: Approval | ((args: Args) => Approval | Promise<Approval>)
  /** How often the model may correct its calls after a retryable failure. Default: the run's limit `toolRetries`. */
  readonly retries?: number
  /** How often the harness itself runs a failed `read` or `idempotent` handler. Default 1, and always 1 for `once`. */
  readonly attempts?: number
  /** Added to the instructions of every run that has this tool. Default: none. */
  readonly instructions?: string
  /** Turns other shapes of arguments into the declared one, before they are repaired and checked. Default: none. */
  readonly normalise?: (args: Json) => Json
  /**
   * Names that models give to fields by mistake, with the fields they mean: `{ file_path: 'path' }`, at any depth. A
   * call that gives a field under two names with different values is refused.
   */
  readonly aliases?: { readonly [alias: string]: string }
  /** The tool writes the run's product, so it is withdrawn last near the end of a run. Default: no. */
  readonly deliverable?: boolean
  /** The same call with the same result is expected, so the loop breaker does not count it. Default: no. */
  readonly polling?: boolean
  /** The tool reads texts stored beside the log, at the path `blob:<hash>`: long results name it for reading on. Default: no. */
  readonly readsKept?: boolean
  /** Values that the host supplies: the model neither sees nor sets them; the handler gets them with its arguments. */
  readonly injected?: Readonly<Record<Hidden, Json | (() => Json)>>
  /**
   * Where the tool acts and with what, beside its arguments: a folder, a tenant, an account. An approval is for that
   * place, and is asked for again when the place has changed. Default: the injected values. Used only where a person is
   * asked; the log has it only as a hash.
   */
  readonly place?: () => Json
  /** The effect of an interrupt on a running call: `cancel` it (the default), or wait for it (`block`). */
  readonly onInterrupt?: 'cancel' | 'block'
  /** Names of the secrets that the handler may see. Default: none. */
  readonly secrets?: readonly string[]
  /**
   * How its failure is handled. Default `return`. `fail` ends the run as `tool_error`, except for a call that the model
   * is to correct, a denial and an interrupt. A function returns the text that the model reads.
   */
  readonly onError?: OnError
  /** Your own JSON data about the tool: hooks get it with each call, and lists show it. No model reads it. */
  readonly metadata?: OutputMetadata
  /** Undoes a call, from the metadata of its result: `session.undo` uses it. Default: calls cannot be undone. */
  readonly undo?: Tool['undo']
  /**
   * Answers "Did call K happen?" after a crash, before a person is asked. Returns the result, or undefined for
   * "unknown".
   */
  readonly reconcile?: (args: Args, context: ToolContext<Deps>) => unknown
  /**
   * Returns text, any JSON, or an envelope made with `output(…)`. Throws `ToolFailure` for a failure that the model
   * should read, `ModelRetry` for a call that it should correct. Without it the tool is answered from outside.
   */
  readonly execute?: (args: Args, context: ToolContext<Deps>) => Return
  /** Instead of `execute`: an ES module that exports it. The first call loads the module. */
  readonly module?: URL
  /**
   * Runs each call of `module` in a thread of its own, which an abort or the timeout ends even in an endless loop.
   * Arguments and result are copied; the context has only `session`, `call` and `key`.
   */
  readonly isolate?: boolean
}

const DEFAULTS = {
  effect: 'once',
  sequential: false,
  timeoutMs: 60_000,
  approval: 'auto',
  attempts: 1,
  instructions: '',
  secrets: [] as readonly string[],
} as const

export const approvalCheck = oneOf<Approval>({ auto: true, ask: true, always: true, never: true })
export const effectCheck = oneOf<EffectClass>({ read: true, idempotent: true, once: true })

export const errorCheck = oneOf<'return' | 'fail'>({ return: true, fail: true })

/** The check of an option that is a Standard Schema of any library, or a JSON Schema. */
export const schemaCheck: Check = (value) => {
  const given = value !== null && (typeof value === 'object' || typeof value === 'function') && !Array.isArray(value)
  if (!given) return NO_SCHEMA
  if ('~standard' in value) {
    const { validate } = (value as StandardSchema)['~standard'] ?? {}
    return typeof validate === 'function' ? null : NO_SCHEMA
  }
  const trouble = schemaTrouble(value)
  return trouble === null ? null : `${NO_SCHEMA}: ${trouble}`
}
const NO_SCHEMA = 'must be a schema: one of Zod 4 or the like, or a JSON Schema'

const METADATA_LEVELS_MAX = 16
const metadataCheck = jsonRecord(METADATA_LEVELS_MAX)

const checkDefinition = optionsChecker<ToolDefinition<unknown>>('defineTool', {
  name: requiredCheck(textCheck),
  description: requiredCheck(textCheck),
  input: requiredCheck(schemaCheck),
  output: schemaCheck,
  effect: effectCheck,
  sequential: orFunction(flagCheck),
  timeoutMs: waitCheck,
  approval: orFunction(approvalCheck),
  retries: countCheck(),
  attempts: countCheck(1),
  instructions: textCheck,
  normalise: functionCheck,
  aliases: tableCheck(nonEmptyCheck),
  readsKept: flagCheck,
  deliverable: flagCheck,
  polling: flagCheck,
  injected: objectCheck,
  place: functionCheck,
  onInterrupt: oneOf<'cancel' | 'block'>({ cancel: true, block: true }),
  secrets: listCheck(nonEmptyCheck),
  onError: orFunction(errorCheck),
  metadata: metadataCheck,
  undo: orNull(functionCheck),
  reconcile: functionCheck,
  execute: functionCheck,
  module: (value) => (value instanceof URL ? null : 'must be a URL: new URL("./handler.js", import.meta.url)'),
  isolate: flagCheck,
})

const checkTool = optionsChecker<Omit<Tool, '~deps'>>('a tool', {
  name: requiredCheck(nonEmptyCheck),
  description: requiredCheck(textCheck),
  parameters: requiredCheck(anyCheck),
  effect: requiredCheck(effectCheck),
  sequential: requiredCheck(orFunction(flagCheck)),
  timeoutMs: requiredCheck(anyCheck),
  approval: requiredCheck(functionCheck),
  byArguments: flagCheck,
  retries: requiredCheck(orNull(countCheck())),
  attempts: requiredCheck(countCheck(1)),
  instructions: requiredCheck(textCheck),
  outside: requiredCheck(flagCheck),
  child: functionCheck,
  starts: nonEmptyCheck,
  choice: functionCheck,
  handoff: flagCheck,
  orders: flagCheck,
  place: functionCheck,
  root: nonEmptyCheck,
  filesChanged: functionCheck,
  rooted: functionCheck,
  filtered: functionCheck,
  deliverable: flagCheck,
  polling: flagCheck,
  aliases: anyCheck,
  readsKept: flagCheck,
  always: flagCheck,
  blocks: flagCheck,
  definition: requiredCheck(textCheck),
  normalise: requiredCheck(orNull(functionCheck)),
  validate: requiredCheck(functionCheck),
  checkOutput: requiredCheck(orNull(functionCheck)),
  secrets: requiredCheck(listCheck(nonEmptyCheck)),
  undo: requiredCheck(orNull(functionCheck)),
  execute: requiredCheck(functionCheck),
  reconcile: requiredCheck(orNull(functionCheck)),
  onError: orFunction(errorCheck),
  kind: oneOf<ToolKind>({ user: true, subagent: true, parallel_llm: true, mcp: true }),
  mcp: objectCheck,
  metadata: metadataCheck,
})

/** Accepts a tool that `defineTool` made, even with replaced fields, or a source of tools. */
export const toolCheck: Check = (value, name, of) => {
  const { type, tools, close, validate } = (value ?? {}) as Partial<Tool & ToolSource>
  if (type === 'source')
    return typeof tools === 'function' && typeof close === 'function' ? null : 'must have tools() and close()'
  if (typeof validate !== 'function') return 'is not a tool: make it with defineTool'
  checkTool(value, `the tool ${name} of ${of}`)
  return null
}

/**
 * Makes a tool of a function of yours: a name, a description for the model, a schema for its arguments, and `effect`,
 * which says how often a call may run.
 */
export function defineTool<
  Args,
  Name extends string = string,
  Made = unknown,
  Deps = unknown,
  Hidden extends string = string,
  const Return extends HandlerResult<Made> = HandlerResult<Made>,
>(definition: ToolDefinition<Args, Name, Made, Deps, Hidden, Return>): TypedTool<Name, Args, Deps, Hidden>
export function defineTool<Args>(definition: ToolDefinition<Args>): Tool {
  checkDefinition(definition, definitionName(definition))
  const { name, description, reconcile, normalise = null, retries = null, undo = null } = definition
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Fault('invalid_config', `Tool name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
  }
  const { effect, sequential, timeoutMs, approval, attempts, instructions, secrets } = {
    ...DEFAULTS,
    ...withoutUndefined(definition),
  }
  if (effect === 'once' && attempts > 1) {
    throw new Fault('invalid_config', `Tool "${name}" runs at most once, so it cannot have ${attempts} attempts.`)
  }
  const execute = handlerOf(definition)
  const input = isStandard(definition.input) ? definition.input : fromJsonSchema(definition.input, name)
  const whole = toJsonSchema(input, `The input schema of tool "${name}"`, true) as Json
  if (whole === null) {
    const message = `The schema of tool "${name}" cannot say its JSON Schema, so no model could be told what it takes. Use a library that can, such as Zod 4, or give a JSON Schema.`
    throw new Fault('invalid_config', message)
  }
  const output = definition.output && toStandardSchema(definition.output, name)
  const supplied = injectArguments(definition.injected)
  const place = definition.place ?? supplied?.values
  const parameters = supplied ? supplied.hidden(whole) : whole
  const told = [name, description, parameters, effect, sequential !== false, timeoutMs, instructions]
  if (typeof approval === 'string') told.push(approval)
  return {
    name,
    description,
    parameters,
    effect,
    sequential: typeof sequential === 'function' ? (args) => sequential(args as Args) : sequential,
    timeoutMs,
    // Sound: only what `validate` returned is ever passed in.
    approval: typeof approval === 'function' ? (args) => approval(args as Args) : () => approval,
    retries,
    attempts,
    instructions,
    outside: execute === undefined,
    definition: hash('sha256', JSON.stringify(told)),
    ...(place ? { place } : {}),
    ...(typeof approval === 'function' ? { byArguments: true } : {}),
    normalise,
    validate: supplied ? supplied.validate(input) : (args) => input['~standard'].validate(args),
    checkOutput: output ? (value) => output['~standard'].validate(value) : null,
    secrets,
    undo,
    ...(definition.aliases ? { aliases: aliasesOf(definition.aliases, parameters, name) } : {}),
    ...(definition.deliverable ? { deliverable: true } : {}),
    ...(definition.polling ? { polling: true } : {}),
    ...(definition.readsKept ? { readsKept: true } : {}),
    ...(definition.onInterrupt === 'block' ? { blocks: true } : {}),
    ...(definition.onError === undefined ? {} : { onError: definition.onError }),
    ...(definition.metadata === undefined ? {} : { metadata: definition.metadata }),
    execute: (args, context) => execute?.((supplied ? supplied.whole(args) : args) as Args, context),
    reconcile: reconcile
      ? (args, context) => reconcile((supplied ? supplied.whole(args) : args) as Args, context)
      : null,
  }
}

function aliasesOf(given: { readonly [alias: string]: string }, parameters: Json, name: string): Aliases {
  const text = JSON.stringify(parameters)
  for (const [alias, field] of Object.entries(given)) {
    if (text.includes(`${JSON.stringify(field)}:`)) continue
    throw new Fault(
      'invalid_config',
      `The alias "${alias}" of tool "${name}" means "${field}", which is no field of it.`,
    )
  }
  return new Map([...ALIASES, ...Object.entries(given)])
}

function handlerOf<Args>(definition: ToolDefinition<Args>): ToolDefinition<Args>['execute'] {
  const { name, execute, module, isolate = false } = definition
  if (module === undefined && isolate) {
    throw new Fault(
      'invalid_config',
      `Tool "${name}" cannot be isolated without "module": name the file of its handler.`,
    )
  }
  if (module === undefined) return execute
  if (execute) throw new Fault('invalid_config', `Tool "${name}" has "execute" and "module". Remove one of them.`)
  return async (args, context) => {
    const { runInProcess, runInThread } = await import('./isolate.ts')
    return isolate ? runInThread(module, args, context) : runInProcess(module, args, context)
  }
}

/** The name of the definition in error messages. */
function definitionName(definition: { readonly name: unknown } | undefined): string {
  return typeof definition?.name === 'string' ? `tool "${definition.name.slice(0, 64)}"` : 'defineTool'
}

function toStandardSchema(schema: StandardSchema | JsonSchema, name: string): StandardSchema {
  return isStandard(schema) ? schema : fromAnyJsonSchema(schema, name)
}

function isStandard<Args>(schema: StandardSchema<Args> | JsonSchema): schema is StandardSchema<Args> {
  return '~standard' in schema
}

// Arguments that the host supplies. They are removed from what the model sees and sends, and added again for the
// handler. No event holds them, so they cannot be read from the log; an approval is bound to their hash.

type InjectedValues = { readonly [name: string]: Json | (() => Json) }

type InjectedArguments = {
  /** The schema without these arguments. */
  hidden(schema: Json): Json
  /** Checks all arguments, and returns only those that the model may see. */
  validate(input: StandardSchema): (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  whole(args: unknown): unknown
  /** The values as they are now. */
  values: () => Json
}

function injectArguments(values: InjectedValues | undefined): InjectedArguments | null {
  if (values === undefined) return null
  const names = Object.keys(values)
  const without = (fields: { readonly [key: string]: Json }): { readonly [key: string]: Json } =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
  const whole = (args: unknown): unknown => {
    if (!isObject(args)) return args
    const own = names.map((name) => [name, currentValue(values[name])])
    return { ...without(args), ...Object.fromEntries(own) }
  }
  const known = (checked: Validation<unknown>): Validation<unknown> =>
    checked.issues || !isObject(checked.value) ? checked : { value: without(checked.value) }
  return {
    hidden: (schema) => {
      if (!isObject(schema)) return schema
      const { properties, required } = schema
      return {
        ...schema,
        ...(isObject(properties ?? null)
          ? { properties: without(properties as { readonly [key: string]: Json }) }
          : {}),
        ...(Array.isArray(required) ? { required: required.filter((name) => !names.includes(String(name))) } : {}),
      }
    },
    validate: (input) => (args) => {
      const checked = input['~standard'].validate(whole(args))
      return checked instanceof Promise ? checked.then(known) : known(checked)
    },
    whole,
    values: () => Object.fromEntries(names.map((name) => [name, currentValue(values[name])])),
  }
}

function currentValue(value: Json | (() => Json) | undefined): Json {
  return typeof value === 'function' ? value() : (value ?? null)
}
