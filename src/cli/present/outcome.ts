// The outcome of a call for people: success, reason and amount. A command with an exit code other than 0 is a normal
// result for the log and the model, but a failure for a person. Results may come from files, so their fields are
// checked.
import type { BlobRef, CallStatus, Event, Json } from '../../kernel/index.ts'
import { clipToWidth } from './terminal-text.ts'
import { oneLine, safeJson, shownLine } from '../../view/clean.ts'
import { changesText } from '../../view/argument-changes.ts'
import { isObject, type JsonObject, parseJson } from '../../view/untrusted-json.ts'

export type ToolResult = Pick<
  Extract<Event, { type: 'agent.tool_result' }>,
  'status' | 'content' | 'failure' | 'metadata'
>

/** The output of a command. `lines` counts all of it. `text` may lack the middle; then `blob` has more. */
export type CommandOutput = { readonly text: string; readonly lines: number; readonly blob: string | null }

export type ShownOutcome = {
  readonly good: boolean
  /** `exit 3`, `denied: …`; empty for a success. */
  readonly trouble: string
  /** `30 lines`, `+1 −0`; may be empty. */
  readonly gave: string
  /** Null if it is not a command. */
  readonly command: { readonly stdout: CommandOutput; readonly stderr: CommandOutput; readonly message: string } | null
  /** The hash of the tool's full result, if the model was shown a shorter one. */
  readonly original: string | null
}

export function outcomeOf(result: ToolResult): ShownOutcome {
  const { status, content, failure } = result
  const command = parseCommandResult(result)
  const { hash: original, bytes } = findOriginal(result.metadata)
  if (command) {
    const { stdout, stderr, trouble, isMore } = command
    const lines = stdout.lines + stderr.lines
    const size = `${isMore ? 'over ' : ''}${linesText(lines)}`
    const gave = fieldsOf(result.metadata)?.['background'] === true ? `in the background · ${size}` : size
    return {
      good: status === 'ok' && trouble === '',
      trouble: trouble || statusText(status, ''),
      gave,
      command,
      original,
    }
  }
  if (status !== 'ok') {
    return { good: false, trouble: statusText(status, failure?.message ?? ''), gave: '', command: null, original }
  }
  const size = bytes === null ? sizeText(content) : `${bytes} bytes`
  return { good: true, trouble: '', gave: changeText(result) || size, command: null, original }
}

/** Finds the full result, if the log says that a shorter one was shown. */
function findOriginal(metadata: ToolResult['metadata']): {
  readonly hash: string | null
  readonly bytes: number | null
} {
  const about = fieldsOf(metadata)
  for (const stage of ['compressed', 'summarized', 'budgeted']) {
    const { blob, bytes } = fieldsOf(about?.[stage]) ?? {}
    if (typeof blob === 'string' && typeof bytes === 'number') return { hash: blob, bytes }
  }
  return { hash: null, bytes: null }
}

/** The outcome on one line. */
export function outcomeText({ trouble, gave }: ShownOutcome): string {
  return [trouble, gave].filter((text) => text !== '').join(' · ')
}

function statusText(status: CallStatus, why: string): string {
  if (status === 'ok') return ''
  return why === '' ? status : `${status}: ${oneLine(why, 400)}`
}

type Fields = { readonly [key: string]: Json }

function fieldsOf(value: unknown): Fields | null {
  return isObject(value) ? value : null
}

/**
 * Null unless the result has the fields of `bash` and `skill_run`. For a shortened result only the metadata may have
 * them.
 */
function parseCommandResult({ content, metadata }: ToolResult) {
  const about = fieldsOf(metadata)
  if (about === null || !('exit_code' in about) || typeof content !== 'string') return null
  const isWhole = findOriginal(metadata).hash === null
  const said = parseOutputFields(content) ?? (isWhole ? {} : { stdout: content, stderr: '' })
  const { stdout, stderr, message } = said
  if (typeof stdout !== 'string' || typeof stderr !== 'string') return null
  const streams = { stdout: commandOutput(stdout, about, 'stdout'), stderr: commandOutput(stderr, about, 'stderr') }
  const isMore = isTruncated(about, 'stdout') || isTruncated(about, 'stderr')
  return { ...streams, isMore, message: typeof message === 'string' ? message : '', trouble: commandTrouble(about) }
}

/** The fields of a command's result. A line after them may name the full result. */
export function parseOutputFields(content: string): Fields | null {
  const end = content.lastIndexOf('\n[')
  return fieldsOf(parseJson(content)) ?? (end < 0 ? null : fieldsOf(parseJson(content.slice(0, end))))
}

function commandOutput(text: string, about: Fields, name: 'stdout' | 'stderr'): CommandOutput {
  const lines = about[`${name}_lines`]
  const hash = fieldsOf(about[`${name}_blob`])?.['hash']
  return {
    text,
    lines: Number.isSafeInteger(lines) ? Number(lines) : lineCount(text),
    blob: typeof hash === 'string' ? hash : null,
  }
}

/** True if some bytes were not stored. */
function isTruncated(about: Fields, name: 'stdout' | 'stderr'): boolean {
  const kept = fieldsOf(about[`${name}_blob`])?.['bytes']
  const bytes = about[`${name}_bytes`]
  return typeof kept === 'number' && typeof bytes === 'number' && kept < bytes
}

