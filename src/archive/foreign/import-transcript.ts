// A session that another program wrote becomes a session here, as history: it is read, forked and gone on with, and
// nothing of it runs. Only the conversation is taken. Ids, folders, options and permissions of the file are not used.
import { hash } from 'node:crypto'
import type { BlobRef, Json, Part } from '../../kernel/content.ts'
import type { EventBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { DEFAULT_LIMITS } from '../../kernel/limits.ts'
import { EMPTY } from '../../kernel/session.ts'
import { anyCheck, oneOf, optionsChecker, requiredCheck, textCheck } from '../../options.ts'
import type { Blob, Card, CompleteStore } from '../../ports/store.ts'
import { ownerWrite } from '../../runtime/commit/owner-write.ts'
import { Redactor, type Secrets } from '../../runtime/redact/redactor.ts'
import { blobRefOf, cleanBlob } from '../../runtime/state/content-blobs.ts'
import { systemRandom } from '../../runtime/state/machine.ts'
import { programNameCheck } from '../../runtime/state/program.ts'
import { DEFAULT_AGENT } from '../../sessions/agent.ts'
import { historyOf, type HistoryResult, type HistoryTurn } from '../../sessions/bring/bring.ts'
import { labelsCheck, metadataCheck } from '../../sessions/metadata.ts'
import { type OriginOptions, sessionDescription } from '../../sessions/origin.ts'
import { checkRootId } from '../../stores/plan/store-ids.ts'
import { filePartBytes } from '../../tools/core/file-part.ts'
import { UNNAMED } from '../../view/session-program.ts'
import { commitRestored } from '../portable.ts'
import { verifyLog } from '../verify-log.ts'
import { readClaudeCode } from './claude-code.ts'
import { readCodex } from './codex.ts'
import type { ForeignItem, ForeignPart, ForeignTranscript } from './foreign-item.ts'
import { readAnthropic, readOpenAi } from './message-entries.ts'
import { pairCalls, type PartWriter } from './pair-calls.ts'
import { parseLines, parseShallow } from './parse-lines.ts'

const READERS = {
  'claude-code': readClaudeCode,
  codex: readCodex,
  openai: readOpenAi,
  anthropic: readAnthropic,
} as const satisfies Readonly<Record<string, (values: readonly (Json | undefined)[]) => ForeignTranscript>>

/**
 * `claude-code`: a file of `~/.claude/projects`. `codex`: a rollout of `~/.codex/sessions`. `openai`: messages of chat
 * completions, or items of responses. `anthropic`: messages of the messages API.
 */
export type TranscriptFormat = keyof typeof READERS

type TranscriptOptions = {
  readonly format: TranscriptFormat
  /** Default: a random one. */
  readonly id?: string
  /** The agent that goes on with the session. Default: the agent of a harness without a list of agents. */
  readonly agent?: string
  /** The program whose workers drive the session. Default: programs without a name. */
  readonly program?: string
  /** Replaced in everything that is written. */
  readonly secrets?: Secrets
} & Pick<OriginOptions, 'folder' | 'metadata' | 'labels'>

const FORMATS: Readonly<Record<TranscriptFormat, true>> = {
  'claude-code': true,
  codex: true,
  openai: true,
  anthropic: true,
}
/** The formats of other programs whose conversations can be imported. */
export const TRANSCRIPT_FORMATS = Object.keys(FORMATS) as readonly TranscriptFormat[]

const checkOptions = optionsChecker<TranscriptOptions>('importTranscript', {
  format: requiredCheck(oneOf<TranscriptFormat>(FORMATS), 'Say which program wrote the file.'),
  id: textCheck,
  agent: textCheck,
  program: programNameCheck,
  secrets: anyCheck,
  folder: textCheck,
  metadata: metadataCheck,
  labels: labelsCheck,
})

/** Where a session came from, and what was not taken as it was. It is in the metadata of the session. */
export type TranscriptReport = {
  /** The form that the file was read as. */
  readonly format: TranscriptFormat
  /** Of the file. */
  readonly sha256: string
  /** How many entries the file has. */
  readonly entries: number
  /** Entries that are not part of the conversation, or cannot be read. */
  readonly leftOut: number
  /** Calls without a result, and results without a call. */
  readonly unanswered: number
  /** How many results have no call. */
  readonly unmatched: number
}

const FILE_CHARS_MAX = 200_000_000
const RESULT_CHARS_MAX = 64 * 1024

/** Checks and converts everything before it writes anything, and writes all or nothing. */
export async function importTranscript(
  store: CompleteStore,
  text: string,
  options: TranscriptOptions,
): Promise<{ readonly card: Card; readonly from: TranscriptReport }> {
  checkOptions(options)
  const { format, id = systemRandom.id(), agent = DEFAULT_AGENT, program = UNNAMED, secrets = {} } = options
  checkRootId(id)
  const redactor = new Redactor(secrets)
  const blobs: Blob[] = []
  const read = readTranscript(text, format)
  const { turns, unanswered, unmatched } = pairCalls(read.items, writerOf(redactor, blobs))
  if (turns.length === 0) throw unreadableFault(`it has no message of the format ${format}. ${OTHER_FORMATS}`)
  const { entries, leftOut } = read
  const from = { format, sha256: hash('sha256', text), entries, leftOut, unanswered, unmatched }
  const said = { ...sessionDescription({ ...options, metadata: { ...options.metadata, transcript: from } }), program }
  await store.open()
  const write = ownerWrite(id, EMPTY, bodiesOf({ agent, said, turns, from }, redactor, blobs), {
    now: store.now(),
    epoch: 0,
  })
  verifyLog({ session: id, events: write.events }, new Map(blobs.map((blob) => [blob.hash, blob])))
  await commitRestored(store, [{ ...write, events: [], history: write.events, blobs, charges: [] }])
  return { card: (await store.card(id)) ?? write.card, from }
}

const OTHER_FORMATS = `Choose the format of the program that wrote it: ${TRANSCRIPT_FORMATS.join(', ')}.`

function unreadableFault(sentence: string): Fault {
  return new Fault('invalid_input', `This is no transcript that can be imported: ${sentence}`)
}

function readTranscript(text: string, format: TranscriptFormat): ForeignTranscript {
  if (typeof text !== 'string') throw unreadableFault('it is no text. Give the contents of the file.')
  if (text.length > FILE_CHARS_MAX)
    throw new Fault(
      'too_many',
      `A transcript has at most ${FILE_CHARS_MAX} characters, and this one has ${text.length}. Leave out its oldest part.`,
    )
  if (text.trim() === '') throw unreadableFault('it is empty.')
  const lines = parseLines(text)
  // A list of messages may be written on many lines.
  const isWhole = lines.some((line) => typeof line === 'object' && line !== null)
  const whole =
    format === 'openai' || format === 'anthropic' || !isWhole ? parseShallow(text.replace(/^\uFEFF/, '')) : undefined
  const values = whole === undefined ? lines : [whole]
  if (values.every((value) => value === undefined))
    throw unreadableFault(`it is no JSON that can be read, or it is nested too deeply. ${OTHER_FORMATS}`)
  return READERS[format](values)
}

type TranscriptLog = {
  readonly agent: string
  readonly said: ReturnType<typeof sessionDescription> & { readonly program: string }
  readonly turns: readonly HistoryTurn[]
  readonly from: TranscriptReport
}

function bodiesOf(
  { agent, said, turns, from }: TranscriptLog,
  redactor: Redactor,
  blobs: Blob[],
): readonly EventBody[] {
  const history = historyOf(turns, { limits: DEFAULT_LIMITS })
  blobs.push(...history.blobs)
  const bodies: readonly EventBody[] = [
    { type: 'session.created', agent, planner: 'model', ...said },
    ...history.events,
    { type: 'session.imported', from: `${from.format}:${from.sha256.slice(0, 12)}`, ...said },
  ]
  return bodies.map((body) => redactor.body(body))
}

/** Long results and files are kept beside the log. Secrets in them are replaced before that. */
function writerOf(redactor: Redactor, blobs: Blob[]): PartWriter {
  const keep = (data: string | Uint8Array, media: string): BlobRef => {
    const blob = cleanBlob(redactor, data, media)
    blobs.push(blob)
    return blobRefOf(blob)
  }
  const toPart = (part: ForeignPart): Part => {
    if (part.type !== 'file') return { type: part.type, text: storableText(part.text) }
    const { media, data } = part
    const bytes = filePartBytes({ type: media.startsWith('image/') ? 'image' : 'file', media, data })
    return typeof bytes === 'string' ? { type: 'text', text: UNREADABLE } : keep(bytes, media)
  }
  const parts: PartWriter['parts'] = (all) => all.map(toPart)
  const result = ({ id, ok, parts: said }: Omit<Extract<ForeignItem, { type: 'result' }>, 'type'>): HistoryResult => {
    const made = parts(said)
    const text = made.flatMap((part) => ('text' in part ? [part.text] : [])).join('\n')
    const files = made.filter((part): part is BlobRef => part.type === 'blob')
    return { id, ok, content: text.length > RESULT_CHARS_MAX ? keep(text, 'text/plain') : text, parts: files }
  }
  // The name of a tool counts as the harness's own word in a log, so it is cleaned here.
  const name = (text: string): string => redactor.text(storableText(text))
  return { name, args: storableJson, parts, result }
}

const UNREADABLE = '[a file that could not be read]'

/** Without characters that a database cannot keep: NUL, and half of a surrogate pair. */
function storableText(text: string): string {
  return text.replace(/[\0\p{Cs}]/gu, '\uFFFD')
}

function storableJson(value: Json): Json {
  if (typeof value === 'string') return storableText(value)
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return (value as readonly Json[]).map(storableJson)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [storableText(key), storableJson(item)]))
}
