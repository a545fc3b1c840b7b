// The slash commands of a chat: the table and the functions. They only show and decide; messages to the model do not
// begin with a slash.
import { nearest } from '../../options.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import { type FoldedCall, foldedLine, type CallTexts, unfoldCall } from './chat-calls.ts'
import { hiddenText, paintRows } from '../present/call-preview.ts'
import { clean, oneLine, shownId, shownLine } from '../../view/clean.ts'
import { parseOutputFields } from '../present/outcome.ts'
import { contextLines } from '../present/context-lines.ts'
import { eventLineWriter } from '../present/event-line.ts'
import { clipToWidth, fitLines } from '../present/terminal-text.ts'
import { childLine, childTexts, type WatchedChild } from './child-watcher.ts'
import { isBudget } from '../present/result-output.ts'
import { childCosts, drawScriptCell, SCRIPT, scriptCellOf } from '../../view/script-cell.ts'
import { countNoun } from '../../view/shown-text.ts'
import { timelineOf } from '../../view/timeline.ts'
import { EXIT, CliError } from '../exit.ts'
import { startSessionIn } from '../state/session-folders.ts'
import { readAllEvents, readPending } from '../state/read-log.ts'
import { ownerFields } from '../state/command-context.ts'
import { compactionText, TOO_SHORT } from '../commands/compact-command.ts'
import { pinLine } from '../commands/pin-command.ts'
import { UNDO_TEXTS } from '../commands/undo-command.ts'
import type { ChatControl } from './chat-control.ts'
import type { MenuRow } from './menu.ts'
import { fillCommand, type OwnCommand } from '../state/own-commands.ts'
import { shortId, terretCommand } from '../present/print.ts'
import { chooseModel, resumeSession, rewindSession, startNewSession } from './pick-commands.ts'
import { askAside } from './side-question.ts'
import { argsFor, examineSetup, listBackground, showDiff, showPermissions, showServers } from './show-commands.ts'

type SlashAction = (chat: ChatControl, words: readonly string[], busy: boolean) => Promise<void> | void
type SlashCommand = {
  readonly words: string
  readonly says: string
  /** True if the command is also available while the session works. */
  readonly anytime: boolean
  readonly act: SlashAction
}

const slashCommand = (words: string, says: string, anytime: boolean, act: SlashAction): SlashCommand => ({
  words,
  says,
  anytime,
  act,
})

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: slashCommand('', 'all commands', true, showHelp),
  calls: slashCommand('[all]', 'the calls of this session, with their numbers', true, listCalls),
  show: slashCommand('[N] [all]', 'unfold a call: its arguments and its result', true, showCall),
  btw: slashCommand('QUESTION', 'ask aside: the conversation does not have it', true, askAside),
  agents: slashCommand('', 'the agents that work for this session; choose one to look inside', true, chooseAgent),
  look: slashCommand('[N]', 'what an agent did last; asks you what it waits for', true, lookAtAgent),
  background: slashCommand('[stop N]', 'the commands that Ctrl-B sent to the background', true, listBackground),
  pending: slashCommand('', 'what waits for your word', true, showWaiting),
  approve: slashCommand('[CALL]', 'allow it', false, (chat, words) => decideCall(chat, words, true)),
  reject: slashCommand('[CALL] [WHY]', 'refuse it', false, (chat, words) => decideCall(chat, words, false)),
  rewind: slashCommand('[N]', 'go back to before a message: conversation, files or both', false, rewindSession),
  diff: slashCommand('[PATH]', 'what is not committed yet', true, showDiff),
  undo: slashCommand('', 'take back the file changes of the last run', false, undoLastRun),
  compact: slashCommand('[FOCUS]', 'summarise all but the last messages', false, compactSession),
  pin: slashCommand('[TEXT]', 'keep a rule in every later request; without TEXT, what is kept', true, pinRule),
  unpin: slashCommand('N', 'let a pin go, by the number that /pin shows', false, unpinRule),
  context: slashCommand('', 'what the next request holds, by source and tokens', true, showContext),
  cost: slashCommand('', 'what this session has used', true, showCost),
  model: slashCommand('[NAME]', 'choose which model answers next', false, chooseModel),
  mode: slashCommand('[plan|ask|auto]', 'what may run unasked, and change it', false, chooseMode),
  permissions: slashCommand('[forget N]', 'what may run unasked, and what was kept', true, showPermissions),
  mcp: slashCommand('', 'the MCP servers and their tools', true, showServers),
  doctor: slashCommand('', 'check the store, the sandbox and each model', true, examineSetup),
  new: slashCommand('', 'another session; this one stays', false, startNewSession),
  resume: slashCommand('[TEXT]', 'choose a session of this folder to go on with', false, resumeSession),
  rename: slashCommand('TITLE', 'give this session another title', true, renameChat),
  fork: slashCommand('', 'go on in a copy; this session stays as it is', false, forkChat),
  session: slashCommand('', 'its id, its folder, and how to come back', true, showSession),
  export: slashCommand('PATH', 'a file of it: .md to read, .jsonl its events, .json to import', true, exportChat),
  quit: slashCommand('', 'leave; the session stays', true, (chat) => chat.leave()),
}

