// What must hold after a crash: a table of pure functions over the run without a crash and the run with one. Each counts
// the cases that it met; a rule that met none was not tested.
import { isDeepStrictEqual } from 'node:util'
import type { CallStatus, EffectClass, Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { textOf } from '../../view/shown-text.ts'
import { SESSION, type CrashTrial } from './notes.ts'
import { callsIn, findDifference, neutralNames, withoutKeyOrder } from './same-world.ts'

/** The rules that must hold after each crash. The guide of crash tests says what each means. */
export type CrashRuleName = 'T1' | 'T2' | 'T3' | 'T4' | 'T5' | 'T6' | 'T7' | 'T8' | 'T9'
/** How many cases there were, and what was wrong with some of them. */
type Checked = { readonly cases: number; readonly wrong: readonly string[] }
type CrashRule = {
  readonly rule: CrashRuleName
  /** What must hold, for people. */
  readonly says: string
  readonly check: (run: ComparedRun, clean: ComparedRun) => Checked
}

/** A run as it is compared with others: calls have neutral names. */
export type ComparedRun = CrashTrial & {
  readonly held: Json
  readonly end: Json
  /** Which calls it made, by session, in the order of each. */
  readonly calls: Json
  /** How often the handler of each call began, by its key. */
  readonly begins: ReadonlyMap<string, Begun>
  /** How each call ended, by its neutral name. */
  readonly statuses: ReadonlyMap<string, CallStatus>
  /** Some call of it has an unknown outcome. */
  readonly isUnknown: boolean
}
/** `name` is its neutral name. */
type Begun = { readonly name: string; readonly tool: string; readonly effect: EffectClass; readonly times: number }

export function comparedRun(trial: CrashTrial): ComparedRun {
  const { logs, notes } = trial
  const neutral = neutralNames(logs)
  const begins = new Map<string, Begun>()
  for (const note of notes) {
    if (note.type !== 'began') continue
    const { key, tool, effect } = note
    begins.set(key, { name: neutral(key) as string, tool, effect, times: (begins.get(key)?.times ?? 0) + 1 })
  }
  const all = Object.entries(logs)
  const calls = all.map(([session, events]) => [session, callsIn(events).map(({ tool, args }) => ({ tool, args }))])
  const statuses = all.flatMap(([session, events]) =>
    events.flatMap((event): readonly (readonly [string, CallStatus])[] =>
      event.type === 'agent.tool_result' ? [[neutral(`${session}:${event.call}`) as string, event.status]] : [],
    ),
  )
  return {
    ...trial,
    begins,
    held: withoutKeyOrder(neutral(trial.world)),
    end: neutral(endOf(logs[SESSION] ?? [])),
    calls: neutral(Object.fromEntries(calls) as Json),
    statuses: new Map(statuses),
    isUnknown: statuses.some(([, status]) => status === 'unknown'),
  }
}

/** How the runs ended, and what was said last. */
function endOf(events: readonly Event[]): Json {
  const settled = events.filter((event) => event.type === 'run.settled')
  const said = events.findLast((event) => event.type === 'agent.message')
  const outcomes = settled.map(({ outcome, output = null }) => ({ outcome: outcome as Json, output }))
  return { runs: outcomes, text: said ? textOf(said.parts) : '' }
}

export const CRASH_RULES: readonly CrashRule[] = [
  { rule: 'T1', says: 'the run settles', check: settles },
  { rule: 'T2', says: 'every call has one result, and every result its call', check: hasOneResultEach },
  { rule: 'T3', says: 'a `once` call begins at most once', check: beginsOnce },
  { rule: 'T4', says: 'the world is that of the run without a crash', check: leavesSameWorld },
  { rule: 'T5', says: 'an `idempotent` call that runs twice changes the world once', check: repeatsSafely },
  { rule: 'T6', says: 'a `read` changes nothing', check: onlyReads },
  { rule: 'T7', says: '`reconcile` finds a call exactly if it happened', check: reconcilesTruly },
  { rule: 'T8', says: 'the run ends as without a crash', check: endsAlike },
  { rule: 'T9', says: 'every request is whole', check: asksWhole },
]

const NONE: Checked = { cases: 0, wrong: [] }

function settles({ trouble, logs }: ComparedRun): Checked {
  const ends = (logs[SESSION] ?? []).filter(({ type }) => type === 'run.started' || type === 'run.settled')
  const isOpen = ends.at(-1)?.type !== 'run.settled'
  return { cases: 1, wrong: trouble !== null ? [trouble] : isOpen ? ['its last run is open'] : [] }
}

function hasOneResultEach({ logs, trouble }: ComparedRun): Checked {
  if (trouble !== null) return NONE
  const wrong = Object.entries(logs).flatMap(([session, events]) => {
    const made = new Map(callsIn(events).map(({ call }) => [call, 0]))
    const results = events.flatMap((event) => (event.type === 'agent.tool_result' ? [event.call] : []))
    for (const call of results) if (made.has(call)) made.set(call, (made.get(call) ?? 0) + 1)
    const strange = results.find((call) => !made.has(call))
    return [
      ...[...made].flatMap(([call, n]) => (n === 1 ? [] : [`call ${session}:${call} has ${n} results`])),
      ...(strange === undefined ? [] : [`call ${session}:${strange} has a result, and no reply made it`]),
    ]
  })
  return { cases: Object.keys(logs).length, wrong }
}

function beginsOnce({ begins }: ComparedRun): Checked {
  const once = [...begins].filter(([, { effect }]) => effect === 'once')
  const again = once.filter(([, { times }]) => times > 1)
  return { cases: once.length, wrong: again.map(([key, { tool, times }]) => `${tool} (${key}) began ${times} times`) }
}

/** The keys of the `idempotent` calls that began more than once. */
function repeatedCalls({ begins }: ComparedRun): readonly string[] {
  return [...begins].flatMap(([key, { effect, times }]) => (effect === 'idempotent' && times > 1 ? [key] : []))
}

/** With a call whose outcome is unknown, the agent may rightly do something else. */
function isComparable(run: ComparedRun): boolean {
  return run.point.n > 0 && !run.isUnknown && run.trouble === null
}

function leavesSameWorld(run: ComparedRun, clean: ComparedRun): Checked {
  if (!isComparable(run) || repeatedCalls(run).length > 0) return NONE
  const difference = findDifference(clean.held, run.held)
  return { cases: 1, wrong: difference === null ? [] : [`the world differs: ${difference}`] }
}

function repeatsSafely(run: ComparedRun, clean: ComparedRun): Checked {
  const looked = run.notes.filter((note) => note.type === 'looked' && note.effect === 'idempotent')
  const changed = looked.flatMap((note) =>
    note.type === 'looked' && note.changed !== null
      ? [`${note.tool} (${note.key}) ran again and changed the world again: ${note.changed}`]
      : [],
  )
  const repeated = repeatedCalls(run)
  const failed = (run.trouble === null ? repeated : []).flatMap((key) => {
    const { tool = '', name = '' } = run.begins.get(key) ?? {}
    const [status, before] = [run.statuses.get(name), clean.statuses.get(name)]
    return status === before ? [] : [`${tool} (${key}) ran again, and its result is ${status} instead of ${before}`]
  })
  const isCompared = repeated.length > 0 && isComparable(run)
  const difference = isCompared && changed.length === 0 ? findDifference(clean.held, run.held) : null
  const other = difference === null ? [] : [`after ${repeated.join(', ')} ran again the world differs: ${difference}`]
  return { cases: looked.length + repeated.length, wrong: [...changed, ...failed, ...other] }
}

function onlyReads({ notes }: ComparedRun): Checked {
  const looked = notes.filter((note) => note.type === 'looked' && note.effect === 'read')
  const wrong = looked.flatMap((note) =>
    note.type === 'looked' && note.changed !== null
      ? [`${note.tool} (${note.key}) changed the world: ${note.changed}`]
      : [],
  )
  return { cases: looked.length, wrong }
}

function reconcilesTruly({ notes }: ComparedRun): Checked {
  const known = notes.filter((note) => note.type === 'reconciled' && note.happened !== null)
  const wrong = known.flatMap((note) => {
    if (note.type !== 'reconciled' || note.found === note.happened) return []
    const said = note.found ? 'gave a result for a call that had not happened' : 'did not find a call that had happened'
    return [`reconcile of ${note.tool} (${note.key}) ${said}`]
  })
  return { cases: known.length, wrong }
}

function endsAlike(run: ComparedRun, clean: ComparedRun): Checked {
  if (!isComparable(run)) return NONE
  const difference = isDeepStrictEqual(clean.end, run.end) ? null : findDifference(clean.end, run.end)
  return { cases: 1, wrong: difference === null ? [] : [`the run ends otherwise: ${difference}`] }
}

function asksWhole({ notes }: ComparedRun): Checked {
  const requests = notes.filter((note) => note.type === 'request')
  const wrong = requests.flatMap((note) => (note.type === 'request' && note.wrong !== null ? [note.wrong] : []))
  return { cases: requests.length, wrong }
}
