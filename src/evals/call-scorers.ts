// Scorers of the way to an answer: which calls were made, who allowed them, how the run ended, and what it took. Calls
// of children count, and are named with their path.
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { type Check, oneOf, optionsChecker, orFunction } from '../options.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { asList, isObject, ownOf } from '../view/untrusted-json.ts'
import { quoteValue, type Wanted, wantedOf } from './plain-scorers.ts'
import type { ScoreResult, Scorer } from './score.ts'
import type { Trial, TrialCall } from './trial.ts'

/** `researcher/search` is a call of `search` by the child `researcher`, and `search` one of anybody. */
export type ExpectedCall = string | { readonly tool: string; readonly args?: Json }

/**
 * `exact`: these calls in this order and no others. `same`: these and no others, in any order. `in_order`: these in this
 * order, with others between. `includes`: these, with others, in any order. `only`: no others than these, however often.
 */
export type CallMode = 'exact' | 'same' | 'in_order' | 'includes' | 'only'

/**
 * How arguments are compared where a wanted call has some. `includes`: those that are named must be equal (default).
 * `same`: all must be equal, and no others be there. `ignore`: not at all.
 */
export type ArgsMode = 'includes' | 'same' | 'ignore' | ((found: Json, wanted: Json) => boolean)

/** How strictly calls and their arguments are compared. */
export type CallsOptions = {
  /** How the wanted calls are compared with those that were made. Default `in_order`. */
  readonly mode?: CallMode
  /** How the wanted arguments are compared. Default `includes`. */
  readonly args?: ArgsMode
}

const checkCalls = optionsChecker<CallsOptions>('calls', {
  mode: oneOf<CallMode>({ exact: true, same: true, in_order: true, includes: true, only: true }),
  args: orFunction(oneOf<Exclude<ArgsMode, (...args: never) => boolean>>({ includes: true, same: true, ignore: true })),
})

/** Default: `in_order`. Without a list it is what the case expects. Calls that were refused or denied count too. */
export function calls(wanted?: Wanted<readonly ExpectedCall[]>, options: CallsOptions = {}): Scorer {
  checkCalls(options)
  const { mode = 'in_order', args = 'includes' } = options
  return {
    name: 'calls',
    score: (trial) => {
      const list = readWanted(wantedOf<Json>(wanted, trial))
      const why = compareCalls(trial.calls, list, { mode, args })
      return why === null || { score: 0, why: `${why} Its calls: ${namedCalls(trial.calls)}.` }
    },
  }
}

type FullCall = { readonly tool: string; readonly args?: Json }

function readWanted(list: Json): readonly FullCall[] {
  const calls = asList(list)
  const isCall = (call: Json): boolean =>
    typeof call === 'string' || (isObject(call) && typeof call['tool'] === 'string')
  if (!Array.isArray(list) || !calls.every(isCall))
    throw new Fault('invalid_config', `calls takes a list of tools or of { tool, args }, not ${quoteValue(list)}.`)
  return calls.map((call) => (typeof call === 'string' ? { tool: call } : (call as unknown as FullCall)))
}

/** Why these are not the wanted calls; null if they are. */
function compareCalls(
  found: readonly TrialCall[],
  wanted: readonly FullCall[],
  { mode, args }: Required<CallsOptions>,
): string | null {
  const fits = (call: TrialCall, want: FullCall): boolean => isNamed(call, want.tool) && fitArgs(call, want, args)
  switch (mode) {
    case 'exact': {
      const at = Math.max(found.length, wanted.length)
      for (let i = 0; i < at; i++) {
        const [call, want] = [found[i], wanted[i]]
        if (want === undefined) return `Call ${i + 1} is ${callName(call)}, and no more were wanted.`
        if (call === undefined) return `Call ${i + 1} should be ${wantedName(want)}, and there is none.`
        if (!fits(call, want)) return `Call ${i + 1} is ${callName(call)}, not ${wantedName(want)}.`
      }
      return null
    }
    case 'same':
      if (found.length !== wanted.length) return `There are ${found.length} calls, and ${wanted.length} were wanted.`
      return missingCall(found, wanted, fits)
    case 'includes':
      return missingCall(found, wanted, fits)
    case 'in_order': {
      let at = 0
      for (const want of wanted) {
        while (at < found.length && !fits(found[at] as TrialCall, want)) at += 1
        if (at === found.length) return `${wantedName(want)} is missing, or not in this order.`
        at += 1
      }
      return null
    }
    case 'only': {
      const other = found.find((call) => !wanted.some((want) => fits(call, want)))
      return other === undefined ? null : `${callName(other)} was not wanted.`
    }
  }
}

/** Gives each wanted call a call of its own, where that is possible at all: a match for one is taken over from another. */
function missingCall(
  found: readonly TrialCall[],
  wanted: readonly FullCall[],
  fits: (call: TrialCall, want: FullCall) => boolean,
): string | null {
  const takenBy = new Map<number, FullCall>()
  const place = (want: FullCall, tried: Set<number>): boolean =>
    found.some((call, i) => {
      if (tried.has(i) || !fits(call, want)) return false
      tried.add(i)
      const other = takenBy.get(i)
      if (other !== undefined && !place(other, tried)) return false
      takenBy.set(i, want)
      return true
    })
  const missing = wanted.find((want) => !place(want, new Set()))
  return missing === undefined ? null : `${wantedName(missing)} is missing.`
}

function isNamed({ tool, path }: TrialCall, name: string): boolean {
  return name === tool || name === [...path, tool].join('/')
}

