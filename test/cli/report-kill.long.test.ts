// Reports that are killed at every node: started by one process, approved by a second, finished by a third. Right bytes, each effect
// once, the whole history. `TERRET_KILL_SEED=N` makes the same choices again, `TERRET_KILL_ROUNDS=N` fewer or more of them.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { Chance } from '../crash/random.ts'
import { runs } from '../runs.ts'
import { calledIn, type Killed, type KillPlace, PLACES, Range } from './report-kill.ts'
import { openStage } from './stage.ts'

const NODES = PLACES.filter((place) => place !== 'gate')
const seed = Number(process.env['TERRET_KILL_SEED'] ?? Date.now() % 1_000_000)
const rounds = Number(process.env['TERRET_KILL_ROUNDS'] ?? runs(50, 3))
const HITS_MIN = 3
const LANES = 2
/** The command's lease: a killed process holds its session no longer than this. */
const LEASE_MS = 10_000

it('B-REPORT-50: killed at any node or at the gate, approved by a second process and finished by a third, a report is right, each effect happens once, and the history is whole (S3-8)', async () => {
  console.log(
    `report kills: seed ${seed}; again with TERRET_KILL_SEED=${seed} npm run test:long -- test/cli/report-kill`,
  )
  const stage = openStage()
  const chance = new Chance(seed)
  // Made by the first command, so that all have one.
  expect((await stage.terret('list', '--all', '--json')).code).toBe(0)
  expect((await stage.terret('run', '--model', 'offline:any', 'Say hello.')).code).toBe(0)
  const store = sqlite(`${stage.home}/terret.db`)
  onTestFinished(async () => {
    await store.close()
    stage.close()
  })
  const ranges = [...Array(LANES).keys()].map(
    (i) => new Range(stage, store, `lane${i}`, new Chance(chance.integer(0, 1e9))),
  )
  const [first] = ranges as [Range, ...Range[]]
  const unkilled = await first.start()
  expect((await unkilled.process.ended).code).toBe(0)
  expect((await stage.terret('approve', unkilled.session, '--resume')).code).toBe(0)
  const right = readFileSync(unkilled.out, 'utf8')

  const killed = await shootAll(ranges)
  await sleep(LEASE_MS)
  // One worker brings the sessions that were killed before the gate to it.
  expect((await stage.terret('worker', '--idle')).code).toBe(0)
  await eachOf(killed, async ({ session }) => {
    const decided = (await first.events(session)).some(({ type }) => type === 'user.tool_confirmation')
    if (!decided) expect(await stage.terret('approve', session, '--by', 'ana')).toMatchObject({ code: 0 })
  })
  // A third process finishes; for a few it is one of their own.
  await eachOf(killed.slice(0, 6), async ({ session }) => {
    expect((await stage.terret('resume', session)).code).toBe(0)
  })
  expect((await stage.terret('worker', '--idle')).code).toBe(0)

  const wrong: string[] = []
  for (const each of killed) {
    const found = wrongWith(each, await first.events(each.session), right)
    wrong.push(...found.map((what) => `seed ${seed}, killed at ${each.place}, session ${each.session}: ${what}`))
  }
  expect(wrong).toEqual([])
}, 400_000)

/** At each place in turn, until there are enough of all. */
async function shootAll(ranges: readonly Range[]): Promise<readonly Killed[]> {
  const killed: Killed[] = []
  const hits = new Map<KillPlace, number>(PLACES.map((place) => [place, 0]))
  let shots = 0
  const enough = (): boolean =>
    killed.length >= rounds &&
    [...hits.values()].every((count) => count >= Math.min(HITS_MIN, Math.floor(rounds / PLACES.length)))
  const lane = async (range: Range): Promise<void> => {
    while (!enough() && shots < rounds * 2) {
      shots += 1
      const rarest = PLACES.reduce((a, b) => ((hits.get(b) ?? 0) < (hits.get(a) ?? 0) ? b : a))
      const shot = await range.shoot(shots % 2 === 0 ? rarest : (PLACES[shots % PLACES.length] ?? rarest))
      if (shot.place === null) continue
      killed.push(shot)
      hits.set(shot.place, (hits.get(shot.place) ?? 0) + 1)
    }
  }
  await Promise.all(ranges.map(lane))
  const running = killed.filter((each) => each.running).length
  const told = [...hits].map(([place, count]) => `${place} ${count}`).join(', ')
  console.log(`report kills: ${killed.length} of ${shots} shots, ${running} while a node ran: ${told}`)
  expect({ seed, enough: enough(), whileRunning: running > 0 }).toEqual({ seed, enough: true, whileRunning: true })
  return killed
}

/** A few at a time. */
async function eachOf<T>(list: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const open = [...list]
  const lane = async (): Promise<void> => {
    for (let item = open.shift(); item !== undefined; item = open.shift()) await act(item)
  }
  await Promise.all([...Array(LANES).keys()].map(lane))
}

/** Each node has one result, and it is a good one; one run, one decision, no gap; the right bytes, put there once. */
function wrongWith({ inode, out }: Killed, events: readonly Event[], right: string): readonly string[] {
  const names = new Map(calledIn(events).map(({ tool, call }) => [call, tool]))
  const ended = events.filter((event) => event.type === 'agent.tool_result')
  const results = ended.map(({ call, status }) => `${names.get(call)} ${status}`).join(', ')
  const count = (type: Event['type']): number => events.filter((event) => event.type === type).length
  const last = events.at(-1)
  const changed = JSON.stringify(ended.at(-1)?.content).includes('\\"changed\\":true')
  const stray = readdirSync(dirname(out)).filter((name) => !name.endsWith('.md'))
  return [
    ...(readFileSync(out, 'utf8') === right ? [] : ['the report is another one']),
    ...(results === NODES.map((name) => `${name} ok`).join(', ') ? [] : [`the results are ${results}`]),
    ...(['run.started', 'user.tool_confirmation', 'run.settled'] as const).flatMap((type) =>
      count(type) === 1 ? [] : [`there are ${count(type)} ${type}`],
    ),
    ...(last?.type === 'run.settled' && last.outcome.type === 'completed' ? [] : [`it ends with ${last?.type}`]),
    ...(events.every(({ seq }, i) => seq === i + 1) ? [] : ['its history has a gap']),
    // A file that was moved into place before the kill is still the same file: it was not moved there again.
    ...(inode === null || statSync(out).ino === inode ? [] : ['the file was written twice']),
    ...(changed || inode !== null ? [] : ['nobody says that it was written']),
    ...stray.map((name) => `${name} was left behind`),
  ]
}
