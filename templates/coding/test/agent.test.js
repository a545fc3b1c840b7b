// The agent as an editor uses it: `terret acp` over pipes. A script plays the model, and the test plays the editor.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startChaos } from 'terret/testing'

const root = fileURLToPath(new URL('..', import.meta.url))
const terret = join(root, 'node_modules/terret/dist/cli/main.js')

/** A copy of this repository that is trusted, and a home whose model is the script. */
async function openRepository(t, script) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'coding-')))
  const model = await startChaos({ script })
  t.after(async () => {
    await model.close()
    rmSync(home, { recursive: true, force: true })
  })
  const cwd = join(home, 'repository')
  for (const each of ['.terret', 'AGENTS.md', 'package.json', 'src', 'test'])
    cpSync(join(root, each), join(cwd, each), { recursive: true })
  mkdirSync(join(home, 'config/terret'), { recursive: true })
  const endpoints = { script: { baseUrl: `${model.url}/v1`, protocol: 'chat' } }
  const config = { model: 'script:any', endpoints, context: { compaction: false } }
  writeFileSync(join(home, 'config/terret/config.json'), JSON.stringify(config))
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TERRET_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
  }
  execFileSync(process.execPath, [terret, 'trust'], { cwd, env })
  return { cwd, env, requests: model.requests }
}

/** Starts the agent. `answer` is what the editor says to a permission. */
async function openEditor(t, { cwd, env }, answer) {
  const child = spawn(process.execPath, [terret, 'acp'], { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const asked = []
  const waiting = new Map()
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method === 'session/request_permission') {
      asked.push(params)
      const { optionId } = params.options.find(({ kind }) => kind === answer)
      send({ id, result: { outcome: { outcome: 'selected', optionId } } })
    } else if (method === undefined) {
      const { resolve, reject } = waiting.get(id)
      if (error) reject(new Error(error.message))
      else resolve(result)
    }
  })
  const request = (method, params) => {
    const id = waiting.size
    send({ id, method, params })
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }
  await request('initialize', { protocolVersion: 1, clientCapabilities: {} })
  const { sessionId } = await request('session/new', { cwd, mcpServers: [] })
  const prompt = (text) => request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  return { prompt, asked }
}

const args = { edits: [{ path: 'src/price.js', old_string: 'let sum = 0', new_string: 'let sum = 1' }] }
const script = [
  { calls: [{ tool: 'read', args: { path: 'src/price.js' } }] },
  { calls: [{ tool: 'edit', args }] },
  'Done.',
]

test('an edit is shown and made when the editor allows it', async (t) => {
  const repository = await openRepository(t, script)
  const { prompt, asked } = await openEditor(t, repository, 'allow_once')
  const { stopReason } = await prompt('Start at one.')
  assert.equal(stopReason, 'end_turn')
  assert.equal(asked.length, 1)
  assert.match(JSON.stringify(asked[0].toolCall), /let sum = 0[^]*let sum = 1/)
  assert.match(readFileSync(join(repository.cwd, 'src/price.js'), 'utf8'), /let sum = 1/)
  // What AGENTS.md and .terret/config.json say has reached the model.
  assert.match(JSON.stringify(repository.requests[0].body), /Change no more than was asked for[^]*No new dependency/)
})

test('an edit that the editor denies is not made', async (t) => {
  const repository = await openRepository(t, script)
  const { prompt, asked } = await openEditor(t, repository, 'reject_once')
  await prompt('Start at one.')
  assert.equal(asked.length, 1)
  assert.match(readFileSync(join(repository.cwd, 'src/price.js'), 'utf8'), /let sum = 0/)
})
