// The turn that every bench repeats: one reply with one tool call (about 90 bytes of arguments), one no-op tool that
// returns 256 bytes. As a tool and a model for the harness, and as the events that such a turn leaves in the log.
import type { Limits } from '../src/kernel/content.ts'
import type { OwnerEvent } from '../src/kernel/event.ts'
import { DEFAULT_LIMITS } from '../src/kernel/limits.ts'
import { defineTool, type StandardSchema, type Step } from '../src/index.ts'

export type Args = { readonly path: string; readonly query: string; readonly limit: number; readonly offset: number }

export function argsOf(n: number): Args {
  return { path: 'src/kernel/fold.ts', query: 'what the log means', limit: 20, offset: 1_000_000 + n }
}

const RESULT = 'x'.repeat(256)
const PADDING = RESULT.slice(7)

/** Another each time: a tool that only repeats itself would be taken for one that gets nowhere. 256 bytes like RESULT. */
export function resultOf(args: unknown): string {
  return `${(args as Args).offset}${PADDING}`
}

/** Enough for any bench: no limit may end a run before its turns are done. */
export const LIMITS: Limits = { ...DEFAULT_LIMITS, modelRequests: 1_000_000, activeMs: 2 ** 40 }

/** Written by hand, so that the figure is the harness's own and not that of a schema library. */
const schema: StandardSchema<Args> = {
  '~standard': {
    validate(value) {
      const { path, query, limit, offset } = value as Record<string, unknown>
      const texts = typeof path === 'string' && typeof query === 'string'
      if (texts && typeof limit === 'number' && typeof offset === 'number') {
        return { value: { path, query, limit, offset } }
      }
      return { issues: [{ message: 'Expected path, query, limit and offset.' }] }
    },
    jsonSchema: {
      input: () => ({
        type: 'object',
        properties: {
          path: { type: 'string' },
          query: { type: 'string' },
          limit: { type: 'integer' },
          offset: { type: 'integer' },
        },
        required: ['path', 'query', 'limit', 'offset'],
      }),
    },
  },
}

export const lookup = defineTool({
  name: 'lookup',
  description: 'Look something up',
  input: schema,
  effect: 'read',
  execute: async (args) => resultOf(args),
})

export function ask(n: number): Step {
  return { calls: [{ tool: 'lookup', args: argsOf(n) }] }
}

export type Stamp = { readonly at: number; readonly epoch: number }
export type Pair = readonly [OwnerEvent, OwnerEvent]

/** The two commits of the turn that follows `seq`, event by event as the driver writes them. */
export function turnEvents(seq: number, { at, epoch }: Stamp): readonly [Pair, Pair] {
  const call = `${seq + 1}.0`
  const { name: tool, effect, timeoutMs } = lookup
  const proposal = { id: `call_${seq}_0`, tool, args: argsOf(seq), effect, timeoutMs } as const
  const reply = { parts: [], calls: [proposal], verdict: { type: 'continue' } } as const
  return [
    [
      { seq: seq + 1, at, epoch, type: 'agent.message', ...reply },
      { seq: seq + 2, at, epoch, type: 'agent.tool_use', call },
    ],
    [
      { seq: seq + 3, at, epoch, type: 'agent.tool_result', call, status: 'ok', content: RESULT },
      { seq: seq + 4, at, epoch, type: 'model.started', shows: [seq + 3] },
    ],
  ]
}
