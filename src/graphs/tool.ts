// A graph as a tool of a model: a call starts the graph as a child session, its arguments are the graph's input, and the state it ends
// with is the answer. The harness needs the graph in `graphs`, with a description, and `subagents`.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { type Approval, defineTool, type StandardSchema, type TypedTool } from '../tools/core/tool.ts'
import { isObject } from '../view/json.ts'
import type { Graph } from './definition.ts'

export type GraphToolOptions<Args, Name extends string> = {
  readonly name: Name
  /** When to use it: the model reads this. */
  readonly description: string
  /** What the model gives. Its fields are channels of the graph, or it has `task` alone, which is what the graph's `input` reads. */
  readonly input: StandardSchema<Args>
  /** Must a person approve before the graph starts? Default: not. */
  readonly approval?: Approval | ((args: Args) => Approval | Promise<Approval>)
}

/** A tool that starts this graph as a child. */
export function graphTool<Args, const Name extends string>(
  graph: Pick<Graph, 'name'>,
  options: GraphToolOptions<Args, Name>,
): TypedTool<Name, Args> {
  const tool = defineTool<Args, Name>({ ...options, effect: 'once' })
  checkFields(options.name, tool.parameters)
  return { ...tool, child: () => graph.name, kind: 'subagent' }
}

/** A child is given its `task` and nothing beside it, and `session` names a child that waits for an answer. */
function checkFields(name: string, parameters: Json): void {
  const { properties } = isObject(parameters) ? parameters : {}
  const fields = isObject(properties) ? Object.keys(properties) : []
  const taken = fields.find((field) => field === 'session' || (field === 'task' && fields.length > 1))
  if (taken === undefined) return
  throw new Fault('invalid_config', `The tool "${name}" cannot have a field "${taken}". Give it another name.`)
}
