// Sends a message to a session: the checks before it is written, and the write. driven.ts follows the run that it
// opens.
import { dueBy } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/failure.ts'
import { commitWithRetry } from '../../runtime/state/store-retry.ts'
import { type SessionBeginning, newSessionWrite } from '../../runtime/loop/act-as-owner.ts'
import { elsewhereReceipt } from '../../runtime/state/program.ts'
import { schemaKey, SCHEMAS_KEPT, type Services } from '../../runtime/state/runtime-ports.ts'
import { readSessionHead, findOutage } from '../../runtime/state/session-tree.ts'
import { mayBeLane } from '../../view/lanes.ts'
import { eventId } from '../../view/shown-text.ts'
import { followFields, type SessionAccess } from '../await-run.ts'
import {
  type UserMessageBody,
  buildMessage,
  type LaterOptions,
  type ParsedCommand,
  type SendOptions,
} from '../command.ts'
import { refuseLane } from '../lane-guard.ts'
import { BRING_MESSAGES, checkOwnBlobs, checkInboxRoom, type Input, isConversation, referencedBlobs } from '../input.ts'
import { idInBatch } from '../../stores/plan/store-ids.ts'
import { checkNotFar } from '../moment.ts'
import type { RunOptions } from '../verb-options.ts'
import type { SentReceipt } from '../verbs.ts'
import { checkHarnessOpen, runOwnerAction } from './place.ts'
import type { CompleteStore } from '../../ports/store.ts'
import type { InboxBody } from '../../kernel/event.ts'
import { isDeepStrictEqual } from 'node:util'

/** The message is on disk when this resolves. */
export async function sendMessage(
  place: SessionAccess,
  input: Input,
  options: SendOptions & LaterOptions,
): Promise<SentReceipt> {
  const { id, services } = place
  options.signal?.throwIfAborted()
  if (mayBeLane(id)) await refuseLane(services, id, input)
  if (isConversation(input)) checkMessageReader(services, (await services.store.card(id))?.agent)
  const said = buildMessage(input, options, services.random)
  if (said.event.notBefore !== undefined) checkNotFar(said.event.notBefore, services.store.now())
  const named = referencedBlobs(said)
  if (named.length > 0) await checkOwnBlobs(services.store, id, named)
  if (said.event.options !== undefined) await checkMessageChoice(place, said, options, null)
  if (options.when !== 'idle') return queueMessage(place, said, options)
  try {
    return await sendIfIdle(place, said)
  } catch (error) {
    // A retry whose first send succeeded is a duplicate, not a conflict.
    const again = error instanceof Fault && error.code === 'session_busy' && options.id !== undefined
    const seq = again ? await findSentSeq(services.store, id, services.redactor.body(said.event)) : null
    if (seq === null) throw error
    return { eventId: eventId(id, seq), seq, duplicate: true, queued: false }
  }
}

/** Creates the session and admits its first message in one commit. Resolves with the seq of the message. */
export async function createWithMessage(
  place: SessionAccess,
  beginning: SessionBeginning,
  input: Input,
  options: RunOptions,
): Promise<number> {
  const { id, services } = place
  const { store, random, redactor } = services
  options.signal?.throwIfAborted()
  if (isConversation(input)) checkMessageReader(services, beginning.agent)
  const said = buildMessage(input, options, random)
  await checkOwnBlobs(store, id, referencedBlobs(said))
  if (said.event.options !== undefined) await checkMessageChoice(place, said, options, beginning.agent)
  const { event, blobs } = said
  await store.open()
  const message = { session: id, lane: 'inbox', events: [redactor.body(event)], blobs } as const
  const [, receipt] = await commitWithRetry(services, [newSessionWrite(services, id, beginning), message])
  return receipt?.seqs[0] ?? 0
}

/**
 * Throws if a conversation was given as one message to a language model. An agent of another program is not known here.
 */
function checkMessageReader(services: Services, agent: string | undefined): void {
  let isModel = false
  try {
    isModel = agent !== undefined && services.agent(agent).planner === null
  } catch {}
  if (isModel) throw new Fault('invalid_input', BRING_MESSAGES)
}

/** Writes to the inbox, which needs no lease. */
export async function admitToInbox(place: SessionAccess, said: ParsedCommand): Promise<SentReceipt> {
  checkHarnessOpen(place)
  return writeToInbox(place, said)
}

async function writeToInbox({ id, services }: SessionAccess, { event, blobs }: ParsedCommand): Promise<SentReceipt> {
  const { store, redactor } = services
  const [receipt] = await commitWithRetry(services, [
    { session: id, lane: 'inbox', events: [redactor.body(event)], blobs },
  ])
  const seq = receipt?.seqs[0] ?? 0
  const card = await store.card(id)
  const queued = event.type === 'user.message' && card?.status === 'requires_action'
  const duplicate = receipt?.duplicate ?? false
  return { eventId: eventId(id, seq), seq, duplicate, queued, ...elsewhereReceipt(services, card) }
}

/**
 * Retries now if the session, or a child that it waits for, waits for a provider. Returns the ids of those sessions.
 * Without an outage nothing is written.
 */
