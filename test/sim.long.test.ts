// The simulator itself: it passes, it is deterministic, and it is hard enough to mean something.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { FAULTS } from '../sim/faults.ts'
import type { Stage } from '../sim/people.ts'
import { applies } from '../sim/planted.ts'
import { type Report, simulate } from '../sim/simulate.ts'
import { onPostgres, onSqlite } from '../sim/stores.ts'
import { Summary } from '../sim/summary.ts'
import { UNREACHED } from '../sim/unreached.ts'
import { noPostgres } from './postgres/server.ts'
import { sharedServer } from './postgres/stage.ts'
import { share, upTo } from './runs.ts'

const SEEDS = Array.from({ length: 30 }, (_, i) => 51 + i)
const NO_KEEPERS = { forks: 0, compacted: 0, closed: 0, removed: 0, kept: 0, again: 0 }
let played: Promise<readonly Report[]> | null = null

/** The same seeds for every test that asks what happens in them. */
function reports(): Promise<readonly Report[]> {
  played ??= (async () => {
    const done: Report[] = []
    for (const seed of SEEDS) done.push(await simulate(seed))
    return done
  })()
  return played
}

async function sum(of: (report: Report) => number): Promise<number> {
  return (await reports()).reduce((n, report) => n + of(report), 0)
}

/** What happened in none of the seeds. */
async function missing(of: (report: Report) => Readonly<Record<string, number>>): Promise<readonly string[]> {
  const all = (await reports()).map(of)
  return Object.keys(all[0] ?? {}).filter((name) => all.every((counts) => counts[name] === 0))
}

