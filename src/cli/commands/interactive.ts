// `terret interactive`: a chat with an agent in this folder, in a new session or in one that goes on.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { type Call, person } from '../args.ts'
import { Chat } from '../chat/chat.ts'
import { Calls, doneRows, type Folded } from '../chat/call.ts'
import { completions } from '../chat/slash-commands.ts'
import { type History, openHistory } from '../chat/history.ts'
import { openTerminal, type Terminal } from '../chat/terminal-input.ts'
import type { Surface } from '../present/screen.ts'
import { clippedToWidth, fitted } from '../present/text.ts'
import { type ChatView, messageText } from '../chat/chat-view.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { counted } from '../../view/text.ts'
import { EXIT, Refusal } from '../exit.ts'
import { allEvents, eventsBefore, foldAll } from '../state/log.ts'
import { isStopped } from '../present/outcome.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { print, shortId, typed } from '../present/print.ts'
import type { Setup } from '../state/setup.ts'
import { windowOf } from '../state/window.ts'
import { agentWanted, setupOf, withHarness } from '../state/work.ts'
import { workflowOf } from '../state/workflows.ts'

export function interactive(call: Call): Promise<number> {
  const [name] = call.words
  if (call.is('json') || process.stdin.isTTY !== true || process.stdout.isTTY !== true)
    throw new Refusal(EXIT.usage, 'A chat needs a terminal. In a script, use: terret run TASK')
  if (name !== undefined && call.is('continue'))
    throw new Refusal(
      EXIT.usage,
      'A session and --continue exclude each other. Name a session, or use --continue for the last one of this folder.',
    )
  const wanted = call.is('continue') ? 'latest' : name
  if (wanted !== undefined && call.text('agent') !== undefined)
    throw new Refusal(EXIT.usage, 'A session keeps its agent, so --agent is for a new one.')
  return inPlace(async (place) => {
    const card = wanted === undefined ? null : await sessionOf(place, wanted)
    if (card?.status === 'terminated')
      throw new Refusal(
        EXIT.conflict,
        `Session ${shortId(card.session)} is closed. \`${typed`fork ${card.session}`}\` goes on from it.`,
      )
    // A workflow takes no messages: the graph decides what comes next.
    if (card && workflowOf(card.agent) !== null)
      throw new Refusal(
        EXIT.usage,
        `Session ${shortId(card.session)} is a workflow, not a chat. Go on with: ${typed`resume ${card.session}`}`,
      )
    return held(place, card, call)
  })
}

/** A new mode is a new chat on the same terminal. */
type Seat = { chat: Chat | null; terminal: Terminal | null }

type Holding = {
  readonly place: Place
  readonly card: Card | null
  readonly call: Call
  readonly setup: Setup
  readonly seat: Seat
}

async function held(place: Place, card: Card | null, call: Call): Promise<number> {
  const setup = await setupOf(place, card ? await workplaceOf(place, card.session) : place.folder, noted(call))
  const seat: Seat = { chat: null, terminal: null }
  const off = onSignals(seat)
  const undivert = divert(seat)
  try {
    return await modes({ place, card, call, setup, seat })
  } finally {
    seat.terminal?.close()
    undivert()
    off()
    if (seat.chat?.wayBack && !seat.terminal?.gone) print(seat.chat.wayBack)
  }
}

