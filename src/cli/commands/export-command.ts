// `terret export`: a session as JSON lines, as Markdown, as a file for `import`, as an HTML page, or as a folder.
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Card, Event, Json, CompleteStore } from '../../kernel/index.ts'
import type { CommandArgs } from '../args.ts'
import { cleanModelText } from '../present/terminal-text.ts'
import { clean, safeJson, shownId } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { readAllEvents, readEventsBefore, foldAll } from '../state/read-log.ts'
import {
  ANSWER_CUT,
  isStoppedFailure,
  noteText,
  type ShownOutcome,
  outcomeOf,
  outcomeText,
  type ToolResult,
} from '../present/outcome.ts'
import { withStoreToRead, type CommandContext, findSession } from '../state/command-context.ts'
import { fileErrorCode, hasErrorCode } from '../state/plain-file.ts'
import { printJson, printRaw, warn } from '../present/print.ts'
import { isWorkflowAgent } from '../state/workflow-agents.ts'
import { CallLog } from '../../view/call-log.ts'
import { diffLines } from '../../view/line-diff.ts'
import { editTexts } from '../../view/argument-changes.ts'
import { withoutFolder } from '../../view/without-folder.ts'
import { summarizeEvents, workflowReport } from './inspect-command.ts'

const FORMATS = ['jsonl', 'md', 'json', 'html', 'folder'] as const

export function exportCommand(call: CommandArgs): Promise<number> {
  if (call.is('html') && (call.text('format') ?? 'html') !== 'html')
    throw new CliError(EXIT.usage, '--html and --format name different formats. Give one of the two.')
  const given = call.is('html') ? 'html' : (call.text('format') ?? 'jsonl')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new CliError(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const out = call.text('out')
  if (format === 'folder' && out === undefined)
    throw new CliError(EXIT.usage, '--out is missing. Usage: --format folder --out PATH')
  return withStoreToRead(async (place) => {
    const card = await findSession(place, call.words[0] ?? '')
    const { session } = card
    if (format === 'html') return writePage(call, place.store, card)
    if (format === 'folder') await writeFolder(place, session, out ?? '')
    else {
      const text = await exportText(place, session, format)
      if (out === undefined) printRaw(format === 'md' ? clean(text.trimEnd()) : text.trimEnd())
      else writeNewFile(out, text)
    }
    if (out !== undefined && call.is('json')) printJson({ session, format, out })
    else if (out !== undefined) warn(`Wrote ${clean(out)}.`)
    return EXIT.ok
  })
}

/** Writes to standard output or into a new file. In both cases it prints the size and the parts that are left out. */
async function writePage(call: CommandArgs, store: CompleteStore, card: Card): Promise<number> {
  const { pageContentText, buildPage, buildSessionFile, fileSizeText } = await import('../state/session-page.ts')
  const file = await buildSessionFile(store, card)
  const page = buildPage(file)
  const bytes = Buffer.byteLength(page)
  const out = call.text('out')
  if (out === undefined) printRaw(page.trimEnd())
  else writeNewFile(out, page)
  const { session, left } = file
  if (out !== undefined && call.is('json')) printJson({ session, format: 'html', out, bytes, left })
  else {
    warn(`Wrote ${out === undefined ? 'the page' : clean(out)}: ${fileSizeText(bytes)}, ${pageContentText(file)}.`)
    for (const each of left) warn(`Left out: ${clean(each)}`)
  }
  return file.sessions[session]?.damaged ? EXIT.store : EXIT.ok
}

async function exportText(
  { store }: CommandContext,
  session: string,
  format: 'jsonl' | 'md' | 'json',
): Promise<string> {
  if (format === 'json') {
    const { exportSession, portableText } = await import('../../replay.ts')
    return portableText(await exportSession(store, session))
  }
  const events = withoutFolder(await readAllEvents(store, session))
  if (format === 'jsonl') return events.map((event) => `${safeJson(event)}\n`).join('')
  return markdownPage(session, [...(await readEventsBefore(store, events)), ...events])
}

/** Messages and calls in order. Each text is in a fence that it cannot close. */
function markdownPage(session: string, events: readonly Event[]): string {
  const log = new CallLog()
  const parts = events.flatMap((event): readonly string[] => {
    const about = log.take(event)
    if (event.type === 'user.message') return [`## ${event.by ?? 'User'}`, partsText(event.parts)]
    if (event.type === 'agent.message') {
      const calls = about.map(({ key, proposal: { tool, args } }) => {
        return `**${clean(tool)}** (call ${key})\n\n${fenceText(JSON.stringify(args, null, 2))}`
      })
      return ['## Agent', partsText(event.parts), ...calls]
    }
    if (event.type === 'agent.tool_result') {
      const outcome = outcomeOf(event)
      const end = outcome.command ? outcomeText(outcome) : event.status
      return [
        `**${clean(about[0]?.proposal.tool ?? '')}** (call ${event.call}): ${end}`,
        ...resultTexts(event, outcome),
      ]
    }
    if (event.type === 'model.failed' && isStoppedFailure(event) && event.partial?.trim())
      return ['## Agent', cleanModelText(event.partial), `*${ANSWER_CUT}*`]
    if (event.type === 'user.tool_confirmation') return decisionParts(event, about[0]?.proposal.args ?? null)
    if (event.type === 'session.created' && event.fork)
      return [`*Forked from event ${event.fork.seq} of session ${shownId(event.fork.session)}.*`]
    if (event.type === 'note.added') return [`*Note: ${clean(noteText(event))}*`]
    if (event.type === 'run.settled') return [`*The run ended: ${event.outcome.type}.*`]
    return []
  })
  return `${[`# Session ${shownId(session)}`, ...parts.filter((part) => part !== '')].join('\n\n')}\n`
}

function decisionParts({ call, allow, by, edit }: ConfirmationEvent, asked: Json): readonly string[] {
  const done = allow ? (edit ? 'edited and allowed' : 'allowed') : 'refused'
  const told = `*Call ${call} was ${done} by ${clean(by)}.*`
  if (!edit) return [told]
  const { before, after } = editTexts(asked, edit.args)
  return [
    told,
    fenceText(
      diffLines(before, after)
        .map(({ mark, text }) => mark + text)
        .join('\n'),
    ),
  ]
}
type ConfirmationEvent = Extract<Event, { type: 'user.tool_confirmation' }>

/** The output of a command, unchanged. */
function resultTexts({ content }: ToolResult, { command }: ShownOutcome): readonly string[] {
  if (!command) return [fenceText(typeof content === 'string' ? content : `(${content.bytes} bytes, ${content.hash})`)]
  const streams = (['stdout', 'stderr'] as const).filter((name) => command[name].text.trim() !== '')
  const texts = streams.flatMap((name) => [`${name}:`, fenceText(command[name].text.trimEnd())])
  return command.message === '' ? texts : [...texts, `*${clean(command.message)}*`]
}

function partsText(parts: Extract<Event, { type: 'user.message' }>['parts']): string {
  return cleanModelText(
    parts
      .map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? '' : `(${part.type})`))
      .join('\n\n'),
  )
}