function fitArgs({ args: found }: TrialCall, { args: wanted }: FullCall, mode: ArgsMode): boolean {
  if (wanted === undefined || mode === 'ignore') return true
  if (typeof mode === 'function') return mode(found, wanted)
  return mode === 'same' ? canonicalJson(found) === canonicalJson(wanted) : hasAll(found, wanted)
}

/** Objects may have more fields than were wanted, at any depth. */
function hasAll(found: Json | undefined, wanted: Json): boolean {
  if (!isObject(wanted)) return found !== undefined && canonicalJson(found) === canonicalJson(wanted)
  return isObject(found) && Object.entries(wanted).every(([name, value]) => hasAll(ownOf(found, name), value))
}

function callName(call: TrialCall | undefined): string {
  if (call === undefined) return 'nothing'
  return `${[...call.path, call.tool].join('/')}(${quoteValue(call.args)})`
}

function wantedName({ tool, args }: FullCall): string {
  return args === undefined ? tool : `${tool}(${quoteValue(args)})`
}

const NAMED_MAX = 20

function namedCalls(all: readonly TrialCall[]): string {
  const names = all.slice(0, NAMED_MAX).map(({ path, tool }) => [...path, tool].join('/'))
  const rest = all.length > NAMED_MAX ? [`and ${all.length - NAMED_MAX} more`] : []
  return all.length === 0 ? 'none' : [...names, ...rest].join(', ')
}

/** None of these tools was called, not even in vain. */
export function never(...tools: readonly string[]): Scorer {
  checkNames('never', tools)
  return {
    name: 'never',
    score: ({ calls: made }) => {
      const found = made.find((call) => tools.some((tool) => isNamed(call, tool)))
      return found === undefined || { score: 0, why: `${callName(found)} was called (${found.callId}).` }
    },
  }
}

/** Each call of these tools that ran was allowed by a person first. */
export function asked(...tools: readonly string[]): Scorer {
  checkNames('asked', tools)
  return {
    name: 'asked',
    score: ({ calls: made }) => {
      const ran = made.filter((call) => call.ran && tools.some((tool) => isNamed(call, tool)))
      const unasked = ran.find(({ allowedBy }) => allowedBy === null)
      return (
        unasked === undefined || {
          score: 0,
          why: `${callName(unasked)} ran, and nobody was asked (${unasked.callId}).`,
        }
      )
    },
  }
}

function checkNames(of: string, tools: readonly string[]): void {
  if (tools.length === 0 || !tools.every((tool) => typeof tool === 'string' && tool !== ''))
    throw new Fault('invalid_config', `${of} takes the names of tools, such as ${of}("refund").`)
}

const statusCheck = oneOf<Trial['status']>({
  completed: true,
  requires_action: true,
  sleeping: true,
  interrupted: true,
  limit: true,
  halted: true,
  failed: true,
})

/** How the last run ended: `completed` unless another end is wanted. `requires_action`: it waits for people. */
export function settled(wanted: Wanted<Trial['status']> = 'completed'): Scorer {
  if (typeof wanted === 'string') checkStatus(wanted)
  return {
    name: 'settled',
    score: (trial) => {
      const { status, text } = trial
      const end = wantedOf(wanted, trial)
      checkStatus(end)
      const said = text === '' ? '' : `: ${quoteValue(text)}`
      return status === end || { score: 0, why: `It ended as ${status}, not ${end}${said}.` }
    },
  }
}

function checkStatus(status: Trial['status']): void {
  const wrong = statusCheck(status, 'status', 'settled')
  if (wrong !== null) throw new Fault('invalid_config', `The end that settled wants ${wrong}.`)
}

/** The most that a trial may take, children included. */
export type Bounds = Partial<Record<'calls' | 'turns' | 'tokens' | 'usd' | 'ms', number>>

const boundCheck: Check = (value) => (typeof value === 'number' && value >= 0 ? null : 'must be a number from 0 on')
const checkBounds = optionsChecker<Bounds>('bounds', {
  calls: boundCheck,
  turns: boundCheck,
  tokens: boundCheck,
  usd: boundCheck,
  ms: boundCheck,
})

/** A scorer that passes when a trial stays within so many turns, calls, tokens, dollars or milliseconds. */
export function bounds(most: Bounds): Scorer {
  checkBounds(most)
  return {
    name: 'bounds',
    score: (trial) => {
      const found = { ...trial, calls: trial.calls.length }
      const over = Object.entries(most).filter(([name, value]) => found[name as keyof Bounds] > value)
      const told = over.map(([name, value]) => `${name}: ${found[name as keyof Bounds]}, and ${value} at most`)
      return over.length === 0 || { score: 0, why: `It took too much. ${told.join('; ')}.` }
    },
  }
}

/** How many events of a type its own log has: a number, or the least and the most. */
export type EventCounts = Partial<Record<Event['type'], number | readonly [least: number, most: number]>>

/** A scorer that counts events of the log. */
export function events(counts: EventCounts): Scorer {
  const odd = Object.entries(counts).find(([, count]) => ![count].flat().every((each) => Number.isInteger(each)))
  if (odd) throw new Fault('invalid_config', `events takes a number, or the least and the most, for "${odd[0]}".`)
  return {
    name: 'events',
    score: ({ events: log }): ScoreResult => {
      const wrong = Object.entries(counts).flatMap(([type, count]) => {
        const [least, most] = typeof count === 'number' ? [count, count] : (count ?? [0, Number.POSITIVE_INFINITY])
        const found = log.filter((event) => event.type === type).length
        return found >= least && found <= most
          ? []
          : [`${type}: ${found}, not ${least === most ? least : `${least} to ${most}`}`]
      })
      return wrong.length === 0 || { score: 0, why: `Its log has other events. ${wrong.join('; ')}.` }
    },
  }
}
