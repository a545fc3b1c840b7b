// A graph as a tool of a model. A call starts the graph as a child session with the arguments as its input, and the
// final state is the answer. The harness needs the graph in `graphs`, with a description, and `subagents`.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { type Approval, defineTool, type StandardSchema, type TypedTool } from '../tools/core/tool.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { Graph } from './graph-definition.ts'

/** Options of a tool that runs a graph: its name, its arguments, and what the model reads of the end. */
export type GraphToolOptions<Args, Name extends string> = {
  /** The name of the tool that the model calls. */
  readonly name: Name
  /** When to use it: the model reads this. */
  readonly description: string
  /**
   * The arguments from the model. The fields are channels of the graph, or `task` alone, which the graph's `input`
   * reads.
   */
  readonly input: StandardSchema<Args>
  /** Must a person approve before the graph starts? Default: no. */
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

/** A child gets its `task` and no other field beside it. `session` names a child that waits for an answer. */
function checkFields(name: string, parameters: Json): void {
  const { properties } = isObject(parameters) ? parameters : {}
  const fields = isObject(properties) ? Object.keys(properties) : []
  const taken = fields.find((field) => field === 'session' || (field === 'task' && fields.length > 1))
  if (taken === undefined) return
  throw new Fault('invalid_config', `The tool "${name}" cannot have a field "${taken}". Give it another name.`)
}
