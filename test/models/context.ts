// What a model is called with, for tests: a request, and a context whose clock only moves when the code sleeps.
import type { CallContext, Delta, Request } from '../../src/ports/model.ts'
import type { Message } from '../../src/kernel/transcript.ts'

export type Heard = { readonly context: CallContext; readonly deltas: Delta[]; readonly slept: number[]; stop(): void }

export function callContext(now = 1_000): Heard {
  const deltas: Delta[] = []
  const slept: number[] = []
  const stop = new AbortController()
  let at = now
  const context: CallContext = {
    signal: stop.signal,
    emit: (delta) => deltas.push(delta),
    sleep: async (ms) => {
      slept.push(ms)
      at += ms
    },
    clock: { now: () => at, timer: () => () => {} },
  }
  return { context, deltas, slept, stop: () => stop.abort(new Error('stopped')) }
}

export const userSays = (text: string, seq = 1): Message => ({ role: 'user', seq, parts: [{ type: 'text', text }] })

export function request(more: Partial<Request> = {}): Request {
  const empty = { session: 's', seq: 4, instructions: '', tools: [], allow: 'all', boost: false } as const
  return { ...empty, messages: [userSays('Hello.')], ...more }
}