export const COMMAND_NAMES: readonly string[] = Object.keys(COMMANDS)

/** The slash commands that begin with this text, with their help; the person's own last. */
export function slashMenu(text: string, own: readonly OwnCommand[]): readonly MenuRow[] {
  if (!/^\/[\w-]*$/.test(text)) return []
  const rows = Object.entries(COMMANDS).map(([name, { words, says }]) => {
    return { value: `/${name}`, detail: words === '' ? says : `${words}  ${says}` }
  })
  const all = [...rows, ...own.map(({ name, says }) => ({ value: `/${name}`, detail: says }))]
  return all.filter(({ value }) => value.startsWith(text))
}

export async function runSlashCommand(chat: ChatControl, text: string, busy: boolean): Promise<void> {
  const [name = '', ...words] = text.slice(1).trim().split(/\s+/)
  const found = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  const own = chat.options.own.find((each) => each.name === name)
  if (!found && own) return chat.say(fillCommand(own, text.slice(1).trim().slice(name.length).trim()), text)
  if (!found) return noteUnknown(chat, name)
  if (busy && !found.anytime) return chat.view.note(`/${name} has to wait until it rests. Esc stops it.`)
  await found.act(chat, words, busy)
}

function noteUnknown({ view, options: { own } }: ChatControl, name: string): void {
  const names = [...COMMAND_NAMES, ...own.map((each) => each.name)]
  const near = nearest(name, names)
  const all = names.map((each) => `/${each}`)
  view.note(
    near
      ? `There is no /${oneLine(name)}. Did you mean /${near}?`
      : `There is no /${oneLine(name)}. There are: ${all.join(' ')}`,
  )
}

function showHelp({ options: { terminal, own }, view }: ChatControl): void {
  const { dim, cyan } = terminal.out.paint
  const rows = Object.entries(COMMANDS).map(([name, { words, says }]) => {
    return `  ${cyan(`/${name}`)}${dim(` ${words}`.padEnd(24 - name.length))} ${says}`
  })
  const keys = [
    '  Enter sends · \\ at the end, Alt-Enter or Ctrl-J: a new line · ↑ ↓ what you said before · Tab completes',
    '  What you enter while it works is told to it at its next step; ↑ takes it back. Esc or Ctrl-C stops it. Ctrl-D leaves.',
    '  @ attaches a file or a picture · ! runs a command in the sandbox · Shift-Tab changes the mode · Esc Esc goes back',
    '  Ctrl-R searches what you said · Ctrl-G opens your editor · Ctrl-O shows calls in full · Ctrl-B a command to the background · Ctrl-L draws anew · Ctrl-Z suspends',
  ]
  const written = own.map(
    ({ name, says }) => `  ${cyan(`/${name}`)}${' '.repeat(Math.max(1, 25 - name.length))} ${says}`,
  )
  terminal.out.say('note', [...rows, ...written].join('\n'))
  for (const each of keys) view.note(each)
}

/** How many calls `/calls` lists without `all`. */
const LISTED_MAX = 50

function listCalls({ options: { terminal }, view }: ChatControl, words: readonly string[]): void {
  const { all } = view.calls
  if (all.length === 0) return view.note('There was no call in this session yet.')
  const some = words.includes('all') ? all : all.slice(-LISTED_MAX)
  const { paint, columns: width } = terminal.out
  const before = all.length - some.length
  const more = before > 0 ? [paint.dim(`  … ${countNoun(before, 'call')} before these: /calls all`)] : []
  const lines = some.map((call) => foldedLine(call, { paint, width, mark: '·' }))
  terminal.out.say('note', [...more, ...lines, paint.dim('  /show N unfolds one.')].join('\n'))
}

