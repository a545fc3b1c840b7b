// The handlers of routes that change sessions: open, send, stop, fork, undo, pin, close and, for admins, remove. The
// author of each change is the token's principal, whatever the body says.
import { Fault } from '../../kernel/index.ts'
import type { Harness } from '../../harness.ts'
import type { Labels } from '../../kernel/content.ts'
import { type ApiRequest, requireCard, type ApiAnswer, OWNER, addDriverNote, checkAgentReach } from '../server-host.ts'
import { eventIdOfKey, type IdempotencyKey, keyReusedRefusal, sessionIdsOf } from '../idempotency-keys.ts'
import { HttpRefusal } from '../refusals.ts'
import type {
  CommandsBody,
  DoneAnswer,
  ForkBody,
  InterruptBody,
  MessageBody,
  OpenBody,
  OpenedAnswer,
  PinBody,
  PinnedAnswer,
  Principal,
  PursueBody,
  PursuedAnswer,
  RemovedAnswer,
  RenameBody,
  RenamedAnswer,
  ScheduleBody,
  ScheduledAnswer,
  UndoBody,
  UndoneAnswer,
  UnscheduleBody,
  UnscheduledAnswer,
  WireReceipt,
} from '../wire.ts'
import { driverText } from '../../view/session-program.ts'
import { LABELS_MAX } from '../wire-schemas.ts'

type OpenOptions = NonNullable<Parameters<Harness['open']>[0]>
type Session = ReturnType<Harness['session']>

const DONE: DoneAnswer = { ok: true }

/**
 * Opens the session and sends its first message. After a crash between the two, a retry with the same key sends the
 * message.
 */
export async function handleOpen(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, principal, key } = asked
  const { input, agent, folder, labels, metadata, id, model, messages } = asked.body as OpenBody
  checkLabels(labels)
  if (model !== undefined && input === undefined)
    throw new HttpRefusal(
      400,
      'invalid_input',
      'A model is chosen for the run of a message. Give an input with it, or name the model with the message.',
    )
  if (id !== undefined && key)
    throw new HttpRefusal(400, 'invalid_input', 'Give an id or an Idempotency-Key, which becomes the id.')
  const begun = await host.begin({ ...(agent ? { agent } : {}), ...(folder ? { folder } : {}), by: principal })
  checkAgentReach(principal, begun.harness, agent)
  const options: OpenOptions = {
    ...(begun.agent === undefined ? {} : { agent: begun.agent }),
    ...(begun.folder === undefined ? {} : { folder: begun.folder }),
    metadata: { ...metadata, [OWNER]: principal.name },
    labels: { ...labels, [OWNER]: principal.name },
    ...(messages === undefined ? {} : { messages }),
  }
  if (id !== undefined) checkChosenId(id, principal)
  await checkModel(begun.harness, model)
  const made = key ? await findSessionOfKey(asked, key, principal.name) : null
  const own = key ? { id: sessionIdsOf(key).id, reuse: true } : id === undefined ? {} : { id }
  const session = made === null ? await begun.harness.open({ ...options, ...own }) : begun.harness.session(made)
  // Another caller can guess a key, compute its id and open the session first.
  if (key && (await host.store.card(session.id))?.labels?.[OWNER] !== principal.name) throw keyReusedRefusal()
  const chosen = { by: principal.name, ...(model === undefined ? {} : { model }) }
  const receipt = input === undefined ? null : await session.send(input, { ...chosen, ...eventIdOf(asked) })
  const card = await host.store.card(session.id)
  return openedAnswer(session, receipt && card && addDriverNote(host, card, receipt))
}

function openedAnswer({ id }: Session, receipt: WireReceipt | null): ApiAnswer {
  const json: OpenedAnswer = { session: id, receipt }
  return { json, headers: { location: `/v1/sessions/${encodeURIComponent(id)}` } }
}