describe('the simulator', () => {
  it('B-SIM-1: no seed breaks an invariant while processes crash, freeze and find the disk full, and everything settles after', async () => {
    for (const seed of share(upTo(10))) expect((await simulate(seed)).violations).toEqual([])
    for (const { violations } of await reports()) expect(violations).toEqual([])
    // All of it is work, and none is waiting: on a machine that is busy with other things it takes several times as long.
  }, 240_000)

  it('B-SCHED-18: wakes and messages for later come once and not before their time, or are dropped', async () => {
    const all = await reports()
    expect(all.flatMap(({ violations }) => violations.filter((rule) => /: T[345] /.test(rule)))).toEqual([])
    for (const name of ['scheduled', 'unscheduled', 'later'] as const)
      expect(await sum(({ seen }) => seen[name])).toBeGreaterThan(0)
  })

  it('B-CELL-33: a cell makes each call once and ends as it would alone; run another way by another process, it ends as ScriptDiverged', async () => {
    const all = (await reports()).flatMap(({ cells }) => (cells === null ? [] : [cells]))
    expect(all.length).toBeGreaterThan(0)
    for (const name of ['calls', 'ended'] as const)
      expect(all.reduce((n, cells) => n + cells[name], 0)).toBeGreaterThan(0)
    // In this seed each process runs the program another way.
    expect(await simulate(11)).toMatchObject({ violations: [], cells: { diverged: 1 } })
  })

  it('B-SIM-2: the same seed gives the same trace', async () => {
    for (const seed of [3, 14, 159]) expect((await simulate(seed)).hash).toBe((await simulate(seed)).hash)
  })

  it('B-SIM-81: an actor that does nothing moves nothing of the others', async () => {
    for (const seed of [2, 3, 5]) {
      const { hash } = await simulate(seed)
      const beside = async ({ actor, store, over }: Stage): Promise<void> => {
        while (!over()) {
          await actor.sleep(actor.chance.between(0, 30))
          await store.card('s0')
        }
      }
      expect((await simulate(seed, { beside })).hash).toBe(hash)
    }
  })

  it('B-SIM-2: so it does in another process, where everything is loaded anew', () => {
    // The middle one has a cell, whose tools need what nothing else of a seed needs.
    for (const seed of ['2', '3', '4']) {
      const traces = [1, 2].map(() => {
        const args = ['.build/sim/main.js', '--first', seed, '--seeds', '1']
        return /trace [0-9a-f]{32}/.exec(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout)?.[0]
      })
      expect(traces[0]).toBeDefined()
      expect(traces[1]).toBe(traces[0])
    }
  })

  it('B-SIM-80: on a SQLite file nothing is broken either, and the same seed gives the same trace', async () => {
    for (const seed of [3, 14]) {
      const { violations, hash } = await simulate(seed, { make: onSqlite })
      expect(violations).toEqual([])
      expect((await simulate(seed, { make: onSqlite })).hash).toBe(hash)
    }
  })

  it.skipIf(noPostgres)('B-SIM-80: so it is on a real Postgres', async () => {
    const make = onPostgres((await sharedServer()).url())
    const { violations, hash } = await simulate(3, { make })
    expect(violations).toEqual([])
    expect((await simulate(3, { make })).hash).toBe(hash)
  })

  it('B-SIM-3: a seed has at least three sessions and two workers; faults and every class of effect occur', async () => {
    for (const { sessions, workers } of await reports()) expect([sessions >= 3, workers >= 2]).toEqual([true, true])
    expect((await sum((r) => r.tally.crashes + r.tally.stalls)) / SEEDS.length).toBeGreaterThan(2)
    expect(await missing((r) => ({ read: r.seen.read, idempotent: r.seen.idempotent, once: r.seen.once }))).toEqual([])
  })

  it.each(FAULTS.map((fault) => fault.name))('B-SIM-4: the planted fault still applies: %s', (name) => {
    const fault = FAULTS.find((f) => f.name === name)
    expect(fault && applies(fault)).toBe(true)
  })

  it('B-SIM-5: in the seeds are children of children, children that ask, and crashes right after what they share with their parents', async () => {
    expect(Math.max(...(await reports()).map((r) => r.seen.deepest))).toBeGreaterThanOrEqual(2)
    expect(await sum((r) => r.seen.children)).toBeGreaterThan(SEEDS.length)
    expect(await sum((r) => r.seen.questions)).toBeGreaterThan(0)
    expect(await sum((r) => r.tally.familyCrashes)).toBeGreaterThan(0)
    expect(await sum((r) => r.seen.pauses)).toBeGreaterThan(0)
  })

  it('B-SIM-30: in the seeds are outages, answers that arrive after their stop, and answers that are cut', async () => {
    expect(await sum((r) => r.refused)).toBeGreaterThan(0)
    // What is away with a provider: mostly a run does not even begin.
    expect(await sum((r) => r.refused + r.absent)).toBeGreaterThan(SEEDS.length)
    expect(await sum((r) => r.seen.stopped)).toBeGreaterThan(0)
    expect(await sum((r) => r.seen.cut)).toBeGreaterThan(0)
  })

  it('B-SIM-50: in the seeds are runs that cannot begin because their tools are away', async () => {
    expect(await sum((r) => r.absent)).toBeGreaterThan(0)
  })

  it('B-SIM-93: in the seeds forks of forks are made, and sessions compacted by hand, closed, removed and made again', async () => {
    expect(await missing(({ keepers }) => keepers ?? NO_KEEPERS)).toEqual([])
  })

  it('B-SIM-94: in the seeds budgets are raised, or not', async () => {
    expect(await missing(({ spenders }) => spenders ?? { raised: 0, denied: 0 })).toEqual([])
  })

  it('B-SIM-95: in the seeds answers fit their schema, and others do not', async () => {
    expect(await missing(({ forms }) => ({ right: forms?.right ?? 0, wrong: forms?.wrong ?? 0 }))).toEqual([])
  })

  it('B-SIM-96, B-SIM-97: in the seeds another program works on the store, and secrets are said', async () => {
    expect(await missing(({ strange, secret }) => ({ strange: strange ?? 0, secret: secret ? 1 : 0 }))).toEqual([])
  })

  it('B-SIM-6: in the seeds hooks let go, hold back, rewrite and fail, and are asked again only where no word of theirs is on disk', async () => {
    expect(await missing((r) => r.hooks)).toEqual([])
  })

  it('B-SIM-20: in the seeds sessions with open calls are exported, forged, imported, let go on and forked, and processes work in different places', async () => {
    expect(await missing((r) => r.elsewhere)).toEqual([])
  })

  it("B-SIM-40: in the seeds the store's clock is set years ahead and an hour to either side; in others it is right", async () => {
    const set = (await reports()).map((r) => r.tally.clocksSet)
    expect(set.filter((n) => n > 1).length).toBeGreaterThan(SEEDS.length / 5)
    expect(set.filter((n) => n === 0).length).toBeGreaterThan(SEEDS.length / 5)
  })

  it('B-DIST-18: in half of the seeds are lost answers, darkness, late packets, deaf listeners and clocks that differ, and in half what is due is taken', async () => {
    const network = ({ lostAnswers, darkened, latePackets, deafened }: Report['tally']) => ({
      lostAnswers,
      darkened,
      latePackets,
      deafened,
    })
    expect(await missing(({ tally }) => network(tally))).toEqual([])
    expect(await missing(({ world }) => ({ skewed: world.skewed }))).toEqual([])
    for (const has of ['networked', 'takes'] as const) {
      const share = (await sum(({ world }) => (world[has] ? 1 : 0))) / SEEDS.length
      expect(Math.abs(share - 0.5)).toBeLessThan(0.25)
    }
    for (const { world, tally } of await reports())
      if (!world.networked) expect(network(tally)).toEqual({ lostAnswers: 0, darkened: 0, latePackets: 0, deafened: 0 })
  })

  it('B-SIM-60: in the seeds processes of one host end the leases of those that died, and of some that live', async () => {
    expect(await missing(({ tally }) => ({ buried: tally.buried, misjudged: tally.misjudged }))).toEqual([])
  })

  it('B-SIM-70: in the seeds are detached children, their reports, and parents that wait for them', async () => {
    expect(
      await missing(({ seen }) => ({ detached: seen.detached, reports: seen.reports, waits: seen.waits })),
    ).toEqual([])
  })

  it('B-SIM-71: in the seeds sessions are driven by graphs, which are stopped and undo what they did', async () => {
    expect(await missing((r) => r.flows)).toEqual([])
  })

  it('B-CRON-28: in the seeds cron jobs begin runs, stop earlier ones and leave times out, each time at most once and with its reason', async () => {
    const all = (await reports()).filter(({ jobs }) => jobs !== null)
    expect(all.flatMap(({ violations }) => violations.filter((rule) => /^K\d /.test(rule)))).toEqual([])
    expect(all.length).toBeGreaterThan(2)
    for (const name of ['begun', 'leftOut', 'replaced'] as const)
      expect(await sum(({ jobs }) => jobs?.[name] ?? 0)).toBeGreaterThan(0)
  })

  it('B-TRIGGER-33: in the seeds events come twice to processes that die or cannot write, and each has one session that ends with a decision', async () => {
    const all = (await reports()).filter(({ deliveries }) => deliveries !== null)
    expect(all.flatMap(({ violations }) => violations.filter((rule) => /^Q\d /.test(rule)))).toEqual([])
    expect(all.length).toBeGreaterThan(2)
    for (const name of ['accepted', 'duplicates', 'unanswered', 'failed', 'notices'] as const)
      expect(await sum(({ deliveries }) => deliveries?.[name] ?? 0)).toBeGreaterThan(0)
  })

  it('B-SIM-7: in the seeds runs run out of money, are told of their limits, and are halted where they get nowhere', async () => {
    expect(await missing((r) => r.seen)).toEqual([])
  })
})

