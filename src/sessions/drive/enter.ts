// How a message gets into a session: what is checked before it is written, and the write. The run that it opens is followed in driven.ts.
import { Fault } from '../../kernel/failure.ts'
import { commit } from '../../engine/again.ts'
import { type Beginning, creation } from '../../engine/owner.ts'
import { toldElsewhere } from '../../engine/program.ts'
import { schemaKey, SCHEMAS_KEPT, type Services } from '../../engine/wiring.ts'
import { headOf, outageOf } from '../../riders/children/tree.ts'
import { eventId } from '../../view/text.ts'
import { followedBy, type Place } from '../await-run.ts'
import { type MessageBody, messageOf, type Said, type SendOptions } from '../command.ts'
import { BRING_MESSAGES, checkOwnBlobs, checkRoom, type Input, isConversation, namedBlobs } from '../input.ts'
import { sentBefore } from '../follow/log-follower.ts'
import { idInBatch } from '../../stores/plan/id.ts'
import type { RunOptions } from '../verb-options.ts'
import type { SentReceipt } from '../verbs.ts'
import { checkOpen, owned } from './place.ts'

/** The message is on disk when this resolves. */
export async function enter(place: Place, input: Input, options: SendOptions): Promise<SentReceipt> {
  const { id, services } = place
  options.signal?.throwIfAborted()
  if (isConversation(input)) checkReader(services, (await services.store.card(id))?.agent)
  const said = messageOf(input, options, services.random)
  const named = namedBlobs(said)
  if (named.length > 0) await checkOwnBlobs(services.store, id, named)
  if (said.event.options !== undefined) await checkChosen(place, said, options, null)
  if (options.when !== 'idle') return queue(place, said, options)
  try {
    return await enterIdle(place, said)
  } catch (error) {
    // A retry whose first send succeeded is a duplicate, not a conflict.
    const again = error instanceof Fault && error.code === 'session_busy' && options.id !== undefined
    const seq = again ? await sentBefore(services.store, id, services.redactor.body(said.event)) : null
    if (seq === null) throw error
    return { eventId: eventId(id, seq), seq, duplicate: true, queued: false }
  }
}

/** Creates the session and admits its first message in one commit. Resolves with the seq of that message. */
export async function createWith(
  place: Place,
  beginning: Beginning,
  input: Input,
  options: RunOptions,
): Promise<number> {
  const { id, services } = place
  const { store, random, redactor } = services
  options.signal?.throwIfAborted()
  if (isConversation(input)) checkReader(services, beginning.agent)
  const said = messageOf(input, options, random)
  await checkOwnBlobs(store, id, namedBlobs(said))
  if (said.event.options !== undefined) await checkChosen(place, said, options, beginning.agent)
  const { event, blobs } = said
  await store.open()
  const message = { session: id, lane: 'inbox', events: [redactor.body(event)], blobs } as const
  const [, receipt] = await commit(services, [creation(services, id, beginning), message])
  return receipt?.seqs[0] ?? 0
}

/** Throws if a language model would read the conversation that was given as a message. Of an agent of another program nothing is known. */
function checkReader(services: Services, agent: string | undefined): void {
  let isModel = false
  try {
    isModel = agent !== undefined && services.agent(agent).planner === null
  } catch {}
  if (isModel) throw new Fault('invalid_input', BRING_MESSAGES)
}

/** Writes to the inbox, which needs no lease. */
export async function admit(place: Place, said: Said): Promise<SentReceipt> {
  checkOpen(place)
  return written(place, said)
}

async function written({ id, services }: Place, { event, blobs }: Said): Promise<SentReceipt> {
  const { store, redactor } = services
  const [receipt] = await commit(services, [{ session: id, lane: 'inbox', events: [redactor.body(event)], blobs }])
  const seq = receipt?.seqs[0] ?? 0
  const card = await store.card(id)
  const queued = event.type === 'user.message' && card?.status === 'requires_action'
  const duplicate = receipt?.duplicate ?? false
  return { eventId: eventId(id, seq), seq, duplicate, queued, ...toldElsewhere(services, card) }
}

/**
 * Has the next try made now if the session, or the children that it waits for, wait for a provider. Says which sessions those are.
 * Without an outage nothing is written.
 */
