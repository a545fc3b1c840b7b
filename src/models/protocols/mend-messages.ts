// The provider boundary: turns the messages of any log into turns that every provider accepts. Each call has exactly
// one result, in order and right after it; ids are unique; names and arguments have an accepted form; nothing is empty.
// Pure, and the same for the same start of a log.
import type { CallStatus, CallKey, Json, Part } from '../../kernel/content.ts'
import type { Message, ShownCall } from '../../kernel/transcript.ts'
import { isObject } from '../../view/untrusted-json.ts'

type Fields = { readonly [key: string]: Json }
/** `raw` is the JSON of the arguments exactly as the model wrote it. */
export type SendableCall = {
  readonly id: string
  readonly tool: string
  readonly args: Fields
  readonly raw?: string | undefined
}
/** Few protocols have a field for a failed call, so the content begins with the failure. */
export type SendableResult = {
  readonly id: string
  readonly tool: string
  readonly ok: boolean
  readonly status?: CallStatus
  readonly kind?: string | undefined
  readonly content: string
  /** Pictures and files, after the content. */
  readonly parts?: readonly Part[]
}

export type SendableTurn =
  | { readonly type: 'user'; readonly of: Message; readonly parts: readonly Part[] }
  | {
      readonly type: 'assistant'
      readonly of: Message
      readonly parts: readonly Part[]
      readonly calls: readonly SendableCall[]
      readonly results: readonly SendableResult[]
    }

/** A problem and its repair, for the examination of a transcript. */
export type MessageRepair = {
  /** The event in which it was found. */
  readonly seq: number
  readonly what:
    | ('missing_result' | 'stray_result' | 'empty_message')
    | ('blank_id' | 'repeated_id' | 'odd_id' | 'odd_name' | 'odd_arguments')
  readonly call?: CallKey
}

const MISSING_RESULT = 'missing_tool_result_recovered: the result of this call is not in the record.'
const EMPTY_RESULT = '(no output)'
const NO_TEXT = '(no text)'

export type MendedMessages = { readonly turns: readonly SendableTurn[]; readonly mended: readonly MessageRepair[] }

/** Accepted by every provider as a name, and by most as an id. */
const WORD = /^[A-Za-z0-9_-]{1,64}$/

/**
 * The ids that each protocol accepts. OpenAI accepts 40 characters in Chat Completions; hosts that accept fewer have a
 * quirk.
 */
export const idPatterns = { messages: WORD, responses: WORD, chat: /^[A-Za-z0-9_-]{1,40}$/ } as const

/**
 * `idPattern`: the ids that this provider accepts. If a list has grown, reading continues from the place at which it
 * stopped.
 */
export function mendMessages(messages: readonly Message[], idPattern: RegExp = WORD): MendedMessages {
  const reading = beginReading(messages, idPattern)
  readings.delete(messages)
  if (continueReading(reading, messages)) readings.set(messages, reading)
  return { turns: reading.turns.slice(), mended: reading.mended.slice() }
}

/** The part of a list that was read. A session's list only grows, and every request sends all of it. */
type MessageReading = RepairState & { readonly seen: Message[]; readonly turns: SendableTurn[] }
const readings = new WeakMap<readonly Message[], MessageReading>()

function beginReading(messages: readonly Message[], idPattern: RegExp): MessageReading {
  const known = readings.get(messages)
  // A compaction changes the list itself.
  const same = known?.idPattern === idPattern && known.seen.every((message, at) => message === messages[at])
  return same ? known : { idPattern, seen: [], turns: [], mended: [], used: new Set() }
}

/** False if the end may still change because results of the last calls are missing. */
function continueReading(reading: MessageReading, messages: readonly Message[]): boolean {
  const { seen, turns, mended } = reading
  let whole = true
  for (let at = seen.length; at < messages.length; at = seen.length) {
    const message = messages[at] as Message
    const found = mended.length
    seen.push(message)
    if (message.role === 'tool') {
      mended.push({ seq: message.seq, what: 'stray_result', call: message.call })
      continue
    }
    const parts = message.parts.filter(hasContent)
    const results = message.role === 'assistant' ? resultsAfter(messages, at) : []
    for (const result of results) seen.push(result)
    const turn = message.role === 'user' ? userTurn(message, parts) : assistantTurn(message, parts, results, reading)
    if (turn) turns.push(turn)
    else mended.push({ seq: message.seq, what: 'empty_message' })
    whole = !mended.slice(found).some(({ what }) => what === 'missing_result')
  }
  return whole
}

function userTurn(of: Message, parts: readonly Part[]): SendableTurn | null {
  return parts.length === 0 ? null : { type: 'user', of, parts }
}

type AssistantMessage = Extract<Message, { role: 'assistant' }>
type ToolMessage = Extract<Message, { role: 'tool' }>
type RepairState = { readonly used: Set<string>; readonly mended: MessageRepair[]; readonly idPattern: RegExp }

/** The tool results that follow directly. */
function resultsAfter(messages: readonly Message[], at: number): readonly ToolMessage[] {
  const results: ToolMessage[] = []
  for (let next = messages[at + 1]; next?.role === 'tool'; next = messages[at + 1 + results.length]) results.push(next)
  return results
}

