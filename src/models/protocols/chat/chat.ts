// Chat Completions, as OpenAI publishes it and as many hosts speak it: the pair of `encode` and `step`, put together.
// How hosts differ is data (quirks). No I/O.
import type { Protocol } from '../protocol.ts'
import { encode } from './encode.ts'
import { resultOf } from './reply.ts'
import { begin, type ChatState } from './state.ts'
import { step, whole } from './stream.ts'

export const chat: Protocol<ChatState> = { name: 'chat', encode, begin, step, finish: resultOf, whole }