/** The configuration names all models, so that a caller cannot send a conversation to an unknown host. */
export async function checkModel(harness: Harness, model: string | undefined): Promise<void> {
  if (model === undefined) return
  const known = (await harness.agents())[0]?.models ?? []
  if (known.includes(model)) return
  const choice = known.length === 0 ? 'Leave it out' : `Choose one of: ${known.join(', ')}; or leave it out`
  throw new HttpRefusal(400, 'invalid_input', `This server has no model "${model.slice(0, 64)}". ${choice}.`)
}

function checkLabels(labels: Labels | undefined): void {
  if (labels && OWNER in labels)
    throw new HttpRefusal(400, 'invalid_input', `The label "${OWNER}" is that of the token. Leave it out.`)
}

/** A refused id would reveal that another owner has a session with it. */
function checkChosenId(id: string, { reach, name }: Principal): void {
  if (reach === 'own' && !id.startsWith(`${name}:`))
    throw new HttpRefusal(
      400,
      'invalid_input',
      `Your token chooses ids that begin with "${name}:". Or leave the id out.`,
    )
}

/**
 * The session that this key made before, or null. The same key with another body is refused. Sessions of other owners
 * are not looked at.
 */
async function findSessionOfKey(
  { host }: ApiRequest,
  key: IdempotencyKey,
  owner: string | undefined,
): Promise<string | null> {
  const { start, id } = sessionIdsOf(key)
  const where = owner === undefined ? {} : { where: { [OWNER]: owner } }
  const [card] = await host.store.list({ ...where, after: start, limit: 1 })
  if (!card?.session.startsWith(start)) return null
  if (card.session !== id) throw keyReusedRefusal()
  return id
}

export async function handleSend(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, principal } = asked
  const card = await requireCard(asked)
  const { input, ...options } = asked.body as MessageBody
  // The options of a run are checked against the session's agent.
  const chooses = ['model', 'instructions', 'limits', 'tools', 'settings'].some((name) => name in options)
  const harness = chooses ? await host.harnessOf(card) : host.harness
  await checkModel(harness, options.model)
  const said = { ...options, by: principal.name, ...eventIdOf(asked) }
  const session = harness.session(card.session, { stored: true })
  return { json: addDriverNote(host, card, await session.send(input, said)) satisfies WireReceipt }
}

export async function handleCommands(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const { commands: said } = asked.body as CommandsBody
  const named = { ...eventIdOf(asked), by: asked.principal.name }
  const receipt = await asked.host.harness.session(card.session, { stored: true }).send(said, named)
  return { json: addDriverNote(asked.host, card, receipt) satisfies WireReceipt }
}

export async function handleInterrupt(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const { mode = 'stop' } = asked.body as InterruptBody
  const said = { ...eventIdOf(asked), by: asked.principal.name }
  const receipt = await asked.host.harness.session(card.session, { stored: true }).interrupt(mode, said)
  return { json: addDriverNote(asked.host, card, receipt) satisfies WireReceipt }
}

export async function handleSchedule(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const said = { ...(asked.body as ScheduleBody), ...eventIdOf(asked), by: asked.principal.name }
  const scheduled = await asked.host.harness.session(card.session, { stored: true }).schedule(said)
  return { json: addDriverNote(asked.host, card, scheduled) satisfies ScheduledAnswer }
}

export async function handleUnschedule(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { key } = asked.body as UnscheduleBody
  const dropped = await asked.host.harness
    .session(session, { stored: true })
    .unschedule(key, { by: asked.principal.name })
  return { json: { dropped } satisfies UnscheduledAnswer }
}

export async function handleRename(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { title } = asked.body as RenameBody
  const said = { ...eventIdOf(asked), by: asked.principal.name }
  const renamed = await asked.host.harness.session(session, { stored: true }).rename(title, said)
  return { json: renamed satisfies RenamedAnswer }
}

export async function handlePursue(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const harness = await asked.host.harnessOf(card)
  const wanted = { ...(asked.body as PursueBody), ...eventIdOf(asked), by: asked.principal.name }
  const receipt = await harness.session(card.session, { stored: true }).pursue(wanted)
  return { json: receipt satisfies PursuedAnswer }
}