export async function retryNow(place: SessionAccess, by?: string): Promise<readonly string[]> {
  const { id, services, worker } = place
  const { sessions = [], until = null } = (await findOutage(worker.heads, id, services.store.now())) ?? {}
  if (until === null) return []
  const who = by === undefined ? {} : { by }
  for (const session of sessions) {
    const event = { type: 'user.interrupt', id: services.random.id(), mode: 'resume', ...who } as const
    await admitToInbox({ ...place, id: session }, { event, blobs: [] })
  }
  return sessions
}

/**
 * Sends several commands, all or none. With an `id` the same batch again is a duplicate, and another batch is refused.
 */
export async function sendCommands(
  place: SessionAccess,
  said: readonly ParsedCommand[],
  id: string | undefined,
): Promise<SentReceipt> {
  const { services } = place
  const { store, redactor } = services
  if (mayBeLane(place.id)) await refuseLane(services, place.id)
  await checkOwnBlobs(store, place.id, said.flatMap(referencedBlobs))
  const known = id !== undefined && (await isSentBatch(place, id, said.length))
  const words = said.filter(({ event }) => event.type === 'user.message').length
  if (words > 0 && !known) await checkQueueSpace(place, words)
  const events = said.map(({ event }) => redactor.body(event))
  const blobs = said.flatMap((each) => each.blobs)
  const [receipt] = await commitWithRetry(services, [{ session: place.id, lane: 'inbox', events, blobs }])
  const seq = receipt?.seqs[0] ?? 0
  const card = await store.card(place.id)
  const queued = words > 0 && card?.status === 'requires_action'
  const duplicate = receipt?.duplicate ?? false
  return { eventId: eventId(place.id, seq), seq, duplicate, queued, ...elsewhereReceipt(services, card) }
}

/** Whether a batch of this size was sent under this id. The store compares the contents. */
async function isSentBatch(
  { id: session, services: { store } }: SessionAccess,
  id: string,
  count: number,
): Promise<boolean> {
  const sent = (index: number): Promise<number | null> => store.sent(session, idInBatch(id, index))
  const [first, last, more] = await Promise.all([sent(0), sent(count - 1), sent(count)])
  if (first === null) return false
  if (last === null || more !== null)
    throw new Fault('id_reused', `The id ${id} was used for other commands.`, `session ${session}, seq ${first}`)
  return true
}

/** Throws if too many messages wait. */
async function checkQueueSpace({ id, services, worker }: SessionAccess, more: number): Promise<void> {
  const { seq = 0 } = (await services.store.card(id)) ?? {}
  await checkInboxRoom(worker.heads, id, seq, more)
}

/** Checks the options of a message before anything is written. */
async function checkMessageChoice(
  { id, services }: SessionAccess,
  { event }: ParsedCommand<UserMessageBody>,
  options: RunOptions,
  agent: string | null,
): Promise<void> {
  const { schemas, store } = services
  const { checkRunChoice } = await import('../run-choice.ts')
  const name = agent ?? (await store.card(id))?.agent
  if (name !== undefined) checkRunChoice(services, name, options, event.parts)
  const { schema } = followFields(options)
  if (schema) schemas.set(schemaKey(id, event.id), schema)
  const [oldest] = schemas.keys()
  if (schemas.size > SCHEMAS_KEPT && oldest !== undefined) schemas.delete(oldest)
}

/**
 * Admits a message, unless too many wait. A message that was sent before is accepted as a duplicate, however many wait.
 */
async function queueMessage(place: SessionAccess, said: ParsedCommand, { id }: SendOptions): Promise<SentReceipt> {
  // Checked only here: a harness that closes while the space is checked still accepts a message that was sent before.
  checkHarnessOpen(place)
  try {
    await checkQueueSpace(place, 1)
  } catch (error) {
    const { store, redactor } = place.services
    const seq = id === undefined ? null : await findSentSeq(store, place.id, redactor.body(said.event))
    if (seq === null) throw error
  }
  return writeToInbox(place, said)
}

/**
 * Decided as the owner, so that only one of two callers gets in: a caller that had to wait for the other's message was
 * not the first.
 */
async function sendIfIdle(place: SessionAccess, { event, blobs }: ParsedCommand): Promise<SentReceipt> {
  const { id, services } = place
  const { seq: seen } = await readSessionHead(services.store, id)
  const { sent } = await runOwnerAction(place, async (session) => {
    // A message whose time has not come opens no run yet.
    const waiting = dueBy(session.inputs, services.store.now()).length
    if (session.run !== null || waiting > 0 || session.seq !== seen)
      throw new Fault('session_busy', `Session ${id} has an open run. Wait for it, or send with another "when".`)
    return { value: null, events: [], sends: [event], blobs }
  })
  const { seqs: [seq = 0] = [], duplicate = false } = sent ?? {}
  const told = elsewhereReceipt(services, await services.store.card(id))
  return { eventId: eventId(id, seq), seq, duplicate, queued: false, ...told }
}

/** The seq under which the inbox already has this very event; null if it has not. */
async function findSentSeq(store: CompleteStore, session: string, sent: InboxBody): Promise<number | null> {
  const found = await store.sent(session, sent.id)
  const [event] = found === null ? [] : (await store.read(session, found - 1, 1)).events
  if (event === undefined) return null
  const { seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
  return isDeepStrictEqual(body, sent) ? seq : null
}
