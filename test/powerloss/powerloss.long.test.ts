// Power loss as part of the suite: a few dozen cuts of one recording with their control, and that a run which shows nothing fails. The
// long run is `npm run powerloss -- --cuts 2000`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { Child } from '../crash/process.ts'
import { Chance } from '../crash/random.ts'
import { noPostgres } from '../postgres/server.ts'
import { CallWriter, readCallLog } from './call-log.ts'
import { Recorded, writeTree } from './cut.ts'
import { sqliteGround } from './ground-sqlite.ts'
import { countLost } from './judge.ts'
import { DATABASE, DISK, ended, EVIDENCE, heard } from './record-sqlite.ts'
import { makeLibrary, recordedBy } from './recorder.ts'
import { Totals, printSummary } from './summary.ts'

const program = fileURLToPath(new URL('../../.build/test/powerloss/main.js', import.meta.url))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-powerloss-test-')))
afterAll(() => rmSync(folder, { recursive: true }))

function run(args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env })
  return { status, said: `${stdout}${stderr}` }
}

it('B-POWERLOSS-1, B-POWERLOSS-2, B-POWERLOSS-4, B-POWERLOSS-6: after power is lost at any call, a store in a file has all it acknowledged, with its backups and archives, its work goes on to the end, and no once effect runs twice; the same on a disk that ignores syncs loses', () => {
  const { status, said } = run(['--cuts', '32', '--seed', '7'])
  expect(said).toMatch(/\n {2}cuts +32 [^]*\n {2}control lost +[1-9]\d* [^]*\nlost 0, once twice 0, violations 0\n/)
  expect(status).toBe(0)
}, 280_000)

it('B-POWERLOSS-3, B-STORE-179: the first event is there after a power loss, in folders that the store made', async () => {
  const [root, log] = [join(folder, 'root'), join(folder, 'first.log')]
  for (const each of ['', EVIDENCE, DISK]) mkdirSync(join(root, each))
  const writer = new CallWriter(log, { root, store: 'sqlite', seed: 0, process: process.pid })
  const args = [join(root, EVIDENCE), join(root, DATABASE), 'first']
  const env = recordedBy(makeLibrary(folder), root, log)
  const child = new Child('../../.build/test/powerloss/child-first.js', args, env)
  await heard(child, 'written')
  await ended(child)
  writer.end()
  const recorded = new Recorded(readCallLog(log))
  let promised = 0
  for (let after = 1; after <= recorded.log.calls.length; after++) {
    const evidence = recorded.evidence.at(after)
    if (!evidence.journal.some(({ type }) => type === 'ack')) continue
    promised += 1
    const { tree } = recorded.disk(after).remains('none', new Chance(after), sqliteGround.leavesOut)
    const there = join(folder, `after-${after}`)
    writeTree(there, tree)
    const { store } = await sqliteGround.opening(there).open()
    expect((await countLost(store, evidence)).lost).toBe(0)
    await store.close()
  }
  expect(promised).toBeGreaterThan(0)
}, 120_000)

const noFuse = !existsSync('/usr/include/fuse3/fuse.h') && process.env['TERRET_REQUIRE_FUSE'] === undefined
it.skipIf(noPostgres || noFuse)(
  'B-POWERLOSS-8: a Postgres whose disk lost power at any call recovers with all that was acknowledged, and its work goes on to the end',
  () => {
    const { status, said } = run(['--store', 'postgres', '--cuts', '6', '--seed', '7'])
    expect(said).toMatch(/\n {2}cuts +6 [^]*\n {2}control lost +[1-9]\d* [^]*\nlost 0, once twice 0, violations 0\n/)
    expect(status).toBe(0)
  },
  280_000,
)

describe('a power loss run that shows nothing', () => {
  it('B-POWERLOSS-5: a power loss run whose disk that ignores syncs lost nothing fails', () => {
    const totals = new Totals()
    printSummary(totals, { kind: 'sqlite', seed: 1, seconds: 1, isWhole: true })
    expect(totals.violations).toEqual(['a disk that ignores syncs lost nothing: this run cannot see a loss'])
  })

  it('B-POWERLOSS-7: a log of calls that was cut, at a call or within one, and what is no log, is refused with one sentence', () => {
    const log = join(folder, 'whole.log')
    mkdirSync(join(folder, 'small', DISK), { recursive: true })
    new CallWriter(log, { root: join(folder, 'small'), store: 'sqlite', seed: 0, process: process.pid }).end()
    expect(readCallLog(log).calls.map(({ kind }) => kind)).toEqual(['folder', 'folder sync', 'folder sync'])
    const bytes = readFileSync(log)
    for (const [end, why] of [
      [bytes.length - 40, 'was cut: it has 3 whole calls and no end. Record it again.'],
      [bytes.length - 50, 'was cut, or is damaged, at byte'],
      [12, 'is no log of calls.'],
    ] as const) {
      writeFileSync(join(folder, 'cut.log'), bytes.subarray(0, end))
      const { status, said } = run(['--log', join(folder, 'cut.log')])
      expect([status, said]).toEqual([2, expect.stringContaining(`cut.log ${why}`)])
      expect(said.trim().split('\n')).toHaveLength(1)
    }
    expect(run(['--log', join(folder, 'none.log')])).toMatchObject({ status: 2 })
  })

  it('B-POWERLOSS-7: bad options of the power loss run, and a machine without a compiler, are refused with one sentence', () => {
    for (const [args, why] of [
      [['--cuts', '0'], '--cuts must be a whole number of at least 1, not "0"'],
      [['--cut', '3'], '--cut needs the log that was cut'],
      [['--store', 'memory'], 'A store in memory has no disk'],
      [['--store', 'disk'], '--store must be sqlite or postgres, not "disk"'],
      [['--deaf'], '`npm run powerloss` takes: --cuts, --seed, --store, --log, --cut.'],
    ] as const) {
      const { status, said } = run(args)
      expect([status, said]).toEqual([2, expect.stringContaining(why)])
    }
    const { status, said } = run(['--cuts', '1'], { ...process.env, PATH: folder })
    expect([status, said]).toEqual([2, expect.stringContaining('There is no C compiler (cc) on this machine.')])
  })
})
