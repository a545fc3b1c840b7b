// A node as the planner sees it: the calls it needs, the tool that makes them, and the meaning of their results.
// node.ts has the typed functions that make one; graph-planner.ts decides when it is called.
import { canonicalJson } from '../tools/core/canonical-json.ts'
import type { Json } from '../kernel/content.ts'
import {
  anyCheck,
  msCheck,
  nonEmptyCheck,
  objectCheck,
  optionsCheck,
  optionsChecker,
  requiredCheck,
} from '../options.ts'
import { output } from '../tools/core/tool-output.ts'
import { type Approval, defineTool, type StandardSchema, type Tool, type ToolContext } from '../tools/core/tool.ts'
import type { GraphState } from './channel.ts'
import { errorText } from './error.ts'
import { plainJson } from './plain-json.ts'
import type { GateKind } from '../view/graph-drawing.ts'
import { isObject } from '../view/untrusted-json.ts'

export { END, type GateKind, START } from '../view/graph-drawing.ts'

/** One branch of a fan-out: the node runs with exactly these arguments. */
export type Send<Name extends string = string> = {
  /** Tells it from the name of a node. */
  readonly type: 'send'
  /** The node that runs. */
  readonly node: Name
  /** Its arguments, in place of those that it reads from the state. */
  readonly args: { readonly [name: string]: Json }
}
export type GotoTarget<Name extends string = string> = Name | Send<Name>

/** The update that a node wrote, and its next targets; null means along its edges. */
export type NodeOutput = { readonly update: GraphState; readonly goto: readonly GotoTarget[] | null }

/** How a node with many results combines them. `quorum` is the number that must succeed. */
export type MapPolicy = 'collect-all' | 'fail-fast' | 'best-effort' | { readonly quorum: number }

/** One call of a node. It has a value when it succeeded, an error when it will not be tried again, and is open with neither. */
export type NodeItem = { readonly tries: number; readonly value?: Json; readonly error?: string }

export type PlannerNode = {
  /** What it does: it runs code, asks, starts a child, or does the same for many items. */
  readonly type: 'run' | 'question' | 'agent' | 'map'
  /** What it does, for people. Empty for nothing. */
  readonly description: string
  /** Whether a person must approve before it runs. */
  readonly gate: GateKind
  /** The nodes that its commands may go to. */
  readonly to: readonly string[]
  /** How often one call may be tried again after it failed. */
  readonly retries: number
  /** Null: one call, and it must succeed. */
  readonly policy: MapPolicy | null
  /** The time limit for all its calls together, from the first one on. Absent: unlimited. */
  readonly totalMs?: number
  /** The agents whose child sessions it starts: one or several. */
  readonly child: string | readonly string[] | null
  /** Makes the tool that its calls use, under the name of the node. */
  readonly tool: (name: string) => Tool
  /** The arguments of its calls. Must be pure. */
  readonly args: (state: GraphState) => readonly unknown[]
  /** Reads the content of a result. Throws if it cannot be read. */
  readonly read: (content: string) => Json
  /** Turns the results into an update. Must be pure. */
  readonly take: (items: readonly NodeItem[], state: GraphState) => NodeOutput
}

/** A longer result would be cut, and cut JSON does not parse. */
const CONTENT_CHARS_MAX = 200_000
const GOTO = '$goto'
const COMMAND = Symbol('terret.command')

/** When the session is looked at again: at `due`, in ms. The first of several waiting wakes with one key stands. */
export type GraphWake = { readonly due: number; readonly reason: string; readonly key: string }

/** An update, and targets that replace the edges. */
export type GraphCommand<Update, Name extends string> = {
  readonly [COMMAND]: true
  /** What is written to the channels. */
  readonly update: Update
  /** The nodes that come next, in place of the edges. Empty: none. */
  readonly goto: readonly GotoTarget<Name>[]
  /** When the session is looked at again. Absent: it asks for no look. */
  readonly wake?: GraphWake
}

type CommandOptions<Update, Target> = {
  readonly update?: Update
  readonly goto: Target
  /**
   * For `run` of a node: the session is looked at again then. A graph that has ended begins again at `START`, over the
   * state that is there.
   */
  readonly wake?: GraphWake
}

const checkCommand = optionsChecker<CommandOptions<unknown, unknown>>('command', {
  update: objectCheck,
  goto: requiredCheck(anyCheck),
  wake: optionsCheck<GraphWake>({
    due: requiredCheck(msCheck),
    reason: requiredCheck(nonEmptyCheck),
    key: requiredCheck(nonEmptyCheck),
  }),
})

/** What a node returns to write to channels and to say which node comes next. */
export function command<Update, const Name extends string>(
  what: CommandOptions<Update, GotoTarget<Name> | readonly GotoTarget<Name>[]>,
): GraphCommand<Update, Name> {
  checkCommand(what)
  const { update = {} as Update, goto, wake } = what
  const all = Array.isArray(goto) ? (goto as readonly GotoTarget<Name>[]) : [goto as GotoTarget<Name>]
  return { [COMMAND]: true, update, goto: all, ...(wake === undefined ? {} : { wake }) }
}

