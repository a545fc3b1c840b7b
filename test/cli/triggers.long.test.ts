// Triggers of the command line: `terret serve` takes signed deliveries in by the configuration file, and `terret triggers` has those that
// came to no end.
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { requested } from '../server/served.ts'
import { serving } from '../server/process.ts'
import { unauthorizedError } from '../../src/testing/index.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { stage, scriptedBy } = stageOfEach()

const SECRET = 'whsec_77aa88bb99cc00dd'

function signed(body: string, id: string): Readonly<Record<string, string>> {
  const digest = createHmac('sha256', SECRET).update(body).digest('hex')
  return { 'x-hub-signature-256': `sha256=${digest}`, 'x-github-event': 'push', 'x-github-delivery': id }
}

it('B-CLI-271: serve takes signed deliveries in by the configuration, and triggers lists, retries and drops the dead ones', async () => {
  const secret = stage.write('secret', `${SECRET}\n`)
  const triggers = {
    sources: { code: { caps: { perMinute: 100 } } },
    endpoints: { github: { source: 'code', verify: 'github', secret: { file: secret } } },
  }
  await scriptedBy([unauthorizedError()], { triggers })
  const server = await serving(stage)
  const send = async (id: string, headers = {}) => {
    const body = '{"ref":"refs/heads/main"}'
    return requested(server.port, 'POST', '/v1/triggers/github', { ...signed(body, id), ...headers }, body)
  }
  expect((await send('d-1', { 'x-hub-signature-256': 'sha256=00' })).status).toBe(401)
  const first = await send('d-1')
  expect(first.status).toBe(202)
  const { session } = JSON.parse(first.text) as { session: string }
  expect(JSON.parse((await send('d-1')).text)).toMatchObject({ session, duplicate: true })
  const listed = async () => (await stage.terret('triggers', 'list', '--json')).out.trim()
  await until(async () => expect(await listed()).toContain(session))
  expect(JSON.parse(await listed())).toMatchObject({ sessionId: session, source: 'code', title: 'code: push' })
  expect(await listed()).not.toContain(SECRET)
  const { code, out } = await stage.terret('triggers', 'drop', session, '--by', 'ana')
  expect([code, out]).toEqual([0, expect.stringContaining('is dropped') as string])
  expect((await stage.terret('triggers', 'list')).out).toContain('No trigger is dead.')
  await until(async () =>
    expect(await server.json('GET', `/v1/sessions/${session}`)).toMatchObject({ card: { status: 'terminated' } }),
  )
  const late = await stage.terret('triggers', 'retry', session, '--by', 'ben')
  expect(late.code).not.toBe(0)
  expect(late.err).toContain('already by ana')
}, 60_000)

it('B-CLI-272: a secret in the configuration is refused without quoting it, and a workspace cannot set triggers', async () => {
  stage.configure({ triggers: { sources: {}, endpoints: { x: { source: 'a', verify: 'github', secret: SECRET } } } })
  const refused = await stage.terret('doctor')
  expect(refused.err + refused.out).toContain('must name a variable or a file')
  expect(refused.err + refused.out).not.toContain(SECRET)
  expect((await stage.refused('triggers', 'burn')).err).toContain('Usage: terret triggers list')
}, 60_000)

it('B-WEBHOOK-16: an endpoint for a source that is not configured is refused before the server takes anything in', async () => {
  const secret = { file: stage.write('secret', SECRET) }
  const endpoints = { github: { source: 'code', verify: 'github', secret } }
  for (const [sources, known] of [
    [{ mail: {} }, 'has only: mail'],
    [{}, 'has no source yet'],
  ] as const) {
    stage.configure({ triggers: { sources, endpoints } })
    const { code, err } = await stage.apart('serve', '--port', '0')
    expect(code).not.toBe(0)
    expect(err).toContain(`"triggers.endpoints.github.source" must be a source of "triggers.sources", which ${known}`)
  }
}, 60_000)

it('B-CLI-273: notices go to the webhook of the configuration, whose secret serve asks for at its start', async () => {
  const posted: { readonly id: unknown; readonly signature: string; readonly body: string }[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      posted.push({ id: request.headers['terret-id'], signature: String(request.headers['terret-signature']), body })
      response.end()
    })
  })
  onTestFinished(() => void receiver.close())
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  const triggers = {
    sources: { code: {} },
    endpoints: { github: { source: 'code', verify: 'github', secret: { file: stage.write('secret', SECRET) } } },
    notify: { webhook: { url, secret: 'NOTICE_SECRET' } },
  }
  await scriptedBy([{ text: '{"action":"notify","prompt":"The build failed.","reason":"So."}' }], { triggers })
  const refused = await stage.apart('serve', '--port', '0')
  expect([refused.code, refused.err]).toEqual([expect.any(Number), expect.stringContaining('NOTICE_SECRET')])
  expect(refused.code).not.toBe(0)
  const env = { ...stage.env, NOTICE_SECRET: 'sesame' }
  const start: typeof stage.start = (args, options) => stage.start(args, { ...options, env })
  const server = await serving({ ...stage, start })
  const body = '{"ref":"refs/heads/main"}'
  const answer = await requested(server.port, 'POST', '/v1/triggers/github', signed(body, 'd-9'), body)
  const { session } = JSON.parse(answer.text) as { session: string }
  await until(() => expect(posted).toHaveLength(1))
  const [notice] = posted
  expect(notice?.id).toBe(session)
  expect(JSON.parse(notice?.body ?? '')).toMatchObject({ key: session, source: 'code', text: 'The build failed.' })
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(notice?.signature ?? '') ?? []
  expect(hex).toBe(createHmac('sha256', 'sesame').update(`${seconds}.${notice?.body}`).digest('hex'))
}, 60_000)

it.each([
  [{}],
  [{ webhook: { url: 'http://x' } }],
  [{ command: { argv: [] } }],
  [{ webhook: { url: 'x', secret: 'Y' }, command: { argv: ['z'] } }],
])(
  'B-CLI-273: the place of notices %j is refused',
  async (notify) => {
    stage.configure({ triggers: { sources: {}, notify } })
    const { err, out } = await stage.terret('doctor')
    expect(err + out).toContain('triggers.notify" must be {"webhook"')
  },
  60_000,
)
