// Names of results and messages in the inherited part of a fork. A name is relative to its log: "^" means the log that
// this one was forked from. So a name that the harness wrote in the origin gets one more "^" in the fork. Text of
// people, tools and models is not changed.
import type { CallKey } from '../kernel/content.ts'
import { CLEARED, type Message, type ShownCall } from '../kernel/transcript.ts'
import { isObject } from './untrusted-json.ts'
import { textOf } from './shown-text.ts'

/** The tool that retrieves results and messages by their names. */
export const RETRIEVE = 'retrieve_original'

const NAME = /\b(call:(?=\^*\d+\.\d)|msg:(?=\^*\d))/g
const IS_NAME = /^\s*(?:call:\s*\^*\d+\.\d+|msg:\s*\^*\d+)/
const CLEARED_NAME = new RegExp(`^(${CLEARED.replaceAll(/[[\]]/g, '\\$&')} (?:call|msg):)`)
const FITTED_NAME = /( characters the middle is left out to fit the context; the whole is (?:call|msg):)/g
/** The beginning of a line in a list of results or messages, and in search results. */
const LISTED_NAME = /^(call:|msg:)(?=\^*\d)/gm
const FILE_NAME = /(\[not shown here: [^\n]*: give the token (?:call|msg):)/g

/** The text with every name counted from this many forks later. */
export function addForksToNames(text: string, forks: number): string {
  return forks === 0 ? text : text.replace(NAME, `$1${'^'.repeat(forks)}`)
}

/** The messages of a fork's origin as the fork shows them. Messages without a name are the same objects. */
export function inheritMessages(messages: readonly Message[]): readonly Message[] {
  const lists = new Set<CallKey>()
  return messages.map((message) => {
    if (message.role === 'tool') return inheritResult(message, lists.has(message.call))
    if (message.role === 'user') return inheritUserMessage(message)
    for (const { key, tool, args } of message.calls) if (tool === RETRIEVE && isListCall(args)) lists.add(key)
    if (!message.calls.some(({ tool }) => tool === RETRIEVE)) return message
    return { ...message, calls: message.calls.map(inheritCall) }
  })
}

type ToolMessage = Extract<Message, { role: 'tool' }>
type UserTranscriptMessage = Extract<Message, { role: 'user' }>

function inheritResult(message: ToolMessage, isListing: boolean): Message {
  const { content, fits } = message
  const shown = fits === undefined ? message : { ...message, fits: { ...fits, token: addForksToNames(fits.token, 1) } }
  if (typeof content !== 'string') return shown
  let text = content.replace(CLEARED_NAME, '$1^').replace(FITTED_NAME, '$1^')
  if (isListing) text = text.replace(LISTED_NAME, '$1^')
  if (message.tool === RETRIEVE) text = text.replace(FILE_NAME, '$1^')
  return text === content ? shown : { ...shown, content: text }
}

function inheritUserMessage(message: UserTranscriptMessage): Message {
  const isSummary = textOf(message.parts).startsWith('<conversation-summary>')
  const rename = (text: string): string => (isSummary ? addForksToNames(text, 1) : text.replace(FITTED_NAME, '$1^'))
  const parts = message.parts.map((part) => {
    const text = part.type === 'text' ? rename(part.text) : ''
    return part.type !== 'text' || text === part.text ? part : { ...part, text }
  })
  return parts.every((part, i) => part === message.parts[i]) ? message : { ...message, parts }
}

/** A call that asked for a name shows the name that gives the same result in the fork. */
function inheritCall(call: ShownCall): ShownCall {
  const { tool, args } = call
  const token = isObject(args) ? args['token'] : undefined
  if (tool !== RETRIEVE || !isObject(args) || typeof token !== 'string' || !IS_NAME.test(token)) return call
  const { raw: _raw, text: _text, ...rest } = call
  return { ...rest, args: { ...args, token: token.replace(':', ':^') } }
}

function isListCall(args: unknown): boolean {
  if (!isObject(args)) return false
  const { token, search } = args
  return typeof search === 'string' || (typeof token === 'string' && /^\s*(?:call|msg):index\s*$/.test(token))
}
