// Streams of Chat Completions as a test has them: recordings and chunks in, what was heard out. No assertions.
import type { Delta, ModelFailure, Reply } from '../../src/ports/model.ts'
import type { ModelTarget, WireEvent } from '../../src/models/protocols/protocol.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { recording } from './sse.ts'

export const target: ModelTarget = { endpoint: 'openrouter', model: 'm', settings: {}, quirks: {} }

export type Heard = { readonly reply: Reply | ModelFailure; readonly deltas: readonly Delta[] }

export function hear(events: readonly WireEvent[]): Heard {
  let state = chatProtocol.begin(target)
  const deltas: Delta[] = []
  for (const event of events) {
    const [next, said] = chatProtocol.step(state, event)
    state = next
    deltas.push(...said)
  }
  return { reply: chatProtocol.finish(state), deltas }
}

export const play = (name: string): Heard => hear(recording(`chat/${name}`))
export const send = (...data: readonly unknown[]): readonly WireEvent[] =>
  data.map((value) => ({ event: '', data: typeof value === 'string' ? value : JSON.stringify(value) }))
export const delta = (fields: unknown, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
})
export const callPiece = (index: unknown, id: unknown, name: unknown, args: unknown) =>
  delta({ tool_calls: [{ index, id, function: { name, arguments: args } }] })
export const replyOf = (...data: readonly unknown[]) => hear(send(...data)).reply
