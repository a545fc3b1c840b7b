// examples/several-machines: its compose file by what can be checked without Docker. That its commands work is several-machines.long.test.ts.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { readCommandArgs } from '../../src/cli/args.ts'

const folder = fileURLToPath(new URL('../../examples/several-machines/', import.meta.url))
const read = (name: string): string => readFileSync(folder + name, 'utf8')

type Service = {
  readonly image?: string
  readonly build?: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly deploy?: { readonly replicas: number }
}

it('B-OPS-17: each command of the compose file is a line that the command takes, and all that it names is there', () => {
  const { services, volumes } = parse(read('compose.yaml'), { merge: true }) as {
    readonly services: Readonly<Record<string, Service>>
    readonly volumes: object
  }
  expect(Object.keys(services)).toEqual(['db', 'tables', 'grants', 'worker', 'server'])
  expect(services['worker']?.deploy?.replicas).toBe(3)
  for (const [name, service] of Object.entries(services)) {
    const { image, build, command = [], environment = {}, volumes: mounts = [], depends_on: after = {} } = service
    if (image !== undefined) expect([name, image]).toEqual([name, expect.stringMatching(/^[a-z/]+:\d+\.\d+[\w.-]*$/)])
    else expect([name, build]).toEqual([name, '.'])
    const [first = '', ...args] = command.map((word) => word.replace(/\$\{\w+:-([^}]*)\}/g, '$1'))
    if (build) expect(() => readCommandArgs(first, args)).not.toThrow()
    for (const word of [...command, ...Object.values(environment)])
      for (const [, how] of word.matchAll(/\$\{\w+([^}]*)\}/g))
        expect([name, how]).toEqual([name, expect.stringMatching(/^:[-?]/)])
    for (const mount of mounts) {
      const [from = ''] = mount.split(':')
      expect([mount, from.startsWith('./') ? existsSync(folder + from) : from in volumes]).toEqual([mount, true])
    }
    for (const other of Object.keys(after)) expect(Object.keys(services)).toContain(other)
    if (build && environment['TERRET_STORE'])
      expect(environment['TERRET_STORE']).toMatch(/^postgres:\/\/terret_(owner|worker)@db\/terret$/)
  }
  expect(read('Dockerfile')).toMatch(/^FROM node:\d+\.\d+\.\d+-/m)
  for (const role of ['terret_owner', 'terret_worker']) expect(read('roles.sh')).toContain(`create role ${role} login`)
  // What the page says is what the files do.
  const page = readFileSync(new URL('../../docs/guide/operations.md', import.meta.url), 'utf8')
  for (const said of ['roles.sh', 'grants.sql', 'start.sh', 'compose']) expect(page).toContain(said)
  for (const [setting] of read('compose.yaml').matchAll(/\b\w+=\d[\d.]*(?=\n)/g)) {
    const [name = '', value = ''] = setting.split('=')
    if (name !== 'max_connections') expect(page).toContain(`| \`${name}\` | ${value} |`)
  }
})

it('B-BACKUP-4: start.sh ends when its server ends, with its exit code, and ends the workers', () => {
  const bin = mkdtempSync(join(tmpdir(), 'terret-start-'))
  onTestFinished(() => rmSync(bin, { recursive: true, force: true }))
  const command = (name: string, text: string): void =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  command('psql', 'cat >/dev/null </dev/null')
  // The workers stay for as long as nobody ends them, and say which processes they are. The server ends when all are there.
  const worker = `echo $$ >> "${bin}/pids"; exec sleep 600`
  const server = `while [ "$(wc -l < "${bin}/pids" 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.05; done; exit 3`
  command('terret', `case "$1" in worker) ${worker} ;; serve) ${server} ;; esac`)
  const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: bin, OWNER_PASSWORD: 'o', WORKER_PASSWORD: 'w' }
  const { status } = spawnSync('sh', [join(folder, 'start.sh')], { env, timeout: 20_000 })
  expect(status).toBe(3)
  const pids = readFileSync(join(bin, 'pids'), 'utf8').trim().split('\n').map(Number)
  expect(pids).toHaveLength(3)
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})
