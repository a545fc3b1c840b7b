// Takes a delivery in: checks it, finds the id of its session, and writes session and message in one commit. Nothing is
// decided here.
import { hash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import { assert, Fault } from '../kernel/failure.ts'
import type { Charge, InboxWrite, OwnerWrite } from '../ports/store.ts'
import { anyCheck, countCheck, inputChecker, nonEmptyCheck, requiredCheck, textCheck, type Check } from '../options.ts'
import { newSessionWrite } from '../runtime/loop/act-as-owner.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import { buildMessage } from '../sessions/command.ts'
import { checkHarnessOpen, wakeSession } from '../sessions/drive/place.ts'
import type { Input } from '../sessions/input.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { firstNonJson } from '../tools/core/plain-values.ts'
import { removeInvisible } from '../view/invisible.ts'
import type { CompleteSource } from './source-options.ts'
import { CONTENT_LABEL, contentHash, MESSAGE_ID } from './decision-cache.ts'
import { isMinuteFull, CAP_WINDOW_MS, minuteCharges, type MinuteSlots } from './source-caps.ts'
import { keepFirstBytes, PAYLOAD_BYTES_MAX } from './triage-prompt.ts'
import type { TriggerEnvelope, TriggerReceipt } from '../sessions/trigger-envelope.ts'
import { TRIGGER_LABEL, type TriggerPlace } from './trigger-definition.ts'
import type { TriggerInput } from './trigger-graph.ts'

type TriggerDesk = TriggerPlace & {
  readonly sources: ReadonlyMap<string, CompleteSource>
  readonly slots: MinuteSlots
}

const LABEL_CHARS_MAX = 200
const KEY_CHARS_MAX = 16 * 1024
const PAYLOAD_MAX = 1024 * 1024
const DEPTH_MAX = 64

const labelCheck: Check = (value, name, of) => {
  const wrong = nonEmptyCheck(value, name, of)
  if (wrong !== null) return wrong
  const label = String(value)
  if (label.length > LABEL_CHARS_MAX) return `has ${label.length} characters and may have ${LABEL_CHARS_MAX}`
  return /[\r\n]/.test(label) || removeInvisible(label).removed > 0
    ? 'must be one line without invisible characters'
    : null
}
const keyCheck: Check = (value, name, of) => {
  const wrong = nonEmptyCheck(value, name, of)
  if (wrong !== null) return wrong
  const { length } = String(value)
  return length > KEY_CHARS_MAX ? `has ${length} characters and may have ${KEY_CHARS_MAX}` : null
}
const checkEnvelope = inputChecker<TriggerEnvelope>('the trigger', {
  source: requiredCheck(textCheck),
  label: requiredCheck(labelCheck),
  payload: requiredCheck(anyCheck),
  receivedAt: countCheck(),
  dedupeKey: keyCheck,
})

export async function acceptTrigger(desk: TriggerDesk, envelope: TriggerEnvelope): Promise<TriggerReceipt> {
  checkEnvelope(envelope)
  const source = desk.sources.get(envelope.source)
  if (source === undefined) throw unknownSourceFault(envelope.source, [...desk.sources.keys()])
  const { services } = desk
  checkHarnessOpen(desk)
  await services.store.open()
  const delivery = buildDelivery(desk, source, envelope)
  const known = envelope.dedupeKey === undefined ? null : await findDelivery(services, delivery.id, source)
  const receipt = known ?? (await commitDelivery(desk, source, delivery))
  if (!receipt.duplicate) wakeSession({ worker: desk.worker, id: delivery.id })
  return receipt
}

function unknownSourceFault(source: string, known: readonly string[]): Fault {
  const names = known.length === 0 ? 'There are none.' : `Known are: ${known.join(', ')}.`
  return new Fault('invalid_input', `There is no source ${JSON.stringify(source.slice(0, 64))} of triggers. ${names}`)
}

type Delivery = {
  readonly id: string
  /** The writes of a delivery that may be read from this time on; 0 for at once. */
  readonly writes: (notBefore: number) => readonly [OwnerWrite, InboxWrite]
}

function buildDelivery({ services }: TriggerDesk, source: CompleteSource, envelope: TriggerEnvelope): Delivery {
  const { label, dedupeKey, receivedAt = services.store.now() } = envelope
  const { random, redactor } = services
  // Secrets are replaced before anything is cut, since half of one would not be found.
  const payload = redactor.text(payloadText(envelope.payload))
  const key = dedupeKey === undefined ? ['new', random.id()] : ['key', dedupeKey]
  const id = `trigger.${hash('sha256', canonicalJson([source.name, ...key])).slice(0, 40)}`
  const content = contentHash({
    label,
    payload,
    instructions: source.instructions,
    models: source.models.map(modelName),
  })
  const bytes = Buffer.byteLength(payload)
  const shown = keepFirstBytes(payload, PAYLOAD_BYTES_MAX)
  const metadata = { delivery: random.id() }
  const { environment } = services.agent(source.agent)
  const beginning = {
    agent: source.agent,
    metadata: { title: `${source.name}: ${label}` },
    labels: { [TRIGGER_LABEL]: source.name, [CONTENT_LABEL]: content },
    ...(environment === null ? {} : { environment }),
    ...(source.folder === null ? {} : { folder: source.folder }),
  }
  return {
    id,
    writes: (notBefore) => {
      const fields: TriggerInput = { label, payload: shown, bytes, receivedAt, content, notBefore }
      const text = JSON.stringify(fields)
      // Models do not read it: as a text it would stand in the message.
      const whole = {
        type: 'file',
        media: 'application/octet-stream',
        data: Buffer.from(payload),
        name: 'payload.txt',
      } as const
      const input: Input = bytes > PAYLOAD_BYTES_MAX ? [{ type: 'text', text }, whole] : text
      const { event, blobs } = buildMessage(input, { id: MESSAGE_ID, metadata }, random)
      const created = newSessionWrite(services, id, beginning)
      assert(!('history' in created), 'a trigger begins without history')
      return [created, { session: id, lane: 'inbox', events: [redactor.body(event)], blobs }]
    },
  }
}

function modelName(model: CompleteSource['models'][number]): string {
  return typeof model === 'object' ? model.name : String(model)
}

function payloadText(payload: Json): string {
  const lost = typeof payload === 'string' ? null : firstNonJson(payload, DEPTH_MAX, false)
  if (lost !== null)
    throw new Fault('invalid_input', `The payload of the trigger holds ${lost}. Give a text, or plain JSON.`)
  const text = typeof payload === 'string' ? payload : canonicalJson(payload)
  if (/[\uD800-\uDFFF]/u.test(text))
    throw new Fault('invalid_input', 'The payload of the trigger is not well-formed text. Send UTF-8.')
  const bytes = Buffer.byteLength(text)
  if (bytes <= PAYLOAD_MAX) return text
  throw new Fault(
    'invalid_input',
    `The payload of the trigger has ${bytes} bytes and may have ${PAYLOAD_MAX}. Send a reference to it.`,
  )
}

/** The delivery that came before under this key. The key decides, whatever else differs. */
async function findDelivery(
  { store }: Pick<Services, 'store'>,
  id: string,
  source: CompleteSource,
): Promise<TriggerReceipt | null> {
  const card = await store.card(id)
  if (card === null) return null
  if (card.agent === source.agent) return { sessionId: id, duplicate: true }
  throw new Fault('id_reused', `The session ${id} exists and is no trigger of "${source.name}". Send another key.`)
}

/** One commit holds the session, its message, and what counts it. */
async function writeDelivery(
  { services }: TriggerDesk,
  source: CompleteSource,
  { id, writes }: Delivery,
  { notBefore, charges = [] }: { readonly notBefore: number; readonly charges?: readonly Charge[] },
): Promise<TriggerReceipt> {
  const [created, message] = writes(notBefore)
  try {
    await commitWithRetry(services, [charges.length > 0 ? { ...created, charges } : created, message])
  } catch (error) {
    const raced = error instanceof Fault && (error.code === 'session_exists' || error.code === 'id_reused')
    const known = raced ? await findDelivery(services, id, source) : null
    if (known === null) throw error
    return known
  }
  return { sessionId: id, duplicate: false, ...(notBefore > 0 ? { notBefore } : {}) }
}

async function commitDelivery(desk: TriggerDesk, source: CompleteSource, delivery: Delivery): Promise<TriggerReceipt> {
  const { services, slots } = desk
  const { perMinute } = source.caps
  if (perMinute === undefined) return writeDelivery(desk, source, delivery, { notBefore: 0 })
  for (;;) {
    const now = services.store.now()
    const minute = slots.take(source.name, now, perMinute)
    if (minute === null) break
    const notBefore = minute * CAP_WINDOW_MS > now ? minute * CAP_WINDOW_MS : 0
    const charges = minuteCharges(source.name, minute, perMinute, `${delivery.id}:accepted`)
    try {
      return await writeDelivery(desk, source, delivery, { notBefore, charges })
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'over_budget' || !isMinuteFull(error.detail)) throw error
      slots.skip(source.name, minute)
    }
  }
  throw new Fault('too_many', `The source "${source.name}" has a day of deliveries waiting. Send this one again later.`)
}
