// Notices of triggers, sent to real programs and servers.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { commandSender, stdoutSender, webhookSender } from '../../src/consumers/index.ts'
import { deadTriggers } from '../../src/triggers/index.ts'
import { hasty } from '../models/hosted-stage.ts'
import { makeFolder } from '../stores/folder.ts'
import { endOf, mail, NOTIFY, withTriggers } from './stage.ts'

type Posted = { readonly headers: IncomingHttpHeaders; readonly body: string }

/** A server that answers with these in turn, and with the last one for ever. */
async function listen(...statuses: readonly [number, ...number[]]) {
  const posted: Posted[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      posted.push({ headers: request.headers, body })
      response.writeHead(statuses[Math.min(posted.length, statuses.length) - 1] ?? 500).end()
    })
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  process.env['NOTICE_SECRET_OF_TEST'] = 'sesame'
  onTestFinished(() => void delete process.env['NOTICE_SECRET_OF_TEST'])
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/notices`
  return { posted, notify: webhookSender({ url, secret: 'NOTICE_SECRET_OF_TEST' }) }
}

const noticeOf = (session: string) => ({
  key: session,
  source: 'mail',
  label: 'mail.received',
  text: 'The build failed.',
  session,
})

it('B-TRIGGER-46: a webhook gets the notice under the key of its session, signed', async () => {
  const { posted, notify } = await listen(204)
  const stage = withTriggers({ triage: [NOTIFY], notify })
  const receipt = await stage.harness.trigger(mail('exit 1'))
  expect((await endOf(stage, receipt)).output.result).toBe('The build failed.')
  const [{ headers, body } = { headers: {}, body: '' }] = posted
  expect(posted).toHaveLength(1)
  expect(JSON.parse(body)).toEqual(noticeOf(receipt.sessionId))
  expect(headers['terret-id']).toBe(receipt.sessionId)
  const [, seconds] = /^t=(\d+),/.exec(String(headers['terret-signature'])) ?? []
  const hex = createHmac('sha256', 'sesame').update(`${seconds}.${body}`).digest('hex')
  expect(headers['terret-signature']).toBe(`t=${seconds},v1=${hex}`)
})

it('B-TRIGGER-46: a command and standard output get the same notice', async () => {
  const file = join(makeFolder(), 'notice.json')
  const script = "require('fs').writeFileSync(process.argv[1],require('fs').readFileSync(0))"
  const told = withTriggers({
    triage: [NOTIFY],
    notify: commandSender({ argv: [process.execPath, '-e', script, file] }),
  })
  const first = await told.harness.trigger(mail('exit 1'))
  await endOf(told, first)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(noticeOf(first.sessionId))
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((_text: unknown, done?: unknown) => {
    if (typeof done === 'function') (done as () => void)()
    return true
  })
  const printed = withTriggers({ triage: [NOTIFY], notify: stdoutSender() })
  const second = await printed.harness.trigger(mail('exit 1'))
  await endOf(printed, second)
  const lines = write.mock.calls.map(([text]) => String(text))
  write.mockRestore()
  expect(lines).toContain(`${JSON.stringify(noticeOf(second.sessionId))}\n`)
})

it('B-TRIGGER-46: a sender says what is wrong with its options under its own name', () => {
  expect(() => webhookSender({ url: 'ftp://x', secret: 'X' })).toThrow('"url" of webhookSender must be an address')
  expect(() => commandSender({ argv: [] })).toThrow('"argv" of commandSender is empty')
  const named = { url: 'http://x', secret: 'NOT_SET', name: 'x' } as Parameters<typeof webhookSender>[0]
  expect(() => webhookSender(named)).toThrow('Unknown option "name" of webhookSender')
})

it('B-TRIGGER-47: a notice that is not taken at first is sent again under the same key', async () => {
  const { posted, notify } = await listen(503, 204)
  const stage = withTriggers({ triage: [NOTIFY], notify })
  const receipt = await stage.harness.trigger(mail('exit 1'))
  expect((await endOf(stage, receipt)).result.status).toBe('completed')
  expect(posted.map(({ headers }) => headers['terret-id'])).toEqual([receipt.sessionId, receipt.sessionId])
  expect(await deadTriggers(stage.harness).list()).toEqual([])
})

it('B-TRIGGER-47: after three tries the trigger is dead, and a retry sends the notice again', async () => {
  const { posted, notify } = await listen(503, 503, 503, 204)
  const stage = withTriggers({ triage: [NOTIFY], notify, options: { system: { clock: hasty(20) } } })
  const receipt = await stage.harness.trigger(mail('exit 1'))
  expect((await endOf(stage, receipt)).result.status).toBe('failed')
  expect(posted).toHaveLength(3)
  const dead = deadTriggers(stage.harness)
  expect(await dead.list()).toMatchObject([
    { sessionId: receipt.sessionId, reason: expect.stringContaining('503') as string },
  ])
  await dead.retry(receipt.sessionId, { by: 'ana' })
  expect((await endOf(stage, receipt)).output.result).toBe('The build failed.')
  expect(new Set(posted.map(({ headers }) => headers['terret-id']))).toEqual(new Set([receipt.sessionId]))
  expect(posted).toHaveLength(4)
}, 60_000)
