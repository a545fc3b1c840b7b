// What a suite is: cases, the agent that answers them, the scorers that grade the answers, and how often each case is
// tried. Checked when it is defined. Nothing runs here: run-suite.ts does.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { HarnessOptions } from '../harness.ts'
import {
  anyCheck,
  type Check,
  countCheck,
  listCheck,
  methodsCheck,
  msCheck,
  nonEmptyCheck,
  objectCheck,
  oneOf,
  optionsCheck,
  optionsChecker,
  requiredCheck,
  textCheck,
  usdCheck,
  withoutUndefined,
} from '../options.ts'
import type { Store } from '../ports/store.ts'
import type { Pending } from '../view/pending-calls.ts'
import type { Answer } from '../sessions/verb-options.ts'
import type { ApprovalDecision } from '../sessions/approval-decision.ts'
import { checkCase, type EvalCase } from './eval-case.ts'
import { whyNotSuiteName } from './eval-ids.ts'
import type { ScoreFunction, Scorer } from './score.ts'

/**
 * `live`: model and tools run. `replayed`: the model runs, and tools give the results that the case's recording has for
 * the same arguments. `recorded`: nothing runs, and the recording itself is graded.
 */
export type EvalMode = 'live' | 'replayed' | 'recorded'

/**
 * The options of the harness that answers. A trial shares nothing with another one, so there is no memory: plugins are
 * left out, and the store is that of the suite.
 */
export type SuiteAgent = Omit<HarnessOptions, 'store' | 'program' | 'plugins' | 'triggers'>

/** What people say to a call that waits for them. Null: they do not answer, and the trial ends there. */
export type PeopleFunction = (pending: Pending, of: EvalCase) => PeopleAnswer | Promise<PeopleAnswer>
export type PeopleAnswer = Pick<ApprovalDecision, 'allow' | 'why' | 'args'> | Pick<Answer, 'content' | 'ok'> | null

/** When a run of the suite is good enough. Without any of these, every graded trial must pass. */
export type SuiteGate = Frozen<{
  /** The least share of graded trials that pass, from 0 to 1. */
  rate?: number
  /** Ids of cases of which every trial must pass. */
  must?: readonly string[]
  /** It fails if it is seen to be worse than the baseline, and by more than this share. */
  worseBy?: number
}>

/** What a suite is made of: cases, scorers, the agent, and how much it may spend. */
export type SuiteOptions = {
  /** 1 to 40 letters, digits, `_` or `-`. The ids of its sessions begin with it. */
  readonly name: string
  /** What is tried: each case with its input and what is expected of the answer. */
  readonly cases: readonly EvalCase[]
  /** What grades each trial. A trial passes if every scorer lets it pass. */
  readonly scorers: readonly (Scorer | ScoreFunction)[]
  /** Needed unless nothing runs. */
  readonly agent?: SuiteAgent
  /** Which agent of that harness answers: a subagent or a workflow by its name. Default: the harness's own. */
  readonly agentName?: string
  /** How often each case is tried. Default 1. */
  readonly trials?: number
  /** In dollars, for trials and judges together. No trial begins that could exceed it. */
  readonly usd?: number
  /** The most that one trial may cost. Default: the share of `usd` of each trial that runs at the same time. */
  readonly trialUsd?: number
  /** Who decides about calls that wait for people. Default: nobody. */
  readonly people?: 'allow' | 'deny' | PeopleFunction
  /** Whether models and tools run, or recorded results are used. Default `live`. */
  readonly mode?: EvalMode
  /** How many trials run at once. Default 4. */
  readonly parallel?: number
  /** When a run of the suite passes. Default: every graded trial must pass. */
  readonly gate?: SuiteGate
  /**
   * Part of what makes a trial the same trial. Change it when something changed that no description of the agent shows,
   * such as the code of a tool: then all trials run again.
   */
  readonly version?: string
  /** How long one scorer may take. Default 30 s. */
  readonly scoreMs?: number
  /** The store of the recordings. Default: the store of the trials. */
  readonly recordings?: Store
}

/** A suite with its defaults, ready to run. */
export type Suite = Required<Omit<SuiteOptions, 'agent' | 'agentName' | 'usd' | 'trialUsd' | 'people' | 'recordings'>> &
  Pick<SuiteOptions, 'agent' | 'agentName' | 'usd' | 'trialUsd' | 'people' | 'recordings'>

const TRIALS_MAX = 1_000
const CASES_MAX = 10_000
const SCORE_MS = 30_000
const PARALLEL = 4

const shareCheck: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? null : 'must be a share from 0 to 1'
const peopleCheck: Check = (value) =>
  typeof value === 'function' || value === 'allow' || value === 'deny'
    ? null
    : 'must be "allow", "deny" or a function that gives a decision'

