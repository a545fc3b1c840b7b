// Signed deliveries, made as their senders make them, against a real server on loopback. Nothing is asserted here.
import { createHmac } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/ports/system.ts'
import type { Script } from '../../src/models/local/scripted.ts'
import { scripted } from '../../src/index.ts'
import { openWebhooks } from '../../src/server/index.ts'
import type { EndpointOptions, Endpoints } from '../../src/server/webhook-endpoints.ts'
import { createTriggers, type SourceOptions } from '../../src/triggers/index.ts'
import { Harness, sqlite } from '../../src/index.ts'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHttpServer } from '../../src/server/http-server.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import { type Answer, requested } from './served.ts'

export const SECRET = 'whsec_5f0e1c7a9b3d2e4f'
process.env['TERRET_TEST_HOOK'] = SECRET

const of = (verify: EndpointOptions['verify'], more: Partial<EndpointOptions> = {}): EndpointOptions => {
  return { source: 'mail', verify, secret: { env: 'TERRET_TEST_HOOK' }, ...more }
}
export const ENDPOINTS: Endpoints = {
  github: of('github'),
  stripe: of('stripe'),
  slack: of('slack'),
  plain: of('hmac', { keyHeader: 'x-delivery' }),
  timed: of('hmac', { timeHeader: 'x-time', label: 'timed' }),
}

export type Delivery = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const hmac = (text: string, secret = SECRET): string => createHmac('sha256', secret).update(text).digest('hex')
export const nowS = (): number => Math.floor(Date.now() / 1_000)

/** What GitHub, Stripe, Slack and a plain sender would send for this body at this time. */
export const SENDERS: Readonly<Record<string, (body: string, time?: number, secret?: string) => Delivery>> = {
  github: (body, _time, secret) => ({
    path: '/v1/triggers/github',
    body,
    headers: {
      'x-github-event': 'issues',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': `sha256=${hmac(body, secret)}`,
    },
  }),
  stripe: (body, time = nowS(), secret) => ({
    path: '/v1/triggers/stripe',
    body,
    headers: { 'stripe-signature': `t=${time},v1=${hmac(`${time}.${body}`, secret)},v0=${'0'.repeat(64)}` },
  }),
  slack: (body, time = nowS(), secret) => ({
    path: '/v1/triggers/slack',
    body,
    headers: {
      'x-slack-request-timestamp': `${time}`,
      'x-slack-signature': `v0=${hmac(`v0:${time}:${body}`, secret)}`,
    },
  }),
  plain: (body, _time, secret) => ({
    path: '/v1/triggers/plain',
    body,
    headers: { 'x-signature': hmac(body, secret), 'x-delivery': 'd-1' },
  }),
  timed: (body, time = nowS(), secret) => ({
    path: '/v1/triggers/timed',
    body,
    headers: { 'x-signature': `sha256=${hmac(`${time}.${body}`, secret)}`, 'x-time': `${time}` },
  }),
}

/** Bodies as these senders write them. */
export const BODIES: Readonly<Record<string, string>> = {
  github: '{"action":"opened","issue":{"number":1347,"title":"Found a bug"}}',
  stripe: '{"id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","object":"event","type":"charge.failed","data":{"object":{}}}',
  slack: '{"token":"x","type":"event_callback","event_id":"Ev123ABC456","event":{"type":"app_mention","text":"hi"}}',
  plain: 'disk full',
  timed: '{"n":1}',
}

const DROP = '{"action":"drop","reason":"Noise."}'

export async function hooked(
  options: {
    readonly triage?: Script
    readonly source?: SourceOptions
    readonly endpoints?: Endpoints
    readonly drives?: boolean
    readonly clock?: Clock
  } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'terret-hooks-'))
  const { clock } = options
  const store = sqlite(join(folder, 'terret.db'), clock ? { clock } : {})
  const asked: string[] = []
  const triage = scripted(options.triage ?? (() => DROP))
  const harness = new Harness({
    model: scripted(() => 'Done.'),
    store,
    ...(clock ? { system: { clock } } : {}),
    worker: { drives: options.drives ?? true },
    triggers: createTriggers({
      models: [
        {
          name: 'triage',
          call: async (...[request, context]: Parameters<typeof triage.call>) => {
            asked.push(JSON.stringify(request.messages))
            return triage.call(request, context)
          },
        },
      ],
      sources: { mail: options.source ?? {} },
    }),
  })
  const webhooks = openWebhooks(options.endpoints ?? ENDPOINTS, harness)
  const reports: string[] = []
  const server = await startHttpServer({
    host: {
      version: 'test',
      store,
      storeId: 'test',
      harness,
      harnessOf: async () => harness,
      begin: async () => ({ harness }),
      agents: async () => [],
      elsewhere: () => null,
      program: '',
      drives: true,
      driving: () => 0,
      webhooks,
    },
    tokens: TokenRegistry.inMemory('t'.repeat(43), 'owner'),
    port: 0,
    report: (where, error) => void reports.push(`${where}: ${String(error)}`),
  })
  onTestFinished(async () => {
    await server.close()
    await harness.close()
    await store.close()
  })
  const send = ({ path, headers, body }: Delivery): Promise<Answer> =>
    requested(server.port, 'POST', path, headers, body)
  const sessions = async () => (await store.list({ limit: 100 })).map(({ session }) => session)
  return { harness, store, server, send, sessions, asked, reports, webhooks }
}
