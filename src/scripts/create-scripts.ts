// Makes the scripts of a harness: the tool for its models, and the planner that runs what they write.
import type { Graph } from '../graphs/graph-definition.ts'
import type { Clock } from '../ports/system.ts'
import { systemClock } from '../stores/plan/system-clock.ts'
import type { Tool } from '../tools/core/tool.ts'
import { type StartRunner, startCellThread } from './sandbox.ts'
import { checkScriptOptions, completeScriptOptions, type ScriptOptions } from './script-options.ts'
import { scriptPlanner } from './script-planner.ts'
import { scriptTool } from './script-tool.ts'

/** The two parts of scripts. Every process that drives scripts needs both. */
export type Scripts = {
  /** For `tools` of a harness: with it models write scripts. */
  readonly tool: Tool
  /** For `graphs` of a harness: it runs what they write. */
  readonly planner: Graph
}

/** Lets models write programs that call tools. Hand `tool` and `planner` to a harness. */
export function createScripts(options: ScriptOptions = {}): Scripts {
  return scriptsWith(options, startCellThread)
}

/** The same, with another place where cells run, and another clock for engines that nothing uses. */
export function scriptsWith(options: ScriptOptions, start: StartRunner, idle: Clock = systemClock): Scripts {
  checkScriptOptions(options)
  const complete = completeScriptOptions(options)
  return { tool: scriptTool(complete), planner: scriptPlanner(complete, { start, idle }) }
}
