// The slash commands of a chat: the table, and what each does. They only show and decide; messages to the model do not begin with a
// slash.
import { nearest } from '../../options.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import type { Call } from '../args.ts'
import { type Folded, foldedLine, type Texts, unfolded, type Calls } from './call.ts'
import { hiddenText, painted } from '../present/preview.ts'
import { clean, oneLine, shownId } from '../../view/clean.ts'
import { printedIn } from '../present/outcome.ts'
import { contextLines } from '../present/context.ts'
import { lineWriter } from '../present/event-line.ts'
import { clippedToWidth, fitted } from '../present/text.ts'
import { childLine, type Children } from './children.ts'
import { isBudget } from '../present/ending.ts'
import { counted } from '../../view/text.ts'
import { EXIT, Refusal } from '../exit.ts'
import { startIn } from '../state/folders.ts'
import { allEvents, pendingIn } from '../state/log.ts'
import { ownedBy, type Place } from '../state/place.ts'
import { saidOf, TOO_SHORT } from '../commands/compact.ts'
import { pinLine } from '../commands/pin.ts'
import { SAID } from '../commands/undo.ts'
import type { Harness, Pending, SessionHandle } from '../../index.ts'
import type { Terminal } from './terminal-input.ts'
import type { ChatView } from './chat-view.ts'
import type { Kept } from '../state/kept.ts'
import type { Setup } from '../state/setup.ts'
import { shortId, typed } from '../present/print.ts'

type Act = (chat: Talk, words: readonly string[], busy: boolean) => Promise<void> | void
type Entry = {
  readonly words: string
  readonly says: string
  /** Also available while the session works. */
  readonly anytime: boolean
  readonly act: Act
}

const entry = (words: string, says: string, anytime: boolean, act: Act): Entry => ({ words, says, anytime, act })

const COMMANDS: Readonly<Record<string, Entry>> = {
  help: entry('', 'this', true, help),
  calls: entry('[all]', 'the calls of this session, with their numbers', true, calls),
  show: entry('[N] [all]', 'unfold a call: its arguments and its result', true, show),
  agents: entry('', 'the agents that work for this session, and what each does', true, agents),
  look: entry('[N]', 'what an agent did last; asks you what it waits for', true, look),
  pending: entry('', 'what waits for your word', true, pending),
  approve: entry('[CALL]', 'allow it', false, (chat, words) => decide(chat, words, true)),
  reject: entry('[CALL] [WHY]', 'refuse it', false, (chat, words) => decide(chat, words, false)),
  undo: entry('', 'take back the file changes of the last run', false, undo),
  compact: entry('[FOCUS]', 'summarise all but the last messages', false, compact),
  pin: entry('[TEXT]', 'keep a rule in every later request; without TEXT, what is kept', true, pin),
  unpin: entry('N', 'let a pin go, by the number that /pin shows', false, unpin),
  context: entry('', 'what the next request holds, by source and tokens', true, context),
  cost: entry('', 'what this session has used', true, cost),
  model: entry('', 'which model answers', true, model),
  mode: entry('[plan|ask|auto]', 'what may run unasked, and change it', false, mode),
  fork: entry('', 'go on in a copy; this session stays as it is', false, fork),
  session: entry('', 'its id, its folder, and how to come back', true, session),
  export: entry('PATH', 'a file of it: .md to read, .jsonl its events, .json to import', true, exportTo),
  quit: entry('', 'leave; the session stays', true, (chat) => chat.leave()),
}

/** The commands that begin with this text. */
export function completions(text: string): readonly string[] {
  if (!/^\/\w*$/.test(text)) return []
  return Object.keys(COMMANDS)
    .map((name) => `/${name}`)
    .filter((name) => name.startsWith(text))
}

export async function runCommand(chat: Talk, text: string, busy: boolean): Promise<void> {
  const [name = '', ...words] = text.slice(1).trim().split(/\s+/)
  const found = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!found) return unknown(chat, name)
  if (busy && !found.anytime) return chat.view.note(`/${name} has to wait until it rests. Ctrl-C stops it.`)
  await found.act(chat, words, busy)
}

function unknown({ view }: Talk, name: string): void {
  const near = nearest(name, Object.keys(COMMANDS))
  const all = Object.keys(COMMANDS).map((each) => `/${each}`)
  view.note(
    near
      ? `There is no /${oneLine(name)}. Did you mean /${near}?`
      : `There is no /${oneLine(name)}. There are: ${all.join(' ')}`,
  )
}

