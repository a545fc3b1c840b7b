// What a crash test is given: the world that its tools change, the agent, the input, and the people who decide.
import {
  functionCheck,
  anyCheck,
  type Checks,
  countCheck,
  nonEmptyCheck,
  oneOf,
  optionsChecker,
  requiredCheck,
} from '../../options.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Answer, ApprovalDecision, HarnessOptions, Input, Pending } from '../../index.ts'

/** Everything that the tools of an agent may change: a database, a folder, an account. */
export type CrashWorld = {
  /**
   * What it holds, as JSON: rows, files, sums. Leave out what differs by itself, such as times and random ids. It is
   * called at the end of each run, and before and after each call of a `read` tool.
   */
  look(): unknown
  /**
   * Did the call with this key take effect? `reconcile` is compared with it. Without it a call has taken effect if its
   * handler returned.
   */
  happened?(key: string): boolean | Promise<boolean>
  /** Called when the world is no longer needed. */
  close?(): unknown
}

/** Where one run of a crash test may work. */
export type CrashPlace = {
  /** Empty at first and removed afterwards. Both lives of a run have the same one. */
  readonly folder: string
}

/** The agent under test: the options of `new Harness`, without those that the test sets itself. */
export type CrashAgent = Omit<HarnessOptions, OwnOption>
type OwnOption = 'store' | 'worker' | 'system' | 'program'

/** The decision of a person about a call that waits for approval, or the answer to one that waits for an answer. */
export type PersonAnswer =
  | (Omit<ApprovalDecision, 'callId' | 'sessionId' | 'digest' | 'by'> & { readonly by?: string })
  | Omit<Answer, 'callId' | 'sessionId'>

/** What a crash test runs: your agent, your tools, and how to tell what they did to the world. */
export type CrashTestOptions<World extends CrashWorld = CrashWorld> = {
  /** Makes a fresh world for each run. With `--process` it is called once in each process, on the same folder. */
  readonly world: (place: CrashPlace) => World | Promise<World>
  /** Makes the agent anew for each life, as a new process would. */
  readonly options: (world: World) => CrashAgent | Promise<CrashAgent>
  /** The message that the agent works on. */
  readonly run: Input
  /** An agent or graph of the harness. Default: its own. */
  readonly agent?: string
  /** Decides each call that waits for a person. Null: nobody does. */
  readonly people?: (call: Pending) => PersonAnswer | null | Promise<PersonAnswer | null>
  /**
   * `jumps`: the clock also jumps to the next timer while all tools and models wait by `context.clock` or
   * `context.sleep`. Without it, only while nothing of yours runs.
   */
  readonly time?: 'jumps'
  /** Tests this point alone, by its number in the report. 0: none, only the runs without a crash. */
  readonly at?: number
  /** How long one run may take, in real ms. Default: 30,000. */
  readonly timeoutMs?: number
  /**
   * The command that tests one point again. Default: `TERRET_CRASH_AT=N node SCRIPT`, which sets `at`. In a test runner,
   * give its own: `(at) => 'TERRET_CRASH_AT=' + at + ' npx vitest run test/pay.test.ts'`.
   */
  readonly replay?: (at: number) => string
}

const CHECKS: Checks<CrashTestOptions> = {
  world: requiredCheck(functionCheck, 'Write world: () => …, which makes what your tools change.'),
  options: requiredCheck(functionCheck, 'Write options: (world) => ({ model, tools }).'),
  run: requiredCheck(anyCheck, 'It is the message that the agent works on.'),
  agent: nonEmptyCheck,
  people: functionCheck,
  time: oneOf<'jumps'>({ jumps: true }),
  at: countCheck(),
  timeoutMs: countCheck(1),
  replay: functionCheck,
}
export const checkCrashTest = optionsChecker<CrashTestOptions>('crashTest', CHECKS)

const OWN: Readonly<Record<OwnOption, true>> = { store: true, worker: true, system: true, program: true }

/** The agent that `options` of the test returned, or one sentence about what is wrong with it. */
export function checkCrashAgent(agent: unknown): CrashAgent {
  if (typeof agent !== 'object' || agent === null)
    throw new Fault('invalid_config', 'options() of crashTest must return the options of a harness: { model, tools }.')
  const own = Object.keys(OWN).find((name) => name in agent)
  if (own !== undefined)
    throw new Fault('invalid_config', `crashTest sets "${own}" of the harness itself. Leave it out of options().`)
  return agent as CrashAgent
}

/** The world that `world` of the test returned. */
export function checkCrashWorld<World extends CrashWorld>(world: World): World {
  if (isWorld(world)) return world
  throw new Fault('invalid_config', 'world() of crashTest must return an object with look(), which says what it holds.')
}

const isWorld = (world: unknown): boolean =>
  typeof world === 'object' && world !== null && 'look' in world && typeof world.look === 'function'
