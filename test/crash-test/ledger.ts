// A small world for agents under test: rows, and a model that goes through a list of calls by what the transcript holds.
import { z } from 'zod'
import {
  defineTool,
  type EffectClass,
  type Json,
  type Model,
  scripted,
  type Tool,
  type ToolContext,
} from '../../src/index.ts'

export type Ledger = {
  readonly rows: Json[]
  readonly byKey: Map<string, Json>
  readonly look: () => Json
  readonly happened: (key: string) => boolean
}

export function ledger(): Ledger {
  const rows: Json[] = []
  const byKey = new Map<string, Json>()
  const look = (): Json => ({ rows, byKey: [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)) })
  return { rows, byKey, look, happened: (key) => byKey.has(key) }
}

type Run = (args: { readonly n: number }, context: ToolContext) => unknown
type More = { readonly reconcile?: Run; readonly approval?: 'ask'; readonly timeoutMs?: number }

export function tool(name: string, effect: EffectClass, execute: Run, more: More = {}): Tool {
  return defineTool({ name, description: name, input: z.object({ n: z.number() }), effect, execute, ...more })
}

/** Each name is a turn with one call, or with several joined by `+`; then it answers with the last result. */
export function calling(...turns: readonly string[]): Model {
  return scripted(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'assistant').length
    const names = turns[said]?.split('+')
    if (names) return { calls: names.map((name, i) => ({ tool: name, args: { n: said * 10 + i } })) }
    const last = messages.findLast((message) => message.role === 'tool')
    return `All is done: ${JSON.stringify(last?.content ?? null)}`
  })
}
