// The active server scenarios of the official conformance suite against our own wiring, with the fixtures that they ask for beside our
// tools. Scenarios that the suite itself holds back as pending are not active.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { McpServer } from '@modelcontextprotocol/server'
import { expect, it, onTestFinished } from 'vitest'
import type { Caller } from '../../src/mcp/caller.ts'
import { make } from '../runtime/scene.ts'
import { fixtures } from './fixtures.ts'
import { served } from './place.ts'

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)
/** Of the 30 active scenarios all apply: what we do not offer ourselves is a fixture on the same wiring. */
const NOT_APPLICABLE: readonly string[] = []
const ACTIVE = 30

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

it('B-MCPS-12: all active scenarios of the conformance suite pass, and each has at least one check', async () => {
  const { scenarios, failed } = await judged(fixtures)
  expect(failed).toEqual([])
  expect(scenarios.length + NOT_APPLICABLE.length).toBe(ACTIVE)
}, 300_000)

it('B-MCPS-12: without the fixtures those scenarios pass that need none, and the others are seen to fail', async () => {
  const { scenarios, failed } = await judged()
  const passed = scenarios.filter((name) => !failed.some((text) => text.startsWith(name)))
  for (const name of [
    'server-initialize',
    'ping',
    'tools-list',
    'server-sse-multiple-streams',
    'dns-rebinding-protection',
    'resources-list',
  ])
    expect(passed).toContain(name)
  expect(failed).toContainEqual(expect.stringMatching(/^tools-call-simple-text: /))
}, 300_000)

async function judged(more?: (server: McpServer) => void) {
  const callers = (): Caller => ({ name: 'suite', role: 'admin', reach: 'all' })
  const url = await served(make([]), { callers, ...(more ? { more } : {}) })
  const out = mkdtempSync(join(tmpdir(), 'terret-conformance-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  const said = await ended(['server', '--url', url, '--suite', 'active', '--output-dir', out])
  const files = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('checks.json'))
  const found = files.map((file) => ({
    name: nameOf(file),
    checks: JSON.parse(readFileSync(join(out, file), 'utf8')) as Check[],
  }))
  const failed = found.flatMap(({ name, checks }) => {
    const counted = checks.filter(({ status }) => status === 'SUCCESS' || status === 'FAILURE' || status === 'WARNING')
    if (counted.length === 0) return [`${name}: nothing was checked`]
    const wrong = counted.filter(({ status }) => status !== 'SUCCESS')
    return wrong.map(({ id, errorMessage = '' }) => `${name}: ${id} ${errorMessage}`)
  })
  if (found.length === 0) throw new Error(said)
  return { scenarios: found.map(({ name }) => name), failed }
}

/** The folder of a scenario is named by it and by the time. */
function nameOf(file: string): string {
  return dirname(file)
    .replace(/^server-(?=server-|[a-z])/, '')
    .replace(/-\d{4}-\d\d-\d\dT.*$/, '')
}

function ended(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [SUITE, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => resolve(said))
  })
}
