// What the tests of verbs, limits and streams share: harnesses on a store of either kind that are closed after the test, moments to
// wait for, and tools that say when they run. Nothing is asserted here.
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  type Message,
  type Model,
  type Request,
  type Script,
  scripted,
  type SessionHandle,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { moment, type Moment } from '../graphs/moment.ts'

export { moment, type Moment }
export { STORAGES, storeOf } from '../models/hosted-stage.ts'

export function make(script: Script | Model, options: Partial<HarnessOptions> = {}): Harness {
  const model = 'name' in script && 'call' in script && typeof script !== 'function' ? script : scripted(script)
  const harness = new Harness({ worker: { graceMs: 50 }, ...options, model })
  onTestFinished(() => harness.close())
  return harness
}

type Extra = Partial<Parameters<typeof defineTool<{ n: number }>>[0]>

/** A tool that takes a number and says it back. */
export function tool(name: string, extra: Extra = {}): Tool {
  const input = z.object({ n: z.number().default(0) })
  return defineTool({ name, description: name, input, effect: 'read', execute: ({ n }) => `${name} ${n}`, ...extra })
}

/** A tool that reports that it runs, and goes on when the test lets it or a stop signal comes. */
export function waiting(name: string, extra: Extra = {}): { tool: Tool; runs: Moment; go: () => void; ran: string[] } {
  const runs = moment()
  const gate = moment()
  const ran: string[] = []
  const execute: Extra['execute'] = async ({ n }, { signal }) => {
    runs.come()
    const stopped = new Promise<void>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('stopped')))
    })
    await Promise.race([gate.here, stopped])
    ran.push(`${name} ${n}`)
    return `${name} ${n}`
  }
  return { tool: tool(name, { execute, ...extra }), runs, go: gate.come, ran }
}

export const calls = (...names: readonly string[]) => ({
  calls: names.map((name, i) => ({ tool: name.split(' ')[0] ?? '', args: { n: Number(name.split(' ')[1] ?? i) } })),
})

/** What a request or a conversation says, one line a message. */
export function lines(messages: readonly Message[]): readonly string[] {
  return messages.map((message) => {
    if (message.role === 'tool') return `tool: ${typeof message.content === 'string' ? message.content : 'a blob'}`
    const text = message.parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
    const asked = message.role === 'assistant' ? message.calls.map((call) => ` ${call.tool}()`).join('') : ''
    return `${message.role}: ${text}${asked}`
  })
}

export const users = ({ messages }: Request): readonly string[] =>
  lines(messages.filter(({ role }) => role === 'user')).map((line) => line.slice('user: '.length))

export async function typesIn(session: SessionHandle): Promise<readonly string[]> {
  return (await session.events()).events.map(({ type }) => type)
}

/** A store that counts the watchers of its sessions. */
export function counted(inner: CompleteStore): { readonly store: CompleteStore; readonly listening: () => number } {
  let listening = 0
  const watch: CompleteStore['watch'] = (session, listener) => {
    const unwatch = inner.watch(session, listener)
    let gone = false
    listening += 1
    return () => {
      if (!gone) listening -= 1
      gone = true
      unwatch()
    }
  }
  const store = storeWith(inner, { watch })
  return { store, listening: () => listening }
}
