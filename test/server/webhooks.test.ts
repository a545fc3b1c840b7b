// Signed deliveries over HTTP: GitHub, Stripe, Slack and a plain HMAC, against a real server. Nothing is on disk before the signature is
// right, and everything is before the answer comes.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type EndpointOptions, readEndpoints } from '../../src/server/webhook-endpoints.ts'
import { findAnswerMismatch } from '../../src/server/wire-answer-check.ts'
import { serve } from '../../src/server/index.ts'
import { scripted, Harness, memory } from '../../src/index.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { BODIES, type Delivery, ENDPOINTS, hooked, nowS, SECRET, SENDERS } from './webhook-stage.ts'
import { hasty } from '../models/hosted-stage.ts'
import { requested, spoken } from './served.ts'
import { until } from '../until.ts'

const NAMES = Object.keys(SENDERS)
const delivery = (name: string, body = BODIES[name] ?? '', time?: number, secret?: string): Delivery =>
  (SENDERS[name] as (typeof SENDERS)[string])(body, time, secret)
const LABELS: Readonly<Record<string, string>> = {
  github: 'mail: issues.opened',
  stripe: 'mail: charge.failed',
  slack: 'mail: app_mention',
  plain: 'mail: delivery',
  timed: 'mail: timed',
}
const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code

