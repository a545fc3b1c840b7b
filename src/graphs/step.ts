// What a node is for the planner: which calls it wants, the tool that makes them, and what their results come to. The typed ways to
// make one are in node.ts; when it is called is decided in plan.ts.
import { canonicalJson } from '../tools/core/canonical.ts'
import type { Json } from '../kernel/content.ts'
import { anything, needed, optionsOf, record } from '../options.ts'
import { output } from '../tools/core/output.ts'
import { type Approval, defineTool, type StandardSchema, type Tool, type ToolContext } from '../tools/core/tool.ts'
import type { State } from './channel.ts'
import { errorText } from './error.ts'
import { plainJson } from './plain.ts'
import type { GateKind } from '../view/graph.ts'
import { isObject } from '../view/json.ts'

export { END, type GateKind, START } from '../view/graph.ts'

/** One branch of a fan-out: the node runs with exactly these arguments. */
export type Send<Name extends string = string> = {
  readonly type: 'send'
  readonly node: Name
  readonly args: { readonly [name: string]: Json }
}
export type Target<Name extends string = string> = Name | Send<Name>

/** What a node wrote, and where it goes; null: along its edges. */
export type Written = { readonly update: State; readonly goto: readonly Target[] | null }

/** How the results of a node that has many come together. `quorum`: so many must succeed. */
export type MapPolicy = 'collect-all' | 'fail-fast' | 'best-effort' | { readonly quorum: number }

/** One call of a node. It has a value when it succeeded, an error when it will not be tried again, and is open with neither. */
export type Item = { readonly tries: number; readonly value?: Json; readonly error?: string }

export type Step = {
  readonly type: 'run' | 'question' | 'agent' | 'map'
  readonly description: string
  readonly gate: GateKind
  /** Where its commands may go. */
  readonly to: readonly string[]
  /** How often one call may be tried again after it failed. */
  readonly retries: number
  /** Null: one call, and it must succeed. */
  readonly policy: MapPolicy | null
  /** How long all its calls may take together, from its first one on. Absent: for ever. */
  readonly totalMs?: number
  /** Whose child sessions it starts: one agent, or several. */
  readonly child: string | readonly string[] | null
  readonly tool: (name: string) => Tool
  /** The arguments of its calls. Must be pure. */
  readonly args: (state: State) => readonly unknown[]
  /** What the content of a result means. Throws for what it cannot be. */
  readonly read: (content: string) => Json
  /** What the results come to. Must be pure. */
  readonly take: (items: readonly Item[], state: State) => Written
}

/** Longer results would be cut, and half of a JSON is none. */
const CONTENT_CHARS_MAX = 200_000
const GOTO = '$goto'
const COMMAND = Symbol('terret.command')

/** An update, and where to go instead of along the edges. */
export type Command<Update, Name extends string> = {
  readonly [COMMAND]: true
  readonly update: Update
  readonly goto: readonly Target<Name>[]
}

const checkCommand = optionsOf<{ readonly update?: unknown; readonly goto: unknown }>('command', {
  update: record,
  goto: needed(anything),
})

export function command<Update, const Name extends string>(what: {
  readonly update?: Update
  readonly goto: Target<Name> | readonly Target<Name>[]
}): Command<Update, Name> {
  checkCommand(what)
  const { update = {} as Update, goto } = what
  const all = Array.isArray(goto) ? (goto as readonly Target<Name>[]) : [goto as Target<Name>]
  return { [COMMAND]: true, update, goto: all }
}

export function send<const Name extends string>(node: Name, args: { readonly [name: string]: Json }): Send<Name> {
  return { type: 'send', node, args }
}

export function isSend(target: unknown): target is Send {
  return isObject(target) && target['type'] === 'send' && typeof target['node'] === 'string' && isObject(target['args'])
}

export function isCommand(said: unknown): said is Command<unknown, string> {
  return typeof said === 'object' && said !== null && COMMAND in said
}

/** What user code returned for the state. Throws for what is neither an update nor a command. */
export function writtenOf(said: unknown): Written {
  const given = isCommand(said) ? said.update : said
  const update = plainJson(given ?? {}, 'the update')
  if (!isObject(update)) throw new TypeError('a node returns an update by channel, a command, or nothing')
  if (!isCommand(said)) return { update, goto: null }
  return { update, goto: plainJson(said.goto, 'goto') as unknown as readonly Target[] }
}

/** A result is the update itself; where to go stands beside it. */
export function encoded({ update, goto }: Written): Json {
  return goto === null ? update : { ...update, [GOTO]: goto as unknown as Json }
}

export function decoded(value: Json): Written {
  if (!isObject(value)) throw new TypeError('the result is no update')
  const { [GOTO]: goto, ...update } = value
  return { update, goto: Array.isArray(goto) ? (goto as readonly Target[]) : null }
}

/** What is approved, stored and executed is what the planner wrote: nothing is repaired, since no model wrote it. */
export const AS_WRITTEN: StandardSchema<Record<string, Json>> = {
  '~standard': {
    validate: (value) => ({ value: value as Record<string, Json> }),
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
}

export type Ways = {
  readonly effect?: Tool['effect']
  readonly timeoutMs?: number
  readonly secrets?: readonly string[]
  readonly sequential?: boolean
  readonly approval?: Approval | ((args: Record<string, Json>) => Approval | Promise<Approval>)
  readonly undo?: NonNullable<Tool['undo']>
}

export type Work = (args: Record<string, Json>, context: ToolContext) => Promise<Json>

/** Without work it is answered from outside. */
export function toolOf(name: string, description: string, ways: Ways, work: Work | null): Tool {
  const definition = { name, description: description || `The node ${name}.`, input: AS_WRITTEN, ...ways }
  if (work === null) return defineTool(definition)
  return defineTool({ ...definition, execute: (args, context) => said(work, args, context, ways.undo !== undefined) })
}

/** A node says JSON, also when it fails: so what it said itself is told from what was said about it. */
async function said(work: Work, args: Record<string, Json>, context: ToolContext, undoes: boolean) {
  try {
    const value = await work(args, context)
    const content = canonicalJson(value)
    // What can be undone says by what.
    const metadata = undoes && isObject(value) ? { metadata: value } : {}
    if (content.length <= CONTENT_CHARS_MAX) return output({ content, ...metadata })
    const text = `it is ${content.length} characters long, and at most ${CONTENT_CHARS_MAX} can be kept in the state. Keep long texts with context.keep, and their hash in the state.`
    return failed(new RangeError(text))
  } catch (error) {
    // Whether a call that was stopped took effect is not for its handler to say.
    if (context.signal.aborted) throw error
    return failed(error)
  }
}

function failed(error: unknown) {
  const error_type = error instanceof Error ? error.name || 'Error' : 'Error'
  return output({ ok: false, content: canonicalJson({ error: errorText(error) }), metadata: { error_type } })
}

/** What is said of a call that was not done when the time of its node was over. */
export function lateError(totalMs: number | undefined): Error {
  return Object.assign(new Error(`All items together may take ${totalMs} ms.`), { name: 'Timeout' })
}

/** Why a node failed, in its own words; null if it did not say so itself. */
export function ownError(content: string): string | null {
  try {
    const value = JSON.parse(content) as Json
    const error = isObject(value) && Object.keys(value).length === 1 ? value['error'] : null
    return typeof error === 'string' ? error : null
  } catch {
    return null
  }
}