function commandTrouble({ exit_code: code, timed_out: late, error_type: kind, background }: Fields): string {
  if (background === true) return ''
  if (kind === 'Interrupted') return 'stopped, output cut'
  if (late === true) return 'timed out, output cut'
  if (code === 0) return ''
  return typeof code === 'number' ? `exit ${code}` : 'no exit code'
}

function lineCount(text: string): number {
  const trimmed = text.trimEnd()
  return trimmed === '' ? 0 : trimmed.split('\n').length
}

function linesText(lines: number): string {
  return `${lines.toLocaleString('en')} ${lines === 1 ? 'line' : 'lines'}`
}

/** The line below the text of a file, which says what was read, is not one of the file. */
const READ_END = /\n\(lines \d+ to \d+ of \d+; [^\n]*\)$/

function sizeText(content: string | BlobRef): string {
  return typeof content === 'string' ? linesText(lineCount(content.replace(READ_END, ''))) : `${content.bytes} bytes`
}

/** How many lines a write or an edit added and removed. */
function changeText(result: ToolResult): string {
  const diff = diffOf(result)
  return diff === '' ? '' : linesChanged(diff)
}

/** The text with the diff of a write or an edit; empty for all others. */
export function diffOf({ content, metadata }: Pick<ToolResult, 'content' | 'metadata'>): string {
  const { diff, results } = fieldsOf(metadata) ?? {}
  if (typeof diff === 'string') return diff
  return Array.isArray(results) && typeof content === 'string' ? content : ''
}

function linesChanged(diff: string): string {
  const lines = diff.split('\n').filter((line) => !/^(\+\+\+|---) /.test(line))
  const [more, less] = ['+', '-'].map((mark) => lines.filter((line) => line.startsWith(mark)).length)
  return `+${more} −${less}`
}

/** Errors come last, whichever stream was written last. */
const TAIL_LINES_MAX = 6
const TAIL_ERRORS_MAX = 4
const LINE_CHARS_MAX = 2_000

/** The last lines of a failed command, one row each, in this many columns. Empty for everything else. */
export function failureTail({ good, command }: ShownOutcome, columns: number, indent = '  '): readonly string[] {
  if (good || command === null) return []
  const all = command.stdout.lines + command.stderr.lines
  // Never replace a single line by a row that says one line is missing.
  const most = all === TAIL_LINES_MAX + 1 ? all : TAIL_LINES_MAX
  const errors = lastLines(command.stderr.text, Math.max(TAIL_ERRORS_MAX, most - command.stdout.lines))
  const rest = lastLines(command.stdout.text, most - errors.length)
  const shown = [...rest, ...errors].map((line) => {
    return `${indent}│ ${clipToWidth(shownLine(line.slice(0, LINE_CHARS_MAX)), columns - indent.length - 2)}`
  })
  const hidden = all - shown.length
  return hidden > 0 && shown.length > 0 ? [`${indent}┊ ${linesText(hidden)} before these`, ...shown] : shown
}

/** The last printed line of a command, errors first. */
export function lastLineOf({ command }: ShownOutcome): string {
  const [line = ''] = [command?.stderr.text ?? '', command?.stdout.text ?? ''].flatMap((text) => lastLines(text, 1))
  return oneLine(line)
}

function lastLines(text: string, most: number): readonly string[] {
  return text.trim() === '' || most < 1 ? [] : text.trimEnd().split('\n').slice(-most)
}

/** Printed after the text of a stopped answer. */
export const ANSWER_CUT = 'The answer was cut here: it was stopped before its end.'

export function isStoppedFailure({ class: kind }: { readonly class: string }): boolean {
  return kind === 'interrupted' || kind === 'superseded'
}

/** The decision about a call: the person and the reason. */
export function decisionText(event: Extract<Event, { type: 'user.tool_confirmation' }>, asked?: Json): string {
  const { allow, by, why, edit } = event
  const changes = edit && (asked === undefined ? safeJson(edit.args) : changesText(asked, edit.args))
  const edited = changes === undefined ? '' : ` with other arguments (${oneLine(changes, 300)})`
  return `${allow ? 'allowed' : 'refused'}${edited} by ${oneLine(by)}${why ? `: ${oneLine(why)}` : ''}`
}

type NoteEvent = Pick<Extract<Event, { type: 'note.added' }>, 'kind' | 'text'>

/** The text of a note. For learnings the log has JSON. */
export function noteText(note: NoteEvent): string {
  const { title, detail, extracted } = parseLearning(note)
  if (isObject(extracted)) {
    const { failed, kept = 0 } = extracted
    return typeof failed === 'string' ? `nothing was extracted: ${failed}` : `facts extracted: ${Number(kept)}`
  }
  return typeof title === 'string' && typeof detail === 'string' ? `${title}: ${detail}` : note.text
}

/** True for a note that only marks how far an extraction has read. A failed extraction is reported beside the run. */
export function isExtractionMark(note: NoteEvent): boolean {
  return parseLearning(note)['extracted'] !== undefined
}

/** The first words of the note about the place and the time of a run. */
export const TODAY = 'Today is '

/** True for the note about the place and the time. The person knows both, and `history` shows it. */
export function isProjectNote({ kind, text }: NoteEvent): boolean {
  return kind === 'context' && text.startsWith(TODAY)
}

function parseLearning({ kind, text }: NoteEvent): JsonObject {
  const value = kind === 'learning' ? parseJson(text) : undefined
  return isObject(value) ? value : {}
}
