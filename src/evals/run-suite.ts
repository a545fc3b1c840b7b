// Runs a suite: every case as often as it says, each trial a session under an id that says what it is. A process that
// ends in the middle loses nothing: the next one finds what is done, goes on with what is not, and pays nothing twice.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { Harness, harnessParts, type HarnessOptions } from '../harness.ts'
import { scripted } from '../models/local/scripted.ts'
import { anyCheck, functionCheck, listCheck, methodsCheck, nonEmptyCheck, optionsChecker } from '../options.ts'
import type { CompleteStore, Store } from '../ports/store.ts'
import { runtimeClock, systemRandom } from '../runtime/state/machine.ts'
import { memory } from '../stores/memory/memory-store.ts'
import { thrownText } from '../view/shown-text.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { EvalCase } from './eval-case.ts'
import { shortHash } from './eval-ids.ts'
import { keepReport } from './kept-reports.ts'
import { withRecordedTools } from './recorded-tools.ts'
import { buildReport } from './build-report.ts'
import { type EvalReport, readReport, type TrialReport } from './report.ts'
import { findTrial, type FoundTrial, type PlannedTrial, runTrial, type TrialEnd } from './run-trial.ts'
import { completeScorer, gradeTrial, type ScoreContext } from './score.ts'
import { defineSuite, type EvalMode, MODE_CHECK, type Suite, TRIALS_CHECK } from './suite.ts'
import { SuiteMoney } from './suite-money.ts'
import { readTrial, readTrialCalls, type TrialLogs } from './trial.ts'

/** Options of `runSuite`: which cases, how often, and the earlier report to compare with. */
export type RunSuiteOptions = {
  /** Where the trials are. Default: in memory, and gone when the run ends. */
  readonly store?: Store
  /** An earlier report of the suite, which the gate compares with. */
  readonly baseline?: unknown
  /** Only the cases with these ids. A `*` at the end stands for the rest of an id. */
  readonly only?: readonly string[]
  /** In place of the suite's own. */
  readonly mode?: EvalMode
  /** How often each case is tried, in place of what the suite says. */
  readonly trials?: number
  /** Called with each trial that has its verdict, in the order in which they get it. */
  readonly onTrial?: (trial: TrialReport & { readonly id: string }) => void
}

const checkOptions = optionsChecker<RunSuiteOptions>('runSuite', {
  store: methodsCheck('give one, such as sqlite("evals.db")', 'commit', 'read', 'claim', 'list'),
  baseline: anyCheck,
  only: listCheck(nonEmptyCheck),
  mode: MODE_CHECK,
  trials: TRIALS_CHECK,
  onTrial: functionCheck,
})

/** Resolves with the report, which is also kept in the store. It rejects only for options that do not fit. */
export async function runSuite(given: Suite, options: RunSuiteOptions = {}): Promise<EvalReport> {
  checkOptions(options)
  const { only, mode, trials, onTrial = () => {} } = options
  const suite = defineSuite({ ...given, ...(mode ? { mode } : {}), ...(trials ? { trials } : {}) })
  const baseline = options.baseline === undefined ? null : readReport(options.baseline, suite.name)
  const cases = suite.cases.filter(({ id }) => only === undefined || only.some((name) => isChosen(id, name)))
  const own = options.store === undefined ? memory() : null
  const stage = await openStage(suite, options.store ?? (own as Store))
  try {
    const reports = await runAll(stage, cases, onTrial)
    const report = buildReport(
      {
        suite: suite.name,
        at: storeOf(stage.keeper).now(),
        mode: suite.mode,
        blueprint: stage.blueprint,
        cases: cases.map(({ id }) => ({ id, trials: reports.get(id) ?? [] })),
      },
      suite.gate,
      baseline,
    )
    await keepReport(stage.keeper, report, systemRandom.id())
    return report
  } finally {
    await stage.close()
    await own?.close()
  }
}

function isChosen(id: string, name: string): boolean {
  return name.endsWith('*') ? id.startsWith(name.slice(0, -1)) : id === name
}