async function showCall({ options: { terminal, place }, view }: ChatControl, words: readonly string[]): Promise<void> {
  const whole = words.includes('all')
  const given = words.find((word) => word !== 'all')?.replace(/^#/, '')
  const { all } = view.calls
  const last = all.at(-1)
  const call = given === undefined ? last : all.find(({ number }) => number === given)
  if (!last) return view.note('There was no call in this session yet.')
  if (!call)
    return view.note(
      `There is no call ${oneLine(given ?? '', 40)}. /calls lists them; the last is /show ${last.number}.`,
    )
  const texts = await loadCallTexts(call, place)
  const rows = whole ? Number.POSITIVE_INFINITY : Math.max(12, terminal.out.rows - 6)
  const shown = unfoldCall(call, texts, { columns: terminal.out.columns, rows })
  const more = hiddenText(shown, `/show ${call.number} all shows all of it.`)
  const others = all.length > 1 ? [terminal.out.paint.dim('/calls lists the other calls.')] : []
  terminal.out.say(
    'note',
    [...paintRows(shown.rows, terminal.out.paint), ...(more === null ? others : [more])].join('\n'),
  )
}

/** How many of the last calls are shown in full. */
const EXPANDED_MAX = 20

/** The last calls of the chat in full, with their arguments and results, as rows for the pager. */
export async function expandCalls({
  options: { terminal, place },
  view,
}: Pick<ChatControl, 'options' | 'view'>): Promise<readonly string[]> {
  const { columns, paint } = terminal.out
  const rows: string[] = []
  for (const call of view.calls.all.slice(-EXPANDED_MAX)) {
    const shown = unfoldCall(call, await loadCallTexts(call, place), { columns, rows: Number.POSITIVE_INFINITY })
    rows.push(...paintRows(shown.rows, paint).flatMap((row) => row.split('\n')), '')
  }
  return rows
}

/**
 * The output of a command without its exit code. If the result has only the ends of the output, the stored whole is
 * read.
 */
async function loadCallTexts(
  { content, outcome, status }: FoldedCall,
  place: ChatControl['options']['place'],
): Promise<CallTexts> {
  if (status === 'waits' || status === 'runs') return []
  const command = outcome?.command
  const original = outcome?.original ? await loadStoredText(place, outcome.original) : null
  if (!command) {
    const whole = original ?? (typeof content === 'string' ? content : await loadStoredText(place, content.hash))
    return [{ name: 'result:', text: whole }]
  }
  const printed = original === null ? null : parseOutputFields(original)
  const streams = (['stdout', 'stderr'] as const).map(async (stream) => {
    const { lines, blob } = command[stream]
    const whole = printed?.[stream]
    const text = typeof whole === 'string' ? whole : command[stream].text
    const found = blob === null ? null : await place.store.blob(blob)
    return { name: `${stream}, ${countNoun(lines, 'line')}:`, text: found ? Buffer.from(found.data).toString() : text }
  })
  const message = command.message === '' ? [] : [{ name: 'terret says:', text: command.message }]
  const all = await Promise.all(streams)
  const some = all.filter(({ text }) => text.trim() !== '')
  return [...(some.length > 0 ? some : [{ name: 'It printed:', text: '' }]), ...message]
}

async function loadStoredText({ store }: ChatControl['options']['place'], hash: string): Promise<string> {
  const blob = await store.blob(hash)
  return blob ? Buffer.from(blob.data).toString() : '(it is not kept)'
}

async function chooseAgent(chat: ChatControl): Promise<void> {
  await chat.look()
  const { all } = chat.children
  if (all.length === 0) return chat.view.note('No agent works for this session.')
  const items = all.map((child) => ({ value: String(child.number), ...childTexts(child) }))
  const chosen = await chat.options.terminal.pick({ title: 'Look at agent', items })
  if (chosen !== null) await lookAtAgent(chat, [chosen])
}

/** How many of a child's last events are shown. */
const LOOKED_AT = 12

async function lookAtAgent(chat: ChatControl, [given]: readonly string[]): Promise<void> {
  const { children, options, view } = chat
  await chat.look()
  const { terminal } = options
  const child = given === undefined ? (children.working[0] ?? children.all.at(-1)) : children.find(given)
  if (!child)
    return view.note(
      given === undefined
        ? 'No agent works for this session.'
        : `There is no agent ${oneLine(given, 40)}. /agents lists them.`,
    )
  const { session: id } = child
  const { paint, columns } = terminal.out
  const lines = child.agent === SCRIPT ? await scriptLines(chat, child) : await lastEventLines(chat, child)
  const rows = lines.map((line) => paint.dim(clipToWidth(`  ${line}`, columns)))
  terminal.out.say('note', [childLine(child, paint, columns), ...rows].join('\n'))
  const pending = (await waitingCalls(chat)).filter(({ sessionId }) => sessionId === id)
  for (const each of pending) if (!(await chat.ask(each))) return view.note('  It waits.')
  if (pending.length > 0) await chat.goOnIfIdle()
}

async function lastEventLines({ options: { place } }: ChatControl, child: WatchedChild): Promise<readonly string[]> {
  const { session, card } = child
  const { events } = await place.store.read(session, Math.max(0, card.seq - LOOKED_AT), LOOKED_AT)
  const line = eventLineWriter()
  return events.map((event) => line(event))
}

/** The program of a cell, with what its lines have called. */
async function scriptLines(chat: ChatControl, { session }: WatchedChild): Promise<readonly string[]> {
  const { options, children } = chat
  const costs = childCosts(
    session,
    children.all.map(({ card }) => card),
  )
  const events = await readAllEvents(options.place.store, session)
  return drawScriptCell(scriptCellOf(timelineOf(events), costs), shownLine)
}

async function showWaiting(chat: ChatControl): Promise<void> {
  const found = await waitingCalls(chat)
  if (found.length === 0) return chat.view.note('Nothing waits for you.')
  for (const each of found) {
    await chat.showPending(each)
    const word =
      each.needs === 'answer' ? '/approve answers it' : `/approve ${each.callId} or /reject ${each.callId} WHY`
    chat.view.note(`  ${word}`)
  }
}

async function waitingCalls({ session, options: { place } }: ChatControl) {
  return session ? readPending(place.store, session.id) : []
}

/** Decides the named call, or the only one. A call that was not shown here yet is shown and asked about instead. */
async function decideCall(chat: ChatControl, words: readonly string[], allow: boolean): Promise<void> {
  // The person entered the command before they could see calls that are shown from here on.
  const wasShown = chat.noteShown()
  const found = await waitingCalls(chat)
  const [first] = found
  if (!first) return chat.view.note('Nothing waits for you: it was decided, or never asked.')
  const named = found.find(({ callId }) => callId === words[0])
  const why = words.slice(named ? 1 : 0).join(' ')
  if (!named && (found.length > 1 || (allow && why !== ''))) {
    const names = found.map(({ callId, tool }) => `${callId} (${oneLine(tool)})`)
    throw new CliError(EXIT.usage, `Several calls wait. Name one of them: ${names.join(', ')}`)
  }
  const meant = named ?? first
  if (meant.needs === 'answer' || (allow && isBudget(meant)) || !wasShown(meant)) {
    if (!(await chat.ask(meant))) return
  } else {
    await chat.showPending(meant)
    await chat.decide(meant, allow, allow ? '' : why)
  }
  await chat.goOn()
}

async function undoLastRun(chat: ChatControl): Promise<void> {
  const undone = (await chat.session?.undo()) ?? []
  if (undone.length === 0) return chat.view.note('There was nothing to take back.')
  chat.view.told('note.added')
  chat.options.terminal.out.say(
    'note',
    undone.map(({ what, result }) => `  ${oneLine(what)}: ${UNDO_TEXTS[result]}`).join('\n'),
  )
}

async function compactSession({ session: handle, view }: ChatControl, words: readonly string[]): Promise<void> {
  const focus = words.join(' ')
  const done = await handle?.compact(focus === '' ? {} : { focus })
  if (done) view.told('context.compacted')
  view.note(done ? compactionText(done) : TOO_SHORT)
  if (done && 'after' in done) view.filled(done.after)
}

async function pinRule(chat: ChatControl, words: readonly string[], busy: boolean): Promise<void> {
  const { options, view } = chat
  const text = words.join(' ')
  if (text !== '') {
    const handle = await chat.ensureSession()
    // A working session belongs to its run, so the rule goes to that run as a message.
    if (busy) await handle.send(text, { pin: true })
    else await handle.pin(text)
    return view.note(busy ? 'Pinned: the run reads it next.' : 'Pinned: every later request holds it.')
  }
  const pins = (await chat.session?.status({ include: ['pins'] }))?.pins ?? []
  if (pins.length === 0) return view.note('Nothing is pinned. /pin TEXT keeps a rule in every later request.')
  const { out } = options.terminal
  out.say('note', pins.map((each) => clipToWidth(pinLine(each), out.columns)).join('\n'))
}

async function unpinRule({ session: handle, view }: ChatControl, [given = '']: readonly string[]): Promise<void> {
  if (!handle || !/^\^{0,100}[1-9]\d{0,15}$/.test(given)) return view.note('Name a pin by its number: /pin lists them.')
  await handle.pin(given, { off: true })
  view.note('It is pinned no more.')
}

async function renameChat(chat: ChatControl, words: readonly string[]): Promise<void> {
  if (words.length === 0) return chat.view.note('Say the title too: /rename TITLE')
  const handle = await chat.ensureSession()
  const { title } = await handle.rename(words.join(' '), { by: chat.options.by })
  chat.view.note(`Its title is now: ${oneLine(title)}`)
}

async function showContext({ session: handle, options: { terminal }, view }: ChatControl): Promise<void> {
  if (!handle) return view.note('Nothing yet.')
  const { columns } = terminal.out
  const rows = contextLines((await handle.status({ include: ['contextReport'] })).contextReport).map((row) =>
    fitLines(row, columns),
  )
  terminal.out.say('note', rows.join('\n'))
}

async function showCost({ session: handle, options: { place }, view }: ChatControl): Promise<void> {
  if (!handle) return view.note('Nothing yet.')
  const { summarizeEvents } = await import('../commands/inspect-command.ts')
  const { requests, calls, inputTokens, outputTokens } = summarizeEvents(await readAllEvents(place.store, handle.id))
  const card = await place.store.card(handle.id)
  const [tree] = await withTreeCost(place.store, card ? [card] : [])
  const spent = tree?.treeCost ?? 0
  const [into, out] = [inputTokens, outputTokens].map((count) => count.toLocaleString('en'))
  const dollars = spent > 0 ? ` · $${(spent / 1_000_000).toFixed(4)}` : ''
  const used = `${requests} request${requests === 1 ? '' : 's'} · ${calls} call${calls === 1 ? '' : 's'}`
  view.note(`  ${used} · ${into} tokens in, ${out} out${dollars}`)
}

export const MODES = {
  plan: 'only looks',
  ask: 'asks before changes',
  auto: 'writes in this folder unasked; the rest as each tool asks',
} as const

async function chooseMode(chat: ChatControl, [wanted]: readonly string[]): Promise<void> {
  if (chat.options.server) return chat.view.note(SERVER_MODE)
  const now = chat.options.setup.mode
  if (wanted === undefined) return chat.view.note(`  ${now}: ${MODES[now]} · change it with /mode plan, ask or auto`)
  if (!Object.hasOwn(MODES, wanted)) throw new CliError(EXIT.usage, 'Unknown mode. Choose plan, ask or auto.')
  if ((await waitingCalls(chat)).length > 0)
    throw new CliError(EXIT.conflict, 'A call waits for a decision. Decide it first: /pending')
  chat.requestedEnd = { type: 'again', mode: wanted }
}

/** In a chat with a server. */
export const SERVER_MODE = `  The mode is that of the server: ${terretCommand`serve --mode MODE`} sets it.`

async function forkChat(chat: ChatControl): Promise<void> {
  const { session: handle, options } = chat
  if (!handle) return chat.view.note('There is nothing to copy yet.')
  const { place } = options
  const own = ownerFields(place, await place.store.card(handle.id), options.by)
  const forked = await startSessionIn(place, options.setup.folder, (as) => handle.fork({ ...as, ...own }))
  const { id } = forked
  chat.session = forked
  chat.view.seq = (await place.store.card(id))?.seq ?? 0
  chat.view.note(`  Now in ${shortId(id)}. ${shortId(handle.id)} stays as it is.`)
}

function showSession({ session: handle, wayBack, options: { setup }, view }: ChatControl): void {
  if (!handle) return view.note('It begins with what you say first.')
  view.note(`  session ${shownId(handle.id)}\n  folder  ${clean(setup.folder)}\n  ${wayBack ?? ''}`)
}

async function exportChat({ session: handle, view }: ChatControl, [out]: readonly string[]): Promise<void> {
  if (!handle) return view.note('There is nothing to write yet.')
  if (out === undefined) throw new CliError(EXIT.usage, 'The file name is missing. Usage: /export chat.md')
  const format = /\.(md|jsonl|json)$/.exec(out)?.[1] ?? 'folder'
  const { exportCommand: write } = await import('../commands/export-command.ts')
  await write(argsFor([handle.id], { format, out }))
}
