// What a cell can call: the tools of the agent that wrote it, its agents, and its model. Each is a call of the cell's
// session like any other, so that rules, approvals, budgets and redaction hold.
import type { Message } from '../kernel/transcript.ts'
import type { Model } from '../ports/model.ts'
import { LIKE_PARENT } from '../tools/agents/subagent.ts'
import { askPrompt } from '../tools/agents/parallel-ask.ts'
import { objectField, optionalField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { output, ToolFailure } from '../tools/core/tool-output.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import type { CellResult } from './cell.ts'

export const MODEL_QUERY = 'model_query'
export const AGENT_QUERY = 'agent_query'
const QUERY_MS = 10 * 60_000
const TRIES = 3

/** What starts sessions or addresses them is not callable: a script asks agents with `agent_query`. */
export function isCallable(tool: Tool): boolean {
  const starts = tool.child !== undefined || tool.orders === true || tool.starts !== undefined || tool.handoff === true
  return !starts && !NOT_CALLABLE.has(tool.name)
}
/** They start sessions too: teams and jobs. */
const NOT_CALLABLE: ReadonlySet<string> = new Set(['team', 'cron', 'schedule', 'script'])

/** `modelFor` gives the model of a hint, and without one the agent's own. */
export function queryTools(modelFor: (hint: string | undefined) => Model): readonly Tool[] {
  const model = defineTool({
    name: MODEL_QUERY,
    description: 'Asks a model one question, for a script.',
    input: objectField({
      prompt: textField('The question, complete in itself.', { min: 1 }),
      system: optionalField(textField('Instructions for the answer.')),
      model: optionalField(textField('A route, such as hint:burst.', { min: 1 })),
    }),
    timeoutMs: QUERY_MS,
    execute: async ({ prompt, system = '', model: hint }, context) => {
      const asking = { model: modelFor(hint), instructions: system, output: null, attemptsMax: TRIES, outputRetries: 0 }
      const { entry } = await askPrompt({ ...asking, context }, prompt, 0)
      if (!entry.ok) throw new ToolFailure('Failed', entry.error ?? 'The model did not answer.')
      return output({
        ok: true,
        content: typeof entry.result === 'string' ? entry.result : JSON.stringify(entry.result),
      })
    },
  })
  const agent = defineTool({
    name: AGENT_QUERY,
    description: 'Gives one task to an agent, for a script.',
    input: objectField({
      task: textField('The whole task, complete in itself.', { min: 1 }),
      agent: optionalField(textField('Which agent; without it one like the agent that wrote the script.', { min: 1 })),
    }),
  })
  const child: Tool['child'] = (args) => {
    const { agent: named = 'default' } = args as { readonly agent?: string }
    return named === 'default' ? LIKE_PARENT : named
  }
  return [
    { ...model, always: true },
    { ...agent, child, kind: 'subagent', always: true },
  ]
}

type ToolMessage = Extract<Message, { role: 'tool' }>

/** A result as a cell gets it: JSON objects and lists are values, anything else is text. */
export function resultOfCall(n: number, { ok, status, content }: ToolMessage): CellResult {
  const text = typeof content === 'string' ? content : ''
  if (!ok) return [n, false, text, TOO_DEEP.test(text) ? 'recursion_depth' : errorKindOf(status)]
  const value = /^\s*[[{]/.test(text) ? parseJson(text) : undefined
  return [n, true, isObject(value) || Array.isArray(value) ? value : text]
}

/** How a child that would be too deep is refused. */
const TOO_DEEP = /^Subagents may be \d+ deep/

function errorKindOf(status: ToolMessage['status']): string {
  if (status === 'denied') return 'denied'
  if (status === 'timeout') return 'timeout'
  if (status === 'aborted') return 'cancelled'
  return 'capability_error'
}
