// What the tests of triggers share: a harness whose triage is a scripted model, and a look at what came of a delivery. Nothing is
// asserted here.
import { onTestFinished } from 'vitest'
import type { Json, TriggerReceipt } from '../../src/index.ts'
import { Harness, type HarnessOptions, scripted } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import type { Script, StepFunction } from '../../src/models/local/scripted.ts'
import {
  createTriggers,
  type SourceOptions,
  type TriggerEvaluated,
  type TriggersOptions,
} from '../../src/triggers/index.ts'

export { STORAGES, storeOf } from '../models/hosted-stage.ts'

export const DROP = '{"action":"drop","reason":"A newsletter."}'
export const NOTIFY = '{"action":"notify","prompt":"The build failed.","reason":"People should know."}'
export const REACT =
  '{"action":"react","target_agent":"helper","prompt":"Look up the ticket.","reason":"A known task."}'
export const ESCALATE =
  '{"action":"escalate","target_agent":"chief","prompt":"Find out why the shop is down.","reason":"An outage."}'

export const TARGETS = { react: ['helper'], escalate: ['chief'] } as const

export type TriggerStage = {
  readonly harness: ReturnType<typeof newHarness>
  /** The requests that the triage was asked, and those that an agent was. */
  readonly triage: Request[]
  readonly agents: Request[]
}

type StageOptions = {
  readonly triage: Script
  /** A second model of the triage. */
  readonly second?: Script
  readonly source?: SourceOptions
  readonly notify?: TriggersOptions['notify']
  readonly agent?: StepFunction
  readonly options?: Partial<HarnessOptions>
}

function newHarness(options: HarnessOptions) {
  return new Harness(options)
}

export function withTriggers(given: StageOptions): TriggerStage {
  const triage: Request[] = []
  const agents: Request[] = []
  const seen = (script: Script, into: Request[], name: string) => {
    const inner = scripted(script)
    return {
      name,
      call: async (...[request, context]: Parameters<typeof inner.call>) => {
        into.push(request)
        return inner.call(request, context)
      },
    }
  }
  const answer: StepFunction = given.agent ?? (() => 'It is done.')
  const model = seen((request, taken) => answer(request, taken), agents, 'agent')
  const models = [seen(given.triage, triage, 'small'), ...(given.second ? [seen(given.second, triage, 'large')] : [])]
  const harness = newHarness({
    model,
    secrets: {},
    subagents: {
      helper: { description: 'does small tasks' },
      chief: { description: 'plans' },
    },
    worker: { graceMs: 50 },
    ...given.options,
    triggers: createTriggers({
      models: models as unknown as TriggersOptions['models'],
      sources: { mail: { targets: TARGETS, ...given.source } },
      ...(given.notify ? { notify: given.notify } : {}),
    }),
  })
  onTestFinished(() => harness.close())
  return { harness, triage, agents }
}

export const mail = (payload: Json, more: { readonly label?: string; readonly dedupeKey?: string } = {}) => ({
  source: 'mail',
  label: 'mail.received',
  payload,
  ...more,
})

/** Drives a trigger until it rests, and returns what came of it. */
export async function endOf({ harness }: Pick<TriggerStage, 'harness'>, { sessionId }: TriggerReceipt) {
  const session = harness.session(sessionId)
  const result = await session.run()
  const output = (('output' in result ? result.output : null) ?? {}) as {
    readonly evaluated?: TriggerEvaluated | null
    readonly deferred?: string | null
    readonly deferrals?: number
    readonly result?: string | null
  }
  return { session, result, output, evaluated: output.evaluated ?? null }
}