function help({ options: { terminal }, view }: Talk): void {
  const { dim, cyan } = terminal.out.paint
  const rows = Object.entries(COMMANDS).map(([name, { words, says }]) => {
    return `  ${cyan(`/${name}`)}${dim(` ${words}`.padEnd(24 - name.length))} ${says}`
  })
  const keys = [
    '  Enter sends · \\ at the end, Alt-Enter or Ctrl-J: a new line · ↑ ↓ what you said before · Tab completes',
    '  What you enter while it works is told to it at its next step. Ctrl-C stops it. Ctrl-D leaves.',
  ]
  terminal.out.say('note', rows.join('\n'))
  for (const each of keys) view.note(each)
}

/** Sessions read at once. */
const LISTED_MAX = 50

function calls({ options: { terminal }, view }: Talk, words: readonly string[]): void {
  const { all } = view.calls
  if (all.length === 0) return view.note('There was no call in this session yet.')
  const some = words.includes('all') ? all : all.slice(-LISTED_MAX)
  const { paint, columns: width } = terminal.out
  const before = all.length - some.length
  const more = before > 0 ? [paint.dim(`  … ${counted(before, 'call')} before these: /calls all`)] : []
  const lines = some.map((call) => foldedLine(call, { paint, width, mark: '·' }))
  terminal.out.say('note', [...more, ...lines, paint.dim('  /show N unfolds one.')].join('\n'))
}

async function show({ options: { terminal, place }, view }: Talk, words: readonly string[]): Promise<void> {
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
  const texts = await textsOf(call, place)
  const rows = whole ? Number.POSITIVE_INFINITY : Math.max(12, terminal.out.rows - 6)
  const shown = unfolded(call, texts, { columns: terminal.out.columns, rows })
  const more = hiddenText(shown, `/show ${call.number} all shows all of it.`)
  const others = all.length > 1 ? [terminal.out.paint.dim('/calls lists the other calls.')] : []
  terminal.out.say(
    'note',
    [...painted(shown.rows, terminal.out.paint), ...(more === null ? others : [more])].join('\n'),
  )
}

/** The output of a command, apart from its exit code; the whole output if the result has only its ends. */
async function textsOf({ content, outcome, status }: Folded, place: Talk['options']['place']): Promise<Texts> {
  if (status === 'waits' || status === 'runs') return []
  const command = outcome?.command
  const original = outcome?.original ? await kept(place, outcome.original) : null
  if (!command) {
    const whole = original ?? (typeof content === 'string' ? content : await kept(place, content.hash))
    return [{ name: 'result:', text: whole }]
  }
  const printed = original === null ? null : printedIn(original)
  const streams = (['stdout', 'stderr'] as const).map(async (stream) => {
    const { lines, blob } = command[stream]
    const whole = printed?.[stream]
    const text = typeof whole === 'string' ? whole : command[stream].text
    const found = blob === null ? null : await place.store.blob(blob)
    return { name: `${stream}, ${counted(lines, 'line')}:`, text: found ? Buffer.from(found.data).toString() : text }
  })
  const message = command.message === '' ? [] : [{ name: 'terret says:', text: command.message }]
  const all = await Promise.all(streams)
  const some = all.filter(({ text }) => text.trim() !== '')
  return [...(some.length > 0 ? some : [{ name: 'It printed:', text: '' }]), ...message]
}

async function kept({ store }: Talk['options']['place'], hash: string): Promise<string> {
  const blob = await store.blob(hash)
  return blob ? Buffer.from(blob.data).toString() : '(it is not kept)'
}

async function agents(chat: Talk): Promise<void> {
  const { children, view } = chat
  const { terminal } = chat.options
  await chat.look()
  const { paint, columns } = terminal.out
  if (children.all.length === 0) return view.note('No agent works for this session.')
  const lines = children.all.map((child) => childLine(child, paint, columns))
  terminal.out.say('note', [...lines, paint.dim('  /look N shows one.')].join('\n'))
}

/** The last events of a child that are shown. */
const LOOKED_AT = 12

async function look(chat: Talk, [given]: readonly string[]): Promise<void> {
  const { children, options, view } = chat
  await chat.look()
  const { place, terminal } = options
  const child = given === undefined ? (children.working[0] ?? children.all.at(-1)) : children.find(given)
  if (!child)
    return view.note(
      given === undefined
        ? 'No agent works for this session.'
        : `There is no agent ${oneLine(given, 40)}. /agents lists them.`,
    )
  const { session: id, card } = child
  const { paint, columns } = terminal.out
  const { events } = await place.store.read(id, Math.max(0, card.seq - LOOKED_AT), LOOKED_AT)
  const line = lineWriter()
  const rows = events.map((event) => paint.dim(clippedToWidth(`  ${line(event)}`, columns)))
  terminal.out.say('note', [childLine(child, paint, columns), ...rows].join('\n'))
  const pending = (await waiting(chat)).filter(({ sessionId }) => sessionId === id)
  for (const each of pending) if (!(await chat.ask(each))) return view.note('  It waits.')
  if (pending.length > 0) await chat.decided()
}

