// What if an agent had been another one? A recorded session is lived again from one of its events on, in a store of its
// own: with other instructions, another model, other tools or rules, or another message. The recording is only read.
import type { Json, Outcome } from '../kernel/content.ts'
import type { HarnessOptions } from '../harness.ts'
import {
  anyCheck,
  type Check,
  countCheck,
  flagCheck,
  objectCheck,
  oneOf,
  optionsChecker,
  requiredCheck,
  usdCheck,
} from '../options.ts'
import type { CompleteStore } from '../ports/store.ts'
import { signalCheck } from '../sessions/command.ts'
import type { Input } from '../sessions/input.ts'
import type { Comparison } from '../view/compare-logs.ts'
import type { WhatIfLog } from './recorded-tree.ts'
import type { SetupPart } from './scratch.ts'
import type { MissingAnswer, ToolMode, ToolStub } from './stand-ins.ts'

export type { WhatIfLog } from './recorded-tree.ts'
export type { MissingAnswer, ToolMode, ToolStub } from './stand-ins.ts'

/**
 * The options of a harness with this agent. Without a model the recording answers, and no model is asked. Its store,
 * program, worker, triggers and tracing are not used, and neither are the consumers of its plugins.
 */
export type WhatIfAgent = Omit<HarnessOptions, 'model'> & {
  /** Answers for every agent that has none of its own. Absent: the recording answers. */
  readonly model?: HarnessOptions['model']
}

/** Options of a what-if: from which event on, what is changed, and how much it may cost. */
export type WhatIfOptions = {
  /** The last event of the session that stays as it was. */
  readonly at: number
  /** The options of a harness with the changed agent. */
  readonly agent: WhatIfAgent
  /** How calls of these tools are answered, by name: by a mode, or by a function. Default for each: `recorded`. */
  readonly tools?: Readonly<Record<string, ToolMode | ToolStub>>
  /** Said in place of what people said after that event. */
  readonly message?: Input
  /** Whether tools that change something may be `live`. Default false: only those of the class `read`. */
  readonly effects?: boolean
  /** Ends the run at the first call or request that the recording has no answer to. Default false. */
  readonly strict?: boolean
  /** How far it goes: to the end of the run at that event, or of the next one (`one`, the default), or of the log. */
  readonly runs?: 'one' | 'all'
  /** In dollars: requests that could exceed it are not made. */
  readonly usd?: number
  /** Aborted to interrupt it. The result then says how far it came. */
  readonly signal?: AbortSignal
}

/** A call that nobody has decided about, and why the recording does not. */
export type ParkedCall = {
  /** The session of the call. */
  readonly session: string
  /** The key of the call. */
  readonly call: string
  /** The name of the tool. */
  readonly tool: string
  /** The arguments of the call. */
  readonly args: Json
  /** Why the recording decides nothing about it. */
  readonly why: string
}

/** A case for an evaluation, as plain JSON. */
export type WhatIfCase = {
  /** The id of the case. */
  readonly id: string
  /** What people said: one message, or several in their order. */
  readonly input: string | readonly string[]
  /** The new answer. */
  readonly expected?: Json
  /** The id of the recorded session. */
  readonly recording: string
}

/**
 * How a session would have gone with something changed, and how that differs from what it was. The recorded session
 * is untouched.
 */
export type WhatIf = {
  /** The store in which it was lived, and the session in it, which has the id of the recorded one. */
  readonly store: CompleteStore
  /** The id of the session in that store, which is that of the recorded one. */
  readonly session: string
  /** The last event of the recording in that session's log. What follows is new. */
  readonly from: number
  /** The last event of the recording that is compared. */
  readonly end: number
  /** What the run that was open at that event shows its model otherwise than the recorded one. */
  readonly changed: readonly SetupPart[]
  /** The recorded session on the left, the new one on the right. */
  readonly diff: Comparison
  /** How many answers the recording did not have. */
  readonly drift: number
  /** The calls and requests without an answer in the recording. */
  readonly missing: readonly MissingAnswer[]
  /** In dollars: what this what-if cost. Recorded replies cost nothing again. */
  readonly cost: number
  /** How the last run ended; null if it waits for people. */
  readonly settled: Outcome | null
  /** The new answer. */
  readonly text: string
  /** The calls that nobody has decided about. */
  readonly parked: readonly ParkedCall[]
  /** The messages of people, and the new answer as the expected one. */
  readonly toCase: (id: string) => WhatIfCase
}

const MODES: Readonly<Record<ToolMode, true>> = { recorded: true, live: true, recorded_or_live: true }
const modeCheck = oneOf<ToolMode>(MODES)
const toolsCheck: Check = (value, name, of) => {
  const wrong = objectCheck(value, name, of)
  if (wrong !== null) return wrong
  for (const [tool, mode] of Object.entries(value as object))
    if (typeof mode !== 'function') {
      const why = modeCheck(mode, tool, of)
      if (why !== null) return `has "${tool}", which ${why}, or a function`
    }
  return null
}

const checkOptions = optionsChecker<WhatIfOptions>('whatIf', {
  at: requiredCheck(countCheck(1), 'Name the last event that stays as it was.'),
  agent: requiredCheck(objectCheck, 'Give the options of its harness.'),
  tools: toolsCheck,
  message: anyCheck,
  effects: flagCheck,
  strict: flagCheck,
  runs: oneOf<'one' | 'all'>({ one: true, all: true }),
  usd: usdCheck,
  signal: signalCheck,
})

/** Lives a recorded session again from the event `at` on. Nothing is written to where the recording is. */
export async function whatIf(log: WhatIfLog, options: WhatIfOptions): Promise<WhatIf> {
  checkOptions(options)
  const { playWhatIf } = await import('./play.ts')
  return playWhatIf(log, options)
}
