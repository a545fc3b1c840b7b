// The built page and its server as they run in production. A reload, a stranger and a restart of the server are all in it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const next = join(root, 'node_modules/next/dist/bin/next')

/** Starts the server, and resolves with its address when it listens. */
async function start(t, database) {
  const { MODEL: _none, ...env } = process.env
  const child = spawn(process.execPath, [next, 'start', '-p', '0'], {
    cwd: root,
    env: { ...env, CHAT_DB: database, NEXT_TELEMETRY_DISABLED: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = () => {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    return child.kill('SIGKILL') ? ended : undefined
  }
  t.after(stop)
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /Local:\s+(\S+)/.exec(line)?.[1]
    if (url !== undefined) return { url, stop }
  }
  throw new Error('The server has ended.')
}

test('a chat answers, asks, and is there after a reload and after a restart', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'next-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const database = join(folder, 'chat.db')
  let { url, stop } = await start(t, database)

  // A browser that comes for the first time gets a chat and a cookie.
  const first = await fetch(url, { redirect: 'manual' })
  const cookie = first.headers.get('set-cookie').split(';')[0]
  const path = new URL(first.headers.get('location'), url).search
  const id = new URLSearchParams(path).get('chat')
  const say = async (text, headers = { cookie }) => {
    const messages = [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }]
    const body = JSON.stringify({ id, messages, trigger: 'submit-message' })
    return fetch(`${url}/api/chat`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  }
  const page = async (headers = { cookie }) => (await fetch(`${url}/${path}`, { headers })).text()

  assert.doesNotMatch(await page(), /We open at nine/)
  assert.match(await (await say('When do you open?')).text(), /"delta":"We open "[^]*"delta":"at nine\."/)
  assert.match(await page(), /When do you open\?[^]*We open at nine\./)

  // The chat of somebody else is neither shown nor spoken to.
  const stranger = { cookie: `visitor=${crypto.randomUUID()}` }
  assert.doesNotMatch(await page(stranger), /We open at nine/)
  assert.equal((await say('Hello?', stranger)).status, 403)
  assert.equal((await say('Hello?', {})).status, 403)

  // An order waits for a yes, also after the server was killed.
  assert.match(await (await say('I want to order a lamp.')).text(), /approval/)
  await stop()
  ;({ url, stop } = await start(t, database))
  assert.match(await page(), /We open at nine\.[^]*place_order[^]*Yes/)
})