/** Starts a node with arguments of its own: one of several at once. */
export function send<const Name extends string>(node: Name, args: { readonly [name: string]: Json }): Send<Name> {
  return { type: 'send', node, args }
}

export function isSend(target: unknown): target is Send {
  return isObject(target) && target['type'] === 'send' && typeof target['node'] === 'string' && isObject(target['args'])
}

export function isCommand(said: unknown): said is GraphCommand<unknown, string> {
  return typeof said === 'object' && said !== null && COMMAND in said
}

/** The output in the value that user code returned. Throws if it is neither an update nor a command. */
export function nodeOutputOf(said: unknown): NodeOutput {
  const given = isCommand(said) ? said.update : said
  const update = plainJson(given ?? {}, 'the update')
  if (!isObject(update)) throw new TypeError('a node returns an update by channel, a command, or nothing')
  if (!isCommand(said)) return { update, goto: null }
  return { update, goto: plainJson(said.goto, 'goto') as unknown as readonly GotoTarget[] }
}

/** The result is the update itself, with the targets in a field beside it. */
export function encodeOutput({ update, goto }: NodeOutput): Json {
  return goto === null ? update : { ...update, [GOTO]: goto as unknown as Json }
}

export function decodeOutput(value: Json): NodeOutput {
  if (!isObject(value)) throw new TypeError('the result is no update')
  const { [GOTO]: goto, ...update } = value
  return { update, goto: Array.isArray(goto) ? (goto as readonly GotoTarget[]) : null }
}

/**
 * Accepts arguments unchanged. The planner wrote them, not a model, so nothing is repaired, and the approved, stored
 * and executed arguments are the same.
 */
export const AS_WRITTEN: StandardSchema<Record<string, Json>> = {
  '~standard': {
    validate: (value) => ({ value: value as Record<string, Json> }),
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
}

export type NodeToolOptions = {
  readonly effect?: Tool['effect']
  readonly timeoutMs?: number
  readonly secrets?: readonly string[]
  readonly sequential?: boolean
  readonly approval?: Approval | ((args: Record<string, Json>) => Approval | Promise<Approval>)
  readonly undo?: NonNullable<Tool['undo']>
}

export type NodeWork = (args: Record<string, Json>, context: ToolContext) => Promise<NodeWorkResult>
/** What a node returned, as JSON, and when its session is looked at again. */
type NodeWorkResult = { readonly value: Json; readonly wake?: GraphWake | undefined }

/** Without work, the call waits for an answer from outside. */
export function nodeTool(name: string, description: string, ways: NodeToolOptions, work: NodeWork | null): Tool {
  const definition = { name, description: description || `The node ${name}.`, input: AS_WRITTEN, ...ways }
  if (work === null) return defineTool(definition)
  return defineTool({
    ...definition,
    execute: (args, context) => runNodeWork(work, args, context, ways.undo !== undefined),
  })
}

/** Runs a node's code. Its failures are JSON too, which tells them apart from failures that the harness reports. */
async function runNodeWork(work: NodeWork, args: Record<string, Json>, context: ToolContext, undoes: boolean) {
  try {
    const { value, wake } = await work(args, context)
    const content = canonicalJson(value)
    // The update is stored as metadata, so that the node's `undo` can use it.
    const metadata = undoes && isObject(value) ? { metadata: value } : {}
    const follows = wake === undefined ? {} : { follows: [{ type: 'wake.scheduled', ...wake } as const] }
    if (content.length <= CONTENT_CHARS_MAX) return output({ content, ...metadata, ...follows })
    const text = `it is ${content.length} characters long, and at most ${CONTENT_CHARS_MAX} can be kept in the state. Keep long texts with context.keep, and their hash in the state.`
    return failedOutput(new RangeError(text))
  } catch (error) {
    // A handler cannot know whether a stopped call took effect, so its error is passed on and not reported as a
    // failure.
    if (context.signal.aborted) throw error
    return failedOutput(error)
  }
}

function failedOutput(error: unknown) {
  const error_type = error instanceof Error ? error.name || 'Error' : 'Error'
  return output({ ok: false, content: canonicalJson({ error: errorText(error) }), metadata: { error_type } })
}

/** The error of a call that was not done when the time of its node was over. */
export function lateError(totalMs: number | undefined): Error {
  return Object.assign(new Error(`All items together may take ${totalMs} ms.`), { name: 'Timeout' })
}

/** The error that a node reported itself; null if the content is not such an error. */
export function nodeErrorIn(content: string): string | null {
  try {
    const value = JSON.parse(content) as Json
    const error = isObject(value) && Object.keys(value).length === 1 ? value['error'] : null
    return typeof error === 'string' ? error : null
  } catch {
    return null
  }
}
