// The templates of `terret create` as a stranger gets them: made by the packed package, installed by npm, and tested by their own tests.
// What `create` refuses and says is test/cli/create.test.ts.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noPostgres, Server } from '../postgres/server.ts'
import { packInto, root } from './packed.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-templates-'))
let tarball = ''
const unpacked = join(folder, 'unpacked')

beforeAll(() => {
  tarball = packInto(folder)
  mkdirSync(unpacked)
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components', '1'])
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Why npm cannot install anything here, or null. */
function findTrouble(): string | null {
  const { status, stderr } = spawnSync('npm', ['view', 'zod', 'version'], { encoding: 'utf8' })
  return status === 0 ? null : stderr
}

const noNpm = findTrouble()
if (noNpm !== null && process.env['TERRET_REQUIRE_TEMPLATES'])
  throw new Error(`npm cannot install, and the tests of the templates may not be skipped here: ${noNpm}`)

const made = new Map<string, string>()

/** The folder of a template, with all that it needs installed. */
function folderOf(template: string): string {
  const there = made.get(template) ?? make(template)
  made.set(template, there)
  return there
}

function make(template: string): string {
  const options = { cwd: folder, stdio: 'pipe' } as const
  const name = `my-${template}`
  execFileSync(process.execPath, [join(unpacked, 'dist/cli/main.js'), 'create', name, '--template', template], options)
  const place = join(folder, name)
  // The version of its manifest is not published yet: the package itself takes its place.
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', tarball], { ...options, cwd: place })
  return place
}

/** The variables of a user with no key, no model and no configuration. */
const env = { PATH: process.env['PATH'] ?? '', HOME: folder, LANG: 'C.UTF-8', NEXT_TELEMETRY_DISABLED: '1' }

/** Only the machine itself can be reached. Where the sandbox is not there, the tests run with a network. */
const walls = ['bwrap', '--dev-bind', '/', '/', '--unshare-net']
const alone = spawnSync('bwrap', [...walls.slice(1), 'true']).status === 0 ? walls : []

function expectTestsPass(
  template: string,
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): void {
  const [program = 'npm', ...args] = words
  const options = { cwd: folderOf(template), env: { ...env, ...more }, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync(program, args, options)
  const stdoutOfPassed = expect.stringMatching(/^(?:#|ℹ) fail 0$/m) as string
  expect({ status, stdout, stderr }).toMatchObject({ status: 0, stdout: stdoutOfPassed })
}

const TIMEOUT = { timeout: 600_000 }

describe('the template', () => {
  it.skipIf(noNpm !== null).each(readdirSync(join(root, 'templates')))(
    'B-CREATE-5: %s, made by the packed package, passes its own tests without a network (skipped where npm cannot install)',
    TIMEOUT,
    (template) => expectTestsPass(template, [...alone, 'npm', 'test']),
  )

  it.skipIf(noNpm !== null || noPostgres)(
    'B-CREATE-6: worker passes the same tests on a real Postgres (skipped where npm cannot install, or without Postgres)',
    TIMEOUT,
    async () => {
      const server = await Server.start()
      try {
        expectTestsPass('worker', ['npm', 'test'], { DATABASE_URL: server.url() })
        const left = await server.query("select nspname from pg_namespace where nspname like 'test%'")
        expect(left).toEqual([])
      } finally {
        await server.stop()
      }
    },
  )
})
