// A harness with memory on real files for the tests of memory: a scripted model, an SQLite store, and everything closed after.
import { strictly } from '../runtime/hooks-stage.ts'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import {
  type Event,
  Harness,
  type HarnessOptions,
  type Script,
  scripted,
  sqlite,
  type CompleteStore,
} from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import {
  directiveTool,
  type Learning,
  type Memory,
  memoryPlugin,
  type MemoryPluginOptions,
  openMemory,
} from '../../src/memory/index.ts'
import { makeFolder } from '../stores/folder.ts'

/** Closed after the test: what was opened last, first. */
export function closing<T extends { close(): Promise<void> }>(one: T): T {
  onTestFinished(() => one.close())
  return one
}

export type Place = {
  readonly store: CompleteStore
  readonly memory: Memory
  readonly file: string
  readonly dir: string
  readonly reports: string[]
  /** What went wrong beside a run, where no test expected it. A test with any of it fails. */
  readonly unexpected: string[]
}

/** A store and a memory in a folder of their own. */
export function place(): Place {
  const folder = makeFolder()
  const unexpected: string[] = []
  onTestFinished(() => expect(unexpected).toEqual([]))
  const store = closing(sqlite(join(folder, 'terret.db')))
  const file = join(folder, 'learnings.db')
  const reports: string[] = []
  const memory = closing(openMemory({ file, store, report: (line) => void reports.push(line) }))
  return { store, memory, file, dir: join(folder, 'sessions'), reports, unexpected }
}

type Given = Partial<Omit<HarnessOptions, 'model' | 'store'>> & {
  readonly recall?: Omit<MemoryPluginOptions, 'dir'>
  readonly strict?: boolean
}

export function staged(
  { store, memory, dir, unexpected }: Place,
  script: Script,
  { recall = {}, strict = false, ...given }: Given = {},
) {
  const requests: Request[] = []
  const inner = scripted(script)
  const model = {
    name: inner.name,
    call: (request: Request, context: Parameters<typeof inner.call>[1]) => {
      requests.push({ ...request, messages: request.messages.slice() })
      return inner.call(request, context)
    },
  }
  // A long limit: a machine under load must not change what a test sees.
  const onError = (where: unknown, error?: unknown): void => void unexpected.push(`${String(where)} ${String(error)}`)
  const plugin = memoryPlugin(memory, { timeoutMs: 20_000, onError, ...recall, dir })
  const plugins = [strict ? { ...plugin, hooks: plugin.hooks?.map(strictly) ?? [] } : plugin]
  const harness = closing(new Harness({ plugins, tools: [directiveTool({ store })], onError, ...given, model, store }))
  return { harness, requests }
}

export const learns = (...learnings: readonly Learning[]) => ({
  calls: [{ tool: 'loop_directive', args: { outcome: 'sleep', summary: 'learned', learnings }, id: 'd' }],
})

export async function logOf(store: CompleteStore, session: string): Promise<readonly Event[]> {
  return (await store.read(session, 0)).events
}
