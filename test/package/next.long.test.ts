// The recipes for Next.js, built and started by a real one. It is not a dependency, as it weighs 400 MB: npm installs it for this test,
// and where that fails the test is skipped by name.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { until } from '../until.ts'
import { packInto, root } from './packed.ts'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly devDependencies: Record<string, string>
}
const folder = mkdtempSync(join(tmpdir(), 'terret-next-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Why Next.js cannot be had here, or null. */
function installNext(): string | null {
  const { react, 'react-dom': dom } = manifest.devDependencies
  writeFileSync(join(folder, 'package.json'), '{ "name": "shop", "private": true, "type": "module" }\n')
  const wanted = ['next@16.4.6', `react@${react}`, `react-dom@${dom}`, packInto(folder)]
  const args = ['install', '--silent', '--no-audit', '--no-fund', ...wanted]
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  return status === 0 ? null : stderr
}

const noNext = installNext()
if (noNext !== null && process.env['TERRET_REQUIRE_NEXT'])
  throw new Error(`Next.js cannot be installed, and its test may not be skipped here: ${noNext}`)

/** Writes the blocks of a recipe that begin with the name of their file. */
function writeFilesOf(recipe: string): void {
  const page = readFileSync(join(root, 'docs', 'recipes', recipe), 'utf8')
  for (const [, path = '', text = ''] of page.matchAll(/```js\n\/\/ (\S+)\n([\s\S]*?)```/g)) writeFile(path, text)
}

function writeFile(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

/** The first program of the recipe of the API, up to where it calls itself. */
function routeOfServer(): string {
  const page = readFileSync(join(root, 'docs', 'recipes', 'server-in-next.md'), 'utf8')
  const [, program = ''] = /```ts\n([\s\S]*?)\/\/ As Next\.js calls them/.exec(page) ?? []
  return program
}

const next = join(folder, 'node_modules', 'next', 'dist', 'bin', 'next')
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }

async function startNext(): Promise<string> {
  const port = await freePort()
  const server: ChildProcess = spawn(process.execPath, [next, 'start', '-p', String(port)], {
    cwd: folder,
    env,
    detached: true,
  })
  onTestFinished(() => void process.kill(-(server.pid ?? 0), 'SIGKILL'))
  const url = `http://localhost:${port}`
  await until(async () => expect((await fetch(url)).status).toBe(200))
  return url
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

async function ask(url: string, id: string): Promise<string> {
  const messages = [{ id, role: 'user', parts: [{ type: 'text', text: 'Hello?' }] }]
  const body = JSON.stringify({ id: 'chat-1', messages, trigger: 'submit-message' })
  const headers = { 'content-type': 'application/json', 'x-user': 'ana' }
  return (await fetch(`${url}/api/chat`, { method: 'POST', body, headers })).text()
}

it.skipIf(noNext !== null)(
  'B-NEXT-1: the recipes run in a real Next.js as they are written (skipped where npm cannot install Next.js)',
  { timeout: 600_000 },
  async () => {
    writeFilesOf('chat.md')
    writeFile('app/terret/[[...path]]/route.js', routeOfServer())
    writeFile('app/layout.jsx', 'export default ({ children }) => <html lang="en"><body>{children}</body></html>\n')
    writeFile('app/page.jsx', 'export default () => <p>Shop</p>\n')
    const built = spawnSync(process.execPath, [next, 'build'], { cwd: folder, env, encoding: 'utf8' })
    expect(built).toMatchObject({ status: 0 })

    const url = await startNext()
    expect(await ask(url, 'm0')).toMatch(/"delta":"This is "[\s\S]*"delta":"the answer\."[\s\S]*"finishReason":"stop"/)
    expect(await ask(url, 'm1')).toContain('"finishReason":"stop"')
    const kept = await fetch(`${url}/api/chat/chat-1/messages`, { headers: { 'x-user': 'ana' } })
    expect(((await kept.json()) as { readonly messages: readonly unknown[] }).messages).toHaveLength(4)
    expect((await fetch(`${url}/api/chat/chat-1/messages`, { headers: { 'x-user': 'bob' } })).status).toBe(403)

    const pages = await fetch(`${url}/terret`)
    expect([pages.status, pages.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect((await fetch(`${url}/terret/v1/me`)).status).toBe(401)
  },
)