function assistantTurn(
  of: AssistantMessage,
  parts: readonly Part[],
  found: readonly ToolMessage[],
  ledger: RepairState,
): SendableTurn | null {
  const { mended } = ledger
  const byKey = new Map<CallKey, ToolMessage>()
  for (const result of found) {
    const known = of.calls.some(({ key }) => key === result.call)
    if (!known || byKey.has(result.call)) mended.push({ seq: result.seq, what: 'stray_result', call: result.call })
    else byKey.set(result.call, result)
  }
  if (parts.length === 0 && of.calls.length === 0) return null
  const calls: SendableCall[] = []
  const results: SendableResult[] = []
  for (const shown of of.calls) {
    const call = sendableCall(shown, of.seq, ledger)
    const result = byKey.get(shown.key)
    if (!result) mended.push({ seq: of.seq, what: 'missing_result', call: shown.key })
    calls.push(call)
    results.push(sendableResult(call, result))
  }
  return { type: 'assistant', of, parts, calls, results }
}

function sendableResult({ id, tool }: SendableCall, result: ToolMessage | undefined): SendableResult {
  const parts = result?.parts?.filter(hasContent) ?? []
  const content = contentOf(result)
  const sound = textResult({ id, tool }, content, result)
  return parts.length > 0 ? { ...sound, parts } : sound
}

function textResult(
  { id, tool }: Pick<SendableCall, 'id' | 'tool'>,
  content: string,
  result: ToolMessage | undefined,
): SendableResult {
  if (result?.ok) return { id, tool, ok: true, content }
  const { status = 'error', kind } = result ?? { status: 'unknown' as const }
  // Name the kind of failure, unless the text names it already.
  const mark = `[failed: ${status === 'error' && kind !== undefined && kind !== 'Failed' ? `${status}, ${kind}` : status}]`
  return { id, tool, ok: false, status, kind, content: content.startsWith(mark) ? content : `${mark}\n${content}` }
}

/** Whether both show the same content: a result can be cleared while its call stays. */
export function isSameResult(a: SendableResult, b: SendableResult | undefined): boolean {
  if (b === undefined || a.content !== b.content || a.parts?.length !== b.parts?.length) return false
  return a.parts?.every((part, i) => isSamePart(part, b.parts?.[i])) ?? true
}

function isSamePart(a: Part, b: Part | undefined): boolean {
  if (a === b) return true
  if (a.type === 'data') return b?.type === 'data' && a.media === b.media && a.name === b.name && a.data === b.data
  return a.type === 'text' && b?.type === 'text' && a.text === b.text
}

function contentOf(result: ToolMessage | undefined): string {
  if (!result) return MISSING_RESULT
  const { content } = result
  if (typeof content !== 'string') return '[kept beside the log]'
  if (content.trim() !== '') return content
  return result.parts?.length ? NO_TEXT : EMPTY_RESULT
}

function sendableCall(
  { key, id: given, tool: name, args: written, raw }: ShownCall,
  seq: number,
  ledger: RepairState,
): SendableCall {
  const id = uniqueId(given, key, seq, ledger)
  const tool = WORD.test(name) ? name : cleanToolName(name)
  const args = isObject(written) ? written : written === null ? {} : { arguments: written }
  if (tool !== name) ledger.mended.push({ seq, what: 'odd_name', call: key })
  if (args !== written) ledger.mended.push({ seq, what: 'odd_arguments', call: key })
  // Missing arguments become an empty object: providers refuse an empty text.
  const verbatim = args === written && raw !== undefined && raw.trim() !== ''
  return verbatim ? { id, tool, args, raw } : { id, tool, args }
}

/** A name that the model made up may have characters that providers refuse. */
function cleanToolName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

/** The provider's id if it can be used; else an id that depends only on the call's position and on earlier ids. */
function uniqueId(given: string, key: CallKey, seq: number, { used, mended, idPattern }: RepairState): string {
  const what =
    given.trim() === '' ? 'blank_id' : used.has(given) ? 'repeated_id' : idPattern.test(given) ? null : 'odd_id'
  let id = given
  if (what !== null) {
    mended.push({ seq, what, call: key })
    // A model may already have used the id that would be generated.
    for (let tries = 0; tries === 0 || used.has(id); tries++) id = ownId(key, tries, idPattern)
  }
  used.add(id)
  return id
}

function ownId(key: CallKey, tries: number, idPattern: RegExp): string {
  const own = `call_${key.replace('.', '_')}${tries === 0 ? '' : `_${tries}`}`
  if (idPattern.test(own)) return own
  // Some hosts require exactly nine letters or digits.
  const [seq, index] = key.split('.').map(Number)
  return `${base36(seq, 6)}${base36((index ?? 0) + tries, 3)}`
}

function base36(value = 0, length: number): string {
  return value.toString(36).padStart(length, '0')
}

function hasContent(part: Part): boolean {
  if (part.type === 'text') return part.text.trim() !== ''
  if (part.type === 'data') return part.data !== ''
  if (part.type === 'source') return false
  if (part.type === 'provider') return part.opaque !== null
  return part.type !== 'reasoning' || part.opaque !== undefined || part.text.trim() !== ''
}
