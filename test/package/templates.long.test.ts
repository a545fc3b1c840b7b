// The templates of `terret create` as a stranger gets them: made by the packed package, installed by npm, and tested by their own tests.
// What `create` refuses and says is test/cli/create.test.ts.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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

/** Its folder, with all that it needs installed. */
function make(template: string): string {
  const options = { cwd: folder, stdio: 'pipe' } as const
  const name = `my-${template}`
  execFileSync(process.execPath, [join(unpacked, 'dist/cli/main.js'), 'create', name, '--template', template], options)
  const made = join(folder, name)
  // The version of its manifest is not published yet: the package itself takes its place.
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', tarball], { ...options, cwd: made })
  return made
}

/** The variables of a user with no key, no model and no configuration. */
const env = { PATH: process.env['PATH'] ?? '', HOME: folder, LANG: 'C.UTF-8', NEXT_TELEMETRY_DISABLED: '1' }

/** Runs a command without a network where the sandbox is there: only the machine itself can be reached. */
function runOffline(cwd: string, more: Readonly<Record<string, string>> = {}) {
  const alone = spawnSync('bwrap', ['--version']).status === 0 ? ['bwrap', '--dev-bind', '/', '/', '--unshare-net'] : []
  const [program, ...args] = [...alone, 'npm', 'test']
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env: { ...env, ...more }, encoding: 'utf8' })
  return { status, stdout, stderr }
}

describe('the template', () => {
  it.skipIf(noNpm !== null).each(readdirSync(join(root, 'templates')))(
    'B-CREATE-5: %s, made by the packed package, passes its own tests without a network (skipped where npm cannot install)',
    { timeout: 600_000 },
    (template) => {
      const { status, stdout, stderr } = runOffline(make(template))
      expect({ status, stdout, stderr }).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^(?:#|ℹ) fail 0$/m) as string,
      })
    },
  )
})
