// The agents of the load model: real turns with a scripted model. Each message makes a run of so many turns with one call each, and a last
// reply. A person must allow the first of these calls if the message asks for that; parked sessions have no other one.
import { defineTool, Harness, scripted, type StandardSchema } from '../../src/index.ts'
import type { Store } from '../../src/ports/store.ts'

/** `day`: all sessions are of one agent, so each model call moves money on one account. `own`: they are spread over many. `none`: no budget. */
export type Accounts = 'day' | 'own' | 'none'

export type Shape = { readonly turns: number; readonly turnBytes: number; readonly accounts: Accounts }

const AGENTS = 64
/** How long the model takes: sessions are held under their lease meanwhile. */
export const MODEL_MS = 200
const COST = 100
/** Messages. */
export const LOOK = 'look'
export const ASK = 'ask'
export const WAKE = 'wake'

export function agentOf(n: number, accounts: Accounts): string {
  return `agent-${accounts === 'day' ? 0 : n % AGENTS}`
}

const nothing: StandardSchema<object> = {
  '~standard': {
    validate: (value) => ({ value: value as object }),
    jsonSchema: { input: () => ({ type: 'object', properties: {} }) },
  },
}

export function harnessOn(store: Store, { turns, turnBytes, accounts }: Shape, drives: boolean): Harness {
  let made = 0
  // Another each time: a tool that only repeats itself would be taken for one that gets nowhere.
  const execute = (): string => `${made++} `.padEnd(turnBytes, 'x')
  const of = { description: 'Looks something up', input: nothing, execute } as const
  const look = defineTool({ ...of, name: 'look', effect: 'read' })
  const ask = defineTool({ ...of, name: 'ask', effect: 'once', approval: 'ask' })
  const model = scripted(({ messages }) => {
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    const said = JSON.stringify(messages[asked])
    const done = messages.length - 1 - asked
    const reply = { delayMs: MODEL_MS, cost: COST }
    // A reply and its result are two messages.
    if (done >= 2 * (said.includes(WAKE) ? 1 : turns)) return { ...reply, text: 'done' }
    const tool = done === 0 && (said.includes(WAKE) || said.includes(ASK)) ? 'ask' : 'look'
    return { ...reply, calls: [{ tool, args: { place: messages.length } }] }
  })
  const agent = { model, tools: [look, ask], description: 'Answers', subagents: [] }
  const names = Array.from({ length: AGENTS }, (_, n) => agentOf(n, 'own'))
  return new Harness({
    model,
    store,
    subagents: Object.fromEntries(names.map((name) => [name, agent])),
    ...(accounts === 'none' ? {} : { budget: { dayUsd: 1_000_000 } }),
    worker: { width: 1_000, drives },
  })
}
