// A harness with hooks for their tests: a scripted model, tools that note what ran, and everything closed after the test.
import type { EventOf } from '../../src/kernel/event.ts'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type Hook,
  memory,
  type Script,
  scripted,
  sqlite,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { makeFolder } from '../stores/folder.ts'

export const storages = {
  memory: (): CompleteStore => memory(),
  sqlite: (): CompleteStore => sqlite(join(makeFolder(), 'hooks.db')),
} as const

export type Staged = {
  readonly harness: Harness
  readonly store: CompleteStore
  /** What was reported beside the runs. */
  readonly reports: readonly (readonly [where: string, message: string])[]
  /** Each request that the model got. */
  readonly requests: readonly Request[]
}

export type Given = Omit<Partial<HarnessOptions>, 'hooks' | 'store' | 'model'> & {
  readonly storage?: () => CompleteStore
  /** Stays open after the test's harness is closed, because another one goes on with it. */
  readonly store?: CompleteStore
  /** All hooks are strict. */
  readonly strict?: boolean
}

/** Without `onError` nothing may go wrong beside a run: a report fails the test that did not expect one. */
export function stage(script: Script, hooks: readonly Hook[], given: Given = {}): Staged {
  const { storage = storages.memory, store = storage(), strict = false, ...options } = given
  const reports: [string, string][] = []
  const requests: Request[] = []
  const inner = scripted(script)
  const harness = new Harness({
    onError: (where, error) => void reports.push([where, error instanceof Error ? error.message : String(error)]),
    ...options,
    model: {
      name: inner.name,
      call: (request, context) => {
        requests.push({ ...request, messages: request.messages.slice() })
        return inner.call(request, context)
      },
    },
    hooks: strict ? hooks.map(strictly) : hooks,
    store,
  })
  // Registered last, run first: the harness is closed before its store.
  onTestFinished(() => store.close())
  onTestFinished(() => harness.close())
  return { harness, store, reports, requests }
}

export function strictly(hook: Hook): Hook {
  return { ...hook, strict: true }
}

type Extra = Partial<Parameters<typeof defineTool<{ n: number }>>[0]>

/** Tools that take a number and note that they ran. */
export function noting(ran: string[] = []): (name: string, extra?: Extra) => Tool {
  return (name, extra = {}) =>
    defineTool({
      name,
      description: name,
      input: z.object({ n: z.number() }),
      effect: 'read',
      execute: ({ n }) => {
        ran.push(`${name} ${n}`)
        return `${name} ${n} done`
      },
      ...extra,
    })
}

export const call = (tool: string, n = 1) => ({ tool, args: { n }, id: `${tool}-${n}` })
export const calls = (...asked: readonly ReturnType<typeof call>[]) => ({ calls: asked })

/** What the model reads of the results of its calls. */
export function resultsIn(request: Request | undefined): readonly string[] {
  return (request?.messages ?? []).flatMap((m) =>
    m.role === 'tool' && typeof m.content === 'string' ? [m.content] : [],
  )
}

/** The texts that the model reads in the role of the user: from the user and from the harness. */
export function saidIn(request: Request | undefined): readonly string[] {
  return (request?.messages ?? []).flatMap((message) => {
    return message.role === 'user' ? message.parts.map((part) => (part.type === 'text' ? part.text : '')) : []
  })
}

export async function eventsOf<T extends Event['type']>(
  { store }: Staged,
  session: string,
  type: T,
): Promise<readonly EventOf<T>[]> {
  const { events } = await store.read(session, 0)
  return events.filter((event): event is EventOf<T> => event.type === type)
}

/** The one result of the session. */
export async function resultIn(staged: Staged, session: string) {
  const results = await eventsOf(staged, session, 'agent.tool_result')
  expect(results).toHaveLength(1)
  return results[0] as (typeof results)[number]
}

/** Holds the code under test back until the test opens it. */
export class Gate<T = void> {
  /** Resolves when the code under test waits at the gate. */
  readonly reached: Promise<void>
  readonly #opened: Promise<T>
  #arrive: () => void = () => {}
  open: (value: T) => void = () => {}

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#arrive = resolve
    })
    this.#opened = new Promise((resolve) => {
      this.open = resolve
    })
  }

  wait(): Promise<T> {
    this.#arrive()
    return this.#opened
  }
}
