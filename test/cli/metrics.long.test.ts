// /metrics of a server and of workers on one store, as processes of their own: what each did, what is in the store, and
// what is left when one was killed.
import { expect, it, onTestFinished } from 'vitest'
import { serving } from '../server/process.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

async function working() {
  const worker = stage.start(['worker', '--metrics', '0'])
  onTestFinished(() => void worker.child.kill('SIGKILL'))
  let said = ''
  worker.child.stderr?.on('data', (text: string) => (said += text))
  await worker.says('Metrics are at ')
  await until(() => expect(said).toContain('/metrics\n'))
  const [url = ''] = /http:\S+/.exec(said) ?? []
  const page = async (): Promise<string> => (await fetch(url)).text()
  return { worker, page }
}

it('B-METRIC-10: a worker tells what it did and a server what it did, both tell what waits; killed, a worker begins at 0', async () => {
  await scriptedBy(['Hello.', { calls: [{ tool: 'write', args: { path: 'made.txt', content: 'Made.' } }] }, 'Done.'])
  const server = await serving(stage, '--no-drive')
  const first = await working()
  const told = async (): Promise<string> => (await server.ask('GET', '/metrics')).text
  await server.json('POST', '/v1/sessions', { body: { input: 'Say hello.' } })
  const DONE = 'terret_runs_total{agent="default",end="completed"} 1\n'
  await until(async () => expect(await first.page()).toContain(DONE))
  expect(await told()).not.toContain('terret_runs_total{')

  await server.json('POST', '/v1/sessions', { body: { input: 'Make it.' } })
  const WAITS = 'terret_approvals_waiting{agent="default"} 1\n'
  await until(async () => expect(await first.page()).toContain(WAITS))
  expect(await told()).toContain(WAITS)
  expect(await first.page()).toContain(DONE)

  first.worker.child.kill('SIGKILL')
  await first.worker.ended
  const second = await working()
  const page = await second.page()
  expect(page).toContain(WAITS)
  expect(page).not.toContain('terret_runs_total{')
  const { pending } = await server.json<{ pending: { sessionId: string; callId: string; digest: string }[] }>(
    'GET',
    '/v1/pending',
  )
  const [asked] = pending
  await server.json('POST', `/v1/sessions/${asked?.sessionId ?? ''}/decisions`, {
    body: { callId: asked?.callId, digest: asked?.digest, allow: false },
  })
  // The reply with the call was recorded by the worker that was killed.
  await until(async () =>
    expect(await second.page()).toContain('terret_tool_calls_total{agent="default",tool="write",status="denied"} 1\n'),
  )
  await until(async () => expect(await told()).not.toContain('terret_approvals_waiting{'))
})
