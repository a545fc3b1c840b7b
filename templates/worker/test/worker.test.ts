// The processes as they run in production: one takes deliveries in, another works. With DATABASE_URL they share that Postgres, in a schema
// of their own that is dropped at the end; without it they share a file.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

const SECRET = 'a-secret-of-the-test'
const TOKEN = 'T'.repeat(43)
const url = process.env['DATABASE_URL']

/** A folder, and a schema if there is a database. Both are gone after the test. */
function openPlace(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'worker-'))
  const schema = `test_${process.pid}_${Date.now()}`
  const children: ChildProcess[] = []
  t.after(async () => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
    if (url === undefined) return
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`drop schema if exists ${schema} cascade`)
    await client.end()
  })
  const { MODEL: _none, ...env } = process.env
  const variables = { ...env, SCHEMA: schema, WEBHOOK_SECRET: SECRET, TERRET_TOKEN: TOKEN, PORT: '0' }
  /** Starts a program, and resolves with the first line that fits. */
  const start = async (program: string, line: RegExp, ...words: readonly string[]) => {
    const main = fileURLToPath(new URL(`../src/${program}.js`, import.meta.url))
    const child = spawn(process.execPath, [main, ...words], { cwd: folder, env: variables, stdio: 'pipe' })
    child.stderr.pipe(process.stderr)
    children.push(child)
    const said: string[] = []
    for await (const each of createInterface({ input: child.stdout })) {
      said.push(each)
      const found = line.exec(each)
      if (found) return { child, found: found[1] ?? '' }
    }
    throw new Error(`${program} ended and said: ${said.join('\n')}`)
  }
  return { folder, start }
}

/** As the sender signs: the time, a dot and the body. */
async function deliver(server: string, id: string, secret = SECRET) {
  const body = JSON.stringify({ check: 'shop', state: 'DOWN' })
  const time = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-id': id, 'x-time': time, 'x-signature': signature }
  const response = await fetch(new URL('/v1/triggers/alarms', server), { method: 'POST', headers, body })
  return { status: response.status, ...((await response.json()) as { session?: string; duplicate?: boolean }) }
}

test(`a signed delivery that comes twice is one run (${url === undefined ? 'in a file' : 'on Postgres'})`, async (t) => {
  const { folder, start } = openPlace(t)
  const { found: server, child: webhook } = await start('webhook', /^Inspector: (\S+)$/)
  assert.equal((await deliver(server, 'd-1', 'a guess of a stranger')).status, 401)
  const first = await deliver(server, 'd-1')
  const second = await deliver(server, 'd-1')
  assert.deepEqual([first.status, first.duplicate, second.status, second.duplicate], [202, false, 202, true])
  assert.equal(second.session, first.session)

  const { child: worker } = await start('worker', /works\.$/)
  const headers = { authorization: `Bearer ${TOKEN}` }
  const answer = await fetch(new URL(`/v1/sessions/${first.session}/result?wait=30`, server), { headers })
  const { result } = (await answer.json()) as { result: { status: string } }
  assert.equal(result.status, 'completed')
  assert.equal(readFileSync(join(folder, 'pages.jsonl'), 'utf8').trim().split('\n').length, 1)

  for (const child of [worker, webhook]) {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
  }
})

test('the nightly job runs', async (t) => {
  const { start } = openPlace(t)
  const { found } = await start('cron', /^completed: (.*)$/, 'now')
  assert.equal(found, 'Nothing happened today.')
})
