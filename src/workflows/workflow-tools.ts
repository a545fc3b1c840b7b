// Workflows as tools of a model: `council` asks a question, `run_workflow` starts one of several workflows. Each call is a child
// session of the graph; the harness needs the graphs, and `subagents`.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Graph } from '../graphs/graph-definition.ts'
import { graphTool } from '../graphs/graph-tool.ts'
import { type Field, objectField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type TypedTool } from '../tools/core/tool.ts'

/** Gives a question to a council. */
export function councilTool(graph: Graph): TypedTool<'council', { readonly question: string }> {
  return graphTool(graph, {
    name: 'council',
    description: graph.description,
    input: objectField({
      question: textField('The question, complete in itself: members see nothing of this conversation.', { min: 1 }),
    }),
  })
}

type WorkflowArgs = { readonly workflow: string; readonly task: string }

/** Starts one of these workflows. */
export function runWorkflowTool(graphs: readonly Graph[]): TypedTool<'run_workflow', WorkflowArgs> {
  const names = graphs.map(({ name }) => name)
  if (names.length === 0)
    throw new Fault('invalid_config', 'The tool "run_workflow" has no workflow to run. Give it at least one graph.')
  const list = graphs.map(({ name, description }) => `\n- ${name}: ${description || 'no description'}`).join('')
  const tool = defineTool({
    name: 'run_workflow',
    description: `Runs a workflow of several agents in a fixed order, and returns what it came to. Its agents see nothing of this conversation.\nWorkflows:${list}`,
    input: objectField({
      workflow: oneOfNames(names),
      task: textField('What it is about, complete in itself.', { min: 1 }),
    }),
    effect: 'once',
  })
  return { ...tool, child: (args: Json) => (args as WorkflowArgs).workflow, kind: 'subagent' }
}

/** Only these names are accepted: another name would start another agent. */
function oneOfNames(names: readonly string[]): Field<string> {
  return {
    schema: { type: 'string', description: 'Which workflow.', enum: names },
    required: true,
    check: (value) => {
      const found = names.find((name) => name === value)
      if (found !== undefined) return { value: found }
      return { issues: [{ path: [], message: `must be one of: ${names.join(', ')}` }] }
    },
  }
}
