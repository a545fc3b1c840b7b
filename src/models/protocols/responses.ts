// The OpenAI Responses protocol: api.openai.com, and every host with a `/responses` of the same shape. Its halves are
// responses-encode.ts and responses-step.ts; nothing here speaks to anybody.
import type { Protocol } from '../protocol.ts'
import { encode } from './responses-encode.ts'
import { finish, whole } from './responses-reply.ts'
import { begin, type State } from './responses-state.ts'
import { step } from './responses-step.ts'

export const responses: Protocol<State> = { name: 'responses', encode, begin, step, finish, whole }
