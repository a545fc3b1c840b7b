// A user's program that is only compiled, by types.test.ts: against the built declarations, with every supported compiler and way of
// finding modules. A line after `@ts-expect-error` must not compile. It is never run.
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  type Hook,
  type Json,
  orThrow,
  type Pending,
  type Result,
  scripted,
  type Session,
  type Sessions,
  stopAtUsd,
  type StreamEvent,
  type Tool,
  type ToolContext,
} from '../../src/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only if the first type is the second. */
function same<A, B>(_is: Same<A, B>): void {}

const model = scripted(['done'])

// A tool: its handler gets what the schema of its arguments makes, and returns what the schema of its results takes.
export const look = defineTool({
  name: 'look',
  description: 'Looks at a file',
  input: z.object({ path: z.string(), lines: z.number().default(10), deep: z.boolean().optional() }),
  output: z.object({ kind: z.enum(['file', 'folder']), names: z.array(z.string()) }),
  effect: 'read',
  execute: ({ path, lines }) => {
    same<typeof lines, number>(true)
    return { kind: path.endsWith('/') ? 'folder' : 'file', names: [path] }
  },
})
defineTool({
  name: 'wrong_kind',
  description: 'Returns what its schema does not take',
  input: z.object({}),
  output: z.object({ kind: z.enum(['file', 'folder']) }),
  // @ts-expect-error there is no such kind
  execute: async (_args) => ({ kind: 'link' }),
})
defineTool({
  name: 'wrong_args',
  description: 'Asks its arguments for what they lack',
  input: z.object({ count: z.number() }),
  // @ts-expect-error a number has no length
  execute: ({ count }) => String(count.length),
})
defineTool({
  name: 'slow',
  description: 'Without a schema it may return anything',
  input: { type: 'object' },
  execute: () => new Promise((resolve) => setTimeout(() => resolve('later'), 1)),
})

// What a handler needs of the host, it says; a harness with that tool must build it.
type Db = { readonly db: { get(key: string): string | undefined } }
const find = defineTool({
  name: 'find',
  description: 'Finds a value',
  input: z.object({ key: z.string(), tenant: z.string() }),
  injected: { tenant: 'a' },
  execute: ({ key, tenant }, { deps }: ToolContext<Db>) => deps.db.get(tenant + key),
})
const who = defineTool({
  name: 'who',
  description: 'Says whose session it is',
  input: z.object({}),
  execute: (_args, context: ToolContext<{ readonly user: string }>) => context.deps.user,
})
const deps = () => ({ db: new Map<string, string>(), more: 1 })
// @ts-expect-error it has no deps
new Harness({ model, tools: [look, find] })
// @ts-expect-error its deps have no user
new Harness({ model, tools: [find, who], deps })
new Harness({ model, tools: [find, who], deps: async ({ session }) => ({ ...deps(), user: session }) })
// @ts-expect-error the tools of subagents need it too
new Harness({ model, subagents: { clerk: { description: 'Asks who', tools: [who] } } })
const untyped: Tool[] = [look, find]
new Harness({ model, tools: untyped })
// @ts-expect-error an untyped tool beside it does not hide what it needs
new Harness({ model, tools: [find, untyped[0] as Tool] })

