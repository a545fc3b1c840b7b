// `terret interactive`: a chat with an agent in this folder, in a new or an existing session.
import type { Sessions } from '../../index.ts'
import type { Card, Store } from '../../kernel/index.ts'
import { type CommandArgs, actorName, isMessage } from '../args.ts'
import { Chat } from '../chat/terminal-chat.ts'
import { BackgroundCommands } from '../chat/background-commands.ts'
import { ChatCalls } from '../chat/chat-calls.ts'
import { showLastMessages } from '../chat/recalled-messages.ts'
import type { ChatEnd } from '../chat/chat-control.ts'
import { COMMAND_NAMES, slashMenu } from '../chat/slash-commands.ts'
import { refuseNoChat } from '../chat/pick-commands.ts'
import { type InputHistory, openInputHistory } from '../chat/input-history.ts'
import type { FileSearch } from '../chat/file-search.ts'
import type { MenuSources } from '../chat/menu.ts'
import { openTerminal, type Terminal } from '../chat/terminal-input.ts'
import { clipToWidth, fitLines } from '../present/terminal-text.ts'
import { loadMarkdown } from '../present/markdown.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import type { ServerFacts, WithSessions } from '../remote/remote-chat.ts'
import { readAllEvents, readEventsBefore, foldAll } from '../state/read-log.ts'
import { remoteClient } from '../state/remote-server.ts'
import { folderOf } from '../state/session-folders.ts'
import { withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { countNoun } from '../../view/shown-text.ts'
import { print, shortId, terretCommand } from '../present/print.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { readOwnCommands } from '../state/own-commands.ts'
import { smallestWindow } from '../state/context-size.ts'
import { chosenAgent, type OutputListener, readCommandSetup, withHarness } from '../state/drive-session.ts'

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
    if (card) refuseNoChat(card)
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
type OpenChat = { chat: Chat | null; terminal: Terminal | null; readonly background: BackgroundCommands }

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
  const client = remoteClient(place.store)
  const setup = client
    ? await readRemoteSetup(place, card, call)
    : await readCommandSetup(place, card ? await workingFolder(place, card.session) : place.folder, withoutNotes(call))
  const seat: OpenChat = { chat: null, terminal: null, background: new BackgroundCommands() }
  const off = listenToSignals(seat)
  const undivert = divertStderr(seat)
  try {
    return await runChatModes({ place, card, call, setup, seat, message })
  } finally {
    seat.terminal?.close()
    const stopped = await seat.background.close()
    undivert()
    off()
    if (stopped > 0 && !seat.terminal?.gone)
      print(`Stopped with the chat: ${countNoun(stopped, 'command')} in the background.`)
    if (seat.chat?.wayBack && !seat.terminal?.gone) print(seat.chat.wayBack)
  }
}

/** What the next part of a chat runs with. `id`: its session; null: a new one. */
type ChatPart = {
  readonly said: CommandArgs
  readonly setup: FolderSetup
  readonly agent: string | undefined
  readonly id: string | null
  /** Null: the first part. */
  readonly after: Extract<ChatEnd, { type: 'again' }> | null
}

/**
 * Each mode, model and session has its own harness, because a harness fixes its agent, its tools and their approvals
 * when it is created.
 */
async function runChatModes({ place, card, call, setup, seat, message }: ChatSetup): Promise<number> {
  const { environmentSecrets } = await import('../../index.ts')
  const history = openInputHistory(place.home, setup.folder, environmentSecrets(setup.env))
  const server = await openServer(place, card?.agent ?? call.text('agent'))
  const agent = card?.agent ?? (server ? call.text('agent') : await chosenAgent(setup, call))
  const withSessions: WithSessions = server?.withSessions ?? withHarness
  let part: ChatPart = { said: call, setup, agent, id: card?.session ?? null, after: null }
  for (;;) {
    // A copy, because the chat changes its mode in place, and the tools of its harness follow that.
    const now = { ...part, setup: { ...part.setup } }
    const talk = (sessions: Sessions, ear: OutputListener): Promise<ChatEnd> =>
      runChatPart({ place, seat, history, sessions, server, ear, message }, now)
    const ended = await withSessions(place, now.setup, now.said, talk, now.agent)
    if (ended.type === 'left') return ended.exit
    part = await nextPart(place, call, now, ended, seat.chat?.session?.id ?? null)
  }
}

/** The settings that the person did not change stay. */
async function nextPart(
  place: CommandContext,
  call: CommandArgs,
  now: ChatPart,
  after: Extract<ChatEnd, { type: 'again' }>,
  current: string | null,
): Promise<ChatPart> {
  const { mode = now.setup.mode, models = now.said.texts('model'), session: id = current } = after
  const said = withFlags(call, mode, models)
  const card = id === null ? null : await place.store.card(id)
  const folder = id === null || id === current ? now.setup.folder : await workingFolder(place, id)
  const isRemote = remoteClient(place.store) !== null
  const setup = await (isRemote
    ? readRemoteSetup(place, card, call)
    : readCommandSetup(place, folder, withoutNotes(said), { hooks: now.setup.hooks }))
  const chosen = async (): Promise<string | undefined> => (isRemote ? call.text('agent') : chosenAgent(setup, call))
  const agent = after.session === undefined ? now.agent : (card?.agent ?? (await chosen()))
  return { said, setup, agent, id, after }
}

