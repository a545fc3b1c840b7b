// What the tests of scripts share: a harness whose model writes one cell after the other, and looks at what became of
// them. Nothing is asserted here.
import { onTestFinished } from 'vitest'
import { defineTool, type Event, Harness, type HarnessOptions, type Json, memory, scripted } from '../../src/index.ts'
import { createScripts, type ScriptOptions } from '../../src/scripts/index.ts'
import type { EventOf } from '../../src/kernel/event.ts'
import { objectField, optionalField, textField } from '../../src/tools/core/argument-schema.ts'

export type CellArgs = { readonly [name: string]: Json }

/** What the tool answered to the model. A cell that failed has the same in its text. */
export type CellAnswer = {
  readonly session_id?: string
  readonly value: Json
  readonly final_answer: Json
  readonly stdout: string
  readonly variables_changed: readonly string[]
  readonly calls: readonly {
    readonly n: number
    readonly tool: string
    readonly line: number | null
    readonly ok: boolean
  }[]
  readonly limits_remaining?: { readonly cells: number; readonly model_calls: number; readonly tool_calls: number }
  readonly error?: { readonly kind: string; readonly message: string; readonly line?: number; readonly cell?: number }
}

export type Seen = { readonly made: string[]; most: number }

/** Tools that write down what they were asked, and how many of them ran at once. */
export function testTools(seen: Seen, waitMs = 0) {
  let running = 0
  const note = async (text: string): Promise<string> => {
    running += 1
    seen.most = Math.max(seen.most, running)
    seen.made.push(text)
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    running -= 1
    return text
  }
  const read = defineTool({
    name: 'read',
    description: 'Reads.',
    input: objectField({ path: textField('Which.') }),
    effect: 'read',
    execute: async ({ path }) => note(`read ${path}`),
  })
  const send = defineTool({
    name: 'send',
    description: 'Sends.',
    input: objectField({ to: optionalField(textField('Whom.')) }),
    approval: 'ask',
    execute: async ({ to = 'all' }) => note(`sent to ${to}`),
  })
  const rows = defineTool({
    name: 'rows',
    description: 'Gives rows.',
    input: objectField({}),
    effect: 'read',
    execute: () => [{ id: 1 }, { id: 2 }],
  })
  const fail = defineTool({
    name: 'fail',
    description: 'Fails.',
    input: objectField({}),
    effect: 'read',
    execute: () => {
      throw new Error('out of paper')
    },
  })
  return [read, send, rows, fail]
}

/** Null: the model says that it is done, which ends the run. */
export type Step =
  | null
  | CellArgs
  | readonly CellArgs[]
  | ((before: readonly CellAnswer[]) => CellArgs | readonly CellArgs[])

/** A model that makes these calls of `script`, one reply after the other, and then says that it is done. */
export function writer(steps: readonly Step[]) {
  const told: string[] = []
  const model = scripted((request) => {
    if (request.tools.length === 0) return `answer to ${lastText(request.messages)}`
    told.splice(0)
    for (const message of request.messages)
      if (message.role === 'tool') told.push(typeof message.content === 'string' ? message.content : '')
    const answers = told.map(answerIn)
    const step = steps[request.messages.filter(({ role }) => role === 'assistant').length]
    if (step === undefined || step === null) return 'done'
    const cells = typeof step === 'function' ? step(answers) : step
    return { calls: (Array.isArray(cells) ? cells : [cells]).map((args) => ({ tool: 'script', args: args as Json })) }
  })
  return { model, told }
}

function lastText(messages: readonly { readonly role: string }[]): string {
  const last = messages.at(-1) as { readonly parts?: readonly { readonly type: string; readonly text?: string }[] }
  return last.parts?.map(({ text = '' }) => text).join('') ?? ''
}

/** The result in a text for the model, also in that of a cell that failed. */
export function answerIn(text: string): CellAnswer {
  const [json = '{}'] = /\{"[^]*\}/.exec(text) ?? []
  return JSON.parse(json) as CellAnswer
}

type Stage = {
  readonly scripts?: ScriptOptions
  readonly seen?: Seen
  readonly waitMs?: number
} & Partial<HarnessOptions>

export function withScripts(steps: readonly Step[], stage: Stage = {}) {
  const { scripts = { mode: 'on' }, seen = { made: [], most: 0 }, waitMs, tools, ...options } = stage
  const made = createScripts(scripts)
  const store = options.store ?? memory()
  const { model, told } = writer(steps)
  const harness = new Harness({
    model,
    secrets: {},
    worker: { graceMs: 50 },
    ...options,
    store,
    tools: [...(tools ?? testTools(seen, waitMs)), made.tool],
    graphs: [made.planner],
  })
  onTestFinished(() => harness.close())
  return { harness, seen, store, told }
}

/** Runs the cells one after the other, and gives what each answered. */
export async function runCells(steps: readonly Step[], stage: Stage = {}) {
  const { harness, seen, store, told } = withScripts(steps, stage)
  const result = await harness.run('go')
  const events = await eventsOf(harness, result.sessionId)
  return { harness, seen, store, result, events, answers: told.map(answerIn), texts: told, session: result.sessionId }
}

/** A person decides about each call that waits, until the run rests for another reason. */
export async function decideAll(harness: Harness, session: string, allow = true): Promise<readonly string[]> {
  const asked: string[] = []
  for (let result = await harness.session(session).run(); ; result = await harness.session(session).run()) {
    const pending = await harness.pending()
    if (result.status !== 'requires_action' || pending.length === 0) return asked
    for (const { tool, args, callId, sessionId } of pending) {
      asked.push(`${tool} ${JSON.stringify(args)}`)
      await harness.session(sessionId).decide({ callId, allow, by: 'ann', ...(allow ? {} : { why: 'not now' }) })
    }
  }
}

export async function eventsOf(harness: Harness, session: string): Promise<readonly Event[]> {
  return (await harness.session(session).events()).events
}

export function ofType<T extends Event['type']>(events: readonly Event[], type: T) {
  return events.filter((event): event is EventOf<T> => event.type === type)
}
