// What operators do: open, say, stop, fork, undo, pin, close; and what admins take out. Who did it is the token's name, whatever the body says.
import { Fault } from '../../kernel/index.ts'
import type { Harness } from '../../harness.ts'
import type { Labels } from '../../kernel/content.ts'
import { type Asked, cardOf, type Given, OWNER, addDriver } from '../host.ts'
import { type Key, reused, sessionIdsOf } from '../keys.ts'
import { Refused } from '../refusals.ts'
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
  RemovedAnswer,
  UndoBody,
  UndoneAnswer,
  WireReceipt,
} from '../wire.ts'
import { driverText } from '../../view/program.ts'
import { LABELS_MAX } from '../wire-schemas.ts'

type OpenOptions = NonNullable<Parameters<Harness['open']>[0]>
type Session = ReturnType<Harness['session']>

const DONE: DoneAnswer = { ok: true }

/** The session and its first message. After a crash between the two, the same key says the message. */
export async function open(asked: Asked): Promise<Given> {
  const { host, principal, key } = asked
  const { input, agent, folder, labels, metadata, id, model, messages } = asked.body as OpenBody
  checkLabels(labels)
  if (id !== undefined && key)
    throw new Refused(400, 'invalid_input', 'Give an id or an Idempotency-Key, which becomes the id.')
  const begun = await host.begin({ ...(agent ? { agent } : {}), ...(folder ? { folder } : {}), by: principal })
  const options: OpenOptions = {
    ...(begun.agent === undefined ? {} : { agent: begun.agent }),
    ...(begun.folder === undefined ? {} : { folder: begun.folder }),
    metadata: { ...metadata, [OWNER]: principal.name },
    labels: { ...labels, [OWNER]: principal.name },
    ...(messages === undefined ? {} : { messages }),
  }
  if (id !== undefined) checkName(id, principal)
  checkModel(begun.harness, model)
  const made = key ? await madeBefore(asked, key, principal.name) : null
  const own = key ? { id: sessionIdsOf(key).id, reuse: true } : id === undefined ? {} : { id }
  const session = made === null ? await begun.harness.open({ ...options, ...own }) : begun.harness.session(made)
  // Others can work out the id of a key that they guess, and be there first.
  if (key && (await host.store.card(session.id))?.labels?.[OWNER] !== principal.name) throw reused()
  const chosen = { by: principal.name, ...(model === undefined ? {} : { model }) }
  const receipt = input === undefined ? null : await session.send(input, { ...chosen, ...idOf(asked) })
  const card = await host.store.card(session.id)
  return opened(session, receipt && card && addDriver(host, card, receipt))
}

function opened({ id }: Session, receipt: WireReceipt | null): Given {
  const json: OpenedAnswer = { session: id, receipt }
  return { json, headers: { location: `/v1/sessions/${encodeURIComponent(id)}` } }
}

/** A caller sends a conversation to no host that the configuration does not name. */
function checkModel(harness: Harness, model: string | undefined): void {
  const known = harness.models()
  if (model === undefined || known.includes(model)) return
  const choice = known.length === 0 ? 'Leave it out' : `Choose one of: ${known.join(', ')}; or leave it out`
  throw new Refused(400, 'invalid_input', `This server has no model "${model.slice(0, 64)}". ${choice}.`)
}

function checkLabels(labels: Labels | undefined): void {
  if (labels && OWNER in labels)
    throw new Refused(400, 'invalid_input', `The label "${OWNER}" is that of the token. Leave it out.`)
}

/** Otherwise an id that is refused would say that somebody else has such a session. */
function checkName(id: string, { reach, name }: Principal): void {
  if (reach === 'own' && !id.startsWith(`${name}:`))
    throw new Refused(400, 'invalid_input', `Your token chooses ids that begin with "${name}:". Or leave the id out.`)
}

/** Another body under the same key would have made another id. Sessions of other owners have nothing to do with it. */
async function madeBefore({ host }: Asked, key: Key, owner: string | undefined): Promise<string | null> {
  const { start, id } = sessionIdsOf(key)
  const where = owner === undefined ? {} : { where: { [OWNER]: owner } }
  const [card] = await host.store.list({ ...where, after: start, limit: 1 })
  if (!card?.session.startsWith(start)) return null
  if (card.session !== id) throw reused()
  return id
}

