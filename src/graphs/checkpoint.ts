// The checkpoint of a graph, which is the text of the planner's last reply, and the results that followed it. A process
// needs nothing else to go on; earlier messages are not read.
import type { Frozen, Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { GraphState } from './channel.ts'
import { GraphError } from './error.ts'
import type { NodeItem } from './planner-node.ts'
import { isObject } from '../view/untrusted-json.ts'
import { textOf } from '../view/shown-text.ts'

/**
 * A finished call that has a compensation: its arguments and its result. `unknown` means that it may or may not have
 * taken effect.
 */
export type DoneCall = Frozen<{ node: string; args: Json; wrote?: Json; unknown?: true }>

/**
 * The reason of the failure, the calls left to undo (the last one is undone first), the lines reported so far, and how
 * often the next undo was tried.
 */
export type UndoProgress = Frozen<{ failed: string; left: readonly DoneCall[]; told: readonly string[]; tries: number }>

/**
 * One node in the superstep, with its calls. `sent` holds the arguments of a `send`, `until` is the node's deadline.
 */
export type NodeTask = Frozen<{
  node: string
  sent?: { readonly [name: string]: Json }
  items: readonly NodeItem[]
  until?: number
}>

export type Checkpoint = Frozen<{
  /** The state after the last complete superstep. */
  state: GraphState
  /** The number of complete supersteps. */
  step: number
  /** The superstep in progress. Empty: none has begun, or the last one has ended. */
  tasks: readonly NodeTask[]
  /** For each call of the reply, the indices of its task and its item. */
  calls?: readonly (readonly [number, number])[]
  /** For each join that still waits, the branches that have arrived. */
  arrived?: Readonly<Record<string, readonly string[]>>
  /** How often each node has run since the last message. */
  visits?: Readonly<Record<string, number>>
  /** At least one branch has reached END. */
  reached?: true
  /**
   * The calls to undo if the run fails, in the order in which they were done. Only calls of nodes with a compensation
   * are listed.
   */
  done?: readonly DoneCall[]
  /** The run has failed, and its finished calls are being undone. */
  undo?: UndoProgress
  /** The reason why the run ended early. */
  failed?: string
}>

export type ToolOutcome = Pick<ToolMessage, 'ok' | 'status' | 'kind'> & { readonly content: string }
type ToolMessage = Extract<Message, { role: 'tool' }>

/** The planner's input from a request: the last checkpoint, the results of its calls, and the messages since then. */
export type PlannerInput = {
  readonly point: Checkpoint | null
  readonly results: ReadonlyMap<number, ToolOutcome>
  readonly said: readonly string[]
  /** The arguments of the calls in the last reply. */
  readonly args: readonly Json[]
}

/** Notices of the harness and context of hooks are for models, not for graphs. */
const NOT_FOR_GRAPHS = /^<(?:harness_notice|hook_context)[\s>]/

export function readPlannerInput(messages: readonly Message[]): PlannerInput {
  const results = new Map<number, ToolOutcome>()
  const said: string[] = []
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as Message
    if (message.role === 'assistant')
      return { point: readCheckpoint(message.parts), results, said, args: message.calls.map(({ args }) => args) }
    if (message.role === 'tool') results.set(callIndex(message.call), outcomeOf(message))
    else said.unshift(...textsOf(message.parts))
  }
  return { point: null, results, said, args: [] }
}

export function readCheckpoint(parts: Extract<Message, { role: 'assistant' }>['parts']): Checkpoint {
  try {
    const point = JSON.parse(textOf(parts)) as Json
    if (isObject(point) && isObject(point['state']) && Array.isArray(point['tasks']))
      return point as unknown as Checkpoint
  } catch {
    // Any text that does not parse is reported below: it is not a checkpoint.
  }
  throw new GraphError('The last reply of this session is no checkpoint of a graph.')
}

function outcomeOf({ content, ...result }: ToolMessage): ToolOutcome {
  return { ...result, content: typeof content === 'string' ? content : '' }
}

function textsOf(parts: Extract<Message, { role: 'user' }>['parts']): readonly string[] {
  const text = textOf(parts)
  return NOT_FOR_GRAPHS.test(text) ? [] : [text]
}

function callIndex(call: string): number {
  return Number(call.slice(call.indexOf('.') + 1))
}