// A harness: answers follow schemas, and calls are told apart by the name of their tool.
export const harness = new Harness({
  model,
  tools: [look, find],
  deps,
  output: { schema: z.object({ city: z.string(), at: z.date().optional() }) },
  subagents: {
    reader: { description: 'Reads', output: { schema: z.object({ lines: z.number() }) } },
    writer: { description: 'Writes', output: { schema: z.number(), mode: 'text' } },
    // A misspelled option does not compile.
    // @ts-expect-error it is `instructions`
    other: { description: 'Does other things', instruction: 'Be brief' },
  },
  hooks: [
    stopAtUsd(1),
    {
      type: 'before_tool_call',
      run: (event) => {
        if (event.tool === 'look') same<typeof event.args, { path: string; lines: number; deep?: boolean }>(true)
        else if (event.tool === 'find') same<keyof typeof event.args, 'key'>(true)
        else same<typeof event.tool, 'subagent'>(true)
      },
    },
    {
      type: 'after_tool_call',
      run: (event) => {
        if (event.refused) same<typeof event.args, Json>(true)
        else if (event.tool === 'find') event.args.key.trim()
      },
    },
  ],
})
const result = await harness.run('Where?')
if (result.status === 'completed') {
  // As JSON has it: the log is where it comes from.
  same<typeof result.output, { city: string; at?: string }>(true)
  // @ts-expect-error it has no town
  void result.output.town
}
for (const pending of result.pending) {
  if (pending.tool === 'look') pending.args.path.trim()
  else if (pending.tool === 'find') pending.args.key.trim()
  else if (pending.tool === 'subagent') pending.args.task.trim()
  else same<typeof pending.tool, 'budget'>(true)
  // @ts-expect-error there is no such tool
  if (pending.tool === 'touch') void pending.args
}

// The schema of a run wins, and gives what it makes; that of another agent is asked for by its name.
const own = orThrow(await harness.run('When?', { output: { schema: z.object({ at: z.coerce.date() }) } }))
same<typeof own.output, { at: Date }>(true)
const plain = orThrow(await harness.run('What?', { output: { schema: { type: 'object' } } }))
same<typeof plain.output, Json>(true)
const reader = orThrow(await harness.run('Read', { agent: 'reader' }))
same<typeof reader.output, { lines: number }>(true)
const writer = orThrow(await harness.run('Write', { agent: 'writer' }))
same<typeof writer.output, string | number>(true)
// @ts-expect-error there is no such agent
void harness.run('Read', { agent: 'raeder' })
const alone = new Harness({ model, tools: [look] })
new Harness({
  model,
  subagents: {
    clerk: {
      description: 'Has less',
      // @ts-expect-error it is `deny`
      toolAccess: { allow: ['look'], dney: ['find'] },
    },
  },
})
void alone.run('Look', { tools: ['look'], agent: 'default', settings: { temperature: 0 } })
// @ts-expect-error there is no such tool
void alone.run('Look', { tools: ['lok'] })
// @ts-expect-error there is no such agent
void alone.open({ agent: 'reader' })
// With plugins, more tools may be there than the types know of.
const extended = new Harness({ model, tools: [look], plugins: [] })
void extended.run('Look', { tools: ['recall'] })
const named: Record<string, { readonly description: string }> = {}
const dynamic = new Harness({ model, subagents: named })
void dynamic.run('Read', { agent: 'anyone' })
const general: Harness = alone
void general.run('Look', { tools: ['any'], agent: 'anyone' })
const session = await harness.open({ agent: 'reader' })
const stream = session.stream('Read')
same<Awaited<ReturnType<typeof stream.orThrow>>['output'], { lines: number }>(true)
same<(typeof own.pending)[number]['tool'], 'look' | 'find' | 'subagent' | 'budget'>(true)
const silent = orThrow(await new Harness({ model }).run('Hello'))
same<typeof silent.output, Json>(true)

// What does not know the types takes what does.
export function anyHarness(_harness: Harness, _sessions: Sessions, _session: Session, _result: Result): void {}
anyHarness(harness, harness, session, result)
export function anyPending(_pending: readonly Pending[]): void {}
anyPending(result.pending)
export function anyEvent(_event: StreamEvent): void {}
for await (const event of stream) anyEvent(event)
const options: HarnessOptions = { model, tools: [look, find], deps, hooks: [stopAtUsd(1)] }
const known: Harness = new Harness(options)
export const answer: Promise<Result> = known.run('Hello')
export const watch: Hook<typeof look> = { type: 'before_tool_call', run: ({ args }) => void args.path.trim() }
new Harness({ model, tools: [look], hooks: [watch] })
// @ts-expect-error this hook would also be told of calls that it does not know
new Harness({ model, tools: [look, who], deps: () => ({ user: '' }), hooks: [watch] })
