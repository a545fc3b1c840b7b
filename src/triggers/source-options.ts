// The sources of triggers as a host configures them: their options, the check of these, and their defaults.
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import { whyNotModel } from '../models/resolve-model.ts'
import {
  countCheck,
  flagCheck,
  functionCheck,
  listCheck,
  nonEmptyCheck,
  optionsCheck,
  optionsChecker,
  requiredCheck,
  tableCheck,
  textCheck,
  usdCheck,
  type Check,
} from '../options.ts'
import type { TriageTargets } from './triage-decision.ts'
import { triageInstructions } from './triage-prompt.ts'

/** A notice that the triage wrote for people. */
export type TriggerNotice = {
  /** The source of the event. */
  readonly source: string
  /** The kind of the event. */
  readonly label: string
  /** The notice itself. */
  readonly text: string
  /** The session of the trigger. */
  readonly session: string
}
/** Called again with the same `key` if it failed, and if the process was lost meanwhile. */
export type SendNotice = (
  notice: TriggerNotice,
  context: { readonly key: string; readonly signal: AbortSignal },
) => void | Promise<void>

/** Options of one source: how its events are judged, who may get them, and how many it may start. */
export type SourceOptions = {
  /** Your own rules for the triage: which events of this source matter, and to whom. */
  readonly instructions?: string
  /** The agents that may get a task. Default: none, and then the triage drops or notifies. */
  readonly targets?: Partial<TriageTargets>
  /** `false`: every event is judged anew, also one that is the same as another within a day. */
  readonly cache?: boolean
  /** How many deliveries a minute, how many at once, and how much money a day. */
  readonly caps?: SourceCaps
}

/** Over a cap a delivery is not lost: it waits. */
export type SourceCaps = {
  /** Deliveries a minute, in all processes on the store. */
  readonly perMinute?: number
  /** Triggers at work at once, in each process. */
  readonly atOnce?: number
  /** What triage and agents of this source may spend in a day (UTC). */
  readonly usdPerDay?: number
}

/** The option `triggers` of a harness: the models of the triage, and the sources. */
export type TriggersOptions = {
  /** The model of the triage, and one to ask when it gives no decision. `hint:burst` is the model of that route. */
  readonly models: readonly [string | Model, (string | Model)?]
  /** Where events come from, by name. */
  readonly sources: Readonly<Record<string, SourceOptions>>
  /** Receives notices. Without it they stand only in the results of their sessions. */
  readonly notify?: SendNotice
  /** The folder of the sessions, by its full path. Default: none. */
  readonly folder?: string
}

/** A source with its defaults. */
export type CompleteSource = {
  readonly name: string
  /** The name of its graph. */
  readonly agent: string
  readonly models: TriggersOptions['models']
  readonly instructions: string
  readonly targets: TriageTargets
  readonly cache: boolean
  readonly caps: SourceCaps
  readonly notify: SendNotice | null
  readonly folder: string | null
}

/** The name of the graph of a source, which is the agent of its sessions. */
export function triggerAgent(source: string): string {
  return `trigger_${source}`
}

const SOURCE_NAME = /^[A-Za-z0-9_-]{1,48}$/

const modelsCheck: Check = (value, name, of) => {
  const wrong = listCheck((model) => whyNotModel(model))(value, name, of)
  if (wrong !== null) return wrong
  const { length } = value as readonly unknown[]
  return length === 1 || length === 2 ? null : `must be one model or two, not ${length}`
}
const SOURCE_CHECKS = {
  instructions: textCheck,
  targets: optionsCheck<Partial<TriageTargets>>({
    react: listCheck(nonEmptyCheck),
    escalate: listCheck(nonEmptyCheck),
  }),
  cache: flagCheck,
  caps: optionsCheck<SourceCaps>({ perMinute: countCheck(1), atOnce: countCheck(1), usdPerDay: usdCheck }),
}
export const checkTriggers = optionsChecker<TriggersOptions>('createTriggers', {
  models: requiredCheck(modelsCheck, 'Write models: [first, second], such as ["hint:burst", "openai:gpt-5.1-mini"].'),
  sources: requiredCheck(tableCheck(optionsCheck<SourceOptions>(SOURCE_CHECKS)), 'Write sources: { mail: {} }.'),
  notify: functionCheck,
  folder: nonEmptyCheck,
})

export function completeSource(
  name: string,
  own: SourceOptions,
  { models, notify, folder }: TriggersOptions,
): CompleteSource {
  if (!SOURCE_NAME.test(name))
    throw new Fault('invalid_config', `"${name}" cannot be a source: use 1 to 48 letters, digits, "_" or "-".`)
  const targets = { react: own.targets?.react ?? [], escalate: own.targets?.escalate ?? [] }
  return {
    name,
    agent: triggerAgent(name),
    models,
    instructions: triageInstructions(targets, own.instructions ?? ''),
    targets,
    cache: own.cache ?? true,
    caps: own.caps ?? {},
    notify: notify ?? null,
    folder: folder ?? null,
  }
}