describe('a long run of the simulator', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seeds-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, ['.build/sim/main.js', '--first', '101', '--seeds', '4', ...args], { encoding: 'utf8' })
  const traceOf = (said: string): string | undefined => /trace [0-9a-f]{32}/.exec(said)?.[0]

  it('B-SIM-82: a run that was ended goes on with the seeds that are not in its file, and gives the same trace and the same sums', () => {
    const path = join(folder, 'run')
    const whole = run('--resume', path)
    expect(whole.status).toBe(0)
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    expect(lines).toHaveLength(5)
    // It was ended in the middle of its third line.
    writeFileSync(path, `${lines.slice(0, 3).join('\n')}\n${lines[3]?.slice(0, 70)}`)
    const rest = run('--resume', path)
    expect(rest.stdout).toContain('2 seeds are done, 2 are left')
    expect(traceOf(rest.stdout)).toBe(traceOf(whole.stdout))
    expect(traceOf(whole.stdout)).toBeDefined()
    const sums = (said: string): readonly string[] => said.split('\n').filter((line) => line.startsWith('  '))
    expect(sums(rest.stdout)).toEqual(sums(whole.stdout))
    expect(readFileSync(path, 'utf8').split('\n').slice(0, -1).sort()).toEqual(lines.sort())
  })

  it('B-SIM-83: a file of another commit, of another kind, of other options or with a damaged line is refused with the reason, and left as it is', () => {
    const head = (commit: string, options = ''): string => `${JSON.stringify({ run: 'sim', commit, options })}\n`
    const path = join(folder, 'refused')
    const [, commit = ''] = /"commit":"([^"]+)"/.exec(readFileSync(join(folder, 'run'), 'utf8')) ?? []
    for (const [text, why] of [
      [head('abc'), `is of commit abc, and this is ${commit}.`],
      [head(commit, '--store sqlite'), 'is of a run with other options: "--store sqlite".'],
      [`${head(commit)}{"seed":101}\n`, 'is damaged at line 2.'],
      [`${head(commit)}{"seed":\n{}\n`, 'is damaged at line 2.'],
      ['hello\n', 'is not the file of a run of seeds.'],
    ] as const) {
      writeFileSync(path, text)
      const { status, stdout, stderr } = run('--resume', path)
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
      expect(stderr).toContain(why)
      expect(readFileSync(path, 'utf8')).toBe(text)
    }
  })

  it('B-SIM-84: 120,001 reports are summed', async () => {
    const report = await simulate(101)
    const sums = new Summary()
    for (let seed = 1; seed <= 120_001; seed++) sums.add({ ...report, seed })
    expect(sums.text(1)).toContain('120001 seeds, 0 violations, 1.0 s')
    expect(sums.text(1)).toContain(`acknowledged events ${120_001 * report.acked}\n`)
  })

  it('B-SIM-85: with --coverage, files that no seed loads are named, and a function that none enters fails the run unless a reason is written down', () => {
    const { status, stdout } = run('--coverage')
    expect(status).toBe(1)
    expect(stdout).toMatch(/not loaded: .*session-at\.ts/)
    expect(stdout).toMatch(/rules that met a case, and how often: .*I1 \d/)
    // Four seeds close no session.
    expect(stdout).toMatch(/NOT REACHED, and not in sim\/unreached\.ts[^]*\n {2}src\/kernel\/\S+ \w+\n/)
    for (const where of UNREACHED.flatMap((each) => each.where)) expect(stdout).not.toContain(`\n  ${where}\n`)
  })
})

describe('the commands of this repository', () => {
  it.each([
    ['sim/main.js', '--sedes', '3'],
    ['sim/main.js', '--seeds', 'many'],
    ['sim/replay.js', '--sessions', '-1'],
    ['bench/main.js', '--olny', 'loop'],
    ['bench/main.js', '--repetitions', '0'],
    ['test/crash/main.js', '--rounds'],
    ['test/fuzz/main.js', '--runs', '1.5'],
    ['test/sandbox/main.js', '--seed', 'x'],
    ['test/attacks/main.js', 'stray'],
  ])('B-SIM-61: %s %s is refused in one line that says what it takes, with exit code 2', (file, ...args) => {
    const script = join(import.meta.dirname, '..', '.build', file)
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(/^[^\n]*(takes: --|must be a whole number)[^\n]*\n$/)
  })
})
