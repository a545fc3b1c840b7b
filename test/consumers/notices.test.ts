// The consumers that come with the package, with real files, programs and servers.
import { createHmac } from 'node:crypto'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { commandNotice, costLog, webhookNotice } from '../../src/consumers/index.ts'
import type { Consumer, SettledRun } from '../../src/index.ts'
import { makeFolder } from '../stores/folder.ts'
import { stage } from './stage.ts'

const settled: SettledRun = {
  session: 's',
  agent: 'default',
  owner: null,
  run: 3,
  seq: 6,
  beganAt: 1_000,
  endedAt: 3_000,
  outcome: { type: 'completed' },
  prompt: 'Hello.',
  text: 'done',
  output: null,
  usage: {
    inputTokens: 1,
    outputTokens: 2,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    modelRequests: 1,
    toolCalls: 0,
    cancelledToolCalls: 0,
    outputRetries: 0,
    toolRetries: {},
  },
  cost: { usd: 0.5, ownUsd: 0.5, micros: 500_000 },
  labels: {},
  metadata: {},
}
const tell = async (consumer: Consumer, repeated = false, signal = new AbortController().signal): Promise<void> => {
  await consumer.run(settled, {
    key: 'settled:s:6',
    repeated,
    signal,
    askModel: () => Promise.reject(new Error('none')),
  })
}

it('B-CONSUME-23: the cost log has one line for each run, also after a kill between the line and its result, and in the middle of a line', async () => {
  const file = join(makeFolder(), 'costs.jsonl')
  const lines = (): readonly string[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
  await tell(costLog({ file }))
  expect(JSON.parse(lines()[0] ?? '')).toMatchObject({
    key: 'settled:s:6',
    usd: 0.5,
    durationMs: 2_000,
    outcome: 'completed',
  })
  // Many others wrote meanwhile.
  appendFileSync(file, `${JSON.stringify({ key: 'other', text: 'x'.repeat(1_000) })}\n`.repeat(2_000))
  await tell(costLog({ file }), true)
  expect(lines().filter((line) => line.includes('settled:s:6')).length).toBe(1)
  writeFileSync(file, '{"key":"settled:s:6","sess')
  await tell(costLog({ file }), true)
  expect(lines().length).toBe(2)
  expect(JSON.parse(lines()[1] ?? '')).toMatchObject({ key: 'settled:s:6' })
})

it('B-CONSUME-23: a harness with the cost log writes the runs of its roots', async () => {
  const file = join(makeFolder(), 'costs.jsonl')
  const { harness } = stage([costLog({ file })])
  await harness.run('Hello.')
  await harness.close()
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ agent: 'default', outcome: 'completed', usd: 0 })
})

type Posted = { readonly headers: IncomingHttpHeaders; readonly body: string }

async function listen(status: number, posted: Posted[]): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      posted.push({ headers: request.headers, body })
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('because')
    })
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

it('B-CONSUME-24: a webhook gets the run with its key, the time and their signature, and only 2xx is taken for an answer', async () => {
  process.env['HOOK_SECRET_OF_TEST'] = 'sesame'
  onTestFinished(() => void delete process.env['HOOK_SECRET_OF_TEST'])
  const posted: Posted[] = []
  const to = async (status: number) =>
    webhookNotice({ url: await listen(status, posted), secret: 'HOOK_SECRET_OF_TEST' })
  await tell(await to(204))
  const [{ headers, body } = { headers: {}, body: '' }] = posted
  expect(JSON.parse(body)).toMatchObject({ key: 'settled:s:6', session: 's', text: 'done' })
  expect(headers['terret-id']).toBe('settled:s:6')
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['terret-signature'])) ?? []
  expect(hex).toBe(createHmac('sha256', 'sesame').update(`${seconds}.${body}`).digest('hex'))
  await expect(tell(await to(500))).rejects.toThrow(/answered with 500\. because/)
  await expect(tell(await to(302))).rejects.toThrow(/answered with 302, a redirect, which is not followed/)
  expect(posted.length).toBe(3)
  expect(() => webhookNotice({ url: 'ftp://x', secret: 'HOOK_SECRET_OF_TEST' })).toThrow(/http or https/)
  expect(() => webhookNotice({ url: 'http://x', secret: 'NOT_SET_ANYWHERE' })).toThrow(
    /NOT_SET_ANYWHERE, which signs notices, is not set/,
  )
})

it('B-CONSUME-25: a command reads the run on its standard input, sees no secret of the environment, and fails by its exit code', async () => {
  const folder = makeFolder()
  process.env['TEST_API_KEY'] = 'sesame'
  onTestFinished(() => void delete process.env['TEST_API_KEY'])
  const script =
    "const t=require('fs').readFileSync(0,'utf8');require('fs').writeFileSync('out.json',JSON.stringify({t:JSON.parse(t),k:process.env.TEST_API_KEY??null,a:process.argv.slice(1)}))"
  await tell(commandNotice({ argv: [process.execPath, '-e', script, '$(touch bad); `x`'], cwd: folder }))
  expect(JSON.parse(readFileSync(join(folder, 'out.json'), 'utf8'))).toMatchObject({
    t: { key: 'settled:s:6', text: 'done' },
    k: null,
    a: ['$(touch bad); `x`'],
  })
  const failing = commandNotice({ argv: [process.execPath, '-e', "console.error('no room');process.exit(3)"] })
  await expect(tell(failing)).rejects.toThrow(/ended with exit code 3: no room/)
  await expect(tell(commandNotice({ argv: ['/no/such/program'] }))).rejects.toThrow(/ENOENT/)
  const stop = new AbortController()
  const hung = tell(
    commandNotice({ argv: [process.execPath, '-e', 'setInterval(() => {}, 1000)'] }),
    false,
    stop.signal,
  )
  stop.abort(new Error('too late'))
  await expect(hung).rejects.toThrow()
  expect(() => commandNotice({ argv: [] })).toThrow(/name a program/)
})

it('B-CONSUME-25: a command has told its run when it ends, also if a program that it started goes on', async () => {
  const folder = makeFolder()
  // It holds the standard error that it inherited open.
  const started = "setInterval(()=>{if(require('fs').existsSync('stop'))process.exit()},20)"
  const script = `require('child_process').spawn(process.execPath,['-e',${JSON.stringify(started)}],{stdio:['ignore','ignore','inherit'],detached:true}).unref();`
  onTestFinished(() => writeFileSync(join(folder, 'stop'), ''))
  await tell(commandNotice({ argv: [process.execPath, '-e', script], cwd: folder }))
  const failing = commandNotice({ argv: [process.execPath, '-e', `${script}process.exitCode=3`], cwd: folder })
  await expect(tell(failing)).rejects.toThrow(/ended with exit code 3/)
})

it('B-CONSUME-24: of an answer that has no end only the beginning is read', async () => {
  process.env['NOTICE_SECRET'] = 'sesame'
  const server = createServer((_, response) => {
    response.writeHead(500)
    response.write('x'.repeat(1_000))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    delete process.env['NOTICE_SECRET']
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await expect(tell(webhookNotice({ url, secret: 'NOTICE_SECRET' }))).rejects.toThrow(/answered with 500\. x/)
})
