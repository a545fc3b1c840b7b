// `terret serve` as a real process. What takes longer is in serve.long.test.ts.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from '../cli/scripted.ts'
import type { OpenedAnswer, SessionAnswer } from '../../src/server/wire.ts'
import { serving } from './process.ts'

const { scriptedBy, stage } = stageOfEach()

describe('terret serve', () => {
  it('B-SERVE-30: says its address and token, listens to this machine only, and says what stands in its way: a port in use, a host without a name, another server', async () => {
    await scriptedBy([])
    const one = await serving(stage)
    expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const { hosts, ok } = await one.json<{ readonly hosts: readonly string[]; readonly ok: boolean }>(
      'GET',
      '/v1/health',
    )
    expect([ok, hosts]).toEqual([true, [`127.0.0.1:${one.port}`, `localhost:${one.port}`, `[::1]:${one.port}`]])
    const taken = await stage.apart('serve', '--port', String(one.port))
    expect([taken.code, taken.err]).toEqual([7, expect.stringContaining(`Port ${one.port} of 127.0.0.1 is in use`)])
    const beyond = await stage.refused('serve', '--port', '65536')
    expect([beyond.code, beyond.err]).toEqual([2, 'terret: --port must be at most 65535, not 65536. 0 takes any.\n'])
    const open = await stage.apart('serve', '--host', '0.0.0.0')
    expect([open.code, open.err]).toEqual([2, expect.stringContaining('--name')])
    // The same token again, so that pages survive a restart; and the other one is said.
    const two = await serving(stage)
    expect(two.token).toBe(one.token)
    await two.says(one.url)
    two.child.kill('SIGTERM')
    expect((await two.ended).code).toBe(0)
    const outside = await new Promise<string>((resolve) => {
      const socket = connect({ port: one.port, host: '127.0.0.2' })
      socket
        .on('connect', () => resolve('open'))
        .on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
    })
    expect(outside).toBe('ECONNREFUSED')
  })

  it('B-SERVE-32: a session is opened in the folder of the server, with an agent that is there; others are refused with what to do', async () => {
    await scriptedBy(['Done.', 'Done.'])
    const one = await serving(stage)
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
    expect((await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)).card).toMatchObject({
      folder: stage.folder,
    })
    const wrong = await one.ask('POST', '/v1/sessions', { body: { input: 'Go.', agent: 'nobody-here' } })
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('no agent')])
    const { token } = await one.json<{ readonly token: string }>('POST', '/v1/tokens', {
      body: { name: 'otto', role: 'operator' },
    })
    const away = await one.ask('POST', '/v1/sessions', { token, body: { input: 'Go.', folder: '/' } })
    expect(away.status).toBe(400)
    expect(await one.json('GET', '/v1/agents')).toMatchObject({
      agents: expect.arrayContaining([expect.objectContaining({ name: 'default' })]) as unknown,
    })
  })
})
