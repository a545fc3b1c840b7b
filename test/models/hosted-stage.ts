// A harness whose model is a real client of the chaos server: real HTTP, real streams, a store of either kind. Everything is
// closed when the test is over. Nothing is asserted here.
import type { EventOf } from '../../src/kernel/event.ts'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  type Chaos,
  type ChaosOptions,
  type ChaosRequest,
  type ChaosScript,
  type Dialect,
  startChaos,
} from '../../src/testing/index.ts'
import {
  type Clock,
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type HostedOptions,
  memory,
  model,
  type Priced,
  type RunStream,
  type CompleteStore,
  type StreamEvent,
  type Tool,
} from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'

export const DIALECTS: readonly Dialect[] = ['messages', 'responses', 'chat']
export const KEY = 'test-key-123'

const NAMES: Readonly<Record<Dialect, string>> = {
  messages: 'anthropic:claude-x',
  responses: 'openai:gpt-x',
  chat: 'openrouter:some/model',
}

/** Each dialect as one of its hosts, at the chaos server. */
export function hosted(
  chaos: Pick<Chaos, 'url'>,
  dialect: Dialect,
  options: HostedOptions & { name?: string } = {},
): Priced {
  const { name = NAMES[dialect], ...rest } = options
  return model(name, { baseUrl: dialect === 'messages' ? chaos.url : `${chaos.url}/v1`, key: KEY, ...rest })
}

export type Storage = 'memory' | 'sqlite'
export const STORAGES: readonly Storage[] = ['memory', 'sqlite']

export function storeOf(storage: Storage, clock?: Clock): CompleteStore {
  if (storage === 'sqlite') return open(makeFile(), clock === undefined ? {} : { clock })
  return memory(clock === undefined ? {} : { clock })
}

export async function chaosOf(script: ChaosScript, options: Partial<ChaosOptions> = {}): Promise<Chaos> {
  const chaos = await startChaos({ script, strict: true, ...options })
  onTestFinished(() => chaos.close())
  return chaos
}

/** Closed after the test, before its store and its server are. */
export function harnessOf(options: HarnessOptions): Harness {
  const harness = new Harness({ worker: { graceMs: 200 }, secrets: {}, ...options })
  onTestFinished(() => harness.close())
  return harness
}

export type Stage = { readonly chaos: Chaos; readonly harness: Harness; readonly store: CompleteStore }

export type StageOptions = Partial<Omit<HarnessOptions, 'model' | 'store'>> & {
  readonly dialect?: Dialect
  readonly storage?: Storage
  readonly hosted?: HostedOptions & { name?: string }
  readonly chaos?: Partial<ChaosOptions>
}

export async function stage(script: ChaosScript, options: StageOptions = {}): Promise<Stage> {
  const { dialect = 'messages', storage = 'memory', hosted: settings, chaos: wishes, ...rest } = options
  const store = storeOf(storage, rest.system?.clock)
  const chaos = await chaosOf(script, wishes)
  const harness = harnessOf({ model: hosted(chaos, dialect, settings), store, ...rest })
  return { chaos, harness, store }
}

/** A clock that runs so many times faster: what waits a second waits a part of it. */
export function hasty(times: number): Clock {
  const began = Date.now()
  return {
    now: () => began + (Date.now() - began) * times,
    timer(ms, fire) {
      const timer = setTimeout(fire, Math.min(ms / times, 2 ** 31 - 1))
      return () => clearTimeout(timer)
    },
  }
}

export async function eventsOf(store: CompleteStore, session: string): Promise<readonly Event[]> {
  return (await store.read(session, 0)).events
}

export function ofType<T extends Event['type']>(events: readonly Event[], type: T): readonly EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

export async function heard(stream: RunStream): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** A tool that notes what it was called with. */
export function noting(name = 'look', extra: Partial<Parameters<typeof defineTool<{ city: string }>>[0]> = {}) {
  const calls: string[] = []
  const tool: Tool = defineTool({
    name,
    description: `${name} at a city`,
    input: z.object({ city: z.string() }),
    effect: 'once',
    execute: ({ city }) => {
      calls.push(city)
      return `${city} is cold`
    },
    ...extra,
  })
  return { tool, calls }
}

type Fields = Readonly<Record<string, unknown>>

export function bodyOf(request: ChaosRequest | undefined): Fields {
  return (request?.body ?? {}) as Fields
}

/** The conversation of a request, in any dialect. */
export function conversation(request: ChaosRequest | undefined): readonly Fields[] {
  const body = bodyOf(request)
  return (body['messages'] ?? body['input'] ?? []) as readonly Fields[]
}
