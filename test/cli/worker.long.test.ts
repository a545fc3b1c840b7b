// `terret worker` and a session that kills every process that drives it: real processes, really killed.
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, it } from 'vitest'
import type { ChaosScript } from '../../src/testing/index.ts'
import { stageOfEach } from './scripted.ts'
import type { Ended } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

/** Takes the place of an MCP server. Where it is poisoned it writes a sign, and the test kills its parent; elsewhere it just exits. */
const PILL = `if (process.env.PILL === 'poison') {
  require('node:fs').writeFileSync(process.env.SIGN, '')
  setInterval(() => {}, 1_000)
}`

/** A folder in which every driver is killed before it writes anything, and another in which none is. */
async function poisoned(script: ChaosScript): Promise<string> {
  const command = stage.write('pill.cjs', PILL)
  const mcp = { pill: { command: process.execPath, args: [command], env: { PILL: '${OPENAI_API_KEY}', SIGN: sign() } } }
  await scriptedBy(script, { mcp })
  stage.write('config/terret/.env', '')
  stage.write('poison/.env', 'OPENAI_API_KEY=poison\n')
  const folder = join(stage.folder, '..', 'poison')
  await stage.start(['trust', folder]).ended
  stage.write('work/.env', 'OPENAI_API_KEY=none\n')
  await stage.start(['trust', stage.folder]).ended
  return folder
}

/** The leases of workers that are gone end now, and not in ten seconds. */
function timePasses(): void {
  const database = new DatabaseSync(join(stage.home, 'terret.db'))
  database.exec('UPDATE workers SET until = 0')
  database.close()
}

const sign = (): string => join(stage.folder, '..', 'sign')

/** Runs to its end; killed when the sign appears. */
async function driven(args: readonly string[], options = {}): Promise<Ended> {
  rmSync(sign(), { force: true })
  const { child, ended } = stage.start(args, options)
  const watch = setInterval(() => {
    if (existsSync(sign())) child.kill('SIGKILL')
  }, 20)
  return ended.finally(() => clearInterval(watch))
}

const work = (): Promise<Ended> => driven(['worker', '--idle'])

it('B-CLI-152: a session that kills every process that drives it is quarantined after five attempts; a worker goes on with the others (F29)', async () => {
  const asks = { calls: [{ tool: 'ask_user', args: { question: 'Well?' } }] }
  const cwd = await poisoned([asks, asks, ...Array.from({ length: 20 }, () => 'Done.')])
  const healthy = async (): Promise<string> => {
    const { session } = (await stage.json('run', 'Here.')) as { readonly session: string }
    return session
  }
  const [before, beside] = [await healthy(), await healthy()]
  // Killed while it drove the first time.
  expect((await driven(['run', 'Kill.'], { cwd })).code).toBeNull()
  // Due from now on, in another folder, while the workers die.
  await stage.terret('answer', before, 'Yes.')
  for (let attempt = 2; attempt <= 5; attempt++) {
    timePasses()
    expect([attempt, (await work()).code]).toEqual([attempt, null])
  }
  timePasses()
  await stage.terret('answer', beside, 'Yes.')
  const sixth = await work()
  expect(sixth.code).toBe(0)
  expect(sixth.err).toMatch(
    /^[0-9a-f]{8}: 5 attempts in a row failed \(Its worker was lost 5 times .*\)\. It is quarantined: no worker tries it any more\. To try it again: terret resume [0-9a-f]{8}$/m,
  )
  expect((await work()).err).not.toContain('quarantined')
  for (const session of [before, beside]) {
    const inspected = await stage.json('inspect', session)
    expect(inspected).toMatchObject({ outcome: 'completed', summary: { runs: 1, tools: { ask_user: { ok: 1 } } } })
    expect(inspected).not.toHaveProperty('trouble')
  }
  const shown = await stage.start(['list'], { cwd }).ended
  expect(shown.out).toMatch(/^[0-9a-f]{8} {2}quarantined /)
  expect(shown.err).toMatch(/^No worker tries [0-9a-f]{8} any more: `terret inspect [0-9a-f]{8}` says why/)
  const inspected = await stage.start(['inspect', 'latest'], { cwd }).ended
  expect(inspected.out).toMatch(
    /^Trouble {3}5 attempts in a row failed .* To try it again: terret resume [0-9a-f]{8}$/m,
  )
  // Nothing of it is lost, and a process that survives it resumes it by name.
  stage.write('poison/.env', '')
  const resumed = await stage.start(['resume', 'latest'], { cwd, env: { OPENAI_API_KEY: 'none' } }).ended
  expect(resumed).toMatchObject({ code: 0, out: 'Done.\n' })
  expect((await stage.start(['list'], { cwd }).ended).out).toMatch(/^[0-9a-f]{8} {2}completed /)
}, 120_000)
