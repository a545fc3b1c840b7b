// Checks the signature of a delivery over the bytes as they came, and reads what the sender calls it. Pure: no clock and
// no request.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isObject, type JsonObject, parseJson } from '../view/untrusted-json.ts'
import { HttpRefusal } from './refusals.ts'
import { isTooDeep } from './request-body.ts'
import type { WebhookEndpoint, WebhookScheme } from './webhook-endpoints.ts'

/** A request as it came: all values of each header, and its bytes. */
export type SignedRequest = {
  readonly headers: (name: string) => readonly string[]
  readonly body: Uint8Array
}
/** What a delivery is called: its kind, and the id under which it is sent again. */
export type DeliveryNames = { readonly label: string; readonly dedupeKey?: string }

/** A sender's clock may differ by this much, and a delivery may be so old. */
const AGE_S_MAX = 300
const SIGNATURES_MAX = 20
const DIGEST = /^[0-9a-f]{64}$/i
const TIME = /^\d{1,12}$/

type Scheme = {
  /** The header with the signature. */
  readonly header: string
  /** The digests that the sender gives, and the text before the body that is signed with it. Null: unreadable. */
  readonly read: (given: string, time: string | null) => SignedParts | null
  /** The header with the time; null if it has none, or if the signature's own header has it. */
  readonly timeHeader: string | null
}
type SignedParts = { readonly digests: readonly string[]; readonly prefix: string; readonly time: string | null }

function schemeOf({ verify, header = 'x-signature', timeHeader }: WebhookEndpoint): Scheme {
  const schemes: Readonly<Record<WebhookScheme, Scheme>> = {
    github: {
      header: 'x-hub-signature-256',
      timeHeader: null,
      read: (given) => plainParts(given, 'sha256=', null, ''),
    },
    stripe: { header: 'stripe-signature', timeHeader: null, read: stripeParts },
    slack: {
      header: 'x-slack-signature',
      timeHeader: 'x-slack-request-timestamp',
      read: (given, time) => (time === null ? null : plainParts(given, 'v0=', time, `v0:${time}:`)),
    },
    hmac: {
      header: header.toLowerCase(),
      timeHeader: timeHeader?.toLowerCase() ?? null,
      read: (given, time) =>
        plainParts(given, given.startsWith('sha256=') ? 'sha256=' : '', time, time === null ? '' : `${time}.`),
    },
  }
  return schemes[verify]
}

function plainParts(given: string, before: string, time: string | null, prefix: string): SignedParts | null {
  return given.startsWith(before) ? { digests: [given.slice(before.length)], prefix, time } : null
}

/** `t=TIME,v1=DIGEST`, with several digests while a secret is replaced. */
function stripeParts(given: string): SignedParts | null {
  const pairs = given.split(',', SIGNATURES_MAX).map((part) => part.trim().split('='))
  const times = pairs.filter(([name]) => name === 't').map(([, value = '']) => value)
  const digests = pairs.filter(([name]) => name === 'v1').map(([, value = '']) => value)
  const [time] = times
  return time === undefined || times.length > 1 ? null : { digests, prefix: `${time}.`, time }
}

/** Throws unless the request has a signature header that can be read. Its body need not have come yet. */
export function checkSignatureHeaders(endpoint: WebhookEndpoint, request: Pick<SignedRequest, 'headers'>): void {
  readParts(endpoint, request)
}

function readParts(endpoint: WebhookEndpoint, { headers }: Pick<SignedRequest, 'headers'>): SignedParts {
  const scheme = schemeOf(endpoint)
  const given = onlyValue(headers(scheme.header))
  const time = scheme.timeHeader === null ? null : onlyValue(headers(scheme.timeHeader))
  if (given === null || (scheme.timeHeader !== null && time === null)) throw signatureRefusal()
  const parts = scheme.read(given, time)
  if (parts === null || (parts.time !== null && !TIME.test(parts.time))) throw signatureRefusal()
  return parts
}

/** Two values of a header are two opinions, and neither counts. */
function onlyValue(values: readonly string[]): string | null {
  return values.length === 1 ? (values[0] ?? null) : null
}

/** Throws unless the secret's owner signed exactly these bytes, lately. Every refusal reads alike. */
export function checkSignature(endpoint: WebhookEndpoint, request: SignedRequest, nowMs: number): void {
  const { digests, prefix, time } = readParts(endpoint, request)
  const expected = createHmac('sha256', endpoint.secret).update(prefix).update(request.body).digest()
  const isSigned = digests.some(
    (digest) => DIGEST.test(digest) && timingSafeEqual(Buffer.from(digest, 'hex'), expected),
  )
  const isOld = time !== null && Math.abs(nowMs / 1_000 - Number(time)) > AGE_S_MAX
  if (!isSigned || isOld) throw signatureRefusal()
}

function signatureRefusal(): HttpRefusal {
  const text =
    'This delivery has no valid signature of now. Check the secret of the endpoint and the clock of its sender.'
  return new HttpRefusal(401, 'unauthorized', text)
}

/** The names of a delivery whose signature is right. */
export function readDeliveryNames(endpoint: WebhookEndpoint, { headers }: SignedRequest, text: string): DeliveryNames {
  const { verify, label, keyHeader } = endpoint
  const fields = verify === 'hmac' ? {} : readJson(text)
  const header = keyHeader ?? (verify === 'github' ? 'x-github-delivery' : null)
  const given = header === null ? null : readHeader(headers, header)
  const key = given ?? textField(fields, verify === 'slack' ? 'event_id' : verify === 'stripe' ? 'id' : '')
  return {
    label: label ?? labelOf(verify, fields, headers),
    // Endpoints of one source have keys of their own.
    ...(key === null || key === '' ? {} : { dedupeKey: `${endpoint.name}:${key}` }),
  }
}

function readHeader(headers: SignedRequest['headers'], name: string): string | null {
  const values = headers(name.toLowerCase())
  if (values.length > 1) throw new HttpRefusal(400, 'invalid_input', `The header ${name} is there twice. Send it once.`)
  return values[0] ?? null
}

function labelOf(verify: WebhookScheme, fields: JsonObject, headers: SignedRequest['headers']): string {
  if (verify === 'hmac') return 'delivery'
  if (verify === 'github') {
    const event = readHeader(headers, 'x-github-event') ?? 'event'
    const action = textField(fields, 'action')
    return action === null ? event : `${event}.${action}`
  }
  const inner = fields['event']
  const type = (verify === 'slack' && isObject(inner) ? textField(inner, 'type') : null) ?? textField(fields, 'type')
  return type ?? 'event'
}

function textField(fields: JsonObject, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  return typeof value === 'string' ? value : null
}

function readJson(text: string): JsonObject {
  if (isTooDeep(text)) throw new HttpRefusal(400, 'invalid_input', 'The body is nested deeper than 64 levels.')
  const value = parseJson(text)
  if (isObject(value)) return value
  throw new HttpRefusal(
    400,
    'invalid_input',
    'The body is no JSON object. Set the content type of the webhook to JSON.',
  )
}

/** Slack asks once whether an address is the right one, and wants its challenge back. Null: this is another delivery. */
export function slackChallenge({ verify }: WebhookEndpoint, text: string): string | null {
  if (verify !== 'slack') return null
  const fields = readJson(text)
  return fields['type'] === 'url_verification' ? textField(fields, 'challenge') : null
}
