// The OpenAI Responses protocol: api.openai.com, and every host with a `/responses` of the same shape. Its halves are
// encode.ts and stream.ts; nothing here speaks to anybody.
import type { Protocol } from '../protocol.ts'
import { encode } from './encode.ts'
import { finish, whole } from './reply.ts'
import { begin, type State } from './state.ts'
import { step } from './stream.ts'

export const responses: Protocol<State> = { name: 'responses', encode, begin, step, finish, whole }
