// The commands of a chat that go elsewhere: another model, another session, an earlier message. Each shows a list with
// search, or takes the name that was entered. What they choose takes effect at the next message.
import type { Card, Event } from '../../kernel/index.ts'
import type { listModels as ListModels, SessionHandle } from '../../index.ts'
import { durationText, stateOf } from '../../view/tree-rows.ts'
import { clean, oneLine, shownId } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { CliError, EXIT, exitForError } from '../exit.ts'
import { UNDO_TEXTS } from '../commands/undo-command.ts'
import { sessionTitle } from '../commands/list-command.ts'
import { findSession, ownerFields } from '../state/command-context.ts'
import { endpointsOf, modelsFor } from '../state/folder-agent.ts'
import { readAllEvents, readEventsBefore } from '../state/read-log.ts'
import { cardsHere, SIDE_LABEL, startSessionIn } from '../state/session-folders.ts'
import { workflowOfAgent } from '../state/workflow-agents.ts'
import { shortId, terretCommand } from '../present/print.ts'
import type { PickItem } from './picker.ts'
import type { ChatControl } from './chat-control.ts'
import { messageText } from './chat-view.ts'

// ── /model ──

export async function chooseModel(chat: ChatControl, [name]: readonly string[]): Promise<void> {
  const { terminal, models, setup, server } = chat.options
  const [now = ''] = models
  if (server) return chat.view.note(`  ${oneLine(now) || 'unknown'}, as the server has it`)
  const chosen = name ?? (await terminal.pick({ title: 'Model', items: await modelItems(chat), start: now }))
  if (chosen === null) return
  if (chosen === now && models.length === 1) return chat.view.note(`  ${oneLine(now)} answers already.`)
  // A name that cannot be used is refused here, and the chat goes on with the old one.
  try {
    await modelsFor(setup, { models: [chosen] })
  } catch (error) {
    return chat.view.note(`${oneLine(exitForError(error).text, 600)} /model without a name lists them.`)
  }
  chat.requestedEnd = { type: 'again', models: [chosen], said: `  ${oneLine(chosen)} answers from now on` }
}

/** The models of the configuration first, then what the hosts with a key offer. A host that does not answer has none. */
async function modelItems({ options: { models, setup }, view }: ChatControl): Promise<readonly PickItem[]> {
  const { settings, env } = setup
  const { endpoints, listModels } = await import('../../index.ts')
  const own = await endpointsOf(settings)
  const configured = [...models, ...(settings.model ?? []), ...Object.values(settings.models?.routes ?? {})]
  const used = configured.map((each) => each.split(':')[0] ?? '')
  const all = { ...endpoints, ...Object.fromEntries(own.map((each) => [each.name, each])) }
  const hosts = Object.values(all).filter(({ name, keys }) => used.includes(name) || keys.some((key) => env[key]))
  view.note(`  asking ${hosts.map(({ name }) => oneLine(name)).join(', ')} …`)
  const { headers = {} } = settings
  const offers = hosts.map(async ({ name }) => {
    const offer = await listModels(name, { endpoints: own, env, headers }).catch(() => null)
    return offer === null || offer.type === 'failure' ? [] : offer.models.map((each) => modelItem(name, each))
  })
  const offered = (await Promise.all(offers)).flat()
  const known = new Map(offered.map((item) => [item.value, item]))
  for (const each of configured) if (!known.has(each)) known.set(each, { value: each, label: each })
  const first = [...new Set(configured)].flatMap((each) => known.get(each) ?? [])
  return [...first, ...[...known.values()].filter((item) => !first.includes(item))]
}

type Offer = Exclude<Awaited<ReturnType<typeof ListModels>>, { readonly type: 'failure' }>

function modelItem(host: string, { id, contextTokens, price, assumed }: Offer['models'][number]): PickItem {
  const size = contextTokens === undefined ? '' : `${Math.round(contextTokens / 1_000)}k · `
  const cost = assumed ? 'price unknown' : `$${price.input} in, $${price.output} out a million`
  return { value: `${host}:${id}`, label: `${host}:${id}`, detail: `${size}${cost}` }
}

// ── /new and /resume ──

export function startNewSession(chat: ChatControl): void {
  const { session, wayBack } = chat
  if (!session) return chat.view.note('This session is new: nothing was said yet.')
  chat.requestedEnd = { type: 'again', session: null, said: `  A new session. ${wayBack ?? ''}`.trimEnd() }
}

/** How many sessions the list has: the newest. */
const LISTED_MAX = 100
/** Messages are counted only in logs that are read quickly. */
const COUNTED_EVENTS_MAX = 500

export async function resumeSession(chat: ChatControl, words: readonly string[]): Promise<void> {
  const { place, terminal } = chat.options
  const query = words.join(' ')
  const named = query === '' ? null : await findSession(place, query).catch(nullIfMissing)
  const chosen = named?.session ?? (await terminal.pick({ title: 'Resume', items: await sessionItems(chat), query }))
  if (chosen === null) return
  const card = named ?? (await place.store.card(chosen))
  if (card === null) return chat.view.note('That session was removed meanwhile.')
  if (card.session === chat.session?.id) return chat.view.note('You are in it.')
  refuseNoChat(card)
  chat.requestedEnd = { type: 'again', session: card.session }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof CliError && error.exit === EXIT.missing) return null
  throw error
}

