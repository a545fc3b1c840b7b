// The checkpoint of a graph: what the planner wrote with its last reply, and what came after it. The reply's text is all a process
// needs to go on; nothing before it is read.
import type { Frozen, Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { State } from './channel.ts'
import { GraphError } from './error.ts'
import type { Item } from './step.ts'
import { isObject } from '../view/json.ts'
import { textOf } from '../view/text.ts'

/** A call with a compensation: what it was called with, and what it said. `unknown`: whether it took effect is not known. */
export type Done = Frozen<{ node: string; args: Json; wrote?: Json; unknown?: true }>

/** Why the run failed, what is left to undo (the last comes first), what was told so far, and how often the next was tried. */
export type Undoing = Frozen<{ failed: string; left: readonly Done[]; told: readonly string[]; tries: number }>

/** One node in the superstep, with its calls. `sent` are the arguments that a `send` brought, `until` is when its time is over. */
export type Task = Frozen<{
  node: string
  sent?: { readonly [name: string]: Json }
  items: readonly Item[]
  until?: number
}>

export type Point = Frozen<{
  /** After the last whole superstep. */
  state: State
  /** How many supersteps are done. */
  step: number
  /** The superstep in progress. None: it has not begun, or it has ended. */
  tasks: readonly Task[]
  /** Which item of which task each call of the reply is. */
  calls?: readonly (readonly [number, number])[]
  /** Which branches have arrived at a join that still waits for others. */
  arrived?: Readonly<Record<string, readonly string[]>>
  /** How often each node has run since the last message. */
  visits?: Readonly<Record<string, number>>
  /** Some branch came to END. */
  reached?: true
  /** The calls that are undone if the run fails, in the order in which they were done. Only those of nodes with a compensation. */
  done?: readonly Done[]
  /** The run has failed, and what was done is being undone. */
  undo?: Undoing
  /** Why the run ended before its time. */
  failed?: string
}>

export type Outcome = Pick<Result, 'ok' | 'status' | 'kind'> & { readonly content: string }
type Result = Extract<Message, { role: 'tool' }>

/** What a request tells a planner: where it was, what its calls came to, and what was said to it since. */
export type Reading = {
  readonly point: Point | null
  readonly results: ReadonlyMap<number, Outcome>
  readonly said: readonly string[]
  /** The arguments of the calls of the last reply. */
  readonly args: readonly Json[]
}

/** What the harness itself says is for models. */
const NOT_FOR_GRAPHS = /^<(?:harness_notice|hook_context)[\s>]/

export function readMessages(messages: readonly Message[]): Reading {
  const results = new Map<number, Outcome>()
  const said: string[] = []
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as Message
    if (message.role === 'assistant')
      return { point: pointOf(message.parts), results, said, args: message.calls.map(({ args }) => args) }
    if (message.role === 'tool') results.set(indexOf(message.call), outcomeOf(message))
    else said.unshift(...textsOf(message.parts))
  }
  return { point: null, results, said, args: [] }
}

export function pointOf(parts: Extract<Message, { role: 'assistant' }>['parts']): Point {
  try {
    const point = JSON.parse(textOf(parts)) as Json
    if (isObject(point) && isObject(point['state']) && Array.isArray(point['tasks'])) return point as unknown as Point
  } catch {
    // Said below: whatever it is, it is no checkpoint.
  }
  throw new GraphError('The last reply of this session is no checkpoint of a graph.')
}

function outcomeOf({ content, ...result }: Result): Outcome {
  return { ...result, content: typeof content === 'string' ? content : '' }
}

function textsOf(parts: Extract<Message, { role: 'user' }>['parts']): readonly string[] {
  const text = textOf(parts)
  return NOT_FOR_GRAPHS.test(text) ? [] : [text]
}

function indexOf(call: string): number {
  return Number(call.slice(call.indexOf('.') + 1))
}
