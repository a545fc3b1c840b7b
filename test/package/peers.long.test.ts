// The programs of docs/from that are written with other libraries, run as they stand there. None of these is a dependency: npm installs
// each for its test, and where that fails the test is skipped by name.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { root } from './packed.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-peers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Mastra refuses Node 20, so it gets a Node of its own. The version of each is the one that its program names. */
const peers = [
  { name: 'ai-sdk', besides: [] },
  { name: 'openai-agents', besides: [] },
  { name: 'langgraph', besides: [] },
  { name: 'mastra', besides: ['node@22.23.3'] },
].map((peer) => ({ ...peer, missing: installPeer(peer.name, peer.besides) }))

/** Why it cannot be had here, or null. */
function installPeer(name: string, besides: readonly string[]): string | null {
  const program = join(root, 'examples', 'from', `${name}.mjs`)
  const [, wanted = ''] = /^\/\/ It needs: npm install (.*)$/m.exec(readFileSync(program, 'utf8')) ?? []
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'package.json'), '{ "name": "peer", "private": true, "type": "module" }\n')
  copyFileSync(program, join(folder, name, 'program.mjs'))
  const args = ['install', '--silent', '--no-audit', '--no-fund', ...wanted.split(' '), ...besides]
  const { status, stderr } = spawnSync('npm', args, { cwd: join(folder, name), encoding: 'utf8' })
  if (status !== 0 && process.env['TERRET_REQUIRE_PEERS'])
    throw new Error(`${name} cannot be installed, and its test may not be skipped here: ${stderr}`)
  return status === 0 ? null : stderr
}

for (const { name, besides, missing } of peers)
  it.skipIf(missing !== null)(`B-DOC-5: the program of docs/from with ${name} runs as it stands there`, () => {
    const page = readFileSync(join(root, 'docs', 'from', `${name}.md`), 'utf8')
    const [, code, printed] = /```js\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/.exec(page) ?? []
    expect(code).toBe(readFileSync(join(root, 'examples', 'from', `${name}.mjs`), 'utf8'))
    const node = besides.length === 0 ? process.execPath : join('node_modules', '.bin', 'node')
    const cwd = join(folder, name)
    const { status, stdout, stderr } = spawnSync(node, ['program.mjs'], { cwd, encoding: 'utf8', timeout: 60_000 })
    expect({ status, stdout, stderr }).toMatchObject({ status: 0, stdout: printed })
  })