describe('a signed delivery', () => {
  it.each(NAMES)('B-WEBHOOK-1: of %s is 202 with its session, which is on disk with its message', async (name) => {
    const one = await hooked()
    const { status, text } = await one.send(delivery(name))
    expect([status, text]).toEqual([202, expect.any(String) as string])
    const { session, duplicate } = JSON.parse(text) as { session: string; duplicate: boolean }
    expect(duplicate).toBe(false)
    expect(findAnswerMismatch('Triggered', JSON.parse(text))).toBeNull()
    const { events } = await one.store.read(session, 0)
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['session.created', 'user.message'])
    expect((await one.store.card(session))?.title).toBe(LABELS[name])
    await until(() => expect(one.asked).toHaveLength(1))
    const [message] = JSON.parse(one.asked[0] ?? '') as { parts: { text: string }[] }[]
    expect(message?.parts[0]?.text).toContain(BODIES[name])
    expect(one.reports).toEqual([])
  })

  it.each(['github', 'stripe', 'slack', 'plain'])(
    'B-WEBHOOK-2: of %s that is sent again is 202 with the same session, and nothing runs twice',
    async (name) => {
      const one = await hooked()
      const answers = await Promise.all([0, 1, 2, 3, 4].map(() => one.send(delivery(name))))
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202])
      const said = answers.map(({ text }) => JSON.parse(text) as { session: string; duplicate: boolean })
      expect(new Set(said.map(({ session }) => session)).size).toBe(1)
      expect(said.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
      await until(() => expect(one.asked).toHaveLength(1))
      await one.harness.work({ idleMs: 50 })
      expect(one.asked).toHaveLength(1)
      expect(one.webhooks.counts).toEqual({ accepted: 1, duplicates: 4, refused: 0 })
    },
  )

  it('B-WEBHOOK-15: shares its key with no other endpoint of its source', async () => {
    const one = await hooked()
    const github = delivery('github')
    const plain = delivery('plain')
    const key = github.headers['x-github-delivery'] ?? ''
    const answers = [
      await one.send(github),
      await one.send({ ...plain, headers: { ...plain.headers, 'x-delivery': key } }),
    ]
    const said = answers.map(({ text }) => JSON.parse(text) as { session: string; duplicate: boolean })
    expect(said.map(({ duplicate }) => duplicate)).toEqual([false, false])
    expect(new Set(said.map(({ session }) => session)).size).toBe(2)
  })

  it.each(NAMES)(
    'B-WEBHOOK-3: of %s with a wrong, old or missing signature is 401, and nothing is on disk',
    async (name) => {
      const one = await hooked()
      const good = delivery(name)
      const tries: Delivery[] = [
        { ...good, body: `${good.body} ` },
        { ...good, body: `${good.body.slice(0, -1)}\u0000` },
        { ...good, headers: {} },
        delivery(name, undefined, undefined, `${SECRET}x`),
        ...Object.keys(good.headers)
          .filter((header) => /signature|time/.test(header))
          .flatMap((header) =>
            [
              '',
              'x',
              'sha256=',
              `sha256=${'0'.repeat(64)}`,
              `t=${nowS()},v1=${'0'.repeat(64)}`,
              `v0=${'f'.repeat(64)}`,
            ].map((value) => ({ ...good, headers: { ...good.headers, [header]: value } })),
          ),
      ]
      if (['stripe', 'slack', 'timed'].includes(name))
        // Those ahead come nearer while a busy machine takes its time.
        for (const away of [-301, 3_600, -86_400]) tries.push(delivery(name, undefined, nowS() + away))
      for (const each of tries) {
        const { status, text, headers } = await one.send(each)
        expect([each.headers, status, codeOf(text)]).toEqual([each.headers, 401, 'unauthorized'])
        expect(headers['www-authenticate']).toBeUndefined()
      }
      expect(await one.sessions()).toEqual([])
      expect((await one.send(delivery(name, undefined, nowS() - 290))).status).toBe(202)
    },
  )

  it('B-WEBHOOK-4: to an endpoint that is not there is 404, and a server without endpoints has none', async () => {
    const one = await hooked()
    for (const path of ['/v1/triggers/nothing', '/v1/triggers/__proto__', '/v1/triggers/GITHUB']) {
      const { status, text } = await one.send({ ...delivery('github'), path })
      expect([path, status, codeOf(text)]).toEqual([path, 404, 'not_found'])
    }
    const none = await hooked({ endpoints: {} })
    expect((await none.send(delivery('github'))).status).toBe(404)
    expect(await one.sessions()).toEqual([])
  })

  it('B-WEBHOOK-5: of 1 MB is taken, and of one byte more is 413', async () => {
    const one = await hooked()
    const whole = await one.send(delivery('plain', 'x'.repeat(1024 * 1024)))
    expect(whole.status).toBe(202)
    const more = await one.send(delivery('plain', 'x'.repeat(1024 * 1024 + 1)))
    expect([more.status, codeOf(more.text)]).toEqual([413, 'too_large'])
    expect(await one.sessions()).toHaveLength(1)
  })

  it.each<[string, Delivery, number, string]>([
    ['invalid UTF-8', delivery('plain', 'x'), 400, 'not UTF-8'],
    ['JSON of depth 10,000', delivery('github', `${'['.repeat(10_000)}${']'.repeat(10_000)}`), 400, 'deeper than 64'],
    ['no JSON', delivery('stripe', 'id=evt_1'), 400, 'no JSON object'],
    ['a list', delivery('slack', '[]'), 400, 'no JSON object'],
    [
      'a huge label',
      { ...delivery('github'), headers: { ...delivery('github').headers, 'x-github-event': 'e'.repeat(300) } },
      400,
      'label',
    ],
    [
      'a content encoding',
      { ...delivery('plain'), headers: { ...delivery('plain').headers, 'content-encoding': 'gzip' } },
      415,
      'content encoding',
    ],
  ])('B-WEBHOOK-6: with %s is refused with one sentence, and nothing is on disk', async (what, sent, status, text) => {
    const one = await hooked()
    if (what === 'invalid UTF-8') {
      const { createHmac } = await import('node:crypto')
      const signature = createHmac('sha256', SECRET)
        .update(Buffer.from([0xff, 0xfe]))
        .digest('hex')
      const head = `POST /v1/triggers/plain HTTP/1.1\r\nHost: 127.0.0.1:${one.server.port}\r\nX-Signature: ${signature}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n`
      const answer = await new Promise<string>((resolve) => {
        void import('node:net').then(({ connect }) => {
          const socket = connect(one.server.port, '127.0.0.1')
          let said = ''
          socket.on('data', (chunk) => (said += String(chunk)))
          socket.on('close', () => resolve(said))
          socket.write(Buffer.concat([Buffer.from(head), Buffer.from([0xff, 0xfe])]))
        })
      })
      expect(answer).toContain('HTTP/1.1 400')
      expect(answer).toContain(text)
    } else {
      const answer = await one.send(sent)
      expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text) as string])
    }
    expect(await one.sessions()).toEqual([])
    expect(one.reports).toEqual([])
  })

  it('B-WEBHOOK-7: with a header twice is refused: two signatures are none, and two keys are no key', async () => {
    const one = await hooked()
    const { headers, body } = delivery('plain')
    const lines = (more: readonly string[]): string =>
      [
        'POST /v1/triggers/plain HTTP/1.1',
        `Host: 127.0.0.1:${one.server.port}`,
        `Content-Length: ${body.length}`,
        'Connection: close',
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        ...more,
        '',
        body,
      ].join('\r\n')
    const said = async (more: readonly string[]) => spoken(one.server.port, lines(more))
    expect(await said([`X-Signature: ${headers['x-signature']}`])).toContain('HTTP/1.1 401')
    expect(await said(['X-Delivery: d-2'])).toContain('HTTP/1.1 400')
    expect(await one.sessions()).toEqual([])
    expect(await said([])).toContain('HTTP/1.1 202')
  })

  it('B-WEBHOOK-8: keeps the rules of the server for hosts and origins, and takes no other method', async () => {
    const one = await hooked()
    const { headers, body, path } = delivery('plain')
    const sent = (more: Record<string, string>, method = 'POST') =>
      requested(one.server.port, method, path, { ...headers, ...more }, method === 'GET' ? undefined : body)
    expect((await sent({ host: 'evil.example' })).status).toBe(421)
    expect((await sent({ origin: 'https://evil.example' })).status).toBe(403)
    expect((await sent({}, 'GET')).status).toBe(401)
    expect((await sent({ authorization: `Bearer ${'t'.repeat(43)}` }, 'GET')).status).toBe(405)
    expect(await one.sessions()).toEqual([])
  })

  it('B-WEBHOOK-9: of a source with a day of deliveries waiting is 429, and says when to come again', async () => {
    // With the minutes of a real clock one would become free meanwhile.
    const now = Date.now()
    const still = { ...hasty(1), now: () => now }
    const one = await hooked({ source: { caps: { perMinute: 1 } }, drives: false, clock: still })
    const day = Array.from({ length: 1_440 }, (_, i) => ({ source: 'mail', label: 'x', payload: `${i}` }))
    await Promise.all(day.map((each) => one.harness.trigger(each)))
    const { status, text, headers } = await one.send(delivery('plain'))
    expect([status, codeOf(text), headers['retry-after']]).toEqual([429, 'too_many', '60'])
  })

  it('B-WEBHOOK-10: Slack gets its challenge back, and nothing is on disk', async () => {
    const one = await hooked()
    const { status, text } = await one.send(delivery('slack', '{"type":"url_verification","challenge":"3eZbrw1a"}'))
    expect([status, JSON.parse(text)]).toEqual([200, { challenge: '3eZbrw1a' }])
    expect(await one.sessions()).toEqual([])
  })

  it('B-WEBHOOK-11: the secret of an endpoint stands in no log, also where a payload has it', async () => {
    const one = await hooked()
    const { text } = await one.send(
      delivery('plain', `leaked: ${SECRET}, again ${Buffer.from(SECRET).toString('base64')}`),
    )
    const { session } = JSON.parse(text) as { session: string }
    await until(() => expect(one.asked).toHaveLength(1))
    const log = JSON.stringify((await one.store.read(session, 0)).events) + one.asked.join()
    expect(log).not.toContain(SECRET)
    expect(log).toContain('⟦secret:WEBHOOK_')
  })

  it('B-WEBHOOK-12: deliveries are counted for Prometheus', async () => {
    const one = await hooked()
    await one.send(delivery('plain'))
    await one.send(delivery('plain'))
    await one.send({ ...delivery('plain'), headers: {} })
    const { text } = await requested(one.server.port, 'GET', '/metrics', { authorization: `Bearer ${'t'.repeat(43)}` })
    for (const line of ['deliveries_total 1', 'deliveries_duplicate_total 1', 'deliveries_refused_total 1'])
      expect(text).toContain(`terret_${line}\n`)
  })
})