/** What all trials of one run share. */
type Stage = {
  readonly suite: Suite
  readonly logs: TrialLogs
  readonly blueprint: string
  readonly money: SuiteMoney
  readonly context: ScoreContext
  /** It keeps the report, also where the recordings are elsewhere. */
  readonly keeper: Harness
  readonly close: () => Promise<void>
}

async function openStage(suite: Suite, store: Store): Promise<Stage> {
  const { usd, trialUsd, parallel, mode, recordings = store } = suite
  const money = new SuiteMoney(usd, trialUsd, parallel)
  const own = { store, program: PROGRAM }
  const open = (options: Omit<HarnessOptions, 'store'>): Harness =>
    new Harness({ ...withShare(options, money), ...own })
  const harness = mode === 'recorded' || suite.agent === undefined ? readerOf(recordings) : open(suite.agent)
  const keeper = readerOf(store)
  const others = new Map<object, Harness>()
  const asked = new Map<string, Promise<unknown>>()
  const context: ScoreContext = {
    open: (options) => {
      const found = others.get(options) ?? open(options)
      others.set(options, found)
      return found
    },
    once: <T extends { readonly usd: number }>(
      key: string,
      act: () => Promise<T>,
      find: () => Promise<T | null> = async () => null,
    ) => {
      const found = asked.get(key) ?? money.spendOnce(find, act)
      asked.set(key, found)
      return found as Promise<T | null>
    },
  }
  if (mode === 'replayed' && suite.agent) withRecordedTools(suite.agent, [])
  return {
    suite,
    keeper,
    logs: { harness, store: storeOf(harness) },
    blueprint: shortHash(await blueprintOf(harness, suite)),
    money,
    context,
    close: async () => {
      for (const each of [harness, keeper, ...others.values()]) await each.close()
    },
  }
}

/** Workers of other programs on the store leave trials alone: their agents may have the same names. */
const PROGRAM = 'terret-eval'

/** A harness that only reads. */
function readerOf(store: Store): Harness {
  return new Harness({ model: scripted([]), store, worker: { drives: false } })
}

function storeOf(harness: Harness): CompleteStore {
  const parts = harnessParts(harness)
  if (parts === null) throw new Fault('invalid_config', 'This is no harness of this process.')
  return parts.store
}

/** A trial is held to its share by the budget of its tree of sessions. */
function withShare(options: Omit<HarnessOptions, 'store'>, { share }: SuiteMoney): Omit<HarnessOptions, 'store'> {
  const limits = { patienceMs: PATIENCE_MS, ...options.limits }
  if (share === null) return { ...options, limits }
  const { treeUsd = share } = options.budget ?? {}
  return { ...options, limits, budget: { ...options.budget, treeUsd: Math.min(treeUsd, share) } }
}

/** A trial waits so long for a provider. The next run of the suite goes on with it. */
const PATIENCE_MS = 60_000

/** What makes two trials the same trial, beside their case. Money changes nothing that a model reads. */
async function blueprintOf(harness: Harness, { mode, version, people, agentName, agent }: Suite): Promise<Json> {
  const rows = agent === undefined ? [] : await harness.agents()
  const names = rows.map(({ name }) => name)
  if (agent !== undefined && agentName !== undefined && !names.includes(agentName)) {
    await harness.close()
    throw new Fault('invalid_config', `There is no agent "${agentName}" for the suite. There are: ${names.join(', ')}.`)
  }
  const agents = rows.map(({ name, setup }) => [name, isObject(setup) ? { ...setup, budget: null } : setup])
  const decided = typeof people === 'function' ? 'own' : (people ?? null)
  return { agents, mode, version, people: decided, agent: agentName ?? null }
}

type Reports = ReadonlyMap<string, readonly TrialReport[]>

