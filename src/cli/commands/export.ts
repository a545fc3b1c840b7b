// `terret export`: a session as JSON lines, as a page to read, as one file that can be imported, as a page for a browser, or as a folder
// to look through.
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Card, Event, Json, Store } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { spoken } from '../present/text.ts'
import { clean, safeJson, shownId } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { allEvents, eventsBefore, foldAll } from '../state/log.ts'
import { CUT, isStopped, noteText, type Outcome, outcomeOf, outcomeText, type ToolResult } from '../present/outcome.ts'
import { readPlace, type Place, sessionOf } from '../state/place.ts'
import { codeOf, isErrno } from '../state/plain-file.ts'
import { printJson, printRaw, warn } from '../present/print.ts'
import { isPlanned } from '../state/workflows.ts'
import { CallLog } from '../../view/calls.ts'
import { diffLines } from '../../view/diff.ts'
import { editTexts } from '../../view/edited.ts'
import { withoutFolder } from '../../view/folder.ts'
import { summaryOf, workflowIn } from './inspect.ts'

const FORMATS = ['jsonl', 'md', 'json', 'html', 'folder'] as const

export function exportTo(call: Call): Promise<number> {
  if (call.is('html') && (call.text('format') ?? 'html') !== 'html')
    throw new Refusal(EXIT.usage, '--html and --format name different formats. Give one of the two.')
  const given = call.is('html') ? 'html' : (call.text('format') ?? 'jsonl')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new Refusal(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const out = call.text('out')
  if (format === 'folder' && out === undefined)
    throw new Refusal(EXIT.usage, '--out is missing. Usage: --format folder --out PATH')
  return readPlace(async (place) => {
    const card = await sessionOf(place, call.words[0] ?? '')
    const { session } = card
    if (format === 'html') return writePage(call, place.store, card)
    if (format === 'folder') await writeFolder(place, session, out ?? '')
    else {
      const text = await exportText(place, session, format)
      if (out === undefined) printRaw(format === 'md' ? clean(text.trimEnd()) : text.trimEnd())
      else writeNew(out, text)
    }
    if (out !== undefined && call.is('json')) printJson({ session, format, out })
    else if (out !== undefined) warn(`Wrote ${clean(out)}.`)
    return EXIT.ok
  })
}

/** To standard output, or into a new file. What is left out, and how large it is, is said either way. */
async function writePage(call: Call, store: Store, card: Card): Promise<number> {
  const { contentText, pageWith, sessionFile, sizeText } = await import('../state/session-file.ts')
  const file = await sessionFile(store, card)
  const page = pageWith(file)
  const bytes = Buffer.byteLength(page)
  const out = call.text('out')
  if (out === undefined) printRaw(page.trimEnd())
  else writeNew(out, page)
  const { session, left } = file
  if (out !== undefined && call.is('json')) printJson({ session, format: 'html', out, bytes, left })
  else {
    warn(`Wrote ${out === undefined ? 'the page' : clean(out)}: ${sizeText(bytes)}, ${contentText(file)}.`)
    for (const each of left) warn(`Left out: ${clean(each)}`)
  }
  return file.sessions[session]?.damaged ? EXIT.store : EXIT.ok
}

async function exportText({ store }: Place, session: string, format: 'jsonl' | 'md' | 'json'): Promise<string> {
  if (format === 'json') {
    const { exportSession } = await import('../../replay.ts')
    return `${safeJson(await exportSession(store, session))}\n`
  }
  const events = withoutFolder(await allEvents(store, session))
  if (format === 'jsonl') return events.map((event) => `${safeJson(event)}\n`).join('')
  return pageOf(session, [...(await eventsBefore(store, events)), ...events])
}

/** Messages and calls in order. Texts are in fences that they cannot close. */
function pageOf(session: string, events: readonly Event[]): string {
  const log = new CallLog()
  const parts = events.flatMap((event): readonly string[] => {
    const about = log.take(event)
    if (event.type === 'user.message') return [`## ${event.by ?? 'User'}`, said(event.parts)]
    if (event.type === 'agent.message') {
      const calls = about.map(({ key, proposal: { tool, args } }) => {
        return `**${clean(tool)}** (call ${key})\n\n${fenced(JSON.stringify(args, null, 2))}`
      })
      return ['## Agent', said(event.parts), ...calls]
    }
    if (event.type === 'agent.tool_result') {
      const outcome = outcomeOf(event)
      const end = outcome.command ? outcomeText(outcome) : event.status
      return [
        `**${clean(about[0]?.proposal.tool ?? '')}** (call ${event.call}): ${end}`,
        ...resultTexts(event, outcome),
      ]
    }
    if (event.type === 'model.failed' && isStopped(event) && event.partial?.trim())
      return ['## Agent', spoken(event.partial), `*${CUT}*`]
    if (event.type === 'user.tool_confirmation') return decisionParts(event, about[0]?.proposal.args ?? null)
    if (event.type === 'session.created' && event.fork)
      return [`*Forked from event ${event.fork.seq} of session ${shownId(event.fork.session)}.*`]
    if (event.type === 'note.added') return [`*Note: ${clean(noteText(event))}*`]
    if (event.type === 'run.settled') return [`*The run ended: ${event.outcome.type}.*`]
    return []
  })
  return `${[`# Session ${shownId(session)}`, ...parts.filter((part) => part !== '')].join('\n\n')}\n`
}

function decisionParts({ call, allow, by, edit }: Confirmation, asked: Json): readonly string[] {
  const done = allow ? (edit ? 'edited and allowed' : 'allowed') : 'refused'
  const told = `*Call ${call} was ${done} by ${clean(by)}.*`
  if (!edit) return [told]
  const { before, after } = editTexts(asked, edit.args)
  return [
    told,
    fenced(
      diffLines(before, after)
        .map(({ mark, text }) => mark + text)
        .join('\n'),
    ),
  ]
}
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>

/** The output of a command, unchanged. */
function resultTexts({ content }: ToolResult, { command }: Outcome): readonly string[] {
  if (!command) return [fenced(typeof content === 'string' ? content : `(${content.bytes} bytes, ${content.hash})`)]
  const streams = (['stdout', 'stderr'] as const).filter((name) => command[name].text.trim() !== '')
  const texts = streams.flatMap((name) => [`${name}:`, fenced(command[name].text.trimEnd())])
  return command.message === '' ? texts : [...texts, `*${clean(command.message)}*`]
}

function said(parts: Extract<Event, { type: 'user.message' }>['parts']): string {
  return spoken(
    parts
      .map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? '' : `(${part.type})`))
      .join('\n\n'),
  )
}

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${clean(text)}\n${fence}`
}

/** `state.json`, `trace.json`, `events.jsonl`, an importable `session.json`, and the blobs of the log as files. */
async function writeFolder({ store }: Place, session: string, folder: string): Promise<void> {
  const [{ exportSession }, { spansOf }] = await Promise.all([
    import('../../replay.ts'),
    import('../../tracing/index.ts'),
  ])
  // The folder is useful even if the session cannot be imported.
  const portable = await exportSession(store, session, { partial: true })
  const events = withoutFolder(await allEvents(store, session))
  const card = await cardOf(store, session)
  const artifacts = Object.entries(portable.blobs).map(([hash, { media, data }]) => {
    return {
      hash,
      media,
      file: `artifacts/${hash.slice(0, 16)}${extensionOf(media)}`,
      data: Buffer.from(data, 'base64'),
    }
  })
  const listed = artifacts.map(({ hash, media, file, data }) => ({ hash, media, file, bytes: data.length }))
  const workflow = card && isPlanned(card.agent) ? { workflow: await workflowIn(events) } : {}
  const state = { card, summary: summaryOf(events), state: foldAll(events), artifacts: listed, ...workflow }
  const spans = spansOf([{ session, events }], { capture: 'content' })
  makeNew(folder)
  try {
    writeNew(join(folder, 'state.json'), `${JSON.stringify(state, null, 2)}\n`)
    writeNew(join(folder, 'trace.json'), `${JSON.stringify(spans, null, 2)}\n`)
    writeNew(join(folder, 'events.jsonl'), events.map((event) => `${safeJson(event)}\n`).join(''))
    writeNew(join(folder, 'session.json'), `${safeJson(portable)}\n`)
    makeNew(join(folder, 'artifacts'))
    for (const { file, data } of artifacts) writeNew(join(folder, file), data)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Without a path of this machine, as the log. */
async function cardOf(store: Store, session: string): Promise<Card | null> {
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

/** Never overwrites, and is atomic: a half-written export would block the next try. */
function writeNew(path: string, content: string | Uint8Array): void {
  const file = openNew(path)
  try {
    writeFileSync(file, content)
  } catch (error) {
    rmSync(path, { force: true })
    throw unwritable(path, error)
  } finally {
    closeSync(file)
  }
}

function openNew(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    throw unwritable(path, error)
  }
}

function makeNew(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    throw unwritable(folder, error)
  }
}

function unwritable(path: string, error: unknown): Refusal {
  if (isErrno(error, 'EEXIST'))
    return new Refusal(EXIT.conflict, `${path} exists already. Name another place, or remove it.`)
  return new Refusal(EXIT.usage, `${path} cannot be written (${codeOf(error)}). Name another place.`)
}
