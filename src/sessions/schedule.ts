// A host schedules a look at a session, and drops one. Both are inbox events, so they are admitted at any time, also
// while a worker drives the session. What becomes of them is the kernel's: the first wake under a key stands.
import { Fault } from '../kernel/failure.ts'
import type { InboxBody } from '../kernel/event.ts'
import { type Session, WAKES_MAX } from '../kernel/session.ts'
import { describeValue } from '../options.ts'
import { stateAt } from '../runtime/state/session-at.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { checkCallersId } from '../stores/plan/store-ids.ts'
import { closedSessionFault } from '../stores/plan/plan-writes.ts'
import type { SessionAccess } from './await-run.ts'
import { admitToInbox } from './drive/enter.ts'
import { checkHarnessOpen } from './drive/place.ts'
import { refuseLane } from './lane-guard.ts'
import { checkNotFar, readMoment } from './moment.ts'
import {
  checkSchedule,
  checkUnschedule,
  type ScheduledWake,
  type ScheduleOptions,
  type UnscheduleOptions,
} from './verb-options.ts'

const REASON_CHARS_MAX = 2_000
const KEY_CHARS_MAX = 512
const REASON = 'a look at this session'

/** Resolves when the wake is on disk. */
export async function scheduleWake(place: SessionAccess, options: ScheduleOptions): Promise<ScheduledWake> {
  const { id: session, services } = place
  checkHarnessOpen(place)
  checkSchedule(options)
  const asked = buildSchedule(options, services)
  const { key, due, reason } = asked
  const head = await readOpenHead(place)
  const before = options.id === undefined ? null : await findSchedule(place, asked)
  if (before) return { ...before, key, duplicate: true }
  const known = head.wakes.find((wake) => wake.key === key)
  if (known) return { key, due: known.due, seq: known.seq, duplicate: true }
  if (head.wakes.length >= WAKES_MAX) throw tooManyWakes(session)
  const { seq, duplicate, elsewhere } = await admitToInbox(place, { event: { ...asked, due, reason }, blobs: [] })
  const told = elsewhere === undefined ? {} : { elsewhere }
  if (duplicate) return { key, due, seq, duplicate, ...told }
  // Another caller may have come between: the log decides.
  const stands = (await stateAt(services.store, session, seq)).wakes.find((wake) => wake.key === key)
  if (stands === undefined) throw tooManyWakes(session)
  return { key, due: stands.due, seq: stands.seq, duplicate: stands.seq !== seq, ...told }
}

/** True if a wake with this key waited. Without one nothing is written. */
export async function dropWake(place: SessionAccess, name: string, options: UnscheduleOptions): Promise<boolean> {
  checkHarnessOpen(place)
  checkUnschedule(options)
  const { by } = options
  const { random, redactor } = place.services
  const asked = { type: 'user.unschedule', id: random.id(), key: redactor.text(readKey(name)) } as const
  const event = by === undefined ? asked : { ...asked, by }
  const { wakes } = await readOpenHead(place)
  if (!wakes.some(({ key }) => key === event.key)) return false
  await admitToInbox(place, { event, blobs: [] })
  return true
}

type Schedule = Extract<InboxBody, { type: 'user.schedule' }>

function buildSchedule(options: ScheduleOptions, { random, store, redactor }: SessionAccess['services']): Schedule {
  const { id = random.id(), reason = REASON, key = id, by } = options
  checkCallersId(id)
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > REASON_CHARS_MAX)
    throw new Fault('invalid_input', `A reason is a text of 1 to ${REASON_CHARS_MAX} characters. The model reads it.`)
  const now = store.now()
  const due = readDue(options, now)
  checkNotFar(due, now)
  const asked = {
    type: 'user.schedule',
    id,
    due,
    reason,
    key: redactor.text(readKey(key)),
    ...(by === undefined ? {} : { by }),
  } as const
  return redactor.body(asked)
}

function readDue({ at, inMs }: ScheduleOptions, now: number): number {
  if ((at === undefined) === (inMs === undefined))
    throw new Fault('invalid_input', 'Say when: give either "at", a time, or "inMs", how long from now.')
  if (at !== undefined) return readMoment(at, 'at')
  if (typeof inMs === 'number' && Number.isFinite(inMs) && inMs >= 0) return Math.round(now + inMs)
  throw new Fault('invalid_input', `"inMs" is how many milliseconds from now, 0 or more, not ${describeValue(inMs)}.`)
}

function readKey(key: unknown): string {
  if (typeof key === 'string' && key.trim() !== '' && key.length <= KEY_CHARS_MAX && !/[\0\uD800-\uDFFF]/u.test(key))
    return key
  throw new Fault('invalid_input', `A key is a text of 1 to ${KEY_CHARS_MAX} characters. Choose another.`)
}

async function readOpenHead({ id, services }: SessionAccess): Promise<Session> {
  await refuseLane(services, id)
  const head = await readSessionHead(services.store, id)
  if (head.closed) throw closedSessionFault(id)
  return head
}

/** What was asked for under this id before. With `inMs` a repetition has another time, and is still the same request. */
async function findSchedule(
  { id: session, services: { store } }: SessionAccess,
  { id, key, reason }: Schedule,
): Promise<{ readonly due: number; readonly seq: number } | null> {
  const seq = await store.sent(session, id)
  const [event] = seq === null ? [] : (await store.read(session, seq - 1, 1)).events
  if (event === undefined) return null
  if (event.type === 'user.schedule' && event.key === key && event.reason === reason)
    return { due: event.due, seq: event.seq }
  throw new Fault('id_reused', `The id ${id} was used for another event.`, `session ${session}, seq ${event.seq}`)
}

function tooManyWakes(session: string): Fault {
  const text = `Session ${session} has ${WAKES_MAX} wakes that wait, which is the most. Drop one, or wait until one has begun.`
  return new Fault('too_many', text)
}