async function pending(chat: Talk): Promise<void> {
  const found = await waiting(chat)
  if (found.length === 0) return chat.view.note('Nothing waits for you.')
  for (const each of found) {
    await chat.shown(each)
    const word =
      each.needs === 'answer' ? '/approve answers it' : `/approve ${each.callId} or /reject ${each.callId} WHY`
    chat.view.note(`  ${word}`)
  }
}

async function waiting({ session, options: { place } }: Talk) {
  return session ? pendingIn(place.store, session.id) : []
}

/** The named call, or the only one. A call not shown here yet is shown and asked. */
async function decide(chat: Talk, words: readonly string[], allow: boolean): Promise<void> {
  // The person entered the command before they could see calls that are shown from here on.
  const wasShown = chat.noteShown()
  const found = await waiting(chat)
  const [first] = found
  if (!first) return chat.view.note('Nothing waits for you: it was decided, or never asked.')
  const named = found.find(({ callId }) => callId === words[0])
  const why = words.slice(named ? 1 : 0).join(' ')
  if (!named && (found.length > 1 || (allow && why !== ''))) {
    const names = found.map(({ callId, tool }) => `${callId} (${oneLine(tool)})`)
    throw new Refusal(EXIT.usage, `Several calls wait. Name one of them: ${names.join(', ')}`)
  }
  const meant = named ?? first
  if (meant.needs === 'answer' || (allow && isBudget(meant)) || !wasShown(meant)) {
    if (!(await chat.ask(meant))) return
  } else {
    await chat.shown(meant)
    await chat.decide(meant, allow, allow ? '' : why)
  }
  await chat.goOn()
}

async function undo(chat: Talk): Promise<void> {
  const undone = (await chat.session?.undo()) ?? []
  if (undone.length === 0) return chat.view.note('There was nothing to take back.')
  chat.view.told('note.added')
  chat.options.terminal.out.say(
    'note',
    undone.map(({ what, result }) => `  ${oneLine(what)}: ${SAID[result]}`).join('\n'),
  )
}

async function compact({ session: handle, view }: Talk, words: readonly string[]): Promise<void> {
  const focus = words.join(' ')
  const done = await handle?.compact(focus === '' ? {} : { focus })
  if (done) view.told('context.compacted')
  view.note(done ? saidOf(done) : TOO_SHORT)
  if (done && 'after' in done) view.filled(done.after)
}

async function pin(chat: Talk, words: readonly string[], busy: boolean): Promise<void> {
  const { options, view } = chat
  const text = words.join(' ')
  if (text !== '') {
    const handle = await chat.begun()
    // A session at work belongs to its run, so the rule goes to that run as a message.
    if (busy) await handle.send(text, { pin: true })
    else await handle.pin(text)
    return view.note(busy ? 'Pinned: the run reads it next.' : 'Pinned: every later request holds it.')
  }
  const pins = (await chat.session?.pins()) ?? []
  if (pins.length === 0) return view.note('Nothing is pinned. /pin TEXT keeps a rule in every later request.')
  const { out } = options.terminal
  out.say('note', pins.map((each) => clippedToWidth(pinLine(each), out.columns)).join('\n'))
}

async function unpin({ session: handle, view }: Talk, [given = '']: readonly string[]): Promise<void> {
  if (!handle || !/^\^{0,100}[1-9]\d{0,15}$/.test(given)) return view.note('Name a pin by its number: /pin lists them.')
  await handle.unpin(given)
  view.note('It is pinned no more.')
}

async function context({ session: handle, options: { terminal }, view }: Talk): Promise<void> {
  if (!handle) return view.note('Nothing yet.')
  const { columns } = terminal.out
  const rows = contextLines(await handle.context()).map((row) => fitted(row, columns))
  terminal.out.say('note', rows.join('\n'))
}

async function cost({ session: handle, options: { place }, view }: Talk): Promise<void> {
  if (!handle) return view.note('Nothing yet.')
  const { summaryOf } = await import('../commands/inspect.ts')
  const { requests, calls, inputTokens, outputTokens } = summaryOf(await allEvents(place.store, handle.id))
  const card = await place.store.card(handle.id)
  const [tree] = await withTreeCost(place.store, card ? [card] : [])
  const spent = tree?.treeCost ?? 0
  const [into, out] = [inputTokens, outputTokens].map((count) => count.toLocaleString('en'))
  const dollars = spent > 0 ? ` · $${(spent / 1_000_000).toFixed(4)}` : ''
  const used = `${requests} request${requests === 1 ? '' : 's'} · ${calls} call${calls === 1 ? '' : 's'}`
  view.note(`  ${used} · ${into} tokens in, ${out} out${dollars}`)
}

