// Reads messages of a session from its log, by their number: a model can read again what users and the agent said
// before a compaction, with pictures and files. A message that no model was shown is not read. It only reads.
import type { BlobRef, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { blobFor } from '../view/readable-blobs.ts'
import { addForksToNames } from '../view/inherited-names.ts'
import { countNoun, shortenText } from '../view/shown-text.ts'
import { RETRIEVE } from './compress/marker.ts'
import { readSourceEvents, findSourceLogs, promotedMessages, type SourceLog } from './source-logs.ts'

const MESSAGES = 'msg:index'
const NAMED = /^msg:\s*(\^{0,100})([1-9]\d{0,15})$/
const BEGINNING_CHARS = 120

/** `said`: the parts that become text. `files`: pictures and other files, which a model gets as files. */
export type LoggedMessage = {
  readonly seq: number
  readonly who: 'user' | 'subagent' | 'agent' | 'note' | 'summary'
  readonly said: readonly (string | BlobRef)[]
  readonly files: readonly BlobRef[]
}

/** A message as a model reads it again. */
export type MessageText = { readonly text: string; readonly files: readonly BlobRef[] }

/** Null if no message has this token. */
export async function findMessageByToken(store: Store, session: string, written: string): Promise<MessageText | null> {
  if (written === MESSAGES) return { text: await listMessages(store, session), files: [] }
  const [, ago = '', number] = NAMED.exec(written) ?? []
  if (number === undefined) return null
  const log = (await findSourceLogs(store, session, ago.length))[ago.length]
  const message = log && (await readMessageAt(store, log, Number(number)))
  if (!log || !message) return null
  const text = await readMessageText(store, log.id, message)
  // The tokens in a summary count from the log that has the summary.
  return { text: message.who === 'summary' ? addForksToNames(text, ago.length) : text, files: message.files }
}

export function messageToken(seq: number, ago: number): string {
  return `msg:${'^'.repeat(ago)}${seq}`
}

/** The messages of a log in their order, as a model got them. */
export async function* readLoggedMessages(store: Store, log: SourceLog): AsyncGenerator<LoggedMessage> {
  const waiting = new Map<number, LoggedMessage>()
  for await (const event of readSourceEvents(store, log)) {
    const message = messageOfEvent(event)
    if (message !== null && event.type === 'user.message') waiting.set(event.seq, message)
    else if (message !== null) yield message
    for (const seq of promotedMessages(event)) {
      const promoted = waiting.get(seq)
      waiting.delete(seq)
      if (promoted) yield promoted
    }
  }
}

/** Reads text that is stored beside the log. Text that the session may not read is named as missing. */
export async function readMessageText(store: Store, log: string, { said }: LoggedMessage): Promise<string> {
  const texts = said.map(async (part) => {
    if (typeof part === 'string') return part
    const blob = await blobFor(store, log, part.hash)
    const text = blob === null ? '[this content is missing from the store]' : new TextDecoder().decode(blob.data)
    return part.name === undefined ? text : `<file name=${JSON.stringify(part.name)}>\n${text}\n</file>`
  })
  return (await Promise.all(texts)).join('\n')
}

async function readMessageAt(store: Store, log: SourceLog, seq: number): Promise<LoggedMessage | null> {
  let found: LoggedMessage | null = null
  for await (const event of readSourceEvents(store, log, seq - 1)) {
    if (event.seq === seq) {
      found = messageOfEvent(event)
      if (found === null || event.type !== 'user.message') return found
    }
    if (promotedMessages(event).includes(seq)) return found
  }
  return null
}

/** Null if the event is not a message. Reasoning is left out. */
function messageOfEvent(event: Event): LoggedMessage | null {
  const { seq } = event
  switch (event.type) {
    case 'user.message':
      return { seq, who: event.report === undefined ? 'user' : 'subagent', ...splitParts(event.parts) }
    case 'agent.message': {
      const { said, files } = splitParts(event.parts)
      // A call that read old content again is left out.
      const made = event.calls.filter(({ tool }) => tool !== RETRIEVE)
      const calls = made.map(({ tool, args }) => `[calls ${tool} ${JSON.stringify(args)}]`)
      return said.length + files.length + calls.length === 0
        ? null
        : { seq, who: 'agent', said: [...said, ...calls], files }
    }
    case 'model.failed':
      return event.partial ? { seq, who: 'agent', said: [event.partial], files: [] } : null
    case 'note.added':
      return { seq, who: 'note', said: [event.text], files: [] }
    case 'context.compacted':
      return event.summary === undefined ? null : { seq, who: 'summary', said: [event.summary], files: [] }
    default:
      return null
  }
}

function splitParts(parts: readonly Part[]): Pick<LoggedMessage, 'said' | 'files'> {
  const said: (string | BlobRef)[] = []
  const files: BlobRef[] = []
  for (const part of parts) {
    if (part.type === 'text') said.push(part.text)
    else if (part.type === 'blob' && part.media.startsWith('text/')) said.push(part)
    else if (part.type === 'blob') {
      files.push(part)
      said.push(`[${part.name ?? 'file'}: ${part.media}, ${part.bytes} bytes]`)
    } else if (part.type === 'url') said.push(`[${part.name ?? 'file'}: ${part.media}, ${part.url}]`)
    else if (part.type === 'file_id') said.push(`[${part.name ?? 'file'}: ${part.media}, kept by ${part.provider}]`)
    else if (part.type === 'source') said.push(`[source: ${part.title ?? ''} ${part.url}]`)
  }
  return { said, files }
}

async function listMessages(store: Store, session: string): Promise<string> {
  const lines: string[] = []
  const logs = await findSourceLogs(store, session)
  for (const [ago, log] of [...logs.entries()].reverse())
    for await (const message of readLoggedMessages(store, log)) lines.push(indexLine(message, ago))
  return lines.length === 0 ? 'Nobody has said anything in this session yet.' : lines.join('\n')
}

function indexLine({ seq, who, said, files }: LoggedMessage, ago: number): string {
  const texts = said.map((part) => (typeof part === 'string' ? part : `[${part.name ?? 'text'}: ${part.bytes} bytes]`))
  const chars = said.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : part.bytes), 0)
  const beginning = shortenText(texts.join(' ').trim().replace(/\s+/g, ' '), BEGINNING_CHARS)
  const more = files.length === 0 ? '' : `, ${countNoun(files.length, 'picture or file')}`
  return `${messageToken(seq, ago)} ${who}: ${beginning} (${countNoun(chars, 'character')}${more})`
}