type ChatSeat = {
  readonly place: CommandContext
  readonly seat: OpenChat
  readonly history: InputHistory
  readonly sessions: Sessions
  /** Null: this process drives. */
  readonly server: ServerSide | null
  readonly ear: OutputListener
  readonly message: readonly string[]
}

async function runChatPart(
  { place, seat, history, sessions, server, ear, message }: ChatSeat,
  part: ChatPart,
): Promise<ChatEnd> {
  const { said, setup, agent, id, after } = part
  // Opened as late as possible: a missing model or key is reported without touching the terminal.
  const terminal = (seat.terminal ??= openChatTerminal(seat, history, setup))
  const named = said.texts('model')
  const models = server ? [server.model] : named.length > 0 ? named : (setup.settings.model ?? [])
  const { tokens: window } = server ? UNKNOWN_WINDOW : await smallestWindow(setup, models)
  const session = id === null ? null : sessions.session(id, { stored: true })
  const own = await readOwnCommands(setup, COMMAND_NAMES)
  const isOther = after?.session !== undefined
  const before = isOther ? null : seat.chat
  const chat = new Chat(
    {
      place,
      sessions,
      server,
      setup,
      models,
      window,
      terminal,
      calls: before?.view.calls ?? new ChatCalls(),
      background: seat.background,
      typed: seat.chat?.options.typed ?? [...message],
      own: own.commands,
      told: seat.chat?.options.told ?? [],
      kept: [],
      by: server?.by ?? actorName(said),
      remember: (text: string): void => history.add(text),
      ...(agent === undefined ? {} : { agent }),
    },
    session,
  )
  chat.view.seq = before?.view.seq ?? 0
  seat.chat = chat
  ear.hear = (line) => chat.view.calls.hear(line, 'process')
  ear.runs = (running) => seat.background.watch(running)
  ear.note = (text) => chat.view.note(text)
  if (after?.said !== undefined) for (const line of after.said.split('\n')) chat.view.note(line)
  if (after === null) await greetPerson(chat, place, own.notes)
  else if (isOther) await showSessionSoFar(chat, place)
  else if (after.mode !== undefined) chat.view.note(`  mode ${setup.mode}`)
  return chat.talk(session && (await place.store.card(session.id)))
}

const UNKNOWN_WINDOW = { tokens: Number.POSITIVE_INFINITY } as const

async function readRemoteSetup(place: CommandContext, card: Card | null, call: CommandArgs): Promise<FolderSetup> {
  const { remoteSetup } = await import('../remote/remote-chat.ts')
  return remoteSetup(place, call, (card && (await folderOf(place, card.session))) ?? place.folder)
}

type ServerSide = ServerFacts & { readonly withSessions: WithSessions; readonly hurry: () => void }

/** The server of the command line, or null. */
async function openServer({ store }: CommandContext, agent: string | undefined): Promise<ServerSide | null> {
  const client = remoteClient(store)
  if (!client) return null
  const [{ patienceOf }, { readServerFacts, withServer }] = await Promise.all([
    import('../remote/remote-store.ts'),
    import('../remote/remote-chat.ts'),
  ])
  const patience = patienceOf(store)
  const withSessions = withServer(client, patience)
  return { ...(await readServerFacts(client, agent)), withSessions, hurry: () => patience.hurry() }
}

function openChatTerminal(seat: OpenChat, history: InputHistory, setup: FolderSetup): Terminal {
  const ears = {
    entered: (text: string) => seat.chat?.aside(text),
    interrupt: () => seat.chat?.interrupt(),
    stop: () => seat.chat?.stop() ?? false,
    nextMode: () => seat.chat?.nextMode(),
    background: () => seat.chat?.sendToBackground() ?? false,
    expand: () => seat.chat?.expand(),
    unqueue: () => seat.chat?.unqueue() ?? Promise.resolve(null),
    end: () => seat.chat?.leave(),
    gone: () => closeAfterHangUp(seat),
  }
  const known = {
    history: history.entries,
    hasQueued: () => seat.chat?.hasQueued ?? false,
  }
  const sources = {
    commands: (text: string) => slashMenu(text, seat.chat?.options.own ?? []),
    files: findFilesIn(setup.folder),
  }
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

function withFlags(call: CommandArgs, mode: string, models: readonly string[]): CommandArgs {
  return {
    ...call,
    text: (flag) => (flag === 'mode' ? mode : call.text(flag)),
    texts: (flag) => (flag === 'model' ? models : call.texts(flag)),
  }
}

/** Shows the welcome line, and the last messages of a continued session. */
async function greetPerson(chat: Chat, place: CommandContext, notes: readonly string[]): Promise<void> {
  const { view, options } = chat
  const { terminal, models, setup } = options
  const { paint, columns } = terminal.out
  const names = models.map((name) => oneLine(name)).join(', ')
  const where = clipToWidth(`${names} · mode ${setup.mode} · ${clean(setup.folder)}`, columns - 7)
  terminal.out.say('note', `${paint.bold('terret')} ${paint.dim(where)}`)
  for (const note of [...setup.notes, ...notes]) view.note(clean(note))
  view.note('/help shows what there is. Ctrl-D leaves.')
  await showSessionSoFar(chat, place)
}

async function showSessionSoFar({ view, session, options }: Chat, { store }: CommandContext): Promise<void> {
  const { terminal } = options
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

/** The key for calls in the logs that a fork comes from. No session has this id. */
const BEFORE = ''
const CHILDREN_MAX = 1_000

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