function model({ options: { models }, view }: Talk): void {
  view.note(
    `  ${models.map((name) => oneLine(name)).join(', then ')} · another one with: ${typed`interactive --model NAME`}`,
  )
}

const MODES = {
  plan: 'only looks',
  ask: 'asks before changes',
  auto: 'writes in this folder unasked; the rest as each tool asks',
} as const

async function mode(chat: Talk, [wanted]: readonly string[]): Promise<void> {
  const now = chat.options.setup.mode
  if (wanted === undefined) return chat.view.note(`  ${now}: ${MODES[now]} · change it with /mode plan, ask or auto`)
  if (!Object.hasOwn(MODES, wanted)) throw new Refusal(EXIT.usage, 'Unknown mode. Choose plan, ask or auto.')
  if ((await waiting(chat)).length > 0)
    throw new Refusal(EXIT.conflict, 'A call waits for a decision. Decide it first: /pending')
  chat.wish = { type: 'mode', mode: wanted }
}

async function fork(chat: Talk): Promise<void> {
  const { session: handle, options } = chat
  if (!handle) return chat.view.note('There is nothing to copy yet.')
  const { place } = options
  const own = ownedBy(place, await place.store.card(handle.id), options.by)
  const forked = await startIn(place, options.setup.folder, (as) => handle.fork({ ...as, ...own }))
  const { id } = forked
  chat.session = forked
  chat.view.seq = (await place.store.card(id))?.seq ?? 0
  chat.view.note(`  Now in ${shortId(id)}. ${shortId(handle.id)} stays as it is.`)
}

function session({ session: handle, wayBack, options: { setup }, view }: Talk): void {
  if (!handle) return view.note('It begins with what you say first.')
  view.note(`  session ${shownId(handle.id)}\n  folder  ${clean(setup.folder)}\n  ${wayBack ?? ''}`)
}

async function exportTo({ session: handle, view }: Talk, [out]: readonly string[]): Promise<void> {
  if (!handle) return view.note('There is nothing to write yet.')
  if (out === undefined) throw new Refusal(EXIT.usage, 'The file name is missing. Usage: /export chat.md')
  const format = /\.(md|jsonl|json)$/.exec(out)?.[1] ?? 'folder'
  const { exportTo: write } = await import('../commands/export.ts')
  await write(callOf([handle.id], { format, out }))
}

/** Runs a command of the command line. */
function callOf(words: readonly string[], flags: Readonly<Record<string, string>>): Call {
  return { words, text: (flag) => flags[flag], texts: () => [], is: () => false, count: () => undefined }
}

// The chat as its commands see it.

export type ChatOptions = {
  readonly place: Place
  readonly harness: Harness
  readonly setup: Setup
  readonly models: readonly string[]
  /** The agent of a new session. Absent: the folder's own. */
  readonly agent?: string
  /** How many tokens they take, without end where that is unknown. */
  readonly window: number
  readonly terminal: Terminal
  readonly by: string
  /** The calls of this chat so far, in all modes. */
  readonly calls: Calls
  /** What was entered and is not read yet, in all modes. */
  readonly typed: string[]
  /** Rules saved since the harness got its policy. */
  readonly kept: Kept[]
  /** Adds an input to the history. */
  readonly remember: (text: string) => void
}

/** How a chat ended: left, or to be continued in another mode. */
export type Ended = { readonly type: 'left'; readonly exit: number } | { readonly type: 'mode'; readonly mode: string }

export interface Talk {
  readonly options: ChatOptions
  readonly view: ChatView
  /** Null until the first message. */
  session: SessionHandle | null
  /** The session, opened if there is none yet. */
  begun(): Promise<SessionHandle>
  /** How the chat is to end after the current command. */
  wish: Ended | null
  /** The command to continue this session, if there is one. */
  readonly wayBack: string | null
  /** Shows the exact action. True if not all of it could be shown. */
  shown(pending: Pending, whole?: boolean): Promise<boolean>
  /** Tells, also later, whether exactly this action was shown here by now. */
  noteShown(): (pending: Pending) => boolean
  /** Asks one question. True if it was decided. */
  ask(pending: Pending): Promise<boolean>
  /** Decides exactly the action that was shown. */
  decide(pending: Pending, allow: boolean, why?: string): Promise<void>
  /** Goes on with open work and asks its questions. */
  goOn(): Promise<void>
  readonly children: Children
  /** Looks at the children now. */
  look(): Promise<void>
  /** A child was answered: goes on, unless the session works already. */
  decided(): Promise<void>
  leave(): void
}
