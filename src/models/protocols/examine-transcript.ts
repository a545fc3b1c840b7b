// Describes the problems of a session's transcript in plain sentences, and how each is repaired for providers. It
// changes nothing: the log stays as it is, and every request is made from the repaired view anyway.
import type { CallKey, Frozen } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { type Message, Transcript } from '../../kernel/transcript.ts'
import type { Protocol, ModelTarget } from './protocol.ts'
import { encodeChat as chat } from './chat/encode-chat.ts'
import { encodeMessages as anthropic } from './messages/encode-messages.ts'
import { encodeResponses as responses } from './responses/encode-responses.ts'
import { idPatterns, type MessageRepair, mendMessages, type SendableTurn } from './mend-messages.ts'

type ProtocolName = Protocol<unknown>['name']

/** One thing that had to be repaired in a conversation, and for which protocols. */
export type Finding = Frozen<{
  /** The event of the message that is repaired. */
  seq: number
  /** What is wrong with it. */
  what: MessageRepair['what']
  /** The call that it is about, if it is about one. */
  call?: CallKey
  /** The protocols that need the repair; usually all. */
  protocols: readonly ProtocolName[]
  /** The same as a sentence, with the repair. */
  text: string
}>

/** `nothing`: there is no message to send yet. */
export type ProtocolCheck = Frozen<{
  protocol: ProtocolName
  as: 'recorded' | 'mended' | 'nothing' | 'refused'
  why?: string
}>

/** What is wrong with a conversation, and how it would be shown to each protocol. */
export type Examination = Frozen<{
  /** What is wrong, in the order of the conversation. Empty: nothing. */
  findings: readonly Finding[]
  /** Calls that still run, so a missing result is not a problem. */
  open: readonly CallKey[]
  /** Whether each protocol takes the conversation as it is, or repaired, or not at all. */
  protocols: readonly ProtocolCheck[]
  /** The transcript as it is sent. */
  view: readonly Message[]
}>

/** Imports only the encoders: the first call of a model loads the readers of answers. */
const encoders = { messages: anthropic, responses, chat } as const
const protocolNames = Object.keys(encoders) as ProtocolName[]

/** Looks whether a conversation would be accepted by the protocols, and says what would be repaired. */
export function examine(messages: readonly Message[]): Examination {
  const open = openCallsIn(messages)
  const byProtocol = protocolNames.map((name) => {
    const { turns, mended } = mendMessages(messages, idPatterns[name])
    const wrong = mended.filter(({ what, call }) => what !== 'missing_result' || !open.includes(call ?? ''))
    return { name, turns, wrong }
  })
  return {
    findings: mergeFindings(byProtocol.flatMap(({ name, wrong }) => wrong.map((each) => ({ ...each, name })))),
    open,
    protocols: byProtocol.map(({ name, turns, wrong }) => checkProtocol(name, messages, turns, wrong.length)),
    view: viewOf(mendMessages(messages).turns),
  }
}

/** The same for a log, as a request made now would show it. */
export function examineLog(events: Iterable<Event>): Examination {
  const transcript = new Transcript()
  const results: number[] = []
  for (const event of events) {
    transcript.take(event)
    if (event.type === 'agent.tool_result') results.push(event.seq)
  }
  // Results in the log that no request has shown yet are not missing.
  transcript.take({ type: 'model.started', seq: transcript.seq + 1, at: 0, epoch: 0, shows: results })
  return examine(transcript.messages)
}

/** A request needs the results of all calls, so calls of the last message may still run. */
function openCallsIn(messages: readonly Message[]): readonly CallKey[] {
  const at = messages.findLastIndex(({ role }) => role !== 'tool')
  const last = messages[at]
  if (last?.role !== 'assistant') return []
  const answered = messages.slice(at).map((message) => (message.role === 'tool' ? message.call : ''))
  return last.calls.map(({ key }) => key).filter((key) => !answered.includes(key))
}

function mergeFindings(found: readonly (MessageRepair & { readonly name: ProtocolName })[]): readonly Finding[] {
  const all = new Map<string, Finding>()
  for (const { name, seq, what, call } of found) {
    const id = JSON.stringify([seq, what, call])
    const before = all.get(id)
    const where = call === undefined ? ' it' : ` call ${call}`
    const text = `Event ${seq}:${where} ${SENTENCES[what]}`
    const plain = { seq, what, protocols: [...(before?.protocols ?? []), name], text }
    all.set(id, call === undefined ? plain : { ...plain, call })
  }
  return [...all.values()].sort((a, b) => a.seq - b.seq)
}

/** Each problem, with its repair. */
const SENTENCES: Readonly<Record<MessageRepair['what'], string>> = {
  missing_result: 'has no result. The model is told that it is not in the record.',
  stray_result: 'has a result that belongs to no call before it, or to one that has its result. It is left out.',
  empty_message: 'says nothing. It is left out.',
  blank_id: 'has no id. It is sent with one of ours.',
  repeated_id: 'has the id of another call. It is sent with one of ours.',
  odd_id: 'has an id that is not taken back. It is sent with one of ours.',
  odd_name: 'names a tool in letters that are not taken back. They are replaced.',
  odd_arguments: 'has arguments that are no object. They are put into one.',
}

const TARGET: ModelTarget = { endpoint: 'doctor', model: 'any', settings: {}, quirks: {} }

function checkProtocol(
  protocol: ProtocolName,
  messages: readonly Message[],
  turns: readonly SendableTurn[],
  wrong: number,
): ProtocolCheck {
  if (turns.length === 0) return { protocol, as: 'nothing' }
  const request = {
    session: 'doctor',
    seq: 0,
    instructions: '',
    tools: [],
    allow: 'all',
    boost: false,
    messages,
  } as const
  try {
    encoders[protocol](request, TARGET)
    return { protocol, as: wrong > 0 ? 'mended' : 'recorded' }
  } catch (error) {
    return { protocol, as: 'refused', why: error instanceof Error ? error.message : String(error) }
  }
}

/** The repaired turns as messages of a log. */
function viewOf(turns: readonly SendableTurn[]): readonly Message[] {
  return turns.flatMap((turn): readonly Message[] => {
    const { seq } = turn.of
    if (turn.type === 'user') return [{ role: 'user', seq, parts: turn.parts }]
    const keys = turn.of.role === 'assistant' ? turn.of.calls.map(({ key }) => key) : []
    const calls = turn.calls.map((call, i) => ({ key: keys[i] ?? '', ...call }))
    const results = turn.results.map((result, i): Message => ({ role: 'tool', seq, call: keys[i] ?? '', ...result }))
    return [{ role: 'assistant', seq, parts: turn.parts, calls }, ...results]
  })
}
