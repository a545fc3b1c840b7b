// A tool's context outside of a harness: a call of its own, kept texts in a map, no secrets.
import { hash } from 'node:crypto'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { Redactor } from '../../src/runtime/redact/redactor.ts'
import type { ToolContext } from '../../src/tools/core/tool.ts'

export type ContextOptions = {
  readonly call?: string
  readonly approved?: boolean
  readonly signal?: AbortSignal
  /** Filled by `keep`, by hash. */
  readonly kept?: Map<string, string>
  readonly secrets?: Readonly<Record<string, string>>
}

export function toolContext(options: ContextOptions = {}): ToolContext {
  const {
    call = '1.0',
    approved = false,
    signal = new AbortController().signal,
    kept = new Map<string, string>(),
    secrets = {},
  } = options
  return {
    session: 's',
    call,
    key: `s:${call}`,
    approved,
    signal,
    metadata: {},
    deps: undefined,
    clock: runtimeClock,
    reader: 'read',
    keep: (data, media = 'text/plain') => {
      const key = hash('sha256', data)
      kept.set(key, typeof data === 'string' ? data : Buffer.from(data).toString('latin1'))
      return { type: 'blob', hash: key, bytes: Buffer.byteLength(data), media }
    },
    askModel: async (model, request) => {
      const context = { signal, clock: runtimeClock, emit: () => {}, sleep: async () => {} }
      if (typeof model === 'string') throw new Error('There are no routes here.')
      try {
        return await model.call(request, context)
      } catch (error) {
        return { type: 'failure', class: 'other', message: (error as Error).message, retryable: false }
      }
    },
    tell: () => {},
    recall: (key) => Promise.resolve(kept.get(key) ?? null),
    redact: (text) => new Redactor(secrets).text(text),
    redactPieces: () => new Redactor(secrets).stream(),
    secret: (name) => secrets[name] ?? '',
    reveal: (text) => text.replace(/⟦secret:(\w+)⟧/g, (mark, name: string) => secrets[name] ?? mark),
  }
}
