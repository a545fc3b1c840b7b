// The part of a summary that no model writes: the messages of users, the files that calls named and the pictures of the
// part that is cut. It is read from the log each time, and never from an older summary, so nothing fades from one
// summary to the next.
import type { Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import type { Store } from '../ports/store.ts'
import { isObject } from '../view/untrusted-json.ts'
import { shortenText, textOf } from '../view/shown-text.ts'
import { guessCharsPerToken } from './estimate.ts'
import { readSourceEvents, findSourceLogs } from './source-logs.ts'
import { resultToken } from './logged-results.ts'
import { leaveOutSecrets, type ContextCut } from './summary.ts'

/**
 * The longest it may be, as a share of the window and in tokens. It is also at most this share of the part that it
 * replaces.
 */
const WINDOW_SHARE = 0.04
const TOKENS_MAX = 3_000
const CUT_SHARE = 1 / 3
/** The characters shown of the first and the latest message, and of those between them as long as there is room. */
const ENDS_CHARS = 600
const BETWEEN_CHARS = [200, 80] as const
/** The share of its whole room that files and pictures may take. */
const FILES_SHARE = 0.2
const IMAGES_SHARE = 0.1
const FILE_CHARS_MAX = 160
const TITLE = 'From the log, written by no model:'

export type LogSummaryInput = {
  readonly store: Store
  readonly session: string
  readonly transcript: Pick<Transcript, 'inherited'>
  readonly cut: ContextCut
  /** The number of characters of the part that is cut. */
  readonly chars: number
  readonly windowTokens: number
  /** The guessed number of characters per token is multiplied by this. */
  readonly scale: number
  /** The model can read a message again by its token. */
  readonly retrieves: boolean
}

/** `name` is the token of a message. A report comes from a child, and not from the user. */
type LoggedText = { readonly name: string; readonly text: string; readonly report: boolean }
type LogFindings = {
  readonly said: readonly LoggedText[]
  readonly files: readonly string[]
  readonly images: readonly string[]
}

/** Empty if the log has nothing to list. */
export async function summarizeLog(half: LogSummaryInput): Promise<string> {
  const { said, files, images } = await findInLogs(half)
  const tokens = Math.min(TOKENS_MAX, half.windowTokens * WINDOW_SHARE)
  const ratio = half.scale * guessCharsPerToken(said.map(({ text }) => text).join(''))
  const room = Math.floor(Math.min(tokens * ratio, half.chars * CUT_SHARE))
  const tail = [
    ...listItems('Files that calls named, the newest first', files, room * FILES_SHARE),
    ...listItems('Pictures', half.retrieves ? images : [], room * IMAGES_SHARE),
  ]
  const left = tail.reduce((sum, line) => sum - line.length - 1, room - TITLE.length)
  const lines = [...messageLines(said, left, half.retrieves), ...tail]
  return lines.length === 0 ? '' : leaveOutSecrets([TITLE, ...lines].join('\n'))
}

function messageLines(said: readonly LoggedText[], room: number, names: boolean): readonly string[] {
  const [first, ...rest] = said
  if (first === undefined || room < BETWEEN_CHARS[0]) return []
  const ends = Math.min(ENDS_CHARS, Math.floor(room / 4))
  const line = (message: LoggedText, chars: number): string =>
    `${names ? `${message.name} ` : ''}${message.report ? '(report of a subagent) ' : ''}${shortenText(message.text, chars)}`
  const opening = `The first message: ${line(first, ends)}`
  const last = rest.pop()
  if (last === undefined) return [opening]
  const closing = `The latest of these messages: ${line(last, ends)}`
  return [opening, ...showMiddleMessages(rest, line, room - opening.length - closing.length - 3), closing]
}

/**
 * Shows all messages at the first length for which there is room; else the newest at the shortest length, and the
 * others as a range.
 */
function showMiddleMessages(
  said: readonly LoggedText[],
  line: (message: LoggedText, chars: number) => string,
  room: number,
): readonly string[] {
  for (const chars of BETWEEN_CHARS) {
    const lines = said.map((message) => `- ${line(message, chars)}`)
    if (lines.reduce((sum, { length }) => sum + length + 1, 0) <= room) return lines
  }
  const shown: string[] = []
  // The range itself takes a line.
  let left = room - BETWEEN_CHARS[1]
  for (const message of said.toReversed()) {
    const text = `- ${line(message, BETWEEN_CHARS[1])}`
    left -= text.length + 1
    if (left < 0) break
    shown.unshift(text)
  }
  const hidden = said.slice(0, said.length - shown.length)
  const [from, to] = [hidden[0]?.name, hidden.at(-1)?.name]
  return [`- ${from} to ${to}: ${hidden.length} messages that are not shown here`, ...shown]
}

/** One line, or none if there is no room for any item. */
function listItems(title: string, items: readonly string[], room: number): readonly string[] {
  let left = room - title.length
  const shown = items.filter((item) => {
    left -= item.length + 2
    return left >= 0
  })
  const more = items.length - shown.length
  return shown.length === 0 ? [] : [`${title}: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`]
}

/**
 * Reads all logs of the session, the oldest first, for content that was shown to a model and is not in view any more.
 */
async function findInLogs({ store, session, transcript, cut }: LogSummaryInput): Promise<LogFindings> {
  const inView = new Set(cut.kept.map((message) => tokenOfMessage(message, transcript.inherited.get(message) ?? 0)))
  const logs = await findSourceLogs(store, session)
  const all: LogFindings[] = []
  for (const [ago, log] of [...logs.entries()].reverse()) {
    const reader = new LogReader(ago, ago === 0 ? cut.cut : Number.POSITIVE_INFINITY)
    for await (const event of readSourceEvents(store, log)) reader.take(event)
    all.push(reader.found)
  }
  const said = new Map(all.flatMap((each) => each.said.map((message) => [message.name, message] as const)))
  // A fork shows messages that its source had promoted and not shown yet.
  for (const message of cut.old) {
    const name = tokenOfMessage(message, transcript.inherited.get(message) ?? 0)
    if (message.role === 'user' && transcript.inherited.has(message) && !said.has(name) && !isFromHarness(message))
      said.set(name, { name, text: toOneLine(message.parts), report: message.report !== undefined })
  }
  return {
    said: [...said.values()].filter(({ name, text }) => !inView.has(name) && text !== ''),
    files: [...new Set(all.flatMap(({ files }) => files).reverse())],
    images: [...new Set(all.flatMap(({ images }) => images).reverse())],
  }
}

/** A message that the harness wrote itself, such as a summary. */
function isFromHarness(message: Extract<Message, { role: 'user' }>): boolean {
  return /^<(?:conversation-summary|harness_notice|hook_context)/.test(textOf(message.parts))
}

function tokenOfMessage(message: Message, ago: number): string {
  return `msg:${'^'.repeat(ago)}${message.seq}`
}

/**
 * Takes the events of one log in their order. A message that no request has shown does not count: a hook may have
 * refused it.
 */
class LogReader {
  readonly found: { said: LoggedText[]; files: string[]; images: string[] } = { said: [], files: [], images: [] }
  readonly #ago: number
  readonly #cut: number
  readonly #waiting = new Map<number, Extract<Event, { type: 'user.message' }>>()

  constructor(ago: number, cut: number) {
    this.#ago = ago
    this.#cut = cut
  }

  take(event: Event): void {
    if (event.type === 'user.message') this.#waiting.set(event.seq, event)
    else if (event.seq >= this.#cut) return
    else if (event.type === 'model.started') for (const seq of event.shows) this.#show(seq)
    else if (event.type === 'agent.message') for (const { args } of event.calls) this.#call(args)
    else if (event.type === 'agent.tool_result' && hasImage(event.parts ?? []))
      this.found.images.push(resultToken(event.call, this.#ago))
  }

  #show(seq: number): void {
    const message = this.#waiting.get(seq)
    if (message === undefined) return
    this.#waiting.delete(seq)
    const name = `msg:${'^'.repeat(this.#ago)}${seq}`
    if (hasImage(message.parts)) this.found.images.push(name)
    this.found.said.push({ name, text: toOneLine(message.parts), report: message.report !== undefined })
  }

  #call(args: unknown): void {
    if (isObject(args))
      this.found.files.push(...Object.entries(args).flatMap(([key, value]) => fileNamedIn(key, value)))
  }
}

function hasImage(parts: readonly Part[]): boolean {
  return parts.some((part) => 'media' in part && part.media.startsWith('image/'))
}

/** The value of an argument whose name and form are those of a path. */
function fileNamedIn(key: string, value: unknown): readonly string[] {
  if (typeof value !== 'string' || !/path|file/i.test(key)) return []
  return value.length <= FILE_CHARS_MAX && /^[\w@~./\\:+-]+$/.test(value) ? [value] : []
}

function toOneLine(parts: readonly Part[]): string {
  return textOf(parts).replace(/\s+/g, ' ').trim()
}
