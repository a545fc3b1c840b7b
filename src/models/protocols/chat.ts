// Chat Completions, as OpenAI publishes it and as many hosts speak it: the pair of `encode` and `step`, put together.
// How hosts differ is data (quirks). No I/O.
import type { Protocol } from '../protocol.ts'
import { encode } from './chat-encode.ts'
import { resultOf } from './chat-reply.ts'
import { begin, type ChatState } from './chat-state.ts'
import { step, whole } from './chat-stream.ts'

export const chat: Protocol<ChatState> = { name: 'chat', encode, begin, step, finish: resultOf, whole }
