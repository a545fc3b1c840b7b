// What must hold after a crash: a table of pure functions over the run without a crash and the run with one. Each counts
// the cases that it met; a rule that met none was not tested.
import { isDeepStrictEqual } from 'node:util'
import type { EffectClass, Json } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { textOf } from '../../view/shown-text.ts'
import { SESSION, type CrashNote, type CrashTrial } from './notes.ts'
import { callsIn, findDifference, neutralNames } from './same-world.ts'

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
  /** How often the handler of each call began. */
  readonly begins: ReadonlyMap<string, Begun>
  /** Some call of it has an unknown outcome. */
  readonly isUnknown: boolean
}
type Begun = { readonly tool: string; readonly effect: EffectClass; readonly times: number }

export function comparedRun(trial: CrashTrial): ComparedRun {
  const { logs, notes } = trial
  const neutral = neutralNames(logs)
  const calls = Object.fromEntries(
    Object.entries(logs).map(([session, events]) => [
      session,
      callsIn(events).map(({ tool, args }) => ({ tool, args })),
    ]),
  )
  const begins = new Map<string, Begun>()
  for (const { type, ...note } of notes) {
    if (type !== 'began') continue
    const { key, tool, effect } = note as Extract<CrashNote, { type: 'began' }>
    begins.set(key, { tool, effect, times: (begins.get(key)?.times ?? 0) + 1 })
  }
  const isUnknown = Object.values(logs).some((events) => events.some(isUnknownResult))
  const held = neutral(trial.world)
  return { ...trial, held, end: neutral(endOf(logs[SESSION] ?? [])), calls: neutral(calls), begins, isUnknown }
}

const isUnknownResult = (event: Event): boolean => event.type === 'agent.tool_result' && event.status === 'unknown'

/** How the runs ended, and what was said last. */
function endOf(events: readonly Event[]): Json {
  const settled = events.filter((event) => event.type === 'run.settled')
  const said = events.findLast((event) => event.type === 'agent.message')
  const outcomes = settled.map(({ outcome, output = null }) => ({ outcome: outcome as Json, output }))
  return { runs: outcomes, text: said ? textOf(said.parts) : '' }
}

export const CRASH_RULES: readonly CrashRule[] = [
  { rule: 'T1', says: 'the run settles', check: settles },
  { rule: 'T2', says: 'every call has one result', check: hasOneResultEach },
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

function hasOneResultEach({ logs }: ComparedRun): Checked {
  const wrong: string[] = []
  let cases = 0
  for (const [session, events] of Object.entries(logs)) {
    const results = new Map<string, number>()
    for (const event of events)
      if (event.type === 'agent.tool_result') results.set(event.call, (results.get(event.call) ?? 0) + 1)
    for (const { call, tool } of callsIn(events)) {
      cases += 1
      const n = results.get(call) ?? 0
      if (n !== 1) wrong.push(`call ${session}:${call} of ${tool} has ${n} results`)
    }
  }
  return { cases, wrong }
}

function beginsOnce({ begins }: ComparedRun): Checked {
  const once = [...begins].filter(([, { effect }]) => effect === 'once')
  const again = once.filter(([, { times }]) => times > 1)
  return { cases: once.length, wrong: again.map(([key, { tool, times }]) => `${tool} (${key}) began ${times} times`) }
}

/** The `idempotent` calls that began more than once. */
function repeatedCalls({ begins }: ComparedRun): readonly string[] {
  return [...begins].flatMap(([key, { tool, effect, times }]) =>
    effect === 'idempotent' && times > 1 ? [`${tool} (${key})`] : [],
  )
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
  const wrong = looked.flatMap((note) =>
    note.type === 'looked' && note.changed !== null
      ? [`${note.tool} (${note.key}) ran again and changed the world again: ${note.changed}`]
      : [],
  )
  const repeated = repeatedCalls(run)
  if (repeated.length === 0 || !isComparable(run)) return { cases: looked.length, wrong }
  const difference = findDifference(clean.held, run.held)
  const other = difference === null ? [] : [`${repeated.join(', ')} ran again, and the world differs: ${difference}`]
  return { cases: looked.length + 1, wrong: [...wrong, ...other] }
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
