// Triggers of the command line: `terret serve` takes signed deliveries in by the configuration file, and `terret triggers` has those that
// came to no end.
import { createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
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
