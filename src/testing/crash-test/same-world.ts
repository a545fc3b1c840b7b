// Whether two worlds, or two ends, are the same. Keys of calls and names of children depend on where a call stands in the
// log, which a lost request moves; so each log names its calls in their order, and both sides are compared by these names.
import type { Json } from '../../kernel/content.ts'
import { callKey, type Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { CrashWorld } from './crash-options.ts'
import { SESSION } from './notes.ts'

/** What the world holds now, as JSON. */
export async function lookAtWorld(world: CrashWorld): Promise<Json> {
  const held = await world.look()
  const text = textOfWorld(held)
  if (text === undefined) throw new Fault('invalid_config', `world.look() returns ${typeof held}: ${PLAIN}`)
  return JSON.parse(text) as Json
}

function textOfWorld(held: unknown): string | undefined {
  try {
    return JSON.stringify(held, (_name, value: unknown) => {
      if (value instanceof Map || value instanceof Set || value instanceof Promise || typeof value === 'bigint')
        throw new Fault(
          'invalid_config',
          `world.look() has a ${Object.prototype.toString.call(value).slice(8, -1)}: ${PLAIN}`,
        )
      return value
    })
  } catch (error) {
    if (error instanceof Fault) throw error
    // A value that holds itself, or one whose own toJSON fails.
    throw new Fault('invalid_config', `world.look() returns what JSON cannot hold: ${PLAIN}`)
  }
}

/** What look() may say, for people. */
export const LASTING = 'Have look() leave out what differs by itself, such as times and random ids.'
const PLAIN = 'return plain JSON, such as rows or sums.'
const SHOWN_CHARS = 80

/** Where two values differ first, in words; null if they are the same. The order of keys does not count. */
export function findDifference(a: Json, b: Json, path = ''): string | null {
  if (a === b) return null
  const isTable = typeof a === 'object' && a !== null && typeof b === 'object' && b !== null
  if (!isTable || Array.isArray(a) !== Array.isArray(b))
    return `${path || 'it'} was ${showValue(a)} and is ${showValue(b)}`
  const [left, right] = [a, b] as readonly Readonly<Record<string, Json>>[]
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const at = Array.isArray(a) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    const [one, other] = [left?.[key], right?.[key]]
    if (one === undefined) return `${at} is new: ${showValue(other as Json)}`
    if (other === undefined) return `${at} is gone: ${showValue(one)}`
    const found = findDifference(one, other, at)
    if (found !== null) return found
  }
  return null
}

function showValue(value: Json): string {
  const text = JSON.stringify(value)
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`
}

export type CrashTrialLogs = Readonly<Record<string, readonly Event[]>>

/** The calls of a log in the order in which replies made them. */
export function callsIn(events: readonly Event[]) {
  return events.flatMap((event) =>
    event.type === 'agent.message'
      ? event.calls.map((proposal, i) => ({ call: callKey(event.seq, i), tool: proposal.tool, args: proposal.args }))
      : [],
  )
}

/** Gives calls, children and events the names by which two logs are compared. A consumer is told a run by its last event. */
export function neutralNames(logs: CrashTrialLogs): (value: Json) => Json {
  const names = new Map<string, string>()
  const sessions = Object.keys(logs).toSorted((a, b) => a.length - b.length)
  for (const session of sessions) {
    const own = names.get(session) ?? session
    const counts = new Map<string, number>()
    for (const { type, seq } of logs[session] ?? []) {
      const n = (counts.get(type) ?? 0) + 1
      counts.set(type, n)
      names.set(`${session}:${seq}`, `${own}:${type} ${n}`)
    }
    for (const [i, { call }] of callsIn(logs[session] ?? []).entries()) {
      names.set(`${session}:${call}`, `${own}:call ${i + 1}`)
      const born = `${session}~${call}`
      for (const child of sessions) {
        const rest = child.startsWith(born) ? child.slice(born.length) : null
        if (rest !== null && /^(\.\d+)?$/.test(rest)) names.set(child, `${own}~call ${i + 1}${rest}`)
      }
    }
  }
  return (value) => JSON.parse(JSON.stringify(value).replace(OWN_NAME, (name) => names.get(name) ?? name)) as Json
}

/** The id of a session of the test, or the key of a call or of an event in it. */
const OWN_NAME = new RegExp(`${SESSION}(?:~\\d+\\.\\d+(?:\\.\\d+)?)*(?::\\d+(?:\\.\\d+)?)?`, 'g')

/**
 * A world with its rows in an order of their own, where they hold keys of calls: an order by key is another one when the
 * keys have moved.
 */
export function withoutKeyOrder(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (!Array.isArray(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withoutKeyOrder(v)]))
  const rows = (value as readonly Json[]).map(withoutKeyOrder)
  const texts = new Map(rows.map((row) => [row, JSON.stringify(row)]))
  if (![...texts.values()].some((text) => text.includes(SESSION))) return rows
  return rows.toSorted((a, b) => ((texts.get(a) ?? '') < (texts.get(b) ?? '') ? -1 : 1))
}
