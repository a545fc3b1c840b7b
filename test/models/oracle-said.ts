// What a stream said, in a form that two readers can be compared in. Here is our reader; the other one is oracle-sdk.ts.
import type { Json, Part, Usage } from '../../src/kernel/content.ts'
import type { ModelFailure, Reply, ReplyCall } from '../../src/ports/model.ts'
import { parseEvents, UNFRAMED } from '../../src/models/http/framing.ts'
import type { Protocol, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import type { Recording } from './oracle-streams.ts'

export type Said = {
  /** Texts and thoughts in their order; `sealed` is what is signed or encrypted of a thought. */
  readonly parts: readonly (
    | { readonly type: 'text'; readonly text: string }
    | { readonly type: 'reasoning'; readonly text: string; readonly sealed: Json }
  )[]
  /** Arguments as values; those that cannot be read stay the text they are. */
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly args: Json; readonly sealed: Json }[]
  readonly finish: Reply['finish'] | 'other' | 'failed'
  /** What is not told counts as none. */
  readonly usage: Required<Omit<Usage, 'webSearches' | 'contextTokens'>> | null
}

export const protocols: Readonly<Record<Recording['protocol'], Protocol<unknown>>> = {
  messages: messagesProtocol,
  responses: responsesProtocol,
  chat: chatProtocol,
}

export const target: ModelTarget = { endpoint: 'recorded', model: 'm', settings: {}, quirks: {} }

export function ourReading({ protocol, bytes }: Recording): Said {
  const reader = protocols[protocol]
  let state = reader.begin(target)
  for (const event of parseEvents(UNFRAMED, bytes)[1]) state = reader.step(state, event)[0]
  return saidIn(reader.finish(state))
}

/** Of a failure only its text is compared: neither reader may run a call from it. */
export function failedWith(text: string): Said {
  return { parts: text === '' ? [] : [{ type: 'text', text }], calls: [], finish: 'failed', usage: null }
}

export function usageWith({
  cachedTokens = 0,
  cacheWriteTokens = 0,
  reasoningTokens = 0,
  webSearches: _,
  contextTokens: _length,
  ...rest
}: Usage): Said['usage'] {
  return { ...rest, cachedTokens, cacheWriteTokens, reasoningTokens }
}

export function argsIn(text: string): Json {
  try {
    return text === '' ? {} : (JSON.parse(text) as Json)
  } catch {
    return text
  }
}

function saidIn(answer: Reply | ModelFailure): Said {
  if (answer.type === 'failure') return failedWith(answer.partial ?? '')
  const { parts, calls, finish, usage } = answer
  return {
    parts: parts.flatMap(partIn),
    calls: calls.map((call, at) => callIn(call, at, parts)),
    finish,
    usage: usage && usageWith(usage),
  }
}

/** Marks of our own on a reasoning part, which no provider sent as a thought, are left out. */
function partIn(part: Part): Said['parts'] {
  if (part.type === 'text') return [part]
  if (part.type !== 'reasoning') return []
  const data = dataOf(part)
  const sealed = data['signature'] ?? data['data'] ?? data['encrypted_content'] ?? data['reasoning_details'] ?? null
  return part.text === '' && sealed === null ? [] : [{ type: 'reasoning', text: part.text, sealed }]
}

function callIn({ id, tool, args }: ReplyCall, at: number, parts: readonly Part[]): Said['calls'][number] {
  const signed = parts.map(dataAt(at)).find((data) => data['extra_content'] !== undefined)
  return { id, tool, args: argsIn(args), sealed: signed?.['extra_content'] ?? null }
}

type Data = { readonly [key: string]: Json }

function dataOf(part: Part): Data {
  const opaque = part.type === 'reasoning' ? part.opaque : undefined
  return (opaque as { readonly data: Data } | undefined)?.data ?? {}
}

function dataAt(at: number): (part: Part) => Data {
  return (part) => {
    const opaque = part.type === 'reasoning' ? part.opaque : undefined
    return (opaque as { readonly at: number } | undefined)?.at === at ? dataOf(part) : {}
  }
}
