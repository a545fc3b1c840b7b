// Takes a signed delivery in: the signature is its credential, and the answer comes when session and message are on
// disk. Lists what came of deliveries, and decides about dead ones.
import { Fault } from '../../kernel/index.ts'
import { HttpRefusal } from '../refusals.ts'
import { decodeBody, readBodyBytes } from '../request-body.ts'
import { headerValues } from '../request-checks.ts'
import { type ApiAnswer, type ApiRequest, requireCard } from '../server-host.ts'
import { BODY_BYTES_MAX, type WebhookDesk, type WebhookEndpoint } from '../webhook-endpoints.ts'
import { checkSignature, checkSignatureHeaders, readDeliveryNames, slackChallenge } from '../webhook-signature.ts'
import type { DoneAnswer, TriggeredAnswer, TriggersAnswer } from '../wire.ts'

/** A source with a day of deliveries waiting has room again in a minute at the earliest. */
const FULL_RETRY_S = 60

export async function handleTrigger(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, params } = asked
  const { webhooks } = host
  const endpoint = webhooks?.endpoints.get(params['endpoint'] ?? '')
  if (!webhooks || !endpoint) throw new HttpRefusal(404, 'not_found', 'There is no such endpoint for triggers.')
  try {
    return await takeDelivery(asked, webhooks, endpoint)
  } catch (error) {
    webhooks.counts.refused += 1
    if (error instanceof Fault && error.code === 'too_many')
      throw new HttpRefusal(429, 'too_many', error.message, FULL_RETRY_S)
    throw error
  }
}

async function takeDelivery(
  { host, request }: ApiRequest,
  { trigger, counts }: WebhookDesk,
  endpoint: WebhookEndpoint,
): Promise<ApiAnswer> {
  const headers = (name: string): readonly string[] => headerValues(request, name)
  checkSignatureHeaders(endpoint, { headers })
  const [encoding = 'identity', ...more] = headers('content-encoding')
  if (more.length > 0 || encoding.toLowerCase() !== 'identity')
    throw new HttpRefusal(415, 'media_type', 'Send the delivery without a content encoding.')
  const body = await readBodyBytes(request, Math.min(endpoint.bytesMax ?? BODY_BYTES_MAX, BODY_BYTES_MAX))
  const signed = { headers, body }
  checkSignature(endpoint, signed, host.store.now())
  const payload = decodeBody(body)
  const challenge = slackChallenge(endpoint, payload)
  if (challenge !== null) return { status: 200, json: { challenge } }
  const names = readDeliveryNames(endpoint, signed, payload)
  const { sessionId, duplicate, notBefore } = await trigger({ source: endpoint.source, payload, ...names })
  counts[duplicate ? 'duplicates' : 'accepted'] += 1
  const json: TriggeredAnswer = { session: sessionId, duplicate, ...(notBefore === undefined ? {} : { notBefore }) }
  return { json }
}

/** The sources are those of the agents of this server. No delivery has an owner. */
export async function handleTriggers({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  if (principal.reach === 'own')
    throw new HttpRefusal(403, 'forbidden', 'Triggers belong to nobody. They need a token with the reach `all`.')
  const { listTriggers } = await import('../../triggers/trigger-list.ts')
  const { triggerAgent } = await import('../../triggers/index.ts')
  const prefix = triggerAgent('')
  const graphs = (await host.agents()).filter(({ name, planner }) => planner === `graph:${name}`)
  const sources = graphs.flatMap(({ name }) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))
  const listed = await listTriggers(host.store, sources, query)
  return { json: { ...listed, now: host.store.now() } satisfies TriggersAnswer }
}

export async function handleRetryTrigger(asked: ApiRequest): Promise<ApiAnswer> {
  const { session, dead, by } = await deadTriggerAsked(asked)
  await dead.retry(session, by)
  return { json: { ok: true } satisfies DoneAnswer }
}

export async function handleDropTrigger(asked: ApiRequest): Promise<ApiAnswer> {
  const { session, dead, by } = await deadTriggerAsked(asked)
  await dead.drop(session, by)
  return { json: { ok: true } satisfies DoneAnswer }
}

async function deadTriggerAsked(asked: ApiRequest) {
  const card = await requireCard(asked)
  const { deadTriggers } = await import('../../triggers/index.ts')
  const dead = deadTriggers(await asked.host.harnessOf(card))
  return { session: card.session, dead, by: { by: asked.principal.name } }
}