function fenceText(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${clean(text)}\n${fence}`
}

/** `state.json`, `trace.json`, `events.jsonl`, an importable `session.json`, and the blobs of the log as files. */
async function writeFolder({ store }: CommandContext, session: string, folder: string): Promise<void> {
  const [{ exportSession, portableText }, { spansOf }] = await Promise.all([
    import('../../replay.ts'),
    import('../../tracing/index.ts'),
  ])
  // The folder is useful even if the session cannot be imported.
  const portable = await exportSession(store, session, { partial: true })
  const events = withoutFolder(await readAllEvents(store, session))
  const card = await cardWithoutFolder(store, session)
  const artifacts = portable.flatMap((record) => {
    if (record.type !== 'blob') return []
    const { hash, media, data } = record
    const file = `artifacts/${hash.slice(0, 16)}${extensionOf(media)}`
    return [{ hash, media, file, data: Buffer.from(data, 'base64') }]
  })
  const listed = artifacts.map(({ hash, media, file, data }) => ({ hash, media, file, bytes: data.length }))
  const workflow = card && isWorkflowAgent(card.agent) ? { workflow: await workflowReport(events) } : {}
  const state = { card, summary: summarizeEvents(events), state: foldAll(events), artifacts: listed, ...workflow }
  const spans = spansOf([{ session, events }], { capture: 'content' })
  makeNewFolder(folder)
  try {
    writeNewFile(join(folder, 'state.json'), `${JSON.stringify(state, null, 2)}\n`)
    writeNewFile(join(folder, 'trace.json'), `${JSON.stringify(spans, null, 2)}\n`)
    writeNewFile(join(folder, 'events.jsonl'), events.map((event) => `${safeJson(event)}\n`).join(''))
    writeNewFile(join(folder, 'session.json'), portableText(portable))
    makeNewFolder(join(folder, 'artifacts'))
    for (const { file, data } of artifacts) writeNewFile(join(folder, file), data)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Without the folder, like the log: a path of this machine is not exported. */
async function cardWithoutFolder(store: CompleteStore, session: string): Promise<Card | null> {
  const { folder: _, ...card } = (await store.card(session)) ?? { folder: null }
  return 'session' in card ? card : null
}

function extensionOf(media: string): string {
  const known: Readonly<Record<string, string>> = {
    'text/plain': '.txt',
    'application/json': '.json',
    'text/markdown': '.md',
  }
  const plain = media.split(';')[0] ?? ''
  return (
    known[plain] ??
    (/^image\/(png|jpeg|gif|webp)$/.test(plain) ? extname(`.${plain.slice(6)}`) || `.${plain.slice(6)}` : '')
  )
}

/**
 * Never overwrites a file. A failed write removes the new file, because a half-written export would block the next try.
 */
function writeNewFile(path: string, content: string | Uint8Array): void {
  const file = openNewFile(path)
  try {
    writeFileSync(file, content)
  } catch (error) {
    rmSync(path, { force: true })
    throw unwritableError(path, error)
  } finally {
    closeSync(file)
  }
}

function openNewFile(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    throw unwritableError(path, error)
  }
}

function makeNewFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    throw unwritableError(folder, error)
  }
}

function unwritableError(path: string, error: unknown): CliError {
  if (hasErrorCode(error, 'EEXIST'))
    return new CliError(EXIT.conflict, `${path} exists already. Name another place, or remove it.`)
  return new CliError(EXIT.usage, `${path} cannot be written (${fileErrorCode(error)}). Name another place.`)
}
