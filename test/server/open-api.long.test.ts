// A client that a public tool generates from the OpenAPI document of a running server: it compiles under the strictest settings, and
// reads the fields of cards, of what waits and of events.
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import type { OpenedAnswer } from '../../src/server/wire.ts'
import { served } from './served.ts'

const run = promisify(execFile)
const PACKAGES = ['openapi-typescript@7.9.1', 'openapi-fetch@0.14.0', 'typescript@5.9.2', '@types/node@24']
const INSTALL_MS = 300_000

const CLIENT = `import createClient from 'openapi-fetch'
import type { components, paths } from './terret.js'

type Event = components['schemas']['Event']

function textOf(event: Event): string {
  // The union is told apart by its type: only a message has parts.
  if (event.type === 'user.message') return event.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return event.type
}

const [, , baseUrl = '', token = '', id = ''] = process.argv
const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } })
const { data: session, error } = await client.GET('/v1/sessions/{id}', { params: { path: { id } } })
if (session === undefined) throw new Error(error.error.message)
const title: string | undefined = session.card.title
const status: 'idle' | 'running' | 'rescheduling' | 'requires_action' | 'terminated' = session.card.status
const waits: readonly string[] = session.pending.flatMap(({ path, tool, digest }) => [...path, tool, digest ?? ''])
const { data: log } = await client.GET('/v1/sessions/{id}/events', { params: { path: { id }, query: { limit: 100 } } })
const { data: sent } = await client.POST('/v1/sessions/{id}/messages', { params: { path: { id } }, body: { input: 'More.' } })
const seq: number | undefined = sent?.seq
console.log(JSON.stringify({ title, status, waits, events: log?.events.map(textOf), isSent: seq !== undefined }))
`

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    outDir: 'out',
  },
  include: ['client.ts', 'terret.d.ts'],
}

const folder = mkdtempSync(join(tmpdir(), 'terret-openapi-client-'))
writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'generated', private: true, type: 'module' }))
const { status, stderr } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES], {
  cwd: folder,
  timeout: INSTALL_MS,
  encoding: 'utf8',
})
/** The generator is no dependency: where npm cannot install it, its test is skipped by name. */
const noGenerator = status !== 0
if (noGenerator && process.env['TERRET_REQUIRE_OPENAPI'])
  throw new Error(`${PACKAGES.join(' ')} cannot be installed, and the test may not be skipped here: ${stderr}`)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.skipIf(noGenerator)(
  'B-OPENAPI-5: a client that openapi-typescript generates compiles under strict settings and reads the title of a card of a running server',
  async () => {
    const one = await served(['Done.', 'Done again.'])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Brew tea.' } })
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    writeFileSync(join(folder, 'openapi.json'), (await one.ask('GET', '/v1/openapi.json')).text)
    writeFileSync(join(folder, 'client.ts'), CLIENT)
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
    const node = (...args: readonly string[]) => run(process.execPath, [...args], { cwd: folder })
    await node('node_modules/openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'terret.d.ts')
    await node('node_modules/typescript/bin/tsc', '-p', '.').catch((error: { readonly stdout?: string }) => {
      throw new Error(error.stdout ?? 'tsc did not start')
    })
    const { stdout } = await node('out/client.js', one.server.url, one.tokens.own, session)
    expect(JSON.parse(stdout)).toMatchObject({ title: 'Brew tea.', status: 'idle', waits: [], isSent: true })
    expect((JSON.parse(stdout) as { readonly events: readonly string[] }).events).toEqual(
      expect.arrayContaining(['session.created', 'Brew tea.', 'run.settled']),
    )
  },
  120_000,
)
