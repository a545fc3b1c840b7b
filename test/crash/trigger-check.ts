// What must hold between the deliveries that were answered with 202, the sessions in the store, and the effects in the oracle. Pure.
import type { Event } from '../../src/kernel/event.ts'
import type { DeliveryEffect, DeliveryRecord } from './deliveries.ts'
import { checkEffects } from './effect-check.ts'
import { callsOf, checkEnvelopes, checkRequests, checkRest, refoldSession } from './log-check.ts'
import type { Logs } from './tree-check.ts'

export type TriggerReport = {
  readonly wrong: readonly string[]
  /** Deliveries without a session, or without an effect although none is unknown. */
  readonly lost: number
  /** Deliveries with two sessions, two effects, or a `once` effect that ran twice. */
  readonly twice: number
  /** Effects that ran again under the same key, as idempotent ones may. */
  readonly repeated: number
  /** Deliveries with one effect, that is known to have ended. */
  readonly kept: number
  /** Deliveries whose `once` effect was cut: nobody can know whether it happened. */
  readonly unknown: number
}

export type TriggerEvidence = {
  readonly records: readonly DeliveryRecord[]
  /** Of all sessions of the store. */
  readonly logs: Logs
  readonly oracle: readonly DeliveryEffect[]
}

export function checkTriggers({ records, logs, oracle }: TriggerEvidence): TriggerReport {
  const wrong: string[] = []
  const counts = { lost: 0, twice: 0, unknown: 0, kept: 0 }
  const sessions = new Map<string, string>()
  for (const record of records) {
    wrong.push(...checkAnswers(record))
    const session = record.accepted[0]?.session ?? ''
    const other = sessions.get(session)
    if (other !== undefined) wrong.push(`${record.id} and ${other} are one session, ${session}`)
    sessions.set(session, record.id)
    const own = oracle.filter(({ delivery }) => delivery === record.id)
    const found = checkDelivery(record, { session, logs, own })
    wrong.push(...found.wrong.map((text) => `${record.id} (${record.kind}, ${session}): ${text}`))
    counts[found.fate] += 1
  }
  for (const root of rootsIn(logs)) if (!sessions.has(root)) wrong.push(`${root} is a session that nobody sent`)
  const calls = [...logs].flatMap(([id, events]) => (isChild(events) ? callsOf(id, events) : []))
  const keys = new Set(sessions.keys())
  const effects = checkEffects(
    calls,
    oracle.filter(({ key }) => !keys.has(key)),
  )
  for (const [id, events] of logs) wrong.push(...checkLog(events).map((text) => `${id}: ${text}`))
  const notices = countRepeated(oracle.filter(({ key }) => keys.has(key)))
  return { wrong: [...wrong, ...effects.wrong], ...counts, repeated: effects.repeated + notices }
}

/** All answers name one session, and once a sender was told of it, it is a duplicate. */
function checkAnswers({ id, accepted }: DeliveryRecord): readonly string[] {
  if (accepted.length === 0) return [`${id} has no 202`]
  const wrong = new Set(accepted.map(({ session }) => session)).size > 1 ? [`twice: ${id} has two sessions`] : []
  const fresh = accepted.slice(1).filter(({ duplicate }) => !duplicate)
  return fresh.length > 0 ? [...wrong, `${id} was new again after its 202`] : wrong
}

type Fate = 'lost' | 'twice' | 'unknown' | 'kept'
type Found = { readonly wrong: readonly string[]; readonly fate: Fate }
type Place = { readonly session: string; readonly logs: Logs; readonly own: readonly DeliveryEffect[] }

/** What became of one delivery: one session that completed, and one effect under one key. */
function checkDelivery({ kind }: DeliveryRecord, { session, logs, own }: Place): Found {
  const log = logs.get(session)
  if (log === undefined) return { wrong: ['lost: its session is not there'], fate: 'lost' }
  const end = log.findLast((event) => event.type === 'run.settled')
  if (end?.outcome.type !== 'completed') return { wrong: ['lost: its run did not complete'], fate: 'lost' }
  const keys = new Set(own.map(({ key }) => key))
  if (keys.size > 1) return { wrong: [`twice: effects under the keys ${[...keys].join(', ')}`], fate: 'twice' }
  const [key] = keys
  const starts = own.filter(({ phase }) => phase === 'start').length
  const ended = own.some(({ phase }) => phase === 'end')
  if (kind === 'tell') {
    if (key !== session || !ended) return { wrong: [`lost: its notice has the key ${key ?? 'none'}`], fate: 'lost' }
    return { wrong: [], fate: 'kept' }
  }
  const calls = [...logs].flatMap(([id, events]) => (id.startsWith(`${session}~`) ? callsOf(id, events) : []))
  if (calls.length !== 1)
    return { wrong: [`its agents made ${calls.length} calls`], fate: calls.length ? 'twice' : 'lost' }
  const [call] = calls
  if (key !== undefined && key !== call?.key) return { wrong: [`its effect has the key ${key}`], fate: 'lost' }
  if (kind === 'pay' && starts > 1) return { wrong: [`twice: a once effect ran ${starts} times`], fate: 'twice' }
  if (kind === 'pay' && call?.results[0]?.status === 'unknown') return { wrong: [], fate: 'unknown' }
  return ended ? { wrong: [], fate: 'kept' } : { wrong: ['lost: it has no effect'], fate: 'lost' }
}

function rootsIn(logs: Logs): readonly string[] {
  return [...logs].flatMap(([id, events]) => (isChild(events) ? [] : [id]))
}

function isChild([first]: readonly Event[]): boolean {
  return first?.type === 'session.created' && first.parent !== undefined && first.parent !== null
}

function checkLog(events: readonly Event[]): readonly string[] {
  try {
    return [...checkEnvelopes(events), ...checkRequests(events), ...checkRest(refoldSession(events).end)]
  } catch (error) {
    return [`it does not fold: ${String(error)}`]
  }
}

function countRepeated(notices: readonly DeliveryEffect[]): number {
  const starts = new Map<string, number>()
  for (const { key, phase } of notices) if (phase === 'start') starts.set(key, (starts.get(key) ?? 0) + 1)
  return [...starts.values()].filter((count) => count > 1).length
}