/** All first trials, then all second ones: if the money ends, every case was tried as often. */
async function runAll(
  stage: Stage,
  cases: readonly EvalCase[],
  onTrial: NonNullable<RunSuiteOptions['onTrial']>,
): Promise<Reports> {
  const { suite, blueprint } = stage
  const numbers = Array.from({ length: suite.trials }, (_, i) => i + 1)
  const planned = numbers.flatMap((n) =>
    cases.map((of): PlannedTrial => {
      const { id, input, recording = null } = of
      return { suite: suite.name, id, of, n, hash: shortHash([blueprint, input, recording]) }
    }),
  )
  const reports = new Map<string, TrialReport[]>(cases.map(({ id }) => [id, []]))
  const open = [...(await findAll(stage, planned))].reverse()
  const work = async (): Promise<void> => {
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const report = await tryOnce(stage, next)
      reports.get(next.id)?.push(report)
      onTrial({ id: next.id, ...report })
    }
  }
  await Promise.all(Array.from({ length: suite.parallel }, work))
  return new Map([...reports].map(([id, trials]) => [id, trials.toSorted((a, b) => a.n - b.n)]))
}

/** What earlier processes did is counted before anything begins. */
async function findAll(
  { logs, suite, money }: Stage,
  planned: readonly PlannedTrial[],
): Promise<readonly FoundTrial[]> {
  const found: FoundTrial[] = []
  for (const each of planned) {
    const recording = each.of.recording ?? ''
    const trial =
      suite.mode === 'recorded' ? { ...each, session: recording, done: true, usd: 0 } : await findTrial(logs, each)
    money.count(trial.usd)
    found.push(trial)
  }
  return found
}

async function tryOnce(stage: Stage, found: FoundTrial): Promise<TrialReport> {
  const { suite, context } = stage
  const { n, session } = found
  const { trial, error } = await endOf(stage, found)
  const { usd = 0, ms = 0, turns = 0, calls = [] } = trial ?? {}
  const told = { n, session, usd, ms, turns, calls: calls.length }
  if (error !== null || trial === null)
    return { ...told, verdict: 'errored', why: error ?? 'Its session is not there, or has no run.', scores: [] }
  const clock = suite.agent?.system?.clock ?? runtimeClock
  const scorers = suite.scorers.map(completeScorer)
  return { ...told, ...(await gradeTrial(scorers, trial, { context, clock, scoreMs: suite.scoreMs })) }
}

/** What goes wrong here is an error of this trial alone. */
async function endOf(stage: Stage, found: FoundTrial): Promise<TrialEnd> {
  const { logs, money } = stage
  try {
    if (found.done) return { trial: await readTrial(logs, found), error: null }
    const spent = await money.spend(async () => {
      const end = await runHere(stage, found)
      return { end, usd: end.trial?.usd ?? 0 }
    })
    return spent?.end ?? { trial: null, error: "It was not begun: it could exceed the suite's money." }
  } catch (error) {
    return { trial: null, error: thrownText(error) }
  }
}

async function runHere(stage: Stage, found: FoundTrial): Promise<TrialEnd> {
  const { suite, logs } = stage
  if (suite.mode !== 'replayed') return runTrial(logs, suite, found)
  const harness = await replayHarness(stage, found)
  try {
    return await runTrial({ harness, store: logs.store }, suite, found)
  } finally {
    await harness.close()
  }
}

/** A harness of its own, whose tools answer from the recording of this case. */
async function replayHarness({ suite, logs, money }: Stage, { of, n, session: trial }: FoundTrial): Promise<Harness> {
  const { agent = { model: scripted([]) }, recordings = logs.store } = suite
  const { recording: session = '' } = of
  const reader = readerOf(recordings)
  try {
    const recorded = await readTrial({ harness: reader, store: storeOf(reader) }, { of, n, session })
    if (recorded === null)
      throw new Fault('session_missing', `The recording ${session} of case "${of.id}" is not there, or has no run.`)
    const answered = (await readTrialCalls(logs.store, trial)).filter(({ ran, status }) => ran && status !== null)
    const options = withShare(withRecordedTools(agent, recorded.calls, answered), money)
    return new Harness({ ...options, store: logs.store, program: PROGRAM })
  } finally {
    await reader.close()
  }
}