/** The key becomes the event's id, so a retry with the same key records nothing new. */
function eventIdOf({ key }: ApiRequest): { readonly id?: string } {
  return key ? { id: eventIdOfKey(key.id) } : {}
}

/** The session is looked at in the background. The outcome is in its log. */
export async function handleWake(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  if (!asked.host.drives)
    throw new HttpRefusal(409, 'session_elsewhere', `This server drives no sessions. ${driverText(card)}`)
  const harness = await asked.host.harnessOf(card)
  harness.work({ session: card.session }).catch((error: unknown) => asked.server.report('wake', error))
  return { json: DONE }
}

export async function handleFork(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, key, principal } = asked
  const card = await requireCard(asked)
  const { labels, metadata, ...options } = asked.body as ForkBody
  const { agent } = options
  // A caller that names an agent of this server continues the session of another program here.
  const isAdopted = agent !== undefined && host.elsewhere(card) !== null
  const harness = isAdopted ? (await host.begin({ agent, by: principal })).harness : await host.harnessOf(card)
  checkAgentReach(principal, harness, agent)
  checkLabels(labels)
  if (options.id !== undefined && key)
    throw new HttpRefusal(400, 'invalid_input', 'Give an id or an Idempotency-Key, which becomes the id.')
  await checkModel(harness, options.model)
  if (options.folder !== undefined) await host.begin({ folder: options.folder, by: principal })
  if (options.id !== undefined) checkChosenId(options.id, principal)
  // A fork belongs to the principal that makes it, not to the owner of the session. A session without an owner may
  // already have the maximum number of labels.
  const inherited = { ...card.labels, ...labels }
  const hasOwner = OWNER in inherited || Object.keys(inherited).length < LABELS_MAX
  const owner = hasOwner ? { [OWNER]: principal.name } : {}
  const made = key ? await findSessionOfKey(asked, key, hasOwner ? principal.name : undefined) : null
  if (made !== null) return openedAnswer(harness.session(made), null)
  const own = key ? { id: sessionIdsOf(key).id } : {}
  const named = { metadata: { ...metadata, ...owner }, labels: { ...labels, ...owner } }
  return openedAnswer(
    await harness.session(card.session, { stored: true }).fork({ ...options, ...named, ...own }),
    null,
  )
}

export async function handleUndo(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const { run } = asked.body as UndoBody
  const harness = await asked.host.harnessOf(card)
  const undone = await harness.session(card.session, { stored: true }).undo(run)
  return { json: { undone } satisfies UndoneAnswer }
}

export async function handlePin(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { text, seq } = asked.body as PinBody
  const what = text ?? seq
  if (what === undefined || (text !== undefined && seq !== undefined))
    throw new HttpRefusal(400, 'invalid_input', 'Give a text or the seq of a message.')
  const pinned = await asked.host.harness.session(session, { stored: true }).pin(what)
  return { json: { seq: pinned.seq } satisfies PinnedAnswer }
}

export async function handleUnpin(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { seq = '' } = asked.params
  if (!/^\^{0,100}[1-9]\d{0,15}$/.test(seq))
    throw new HttpRefusal(400, 'invalid_input', 'Name a pin by its seq, such as 12, or by its name, such as ^12.')
  await asked.host.harness.session(session, { stored: true }).pin(seq, { off: true })
  return { json: DONE }
}

/** Closing a closed session succeeds. */
export async function handleClose(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const harness = await asked.host.harnessOf(card)
  try {
    await harness.session(card.session, { stored: true }).close({ by: asked.principal.name })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_closed') throw error
  }
  return { json: DONE }
}

export async function handleRemove(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const removed = await asked.host.harness.remove(session, { by: asked.principal.name })
  await asked.host.onRemoved?.(removed)
  return { json: { removed } satisfies RemovedAnswer }
}