const OWN_STORE = 'Give the store to runSuite: a suite has one of its own.'
const NO_PLUGINS =
  'A trial shares nothing with another one, so a suite takes no plugins: give their tools as tools and their hooks as hooks.'
const checkAgent = optionsChecker<Partial<Record<'store' | 'program' | 'plugins' | 'triggers', undefined>>>(
  'the agent of a suite',
  { store: () => OWN_STORE, program: () => OWN_STORE, plugins: () => NO_PLUGINS, triggers: () => NO_PLUGINS },
)

const GATE_CHECK = optionsCheck<SuiteGate>({
  rate: shareCheck,
  must: listCheck(nonEmptyCheck),
  worseBy: shareCheck,
})
export const TRIALS_CHECK = countCheck(1, TRIALS_MAX)
export const MODE_CHECK = oneOf<EvalMode>({ live: true, replayed: true, recorded: true })

const checkSuite = optionsChecker<SuiteOptions>('a suite', {
  name: requiredCheck(whyNotSuiteName),
  cases: requiredCheck(anyCheck),
  scorers: requiredCheck(anyCheck),
  agent: objectCheck,
  agentName: nonEmptyCheck,
  trials: TRIALS_CHECK,
  usd: usdCheck,
  trialUsd: usdCheck,
  people: peopleCheck,
  mode: MODE_CHECK,
  parallel: countCheck(1, 64),
  gate: GATE_CHECK,
  version: textCheck,
  scoreMs: msCheck,
  recordings: methodsCheck('give a store', 'read', 'list'),
})

/** Throws `invalid_config` with one sentence for what does not fit. */
export function defineSuite(options: SuiteOptions): Suite {
  checkSuite(options)
  const { cases, scorers, mode = 'live', agent } = options
  checkCases(cases, mode)
  checkScorers(scorers)
  if (agent !== undefined) checkOwnParts(agent)
  if (agent === undefined && mode !== 'recorded')
    throw new Fault('invalid_config', `The suite "${options.name}" has no agent. Give one, or the mode "recorded".`)
  const defaults = { trials: 1, parallel: PARALLEL, gate: {}, version: '', scoreMs: SCORE_MS }
  return { ...defaults, ...withoutUndefined(options), mode }
}

function checkCases(cases: unknown, mode: EvalMode): void {
  if (!Array.isArray(cases)) throw new Fault('invalid_config', 'The cases of a suite must be a list.')
  if (cases.length > CASES_MAX)
    throw new Fault('invalid_config', `A suite may have ${CASES_MAX} cases, not ${cases.length}. Split it.`)
  const known = new Set<string>()
  for (const [i, each] of (cases as readonly unknown[]).entries()) {
    checkCase(each, `cases[${i}]`)
    const { id, recording } = each as EvalCase
    if (known.has(id)) throw new Fault('invalid_config', `Two cases have the id "${id}". Give each an id of its own.`)
    known.add(id)
    if (mode !== 'live' && recording === undefined)
      throw new Fault('invalid_config', `Case "${id}" has no recording, which the mode "${mode}" needs.`)
  }
}

function checkScorers(scorers: unknown): void {
  const given: readonly unknown[] = Array.isArray(scorers) ? scorers : []
  if (given.length === 0)
    throw new Fault('invalid_config', 'A suite needs at least one scorer, such as settled("completed").')
  const names = new Set<string>()
  for (const [i, scorer] of given.entries()) {
    const { name, score, passes } = (scorer ?? {}) as Partial<Scorer>
    if (typeof scorer !== 'function' && (typeof score !== 'function' || typeof name !== 'string' || name === ''))
      throw new Fault('invalid_config', `scorers[${i}] is no scorer: give a function, or { name, score }.`)
    const wrong = passes === undefined ? null : shareCheck(passes, 'passes', 'a scorer')
    if (wrong !== null) throw new Fault('invalid_config', `"passes" of scorers[${i}] ${wrong}.`)
    if (name === undefined || name === '') continue
    if (names.has(name))
      throw new Fault('invalid_config', `Two scorers are named "${name}". Wrap one of them: { ...scorer, name }.`)
    names.add(name)
  }
}

function checkOwnParts({ store, program, plugins, triggers, worker }: Partial<HarnessOptions>): void {
  if (worker?.drives === false)
    throw new Fault(
      'invalid_config',
      'A suite drives its trials itself. Leave out "drives" of the worker of its agent.',
    )
  for (const [name, value] of Object.entries({ store, program, plugins, triggers }))
    if (value !== undefined) checkAgent({ [name]: value })
}
