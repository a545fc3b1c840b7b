// One representation of a tool, and the only one. What happens around it (admission, intent, retries) is not here.
import { hash } from 'node:crypto'
import type { EffectClass, FailureKind, FileState, Frozen, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import {
  anything,
  callable,
  type Check,
  count,
  filled,
  flag,
  given,
  listOf,
  needed,
  oneOf,
  optionsOf,
  orFunction,
  orNull,
  record,
  tableOf,
  text,
  wait,
} from '../../options.ts'
import { schemaTrouble } from './schema-shape.ts'
import { anyJsonSchema, fromJsonSchema, type JsonSchema, type StandardSchema, type Validation } from './json-schema.ts'
import { toJsonSchema } from './to-json-schema.ts'
import type { Metadata, Output } from './output.ts'
import { jsonRecord } from './plain.ts'
import { ALIASES, type Aliases } from '../repair/repair.ts'
import { isObject } from '../../view/json.ts'
import type { ToolContext, ToolRoot } from './context.ts'

export type { ToolContext } from './context.ts'
export type { StandardSchema } from './json-schema.ts'

/** `auto` runs unless a rule says otherwise, `ask` is asked unless a rule allows it, `always` is always asked, `never` is refused. */
export type Approval = 'auto' | 'ask' | 'always' | 'never'

/** For types alone: what it needs of the harness's `context`, if that is known. No tool has this field. */
interface Needing {
  readonly '~deps'?: Needs<never>
}

/** Tools that are known only after asking, such as those of an MCP server. */
export interface ToolSource extends Needing {
  readonly type: 'source'
  readonly name: string
  /**
   * The tools as they are now; asked once before each run. Connects when it must and is cheap when nothing changed.
   * It waits by the harness's clock, as tools do.
   * Throws a Fault if the run cannot do without it; a source that may be missing returns what it has.
   */
  tools(signal: AbortSignal, clock: Clock): Promise<readonly Tool[]>
  /** What is missing of it since it was asked last, one sentence each. People read it, the model does not. */
  warnings?(): readonly string[]
  /** Leaves nothing behind: no process, no socket. */
  close(): Promise<void>
}

/** What kind of tool it is. Those that a host defines are `user`. */
export type ToolKind = 'user' | 'subagent' | 'parallel_llm' | 'mcp'

/** What a host may know of a tool beside what its model is told. */
export type ToolAbout = { readonly kind: ToolKind } & Pick<Tool, 'mcp' | 'metadata'>

/** What becomes of a handler's failure: the model reads it, the run ends with it, or the model reads what this makes of it. */
export type OnError = 'return' | 'fail' | ((failure: ToolError) => string)
export type ToolError = { readonly kind: FailureKind; readonly message: string; readonly metadata: Metadata }

/** What became of one thing a call had changed. */
export type Undone = Frozen<{ what: string; result: 'restored' | 'removed' | 'changed_since' | 'not_kept' }>

export interface Tool extends Needing {
  readonly name: string
  readonly description: string
  readonly parameters: Json
  readonly effect: EffectClass
  /** Its calls, or those with such arguments, put their whole batch in order: nothing runs beside them. */
  readonly sequential: boolean | ((args: Json) => boolean)
  readonly timeoutMs: number
  /** Must a person be asked before this call runs? A policy is asked first. */
  readonly approval: (args: Json) => Approval | Promise<Approval>
  /** The arguments decide what `approval` says. */
  readonly byArguments?: true
  /** How often the model may try again after a retryable failure; null for the run's own limit. */
  readonly retries: number | null
  /** How often the harness itself runs a failed `read` or `idempotent` handler. Never more than once for `once`. */
  readonly attempts: number
  /** Added to the instructions of every run that has this tool. */
  readonly instructions: string
  /** Answered from outside with `session.answer`; nothing is executed here. */
  readonly outside: boolean
  /** Answered by a child session of the agent this names. */
  readonly child?: (args: Json) => string
  /** The child reads this conversation, and its answer is the answer of the run. */
  readonly handoff?: true
  /** It orders something of children: effects/orders.ts makes the orders. */
  readonly orders?: true
  /** It writes what the run is for: near the end of a run it stays when other tools are withdrawn. */
  readonly deliverable?: true
  /** It is called again and again by its nature: no breaker counts it. */
  readonly polling?: true
  /** It reads kept texts, by the path `blob:<hash>`: long results name it for reading on. */
  readonly readsKept?: true
  /** Offered whatever lists and a run's own choice leave out: results of other tools name it. */
  readonly always?: true
  /** An interrupt waits for it instead of aborting it. Its timeout still holds. */
  readonly blocks?: true
  /** Changes whenever what the model was told about the tool changes. */
  readonly definition: string
  /** Other names of its fields, with those that every tool understands; absent if it declares none. */
  readonly aliases?: Aliases
  /** Where it acts and with what, beside its arguments: an approval given for one place is none for another. */
  readonly place?: () => Json
  /** The folder that its relative paths start from: rules follow links from there. */
  readonly root?: string
  /** The files that a call would change, as they are now: an approval is for exactly these. */
  readonly filesChanged?: (args: Json) => Promise<readonly FileState[]>
  /** The same tool for a session that works elsewhere; null if there is none there. Absent: it is the same everywhere. */
  readonly rooted?: (root: ToolRoot) => Tool | null
  /** The same tool for the skills of these names alone; null if there are none of them. */
  readonly filtered?: (skills: readonly string[]) => Tool | null
  /** The tool's own other shapes of arguments, brought into the declared one before repair and validation. */
  readonly normalise: ((args: Json) => Json) | null
  readonly validate: (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  /** What the handler returns must look like this; null for anything. */
  readonly checkOutput: ((value: unknown) => Validation<unknown> | Promise<Validation<unknown>>) | null
  /** Names of the secrets it may see. */
  readonly secrets: readonly string[]
  /** Takes back what a call of this tool did, by the metadata of its result, unless it was changed since. */
  readonly undo: ((metadata: Metadata, context: ToolContext) => Promise<readonly Undone[]>) | null
  readonly execute: (args: unknown, context: ToolContext) => unknown
  readonly reconcile: ((args: unknown, context: ToolContext) => unknown) | null
  /** Absent: `return`, or what its agent says. */
  readonly onError?: OnError
  /** Absent: `user`. */
  readonly kind?: ToolKind
  /** The server it is of, and what that calls it. */
  readonly mcp?: { readonly server: string; readonly tool: string }
  /** The host's own words about it, for hooks and lists. No model reads it. */
  readonly metadata?: Metadata
}

/**
 * A tool whose types are known, as `defineTool` makes it: what its calls are named, what their arguments are as they are recorded,
 * and what it needs of the harness's `context`. At run time it is a tool like any other, without the last two fields. `Hidden` are
 * the arguments that the host supplies, if any.
 */
export interface TypedTool<Name extends string, Args, Deps = unknown, Hidden extends string = string> extends Tool {
  readonly name: Name
  readonly '~args'?: Shown<Args, Hidden>
  readonly '~deps'?: Needs<Deps>
}

/** What takes this much takes less, too: of several tools all needs are met by what meets each of them. */
export type Needs<Deps> = (deps: Deps) => void

/** What a handler may return whose results must fit a schema that takes `Made`. Read-only, since its results are never changed. */
type Returned<Made> = unknown extends Made ? unknown : Kept<Made> | Output | Promise<Kept<Made> | Output>
type Kept<T> = T extends object ? { readonly [K in keyof T]: Kept<T[K]> } : T
/** The arguments without those that the host supplies. */
type Shown<Args, Hidden extends string> = string extends Hidden ? Args : Omit<Args, Hidden>

/** `Made` is what the schema `output` takes, `Deps` what the handler needs of `context`, `Hidden` the names in `injected`. */
export type ToolDefinition<
  Args,
  Name extends string = string,
  Made = unknown,
  Deps = unknown,
  Hidden extends string = string,
  Return = unknown,
> = {
  readonly name: Name
  readonly description: string
  /** Any Standard Schema; for tools of strangers a plain JSON Schema. */
  readonly input: StandardSchema<Args> | JsonSchema
  /** What results must fit. The handler is checked by it too. */
  readonly output?: StandardSchema<unknown, Made> | JsonSchema
  /** Default `once`: at most once, and `unknown` after a crash in the window. */
  readonly effect?: EffectClass
  /** For every tool that changes what another call of the same reply may read. Or by the arguments. Default: no. */
  readonly sequential?: boolean | ((args: Args) => boolean)
  readonly timeoutMs?: number
  /** Or by the arguments: the arguments decide whether a person must be asked. */
  readonly approval?: Approval | ((args: Args) => Approval | Promise<Approval>)
  readonly retries?: number
  readonly attempts?: number
  readonly instructions?: string
  readonly normalise?: (args: Json) => Json
  /**
   * Names that models give to fields by mistake, and the fields they mean: `{ file_path: 'path' }`, at any depth. A call that gives
   * a field under two names with different values is refused.
   */
  readonly aliases?: { readonly [alias: string]: string }
  readonly deliverable?: boolean
  readonly polling?: boolean
  readonly readsKept?: boolean
  /** Values the host supplies: the model is not told of them and cannot set them; the handler gets them with its arguments. */
  readonly injected?: Readonly<Record<Hidden, Json | (() => Json)>>
  /**
   * Where it acts and with what, beside its arguments: a folder, a tenant, an account. An approval is for that, and asked for again
   * where it has changed. Default: the injected values. Looked at only where a person is asked; never in the log but as a hash.
   */
  readonly place?: () => Json
  /** What an interrupt does to a call that runs: `cancel` it (the default), or wait for it (`block`). */
  readonly onInterrupt?: 'cancel' | 'block'
  readonly secrets?: readonly string[]
  /**
   * What becomes of its failure. Default `return`. `fail` ends the run as `tool_error`; a call that the model is to correct, a
   * denial and an interrupt do not. A function makes the text that the model reads.
   */
  readonly onError?: OnError
  /** Your own words about it, in JSON: hooks get them with each call, and lists show them. No model reads them. */
  readonly metadata?: Metadata
  readonly undo?: Tool['undo']
  /** "Did call K happen?" Asked after a crash, before anyone is bothered. Returns the result, or undefined for "I cannot say". */
  readonly reconcile?: (args: Args, context: ToolContext<Deps>) => unknown
  /**
   * Returns text, any JSON, or an envelope made with `output(…)`. Throws `ToolFailure` for what the model should know,
   * `ModelRetry` for what it should correct. Without it the tool is answered from outside.
   */
  readonly execute?: (args: Args, context: ToolContext<Deps>) => Return
  /** Instead of `execute`: an ES module that exports it. It is loaded by the first call. */
  readonly module?: URL
  /**
   * Runs each call of `module` in a thread of its own, which an abort or the timeout ends even in an endless loop. Arguments and
   * result are copied; of the context there is `session`, `call` and `key`.
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

/** A Standard Schema of any library, or a JSON Schema. */
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

const checkDefinition = optionsOf<ToolDefinition<unknown>>('defineTool', {
  name: needed(text),
  description: needed(text),
  input: needed(schemaCheck),
  output: schemaCheck,
  effect: effectCheck,
  sequential: orFunction(flag),
  timeoutMs: wait,
  approval: orFunction(approvalCheck),
  retries: count(),
  attempts: count(1),
  instructions: text,
  normalise: callable,
  aliases: tableOf(filled),
  readsKept: flag,
  deliverable: flag,
  polling: flag,
  injected: record,
  place: callable,
  onInterrupt: oneOf<'cancel' | 'block'>({ cancel: true, block: true }),
  secrets: listOf(filled),
  onError: orFunction(errorCheck),
  metadata: metadataCheck,
  undo: orNull(callable),
  reconcile: callable,
  execute: callable,
  module: (value) => (value instanceof URL ? null : 'must be a URL: new URL("./handler.js", import.meta.url)'),
  isolate: flag,
})

const checkMade = optionsOf<Omit<Tool, '~deps'>>('a tool', {
  name: needed(filled),
  description: needed(text),
  parameters: needed(anything),
  effect: needed(effectCheck),
  sequential: needed(orFunction(flag)),
  timeoutMs: needed(anything),
  approval: needed(callable),
  byArguments: flag,
  retries: needed(orNull(count())),
  attempts: needed(count(1)),
  instructions: needed(text),
  outside: needed(flag),
  child: callable,
  handoff: flag,
  orders: flag,
  place: callable,
  root: filled,
  filesChanged: callable,
  rooted: callable,
  filtered: callable,
  deliverable: flag,
  polling: flag,
  aliases: anything,
  readsKept: flag,
  always: flag,
  blocks: flag,
  definition: needed(text),
  normalise: needed(orNull(callable)),
  validate: needed(callable),
  checkOutput: needed(orNull(callable)),
  secrets: needed(listOf(filled)),
  undo: needed(orNull(callable)),
  execute: needed(callable),
  reconcile: needed(orNull(callable)),
  onError: orFunction(errorCheck),
  kind: oneOf<ToolKind>({ user: true, subagent: true, parallel_llm: true, mcp: true }),
  mcp: record,
  metadata: metadataCheck,
})

/** A tool that `defineTool` made, also if something of it was replaced; or a source of tools. */
export const toolCheck: Check = (value, name, of) => {
  const { type, tools, close, validate } = (value ?? {}) as Partial<Tool & ToolSource>
  if (type === 'source')
    return typeof tools === 'function' && typeof close === 'function' ? null : 'must have tools() and close()'
  if (typeof validate !== 'function') return 'is not a tool: make it with defineTool'
  checkMade(value, `the tool ${name} of ${of}`)
  return null
}

export function defineTool<
  Args,
  Name extends string = string,
  Made = unknown,
  Deps = unknown,
  Hidden extends string = string,
  const Return extends Returned<Made> = Returned<Made>,
>(definition: ToolDefinition<Args, Name, Made, Deps, Hidden, Return>): TypedTool<Name, Args, Deps, Hidden>
export function defineTool<Args>(definition: ToolDefinition<Args>): Tool {
  checkDefinition(definition, nameOf(definition))
  const { name, description, reconcile, normalise = null, retries = null, undo = null } = definition
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Fault('invalid_config', `Tool name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
  }
  const { effect, sequential, timeoutMs, approval, attempts, instructions, secrets } = {
    ...DEFAULTS,
    ...given(definition),
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
  const output = definition.output && standardOf(definition.output, name)
  const supplied = supply(definition.injected)
  const place = definition.place ?? supplied?.values
  const parameters = supplied ? supplied.hidden(whole) : whole
  const asks = typeof approval === 'function' ? approval : () => approval
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
    approval: (args) => asks(args as Args),
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
    const { inProcess, isolated } = await import('./isolate.ts')
    return isolate ? isolated(module, args, context) : inProcess(module, args, context)
  }
}

/** What a message calls it. */
function nameOf(definition: { readonly name: unknown } | undefined): string {
  return typeof definition?.name === 'string' ? `tool "${definition.name.slice(0, 64)}"` : 'defineTool'
}

function standardOf(schema: StandardSchema | JsonSchema, name: string): StandardSchema {
  return isStandard(schema) ? schema : anyJsonSchema(schema, name)
}

function isStandard<Args>(schema: StandardSchema<Args> | JsonSchema): schema is StandardSchema<Args> {
  return '~standard' in schema
}

// Arguments that the host supplies: taken out of what the model is told and of what it sends, and put back for the handler. They
// are in no event, so they cannot be read; an approval is bound to a hash of them.

type Values = { readonly [name: string]: Json | (() => Json) }

type Supplied = {
  /** The schema without them. */
  hidden(schema: Json): Json
  /** Checks the whole, and gives back what the model may know of it. */
  validate(input: StandardSchema): (args: unknown) => Validation<unknown> | Promise<Validation<unknown>>
  whole(args: unknown): unknown
  /** As they are now. */
  values: () => Json
}

function supply(values: Values | undefined): Supplied | null {
  if (values === undefined) return null
  const names = Object.keys(values)
  const without = (fields: { readonly [key: string]: Json }): { readonly [key: string]: Json } =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
  const whole = (args: unknown): unknown => {
    if (!isObject(args)) return args
    const own = names.map((name) => [name, valueOf(values[name])])
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
    values: () => Object.fromEntries(names.map((name) => [name, valueOf(values[name])])),
  }
}

function valueOf(value: Json | (() => Json) | undefined): Json {
  return typeof value === 'function' ? value() : (value ?? null)
}