/** One harness per mode: its tools and what they ask are fixed when it is made. */
async function modes({ place, card, call, seat, ...first }: Holding): Promise<number> {
  const { environmentSecrets } = await import('../../index.ts')
  const history = openHistory(place.home, first.setup.folder, environmentSecrets(first.setup.env))
  let { setup } = first
  const agent = card?.agent ?? (await agentWanted(setup, call))
  for (let said = call; ; ) {
    const now = setup
    const ended = await withHarness(
      place,
      now,
      said,
      async (harness, ear) => {
        // Not earlier: a missing model or key is reported without touching the terminal.
        const terminal = (seat.terminal ??= terminalFor(seat, history))
        const models = said.texts('model').length > 0 ? said.texts('model') : (now.settings.model ?? [])
        const { tokens: window } = await windowOf(now, models)
        const id = seat.chat ? seat.chat.session?.id : card?.session
        const session = id === undefined ? null : harness.session(id, { stored: true })
        const remember = (text: string): void => history.add(text)
        const calls = seat.chat?.view.calls ?? new Calls()
        const chat = new Chat(
          {
            place,
            harness,
            setup: now,
            models,
            window,
            terminal,
            calls,
            typed: seat.chat?.options.typed ?? [],
            kept: [],
            by: person(said),
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
        if (isFirst) await greet(chat, place)
        else chat.view.note(`  mode ${now.mode}`)
        return chat.talk(session && (await place.store.card(session.id)))
      },
      agent,
    )
    if (ended.type === 'left') return ended.exit
    said = inMode(call, ended.mode)
    setup = await setupOf(place, now.folder, noted(said))
  }
}

function terminalFor(seat: Seat, history: History): Terminal {
  const ears = {
    entered: (text: string) => seat.chat?.aside(text),
    interrupt: () => seat.chat?.interrupt(),
    end: () => seat.chat?.leave(),
    gone: () => hungUp(seat),
  }
  return openTerminal({ known: { history: history.entries, complete: completions }, ears, env: process.env })
}

/** Shows the notes of a setup in the chat, once. */
function noted(call: Call): Call {
  return { ...call, is: (flag) => flag === 'quiet' || call.is(flag) }
}

function inMode(call: Call, mode: string): Call {
  return { ...call, text: (flag) => (flag === 'mode' ? mode : call.text(flag)) }
}

/** The welcome line; for a continued session also its last messages. */
async function greet({ view, session, options }: Chat, { store }: Place): Promise<void> {
  const { terminal, models, setup } = options
  const { paint, columns } = terminal.out
  const names = models.map((name) => oneLine(name)).join(', ')
  const where = clippedToWidth(`${names} · mode ${setup.mode} · ${clean(setup.folder)}`, columns - 7)
  terminal.out.say('note', `${paint.bold('terret')} ${paint.dim(where)}`)
  for (const note of setup.notes) view.note(clean(note))
  view.note('/help shows what there is. Ctrl-D leaves.')
  if (!session) return
  const events = await allEvents(store, session.id)
  view.note(`Session ${shortId(session.id)} goes on, after ${events.length} events.`)
  view.seq = events.at(-1)?.seq ?? 0
  const before = await eventsBefore(store, events)
  view.calls.recall(BEFORE, before)
  view.calls.recall(session.id, events)
  await recallChildren(view.calls, store, session.id)
  showLast(view, terminal.out, [
    ...before.map((event) => ({ of: BEFORE, event })),
    ...events.map((event) => ({ of: session.id, event })),
  ])
  const { paused, held } = foldAll(events)
  if (held)
    view.note(`It was imported and is held. To see what it would do, and let it: ${typed`resume ${session.id}`}`)
  else if (paused) await session.steer([{ type: 'resume' }], { by: options.by })
}

/** The number of last messages shown. */
const RECALLED = 3
/** The key for calls of the logs a fork comes from. No session has this id. */
const BEFORE = ''
const CALLS_MAX = 8
const CHILDREN_MAX = 1_000

type Recalled = { readonly of: string; readonly event: Event }

/** The last messages with the texts and calls after them, as the chat showed them. */
function showLast(view: ChatView, out: Surface, all: readonly Recalled[]): void {
  const [first] = all.filter(({ event }) => event.type === 'user.message').slice(-RECALLED)
  const { paint, columns } = out
  let calls: Folded[] = []
  const flush = (): void => {
    const hidden = calls.length - CALLS_MAX
    if (hidden > 0) out.say('call', paint.dim(`  … ${counted(hidden, 'call')} before these: /calls lists them`))
    for (const call of calls.slice(-CALLS_MAX)) for (const row of doneRows(call, paint, columns)) out.say('call', row)
    calls = []
  }
  for (const { of, event } of first ? all.slice(all.indexOf(first)) : []) {
    const text = event.type === 'agent.message' ? messageText(event) : ''
    if (event.type === 'user.message' || event.type === 'model.failed' || text.trim() !== '') flush()
    if (event.type === 'user.message') view.echo(messageText(event))
    else if (event.type === 'model.failed' && isStopped(event)) view.cut(event)
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

/** The calls of children, each below the call it works for: parents first, as their ids are the shorter ones. */
async function recallChildren(calls: Calls, store: Store, root: string): Promise<void> {
  const cards = await store.list({ root, limit: CHILDREN_MAX })
  const children = cards
    .filter(({ session }) => session !== root)
    .toSorted((a, b) => a.session.length - b.session.length)
  for (const { session } of children) {
    const events = await allEvents(store, session)
    const [created] = events
    if (created?.type === 'session.created' && created.parent) calls.recall(session, events, created.parent)
  }
}

/** The terminal is gone. */
function hungUp({ chat, terminal }: Seat): void {
  terminal?.close(true)
  chat?.leave()
}

/** On a signal or a closed terminal the session is released as it is. */
function onSignals(seat: Seat): () => void {
  const interrupt = (): void => (seat.chat ? seat.chat.interrupt() : process.exit(EXIT.interrupted))
  const end = (): void => (seat.chat ? seat.chat.leave() : process.exit(EXIT.interrupted))
  const hangUp = (): void => hungUp(seat)
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
function divert(seat: Seat): () => void {
  const { stderr } = process
  const write = stderr.write.bind(stderr)
  stderr.write = (chunk: Uint8Array | string): boolean => {
    if (!seat.terminal?.open) return write(chunk)
    seat.terminal.out.say('note', fitted(clean(String(chunk).trimEnd()), seat.terminal.out.columns))
    return true
  }
  return () => {
    stderr.write = write
  }
}