export async function tryNow(place: Place, by?: string): Promise<readonly string[]> {
  const { id, services, worker } = place
  const { sessions = [], until = null } = (await outageOf(worker.heads, id, services.store.now())) ?? {}
  if (until === null) return []
  const who = by === undefined ? {} : { by }
  for (const session of sessions) {
    const event = { type: 'user.interrupt', id: services.random.id(), mode: 'resume', ...who } as const
    await admit({ ...place, id: session }, { event, blobs: [] })
  }
  return sessions
}

/** Several at once, whole or not at all. With an `id` the same batch again is known, and any other is refused. */
export async function enterAll(place: Place, said: readonly Said[], id: string | undefined): Promise<SentReceipt> {
  const { services } = place
  const { store, redactor } = services
  await checkOwnBlobs(store, place.id, said.flatMap(namedBlobs))
  const known = id !== undefined && (await isKnown(place, id, said.length))
  const words = said.filter(({ event }) => event.type === 'user.message').length
  if (words > 0 && !known) await checkSpace(place, words)
  const events = said.map(({ event }) => redactor.body(event))
  const blobs = said.flatMap((each) => each.blobs)
  const [receipt] = await commit(services, [{ session: place.id, lane: 'inbox', events, blobs }])
  const seq = receipt?.seqs[0] ?? 0
  const card = await store.card(place.id)
  const queued = words > 0 && card?.status === 'requires_action'
  const duplicate = receipt?.duplicate ?? false
  return { eventId: eventId(place.id, seq), seq, duplicate, queued, ...toldElsewhere(services, card) }
}

/** Whether so many were sent together under this id. The store compares what they say. */
async function isKnown({ id: session, services: { store } }: Place, id: string, count: number): Promise<boolean> {
  const sent = (index: number): Promise<number | null> => store.sent(session, idInBatch(id, index))
  const [first, last, more] = await Promise.all([sent(0), sent(count - 1), sent(count)])
  if (first === null) return false
  if (last === null || more !== null)
    throw new Fault('id_reused', `The id ${id} was used for other commands.`, `session ${session}, seq ${first}`)
  return true
}

/** Refused while too many messages wait. */
async function checkSpace({ id, services, worker }: Place, more: number): Promise<void> {
  const { seq = 0 } = (await services.store.card(id)) ?? {}
  await checkRoom(worker.heads, id, seq, more)
}

/** What is wrong with the options is said before anything is written. */
async function checkChosen(
  { id, services }: Place,
  { event }: Said<MessageBody>,
  options: RunOptions,
  agent: string | null,
): Promise<void> {
  const { schemas, store } = services
  const { checkChoice } = await import('../run-choice.ts')
  const name = agent ?? (await store.card(id))?.agent
  if (name !== undefined) checkChoice(services, name, options, event.parts)
  const { schema } = followedBy(options)
  if (schema) schemas.set(schemaKey(id, event.id), schema)
  const [oldest] = schemas.keys()
  if (schemas.size > SCHEMAS_KEPT && oldest !== undefined) schemas.delete(oldest)
}

/** Admits a message, unless too many wait. One that was sent before is known, however many wait. */
async function queue(place: Place, said: Said, { id }: SendOptions): Promise<SentReceipt> {
  // Only here: a harness that is closed while the room is looked up still takes what was sent before.
  checkOpen(place)
  try {
    await checkSpace(place, 1)
  } catch (error) {
    const { store, redactor } = place.services
    const seq = id === undefined ? null : await sentBefore(store, place.id, redactor.body(said.event))
    if (seq === null) throw error
  }
  return written(place, said)
}

/** Decided as the owner, so that of two callers one gets in: one that had to wait for the other's message was not the first. */
async function enterIdle(place: Place, { event, blobs }: Said): Promise<SentReceipt> {
  const { id, services } = place
  const { seq: seen } = await headOf(services.store, id)
  const { sent } = await owned(place, async (session) => {
    if (session.run !== null || session.inputs.length > 0 || session.seq !== seen)
      throw new Fault('session_busy', `Session ${id} has an open run. Wait for it, or send with another "when".`)
    return { value: null, events: [], sends: [event], blobs }
  })
  const { seqs: [seq = 0] = [], duplicate = false } = sent ?? {}
  const told = toldElsewhere(services, await services.store.card(id))
  return { eventId: eventId(id, seq), seq, duplicate, queued: false, ...told }
}
