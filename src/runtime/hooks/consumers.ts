// Consumers as a host writes them: each is told of every settled run of a root session, at least once, also when the
// process dies first. How they are told is in runtime/commit/tell-consumers.ts and src/consumers.
import {
  type Check,
  countCheck,
  flagCheck,
  functionCheck,
  oneOf,
  optionsCheck,
  requiredCheck,
  usdCheck,
} from '../../options.ts'
import type { ToolContext } from '../../tools/core/tool-context.ts'
import type { SettledRun } from './settled-run.ts'

/** What a consumer gets beside the run. Use `key` to do something once, however often it is run. */
export type ConsumerContext = {
  /** The same in every try for this run: give it to services that take an idempotency key. */
  readonly key: string
  /** Aborted when the time is over, and when the harness is closed. */
  readonly signal: AbortSignal
  /** An earlier try for this run began, and may have taken effect. */
  readonly repeated: boolean
  /** Asks a model under the `usd` of this consumer. */
  readonly askModel: ToolContext['askModel']
}

/**
 * Code that is run after each settled run, until it has succeeded: also after a crash, so it must bear being run
 * again.
 */
export type Consumer = {
  /** 1 to 64 letters, digits, "_" or "-". Never change it: what waits for this consumer is found by it. */
  readonly name: string
  /** Must be idempotent: after a crash it is called again with the same key. */
  readonly run: (settled: SettledRun, context: ConsumerContext) => unknown
  /** The limit of one try. Default: 30,000. */
  readonly timeoutMs?: number
  /** After so many failed tries the run is a dead letter of this consumer. Default: 5. */
  readonly attempts?: number
  /** In dollars a day, for models that it asks. */
  readonly usd?: number
  /** `first`: only the first run of a session that settles is told; later ones cost nothing. Default: `all`. */
  readonly runs?: 'first' | 'all'
  /**
   * `false`: a run that it could not be told of is dropped after the last try. No failed try is reported, and there is no
   * dead letter. Default: true.
   */
  readonly deadLetters?: boolean
}

const nameCheck: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(value)
    ? null
    : 'must be 1 to 64 letters, digits, "_" or "-"'
const checkFields = optionsCheck<Consumer>({
  name: requiredCheck(nameCheck, 'Give it one, which it keeps.'),
  run: requiredCheck(functionCheck, 'It is called with each settled run.'),
  timeoutMs: countCheck(1),
  attempts: countCheck(1),
  usd: usdCheck,
  runs: oneOf<'first' | 'all'>({ first: true, all: true }),
  deadLetters: flagCheck,
})
const OLD_FORM =
  'is a function of events, which consumers were before. Write { name, run: (settled, { key, signal }) => … }: it is called with each settled run, at least once. For every event as it happens, follow the session'
export const consumerCheck: Check = Object.assign<Check, Check>(
  (value, name, of) => (typeof value === 'function' ? OLD_FORM : checkFields(value, name, of)),
  checkFields,
)

const BIND = Symbol('terret.bind')
/** `check` throws for a harness in which the consumer cannot work. */
type ConsumerBinding = { readonly check: (host: unknown) => void; readonly make: (host: unknown) => Consumer['run'] }
type BoundConsumer = { readonly [BIND]?: ConsumerBinding }

/** A consumer that works on sessions itself, and only in a harness. */
export function bindConsumer(consumer: Omit<Consumer, 'run'>, binding: ConsumerBinding): Consumer {
  const run = (): never => {
    throw new Error(`The consumer "${consumer.name}" works only in a harness.`)
  }
  return Object.assign({ ...consumer, run }, { [BIND]: binding })
}

export function checkBound(consumers: readonly Consumer[], host: unknown): void {
  for (const consumer of consumers) (consumer as BoundConsumer)[BIND]?.check(host)
}

/** The function to call with settled runs, for this harness. */
export function runOf(consumer: Consumer, host: unknown): Consumer['run'] {
  return (consumer as BoundConsumer)[BIND]?.make(host) ?? consumer.run
}