export async function send(asked: Asked): Promise<Given> {
  const { host, principal } = asked
  const card = await cardOf(asked)
  const { input, ...options } = asked.body as MessageBody
  // Options of a run are checked against the agent of the session.
  const chooses = ['model', 'instructions', 'limits', 'tools', 'settings'].some((name) => name in options)
  const harness = chooses ? await host.harnessOf(card) : host.harness
  checkModel(harness, options.model)
  const said = { ...options, by: principal.name, ...idOf(asked) }
  const session = harness.session(card.session, { stored: true })
  return { json: addDriver(host, card, await session.send(input, said)) satisfies WireReceipt }
}

export async function commands(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const { commands: said } = asked.body as CommandsBody
  const named = { ...idOf(asked), by: asked.principal.name }
  const receipt = await asked.host.harness.session(card.session, { stored: true }).steer(said, named)
  return { json: addDriver(asked.host, card, receipt) satisfies WireReceipt }
}

export async function interrupt(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const { mode = 'stop' } = asked.body as InterruptBody
  const said = { ...idOf(asked), by: asked.principal.name }
  const receipt = await asked.host.harness.session(card.session, { stored: true }).interrupt(mode, said)
  return { json: addDriver(asked.host, card, receipt) satisfies WireReceipt }
}

/** What was said under this key before is not said again. */
function idOf({ key }: Asked): { readonly id?: string } {
  return key ? { id: `http:${key.id}` } : {}
}

/** It is looked at in the background: what comes of it is in its log. */
export async function wake(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  if (!asked.host.drives)
    throw new Refused(409, 'session_elsewhere', `This server drives no sessions. ${driverText(card)}`)
  const harness = await asked.host.harnessOf(card)
  harness.wake(card.session).catch((error: unknown) => asked.server.report('wake', error))
  return { json: DONE }
}

export async function fork(asked: Asked): Promise<Given> {
  const { host, key, principal } = asked
  const card = await cardOf(asked)
  const { labels, metadata, ...options } = asked.body as ForkBody
  const { agent } = options
  // A caller that names an agent of this server wants it to go on with the session of another program.
  const isAdopted = agent !== undefined && host.elsewhere(card) !== null
  const harness = isAdopted ? (await host.begin({ agent, by: principal })).harness : await host.harnessOf(card)
  checkLabels(labels)
  if (options.id !== undefined && key)
    throw new Refused(400, 'invalid_input', 'Give an id or an Idempotency-Key, which becomes the id.')
  checkModel(harness, options.model)
  if (options.folder !== undefined) await host.begin({ folder: options.folder, by: principal })
  if (options.id !== undefined) checkName(options.id, principal)
  // A fork belongs to the principal who makes it, not to the owner of the session. A session without an owner may have no label left for one.
  const inherited = { ...card.labels, ...labels }
  const hasOwner = OWNER in inherited || Object.keys(inherited).length < LABELS_MAX
  const owner = hasOwner ? { [OWNER]: principal.name } : {}
  const made = key ? await madeBefore(asked, key, hasOwner ? principal.name : undefined) : null
  if (made !== null) return opened(harness.session(made), null)
  const own = key ? { id: sessionIdsOf(key).id } : {}
  const named = { metadata: { ...metadata, ...owner }, labels: { ...labels, ...owner } }
  return opened(await harness.session(card.session, { stored: true }).fork({ ...options, ...named, ...own }), null)
}

export async function undo(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const { run } = asked.body as UndoBody
  const harness = await asked.host.harnessOf(card)
  const undone = await harness.session(card.session, { stored: true }).undo(run)
  return { json: { undone } satisfies UndoneAnswer }
}

export async function pin(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const { text, seq } = asked.body as PinBody
  const what = text ?? seq
  if (what === undefined || (text !== undefined && seq !== undefined))
    throw new Refused(400, 'invalid_input', 'Give a text or the seq of a message.')
  const pinned = await asked.host.harness.session(session, { stored: true }).pin(what)
  return { json: { seq: pinned.seq } satisfies PinnedAnswer }
}

export async function unpin(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const { seq = '' } = asked.params
  if (!/^\^{0,100}[1-9]\d{0,15}$/.test(seq))
    throw new Refused(400, 'invalid_input', 'Name a pin by its seq, such as 12, or by its name, such as ^12.')
  await asked.host.harness.session(session, { stored: true }).unpin(seq)
  return { json: DONE }
}

/** Closed already is closed. */
export async function close(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const harness = await asked.host.harnessOf(card)
  try {
    await harness.session(card.session, { stored: true }).close({ by: asked.principal.name })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_closed') throw error
  }
  return { json: DONE }
}

export async function remove(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const removed = await asked.host.harness.remove(session, { by: asked.principal.name })
  await asked.host.removed?.(removed)
  return { json: { removed } satisfies RemovedAnswer }
}