describe('endpoints', () => {
  const triggers = createTriggers({ models: [scripted(() => 'x')], sources: { mail: {} } })

  it('B-WEBHOOK-13: read their secret from the environment or a file, and never from the configuration', () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-hooks-'))
    const file = join(folder, 'secret')
    writeFileSync(file, `${SECRET}\n`)
    const from = (secret: unknown) =>
      readEndpoints({ x: { ...ENDPOINTS['plain'], secret } as never }, { NAME: SECRET, EMPTY: '' })
    expect(from({ env: 'NAME' }).get('x')?.secret).toBe(SECRET)
    expect(from({ file }).get('x')?.secret).toBe(SECRET)
    for (const [secret, text] of [
      [SECRET, 'does not belong into a configuration'],
      [{ env: 'MISSING' }, 'environment variable MISSING'],
      [{ env: 'EMPTY' }, 'holds no secret'],
      [{ file: join(folder, 'none') }, 'cannot be read'],
      [undefined, 'Write secret: { env: "NAME" }'],
    ] as const)
      expect(() => from(secret)).toThrow(text)
    expect(() => from(SECRET)).not.toThrow(SECRET)
  })

  it('B-WEBHOOK-14: are an option of serve, over a harness with triggers', async () => {
    const harness = new Harness({ model: scripted(() => 'x'), triggers })
    const server = await serve({ harness, endpoints: ENDPOINTS })
    const { path, headers, body } = delivery('plain')
    const post = (sent: Record<string, string>) =>
      server.fetch(new Request(`http://localhost${path}`, { method: 'POST', headers: sent, body }))
    expect((await post({})).status).toBe(401)
    const answer = await post({ ...headers })
    expect(answer.status).toBe(202)
    await server.close()
    await harness.close()
    await expect(serve({ harness, endpoints: { 'a/b': ENDPOINTS['plain'] as never } })).rejects.toThrow(
      'cannot be an endpoint',
    )
  })

  it('B-WEBHOOK-16: for a source that does not exist are refused at the start, and their secret is not learned', async () => {
    const harness = new Harness({ model: scripted(() => 'x'), triggers })
    const bare = new Harness({ model: scripted(() => 'x') })
    onTestFinished(async () => void (await Promise.all([harness.close(), bare.close()])))
    for (const source of ['code', 'constructor', 'Mail', 'trigger_mail'])
      await expect(
        serve({ harness, endpoints: { hook: { ...(ENDPOINTS['plain'] as EndpointOptions), source } } }),
      ).rejects.toMatchObject({
        code: 'invalid_config',
        message: `The endpoint "hook" is for the source "${source}", which does not exist. Name one of: mail.`,
      })
    for (const options of [{ harness: bare }, { store: memory() }])
      await expect(serve({ ...options, endpoints: ENDPOINTS })).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringContaining('The harness has no triggers') as string,
      })
  })
})
