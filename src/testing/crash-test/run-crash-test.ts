// Runs an agent twice without a crash, then once for each point with a crash there, and applies the rules. The whole
// report is made of these runs; nothing else is known about the agent.
import { relative } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { shellWord } from '../../view/shell-command.ts'
import { checkCrashTest, type CrashTestOptions, type CrashWorld } from './crash-options.ts'
import { CrashFindings, type CrashReport } from './crash-report.ts'
import { comparedRun, type ComparedRun } from './crash-rules.ts'
import { type RunTrial, trialsInMemory } from './crash-trial.ts'
import type { CrashPoint } from './points.ts'
import { findDifference, LASTING } from './same-world.ts'

export async function runCrashTest<World extends CrashWorld>(options: CrashTestOptions<World>): Promise<CrashReport> {
  checkCrashTest(options)
  // Sound: the world that `options` gets is the one that `world` made.
  const test = options as unknown as CrashTestOptions
  return testPoints(trialsInMemory(test), { at: test.at ?? atOfEnvironment(), replay: test.replay ?? replayOfScript })
}

type TestedPoints = { readonly at: number | null; readonly replay: (at: number) => string }

export async function testPoints(run: RunTrial, { at, replay }: TestedPoints): Promise<CrashReport> {
  const first = await run(null)
  const clean = comparedRun(first.trial)
  refuseUnsettled(clean)
  const second = comparedRun((await run(null)).trial)
  refuseDifferent(clean, second)
  const points = first.names.map((name, i): CrashPoint => ({ n: i + 1, name }))
  const findings = new CrashFindings(clean, replay)
  findings.add(clean)
  for (const point of chosenPoints(points, at)) findings.add(comparedRun((await run(point)).trial))
  return findings.report(points)
}

function chosenPoints(points: readonly CrashPoint[], at: number | null): readonly CrashPoint[] {
  if (at === null) return points
  const point = points.find(({ n }) => n === at)
  if (point === undefined && at !== 0)
    throw new Fault(
      'invalid_input',
      `There is no point ${at}: this run has the points 1 to ${points.length}, and 0 for none.`,
    )
  return point ? [point] : []
}

function refuseUnsettled({ trouble, logs }: ComparedRun): void {
  if (trouble !== null) throw new Fault('invalid_config', `Without a crash the run does not settle: ${trouble}.`)
  const settled = Object.values(logs)[0]?.findLast((event) => event.type === 'run.settled')
  if (settled?.outcome.type === 'failed')
    throw new Fault(
      'invalid_config',
      `Without a crash the run fails, so nothing can be compared with it: ${settled.outcome.failure.message}`,
    )
}

const BY_COUNT = 'A model of a test answers by what the transcript holds, and not by how often it was asked.'

function refuseDifferent(one: ComparedRun, other: ComparedRun): void {
  const world = findDifference(one.held, other.held)
  if (world !== null)
    throw new Fault('invalid_config', `Two runs without a crash left different worlds: ${world}. ${LASTING}`)
  const way = findDifference(one.calls, other.calls) ?? findDifference(one.end, other.end)
  if (way !== null)
    throw new Fault('invalid_config', `Two runs without a crash went different ways: ${way}. ${BY_COUNT}`)
}

/** A finding is tested again in the script that made it, with the number of its point in the environment. */
const AT = 'TERRET_CRASH_AT'

/** The workers of some runners are started with a script of their own. */
const RUNNERS: Readonly<Record<string, string>> = { VITEST: 'npx vitest run', JEST_WORKER_ID: 'npx jest' }

function replayOfScript(at: number): string {
  const [, script = 'SCRIPT', ...args] = process.argv
  const isInstalled = /[\\/]node_modules[\\/]/.test(script)
  const runner = isInstalled && Object.keys(RUNNERS).find((name) => process.env[name] !== undefined)
  if (runner) return `${AT}=${at} ${RUNNERS[runner]}`
  return `${AT}=${at} node ${[relative(process.cwd(), script), ...args].map(shellWord).join(' ')}`
}

function atOfEnvironment(): number | null {
  const given = process.env[AT]
  if (given === undefined || given === '') return null
  const at = Number(given)
  if (Number.isSafeInteger(at) && at >= 0) return at
  throw new Fault('invalid_input', `${AT} must be the number of a point, not "${given.slice(0, 20)}".`)
}
