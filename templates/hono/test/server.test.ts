// The app without a port, and then the whole program as a process.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openAgent } from '../src/agent.ts'
import { openApp } from '../src/app.ts'

function openFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hono-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('a question is answered, and the inspector has its session', async (t) => {
  delete process.env['MODEL']
  const { harness, store } = openAgent(join(openFolder(t), 'shop.db'))
  const { app, terret } = await openApp(harness)
  t.after(async () => {
    await terret.close()
    await harness.close()
    await store.close()
  })
  const ask = (body: string) => app.request('http://localhost/ask', { method: 'POST', body })

  const answer = await ask('{"question": "When do you open?"}')
  const { session, text } = (await answer.json()) as { session: string; text: string }
  assert.equal(text, 'We open at nine.')
  assert.equal((await ask('{}')).status, 400)
  assert.equal((await ask('nothing')).status, 400)

  const page = await app.request('http://localhost/terret/')
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  const headers = { authorization: `Bearer ${terret.token}` }
  assert.equal((await app.request(`http://localhost/terret/v1/sessions/${session}`, { headers })).status, 200)
  assert.equal((await app.request(`http://localhost/terret/v1/sessions/${session}`)).status, 401)
})

test('the program answers on a port, shows the inspector, and ends when it is told to', async (t) => {
  const { MODEL: _none, ...env } = process.env
  const main = fileURLToPath(new URL('../src/server.js', import.meta.url))
  const child = spawn(process.execPath, [main], { cwd: openFolder(t), env: { ...env, PORT: '0' }, stdio: 'pipe' })
  t.after(() => child.kill('SIGKILL'))
  let url = ''
  for await (const line of createInterface({ input: child.stdout })) {
    url = /^Inspector: (\S+)$/.exec(line)?.[1] ?? ''
    if (url !== '') break
  }
  assert.equal((await fetch(url)).status, 200)
  const asked = { method: 'POST', body: '{"question": "When do you open?"}' }
  assert.match(await (await fetch(new URL('/ask', url), asked)).text(), /We open at nine/)

  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
})
