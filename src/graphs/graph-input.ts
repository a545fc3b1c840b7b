// Reads the messages to a graph: an input, `{"retry": true}`, or `{"edit": {…}}`. A message that cannot be read ends
// the run with the reason, and changes nothing.
import type { Json } from '../kernel/content.ts'
import { mergeInput, type GraphState } from './channel.ts'
import type { Graph } from './graph-definition.ts'
import { GraphError, errorText } from './error.ts'
import { plainJson } from './plain-json.ts'
import { isObject } from '../view/untrusted-json.ts'

export type GraphInput = {
  /** Run the failed nodes again. An edit implies it. */
  readonly retry: boolean
  readonly inputs: readonly GraphState[]
  readonly edits: readonly GraphState[]
}

export function readGraphInput(graph: Graph, said: readonly string[]): GraphInput {
  const inputs: GraphState[] = []
  const edits: GraphState[] = []
  let retry = false
  for (const text of said) {
    const value = objectIn(text)
    if (value === null) inputs.push(inputOf(graph, text))
    else if ('retry' in value || 'edit' in value) {
      edits.push(...editOf(value))
      retry = true
    } else inputs.push(value)
  }
  return { retry, inputs, edits }
}

/** The state after these messages: inputs go through the reducers, edits replace values directly. */
export function applyGraphInput({ channels }: Graph, state: GraphState, { inputs, edits }: GraphInput): GraphState {
  let next = state
  for (const input of inputs) next = mergeInput(channels, next, input)
  for (const edit of edits) {
    const unknown = Object.keys(edit).find((name) => !Object.hasOwn(channels, name))
    if (unknown !== undefined)
      throw new GraphError(
        `UnknownChannel: The edit has "${unknown}"; the channels are ${Object.keys(channels).join(', ')}.`,
      )
    next = { ...next, ...edit }
  }
  return next
}

function editOf(value: { readonly [key: string]: Json }): readonly GraphState[] {
  const { retry, edit, ...rest } = value
  const odd = Object.keys(rest)
  if (odd.length > 0) throw new GraphError(`InvalidMessage: beside "retry" and "edit" there can be no "${odd[0]}".`)
  if (retry !== undefined && retry !== true) throw new GraphError('InvalidMessage: "retry" can only be true.')
  if (edit === undefined) return []
  if (!isObject(edit)) throw new GraphError('InvalidMessage: "edit" must be an object, by channel.')
  return [edit]
}

function inputOf({ name, input, channels }: Graph, text: string): GraphState {
  if (input === null) {
    const known = Object.keys(channels).join(', ')
    throw new GraphError(`InvalidMessage: graph "${name}" takes a JSON object with any of ${known}, and this is none.`)
  }
  try {
    const update = plainJson(input(text) ?? {}, 'the input')
    if (isObject(update)) return update
  } catch (error) {
    throw new GraphError(`InvalidMessage: graph "${name}" cannot read this message: ${errorText(error)}`)
  }
  throw new GraphError(`InvalidMessage: graph "${name}" cannot read this message.`)
}

function objectIn(text: string): { readonly [key: string]: Json } | null {
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
