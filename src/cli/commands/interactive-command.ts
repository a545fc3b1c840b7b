// `terret interactive`: a chat with an agent in this folder, in a new or an existing session.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { type CommandArgs, actorName, isMessage } from '../args.ts'
import { Chat } from '../chat/terminal-chat.ts'
import { ChatCalls, finishedRows, type FoldedCall } from '../chat/chat-calls.ts'
import { slashMenu } from '../chat/slash-commands.ts'
import { type InputHistory, openInputHistory } from '../chat/input-history.ts'
import type { FileSearch } from '../chat/file-search.ts'
import type { MenuSources } from '../chat/menu.ts'
import { openTerminal, type Terminal } from '../chat/terminal-input.ts'
import type { Surface } from '../present/screen.ts'
import { clipToWidth, fitLines } from '../present/terminal-text.ts'
import { loadMarkdown } from '../present/markdown.ts'
import { type ChatView, messageText } from '../chat/chat-view.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { EXIT, CliError } from '../exit.ts'
import { readAllEvents, readEventsBefore, foldAll } from '../state/read-log.ts'
import { isStoppedFailure } from '../present/outcome.ts'
import { withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { print, shortId, terretCommand } from '../present/print.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { smallestWindow } from '../state/context-size.ts'
import { chosenAgent, readCommandSetup, withHarness } from '../state/drive-session.ts'
import { workflowOfAgent } from '../state/workflow-agents.ts'

export function interactiveCommand(call: CommandArgs): Promise<number> {
  const { name, message } = readWords(call.words)
  if (call.is('json') || process.stdin.isTTY !== true || process.stdout.isTTY !== true)
    throw new CliError(EXIT.usage, 'A chat needs a terminal. In a script, use: terret -p TASK')
  if (name !== undefined && call.is('continue'))
    throw new CliError(
      EXIT.usage,
      'A session and --continue exclude each other. Name a session, or use --continue for the last one of this folder.',
    )
  const wanted = call.is('continue') ? 'latest' : name
  if (wanted !== undefined && call.text('agent') !== undefined)
    throw new CliError(EXIT.usage, 'A session keeps its agent, so --agent is for a new one.')
  return withStore(async (place) => {
    const card = wanted === undefined ? null : await findSession(place, wanted)
    if (card?.status === 'terminated')
      throw new CliError(
        EXIT.conflict,
        `Session ${shortId(card.session)} is closed. \`${terretCommand`fork ${card.session}`}\` goes on from it.`,
      )
    // A workflow takes no messages, because its graph decides the next step.
    if (card && workflowOfAgent(card.agent) !== null)
      throw new CliError(
        EXIT.usage,
        `Session ${shortId(card.session)} is a workflow, not a chat. Go on with: ${terretCommand`resume ${card.session}`}`,
      )
    return runChat(place, card, call, message)
  })
}

/** A word with a space in it is the first message, the other one a session. */
function readWords(words: readonly string[]): {
  readonly name: string | undefined
  readonly message: readonly string[]
} {
  const message = words.filter(isMessage)
  const names = words.filter((word) => !isMessage(word))
  if (message.length <= 1 && names.length <= 1) return { name: names[0], message }
  const what =
    message.length > 1 ? 'Two messages' : `Two sessions ("${names.map((each) => oneLine(each, 60)).join('", "')}")`
  throw new CliError(EXIT.usage, `${what} are one too many. A message is one word in quotes: terret "fix the test"`)
}

/** The current chat and its terminal. A new mode means a new chat on the same terminal. */
type OpenChat = { chat: Chat | null; terminal: Terminal | null }

type ChatSetup = {
  readonly place: CommandContext
  readonly card: Card | null
  readonly call: CommandArgs
  readonly setup: FolderSetup
  readonly seat: OpenChat
  /** What the person enters first, from the command line. */
  readonly message: readonly string[]
}

async function runChat(
  place: CommandContext,
  card: Card | null,
  call: CommandArgs,
  message: readonly string[],
): Promise<number> {
  const setup = await readCommandSetup(
    place,
    card ? await workingFolder(place, card.session) : place.folder,
    withoutNotes(call),
  )
  const seat: OpenChat = { chat: null, terminal: null }
  const off = listenToSignals(seat)
  const undivert = divertStderr(seat)
  try {
    return await runChatModes({ place, card, call, setup, seat, message })
  } finally {
    seat.terminal?.close()
    undivert()
    off()
    if (seat.chat?.wayBack && !seat.terminal?.gone) print(seat.chat.wayBack)
  }
}

/** Each mode has its own harness, because a harness fixes its tools and their approvals when it is created. */
async function runChatModes({ place, card, call, seat, ...first }: ChatSetup): Promise<number> {
  const { environmentSecrets } = await import('../../index.ts')
  const history = openInputHistory(place.home, first.setup.folder, environmentSecrets(first.setup.env))
  let { setup } = first
  const agent = card?.agent ?? (await chosenAgent(setup, call))
  for (let said = call; ; ) {
    // A copy, because the chat changes its mode in place.
    const now = { ...setup }
    const ended = await withHarness(
      place,
      now,
      said,
      async (harness, ear) => {
        // Opened as late as possible: a missing model or key is reported without touching the terminal.
        const terminal = (seat.terminal ??= openChatTerminal(seat, history, now))
        const models = said.texts('model').length > 0 ? said.texts('model') : (now.settings.model ?? [])
        const { tokens: window } = await smallestWindow(now, models)
        const id = seat.chat ? seat.chat.session?.id : card?.session
        const session = id === undefined ? null : harness.session(id, { stored: true })
        const remember = (text: string): void => history.add(text)
        const calls = seat.chat?.view.calls ?? new ChatCalls()
        const chat = new Chat(
          {
            place,
            harness,
            setup: now,
            models,
            window,
            terminal,
            calls,
            typed: seat.chat?.options.typed ?? [...first.message],
            told: seat.chat?.options.told ?? [],
            kept: [],
            by: actorName(said),
            remember,
            ...(agent === undefined ? {} : { agent }),
          },
          session,
        )
        const isFirst = seat.chat === null
        chat.view.seq = seat.chat?.view.seq ?? 0
        seat.chat = chat
        ear.hear = (line) => chat.view.calls.hear(line)
        ear.note = (text) => chat.view.note(text)
        if (isFirst) await greetPerson(chat, place)
        else chat.view.note(`  mode ${now.mode}`)
        return chat.talk(session && (await place.store.card(session.id)))
      },
      agent,
    )
    if (ended.type === 'left') return ended.exit
    said = withMode(call, ended.mode)
    setup = await readCommandSetup(place, now.folder, withoutNotes(said))
  }
}

function openChatTerminal(seat: OpenChat, history: InputHistory, setup: FolderSetup): Terminal {
  const ears = {
    entered: (text: string) => seat.chat?.aside(text),
    interrupt: () => seat.chat?.interrupt(),
    stop: () => seat.chat?.stop() ?? false,
    nextMode: () => seat.chat?.nextMode(),
    expand: () => seat.chat?.expand(),
    unqueue: () => seat.chat?.unqueue() ?? Promise.resolve(null),
    end: () => seat.chat?.leave(),
    gone: () => closeAfterHangUp(seat),
  }
  const known = {
    history: history.entries,
    hasQueued: () => seat.chat?.hasQueued ?? false,
  }
  const sources = { commands: slashMenu, files: findFilesIn(setup.folder) }
  return openTerminal({ known, sources, ears, env: process.env, vim: setup.settings.vim === true })
}

/** The search in the files of a folder, which is loaded with the first `@`. */
function findFilesIn(folder: string): MenuSources['files'] {
  let search: FileSearch | null = null
  const load = async (changed: () => void): Promise<void> => {
    const { FileSearch } = await import('../chat/file-search.ts')
    search ??= new FileSearch(folder)
    changed()
  }
  return (query, changed) => {
    if (!search) void load(changed)
    return search?.find(query, changed) ?? []
  }
}

/** Suppresses the notes of the setup here, because the chat shows them once. */
function withoutNotes(call: CommandArgs): CommandArgs {
  return { ...call, is: (flag) => flag === 'quiet' || call.is(flag) }
}

function withMode(call: CommandArgs, mode: string): CommandArgs {
  return { ...call, text: (flag) => (flag === 'mode' ? mode : call.text(flag)) }
}

/** Shows the welcome line, and the last messages of a continued session. */
async function greetPerson({ view, session, options }: Chat, { store }: CommandContext): Promise<void> {
  const { terminal, models, setup } = options
  const { paint, columns } = terminal.out
  const names = models.map((name) => oneLine(name)).join(', ')
  const where = clipToWidth(`${names} · mode ${setup.mode} · ${clean(setup.folder)}`, columns - 7)
  terminal.out.say('note', `${paint.bold('terret')} ${paint.dim(where)}`)
  for (const note of setup.notes) view.note(clean(note))
  view.note('/help shows what there is. Ctrl-D leaves.')
  if (!session) return
  await loadMarkdown()
  const events = await readAllEvents(store, session.id)
  view.note(`Session ${shortId(session.id)} goes on, after ${events.length} events.`)
  view.seq = events.at(-1)?.seq ?? 0
  const before = await readEventsBefore(store, events)
  view.calls.recall(BEFORE, before)
  view.calls.recall(session.id, events)
  await recallChildCalls(view.calls, store, session.id)
  showLastMessages(view, terminal.out, [
    ...before.map((event) => ({ of: BEFORE, event })),
    ...events.map((event) => ({ of: session.id, event })),
  ])
  const { paused, held } = foldAll(events)
  if (held)
    view.note(
      `It was imported and is held. To see what it would do, and let it: ${terretCommand`resume ${session.id}`}`,
    )
  else if (paused) await session.send([{ type: 'resume' }], { by: options.by })
}

/** The number of last messages that are shown. */
const RECALLED = 3
/** The key for calls in the logs that a fork comes from. No session has this id. */
const BEFORE = ''
const CALLS_MAX = 8
const CHILDREN_MAX = 1_000

type RecalledEvent = { readonly of: string; readonly event: Event }

/** Shows the last messages with the texts and calls after them, as the chat showed them. */
function showLastMessages(view: ChatView, out: Surface, all: readonly RecalledEvent[]): void {
  const [first] = all.filter(({ event }) => event.type === 'user.message').slice(-RECALLED)
  const { paint, columns } = out
  let calls: FoldedCall[] = []
  const flush = (): void => {
    const hidden = calls.length - CALLS_MAX
    if (hidden > 0) out.say('call', paint.dim(`  … ${countNoun(hidden, 'call')} before these: /calls lists them`))
    for (const call of calls.slice(-CALLS_MAX))
      for (const row of finishedRows(call, paint, columns)) out.say('call', row)
    calls = []
  }
  for (const { of, event } of first ? all.slice(all.indexOf(first)) : []) {
    const text = event.type === 'agent.message' ? messageText(event) : ''
    if (event.type === 'user.message' || event.type === 'model.failed' || text.trim() !== '') flush()
    if (event.type === 'user.message') view.echo(messageText(event))
    else if (event.type === 'model.failed' && isStoppedFailure(event)) view.cut(event)
    else if (event.type === 'agent.message') {
      out.speak(text)
      out.hush()
    } else if (event.type === 'agent.tool_result') {
      const call = view.calls.at(of, event.call)
      if (call) calls.push(call)
    }
  }
  flush()
}

/** Adds the calls of children, each below its parent's call. Parents come first, because their ids are shorter. */
async function recallChildCalls(calls: ChatCalls, store: Store, root: string): Promise<void> {
  const cards = await store.list({ root, limit: CHILDREN_MAX })
  const children = cards
    .filter(({ session }) => session !== root)
    .toSorted((a, b) => a.session.length - b.session.length)
  for (const { session } of children) {
    const events = await readAllEvents(store, session)
    const [created] = events
    if (created?.type === 'session.created' && created.parent) calls.recall(session, events, created.parent)
  }
}

/** The terminal does not exist any more. */
function closeAfterHangUp({ chat, terminal }: OpenChat): void {
  terminal?.close(true)
  chat?.leave()
}

/** On a signal or a closed terminal the session is released as it is. */
function listenToSignals(seat: OpenChat): () => void {
  const interrupt = (): void => {
    // An editor has the terminal, and Ctrl-C is for it.
    if (seat.terminal?.isLent) return
    if (seat.chat) seat.chat.interrupt()
    else process.exit(EXIT.interrupted)
  }
  const end = (): void => (seat.chat ? seat.chat.leave() : process.exit(EXIT.interrupted))
  const hangUp = (): void => closeAfterHangUp(seat)
  process.on('SIGINT', interrupt).on('SIGTERM', end).on('SIGHUP', hangUp)
  // A write error may show a closed terminal before the signal comes.
  const { stdout } = process
  const others = stdout.listeners('error') as (() => void)[]
  for (const other of others) stdout.off('error', other)
  stdout.on('error', hangUp)
  return () => {
    process.off('SIGINT', interrupt).off('SIGTERM', end).off('SIGHUP', hangUp)
    for (const other of others) stdout.on('error', other)
  }
}

/** Other writes to standard error would break the drawing, so they become lines of the chat. */
function divertStderr(seat: OpenChat): () => void {
  const { stderr } = process
  const write = stderr.write.bind(stderr)
  stderr.write = (chunk: Uint8Array | string): boolean => {
    if (!seat.terminal?.open) return write(chunk)
    seat.terminal.out.say('note', fitLines(clean(String(chunk).trimEnd()), seat.terminal.out.columns))
    return true
  }
  return () => {
    stderr.write = write
  }
}
