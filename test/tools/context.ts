// A tool's context outside of a harness: a call of its own, kept texts in a map, no secrets.
import { hash } from 'node:crypto'
import type { ToolContext } from '../../src/tools/tool.ts'
import { systemClock } from '../../src/runtime/platform.ts'

export type ContextOptions = {
  readonly call?: string
  readonly signal?: AbortSignal
  /** Filled by `keep`, by hash. */
  readonly kept?: Map<string, string>
  readonly secrets?: Readonly<Record<string, string>>
}

export function toolContext(options: ContextOptions = {}): ToolContext {
  const {
    call = '1.0',
    signal = new AbortController().signal,
    kept = new Map<string, string>(),
    secrets = {},
  } = options
  return {
    session: 's',
    call,
    key: `s:${call}`,
    signal,
    clock: systemClock,
    keep: (text, media = 'text/plain') => {
      const key = hash('sha256', text)
      kept.set(key, text)
      return { type: 'blob', hash: key, bytes: Buffer.byteLength(text), media }
    },
    recall: (key) => Promise.resolve(kept.get(key) ?? null),
    secret: (name) => secrets[name] ?? '',
    reveal: (text) => text.replace(/⟦secret:(\w+)⟧/g, (mark, name: string) => secrets[name] ?? mark),
  }
}
