// What a host decides about scripts: whether models may write them, and how much a script session may do.
import { type Check, type Checks, countCheck, nonEmptyCheck, oneOf, optionsCheck, optionsChecker } from '../options.ts'

/**
 * `off`: no script runs. `ask`: a person is asked about each cell, and a model may only lower the limits. `on`: cells run
 * at once, and a model may raise the limits to twice.
 */
export type ScriptMode = 'off' | 'ask' | 'on'

/** What one script session may do, over all its cells. */
export type ScriptLimits = {
  /** How many cells it may run. Default 16. */
  readonly cells: number
  /** How many requests to models it may make. Default 64. */
  readonly modelCalls: number
  /** Tools and agents. */
  readonly toolCalls: number
  /** How deep the agents that it asks may be below the session of the model. */
  readonly depth: number
  /** How many of its calls run at once. */
  readonly concurrency: number
  /** How long one cell may compute, without waiting for calls. */
  readonly computeMs: number
}

/** Options of `createScripts`: whether scripts are asked about, what they may use, and where saved ones are. */
export type ScriptOptions = {
  /** Default `ask`. The environment variable `TERRET_SCRIPTS=0` turns scripts off, whatever stands here. */
  readonly mode?: ScriptMode
  /** Limits of one script session, over all its cells. */
  readonly limits?: Partial<ScriptLimits>
  /** Folders of saved scripts, `NAME.js` each. The first that has a name wins. */
  readonly folders?: readonly string[]
}

const DEFAULTS: ScriptLimits = {
  cells: 16,
  modelCalls: 64,
  toolCalls: 128,
  depth: 3,
  concurrency: 4,
  computeMs: 30_000,
}
/** Whatever is asked for, no more run at once. */
const CONCURRENCY_MAX = 8
const RAISED = 2

const LIMITS: Checks<Partial<ScriptLimits>> = {
  cells: countCheck(1),
  modelCalls: countCheck(),
  toolCalls: countCheck(),
  depth: countCheck(),
  concurrency: countCheck(1, CONCURRENCY_MAX),
  computeMs: countCheck(1),
}
const foldersCheck: Check = (value, name, of) => {
  if (!Array.isArray(value)) return 'must be a list of folders'
  for (const folder of value) {
    const trouble = nonEmptyCheck(folder, name, of)
    if (trouble !== null) return trouble
  }
  return null
}
export const checkScriptOptions = optionsChecker<ScriptOptions>('createScripts', {
  mode: oneOf<ScriptMode>({ off: true, ask: true, on: true }),
  limits: optionsCheck<Partial<ScriptLimits>>(LIMITS),
  folders: foldersCheck,
})

export type CompleteScriptOptions = Required<Omit<ScriptOptions, 'limits'>> & { readonly limits: ScriptLimits }

export function completeScriptOptions({
  mode = 'ask',
  limits = {},
  folders = [],
}: ScriptOptions): CompleteScriptOptions {
  return { mode, limits: { ...DEFAULTS, ...limits }, folders }
}

/** The mode now. The environment is looked at each time, so that a running process can be told as well. */
export function currentMode({ mode }: { readonly mode: ScriptMode }): ScriptMode {
  return process.env['TERRET_SCRIPTS'] === '0' ? 'off' : mode
}

/** The limits that a call asks for, as far as the mode lets it have them. */
export function grantLimits(mode: ScriptMode, own: ScriptLimits, asked: Partial<ScriptLimits>): ScriptLimits {
  const granted: Record<string, number> = { ...own }
  for (const [name, wanted] of Object.entries(asked)) {
    const most = (own[name as keyof ScriptLimits] ?? 0) * (mode === 'on' ? RAISED : 1)
    granted[name] = Math.min(wanted, most)
  }
  const limits = granted as ScriptLimits
  return { ...limits, concurrency: Math.max(1, Math.min(limits.concurrency, CONCURRENCY_MAX)) }
}
