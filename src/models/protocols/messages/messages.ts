// Anthropic's Messages API as a protocol. Its rules, and where they are published, are cited by the tests; how one request
// is written is encode.ts, how one stream is read is stream.ts. No I/O and no keys.
import type { Json } from '../../../kernel/content.ts'
import { failure } from '../../http/failures.ts'
import type { Protocol } from '../protocol.ts'
import { encode } from './encode.ts'
import { counted, nothingHeard, replyOf } from './reply.ts'
import { begun, failureIn, type State, settled, step } from './stream.ts'
import { isObject } from '../../../view/json.ts'

export const messages: Protocol<State> = {
  name: 'messages',
  encode,
  begin: (target) => ({ heard: nothingHeard(target), text: '' }),
  step,
  finish: (state) => replyOf(settled(state)),
  whole(body, target) {
    const data = read(body)
    if (!isObject(data)) return failure('network', 'The answer is not JSON.')
    if (isObject(data.error)) return failureIn(data)
    if (!Array.isArray(data.content)) return failure('network', 'The answer is not a message.')
    let heard = nothingHeard(target)
    for (const [index, block] of (data.content as readonly Json[]).entries()) {
      const next = begun(heard, index, block)
      if (next === null) return failure('network', 'The answer is damaged: one of its blocks cannot be read.')
      heard = next
    }
    const stop = typeof data.stop_reason === 'string' ? data.stop_reason : null
    const blocks = heard.blocks.map((block) => ({ ...block, open: false }))
    return replyOf({ ...heard, blocks, now: -1, stop, ended: true, counts: counted(heard.counts, data.usage) })
  },
}

function read(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return null
  }
}
