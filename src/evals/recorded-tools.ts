// Tools that give the results of a recorded session instead of running: for the same tool and the same arguments, the
// first time the first result, then the next. What the recording does not have is an error that the model reads.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { ToolFailure } from '../tools/core/tool-output.ts'
import type { Tool, ToolSource } from '../tools/core/tool.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import type { SuiteAgent } from './suite.ts'
import type { TrialCall } from './trial.ts'

/** The same agent, with tools that answer from these calls. Each run of it needs one of its own. */
export function withRecordedTools(agent: SuiteAgent, recorded: readonly TrialCall[]): SuiteAgent {
  const results = new Map<string, TrialCall[]>()
  for (const call of recorded) {
    const key = keyOf(call.tool, call.args)
    results.set(key, [...(results.get(key) ?? []), call])
  }
  const replay = (tool: Tool | ToolSource): Tool => standIn(tool, results)
  const { tools = [], subagents } = agent
  const below =
    typeof subagents === 'object'
      ? Object.fromEntries(
          Object.entries(subagents).map(([name, each]) => [
            name,
            each.tools === undefined ? each : { ...each, tools: each.tools.map(replay) },
          ]),
        )
      : subagents
  return { ...agent, tools: tools.map(replay), ...(below === undefined ? {} : { subagents: below }) }
}

function keyOf(tool: string, args: Json): string {
  return canonicalJson([tool, args])
}

function standIn(tool: Tool | ToolSource, results: ReadonlyMap<string, TrialCall[]>): Tool {
  if ('type' in tool)
    throw new Fault(
      'invalid_config',
      `The tools of "${tool.name}" are known only when it is asked, so they cannot be replayed. Leave it out, or use the mode "live".`,
    )
  // A call that is answered from outside, such as a child's or a person's, is answered there.
  if (tool.outside) return tool
  return {
    ...tool,
    execute: async (args) => {
      const call = results.get(keyOf(tool.name, args as Json))?.shift()
      if (call === undefined) throw new ToolFailure('NotFound', 'The recording has no result for this call.')
      if (call.status !== 'ok') throw new ToolFailure('Failed', call.content)
      return call.content
    },
  }
}