async function sessionItems({ options: { place }, session }: ChatControl): Promise<readonly PickItem[]> {
  const cards = (await cardsHere(place, { limit: LISTED_MAX })).filter(
    (card) => card.session !== session?.id && card.labels?.[SIDE_LABEL] === undefined,
  )
  if (cards.length === 0) throw new CliError(EXIT.missing, 'There is no other session of this folder.')
  const now = place.store.now()
  return Promise.all(
    cards.map(async (card) => {
      const size =
        card.seq > COUNTED_EVENTS_MAX
          ? countNoun(card.seq, 'event')
          : countNoun(messagesIn(await readAllEvents(place.store, card.session)).length, 'message')
      const detail = `${size} · ${durationText(now - card.at)} ago · ${stateOf(card)} · ${shortId(card.session)}`
      return { value: card.session, label: oneLine(await sessionTitle(place.store, card), 200), detail }
    }),
  )
}

/** Refuses a session that a chat cannot go on with. */
export function refuseNoChat(card: Card): void {
  const { session, agent, status } = card
  if (status === 'terminated')
    throw new CliError(
      EXIT.conflict,
      `Session ${shortId(session)} is closed. \`${terretCommand`fork ${session}`}\` goes on from it.`,
    )
  // A workflow takes no messages, because its graph decides the next step.
  if (workflowOfAgent(agent) !== null)
    throw new CliError(
      EXIT.usage,
      `Session ${shortId(session)} is a workflow, not a chat. Go on with: ${terretCommand`resume ${session}`}`,
    )
}

// ── /rewind ──

type SentMessage = Extract<Event, { type: 'user.message' }>

/** What the person said. Reports of children and messages of other sessions are none. */
function messagesIn(events: readonly Event[]): readonly SentMessage[] {
  return events.filter((event): event is SentMessage => {
    if (event.type !== 'user.message' || event.report !== undefined) return false
    return event.by === undefined || !event.by.startsWith('session:')
  })
}

/** Goes on from before a message, in a copy, and takes back the files that were changed since. The session stays. */
export async function rewindSession(chat: ChatControl, words: readonly string[]): Promise<void> {
  const { session, options, view } = chat
  if (!session) return view.note('There is nothing to go back to yet.')
  const events = await readAllEvents(options.place.store, session.id)
  const messages = messagesIn(events)
  if (messages.length === 0)
    return view.note(
      (await readEventsBefore(options.place.store, events)).length > 0
        ? 'Nothing was said since this copy was made. /resume goes to the session before it.'
        : 'Nothing was said yet.',
    )
  const chosen = await chooseMessage(chat, messages, words)
  if (!chosen) return
  const runs = runsSince(events, chosen)
  const what = await askWhat(chat, runs.length)
  if (what === null) return view.note('  Nothing was changed.')
  if (what !== 'conversation') await undoRuns(chat, session, runs)
  if (what !== 'files') await goOnBefore(chat, session, chosen)
}

async function chooseMessage(
  { options: { terminal, place }, view }: ChatControl,
  messages: readonly SentMessage[],
  [given]: readonly string[],
): Promise<SentMessage | null> {
  if (given !== undefined) {
    const named = messages.find(({ seq }) => String(seq) === given)
    if (!named) view.note(`There is no message ${oneLine(given, 40)}. /rewind lists them.`)
    return named ?? null
  }
  const now = place.store.now()
  const items = messages.toReversed().map((message) => {
    const label = oneLine(messageText(message), 200) || '(no text)'
    return { value: String(message.seq), label, detail: `${durationText(now - message.at)} ago` }
  })
  const value = await terminal.pick({ title: 'Go back to before', items })
  return messages.find(({ seq }) => String(seq) === value) ?? null
}

/** The runs that a message opened, and all later ones, the newest first. */
function runsSince(events: readonly Event[], { seq }: SentMessage): readonly number[] {
  const later = events.filter((event) => event.type === 'run.started' && event.seq > seq).map((event) => event.seq)
  return later.toReversed()
}

type RewindChoice = 'both' | 'conversation' | 'files'

async function askWhat({ options: { terminal } }: ChatControl, runs: number): Promise<RewindChoice | null> {
  const items = [
    { value: 'both', label: 'conversation and files' },
    { value: 'conversation', label: 'conversation only', detail: 'files stay as they are' },
    { value: 'files', label: 'files only', detail: `of ${countNoun(runs, 'run')}` },
  ] as const
  const value = await terminal.pick({ title: 'Take back', items })
  return items.find((item) => item.value === value)?.value ?? null
}

async function undoRuns(
  { options: { terminal }, view }: ChatControl,
  session: SessionHandle,
  runs: readonly number[],
): Promise<void> {
  const lines: string[] = []
  for (const run of runs) {
    const undone = await session.undo(run)
    view.told('note.added')
    lines.push(...undone.map(({ what, result }) => `  ${oneLine(what)}: ${UNDO_TEXTS[result]}`))
  }
  terminal.out.say('note', lines.length === 0 ? '  No file was changed since.' : lines.join('\n'))
}

/** A message that others wrote, by a file or a server, stays a message: behind a blank it is no command of the chat. */
export function draftOf(text: string): string {
  return /^[!/]/.test(text) ? ` ${text}` : text
}

/** The copy ends before the message. The message comes back with the arrow key, to be changed and sent again. */
async function goOnBefore(chat: ChatControl, session: SessionHandle, message: SentMessage): Promise<void> {
  const { place, by, setup, remember } = chat.options
  const own = ownerFields(place, await place.store.card(session.id), by)
  const at = message.seq - 1
  const forked = await startSessionIn(place, setup.folder, (as) => session.fork({ ...as, ...own, at }))
  remember(draftOf(messageText(message)))
  const said = `  Before: ${oneLine(clean(messageText(message)), 60)}\n  Now in ${shortId(forked.id)}; ${shownId(shortId(session.id))} stays as it is. ↑ brings the message back.`
  chat.requestedEnd = { type: 'again', session: forked.id, said }
}
