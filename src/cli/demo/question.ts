// The question of the demo: what would be written, asked in this terminal while the log is read for a decision from anywhere else.
import type { Pending } from '../../index.ts'
import { bound, wordOf } from '../present/approval.ts'
import { shownPending } from '../present/ending.ts'
import { oneLine } from '../../view/clean.ts'
import { ask, near, seatOf } from '../present/print.ts'
import { clippedToWidth } from '../present/text.ts'
import type { Place } from '../state/place.ts'
import { aside } from '../state/without-driving.ts'
import type { LogReader } from './log-reader.ts'
import type { Telling } from './telling.ts'

const LINE_CHARS_MAX = 400
/** A decision from elsewhere may come with a process that goes on at once: it has so long to come to the end. */
const ELSEWHERE_MS = 1_500

export type Question = {
  readonly place: Place
  readonly log: LogReader
  readonly telling: Telling
  readonly pending: Pending
  readonly by: string
}

/** What would be written, and how it begins. */
export function showQuestion({ telling, pending }: Pick<Question, 'telling' | 'pending'>): void {
  const { path, bytes, text } = pending.args as Readonly<Record<'path' | 'bytes' | 'text', unknown>>
  telling.say(`finalize would write ${String(bytes)} bytes to ${near(String(path))}, a new file:`, 'bold')
  const { columns } = seatOf(process.stderr).room
  telling.say(`  │ ${clippedToWidth(oneLine(String(text).split('\n')[0] ?? '', LINE_CHARS_MAX), columns - 4)}`)
}

/** Whether it was decided, here or elsewhere. */
export async function decided(question: Question, leaving: AbortSignal): Promise<boolean> {
  const { log, telling } = question
  const elsewhere = new AbortController()
  const closed = new AbortController()
  const watched = log
    .until(() => decisionIn(log), AbortSignal.any([leaving, closed.signal]))
    .then((found) => found && elsewhere.abort())
  const isHere = await askHere(question, AbortSignal.any([leaving, elsewhere.signal]))
  closed.abort()
  await watched
  if (decisionIn(log) === null) return false
  telling.news()
  if (isHere) return true
  // Not AbortSignal.timeout: what only AbortSignal.any refers to may be collected before its time, and never aborts then.
  const soon = new AbortController()
  const timer = setTimeout(() => soon.abort(), ELSEWHERE_MS)
  await log.until(() => log.isSettled || null, AbortSignal.any([leaving, soon.signal]))
  clearTimeout(timer)
  return true
}

function decisionIn({ events }: LogReader): object | null {
  return events.find(({ type }) => type === 'user.tool_confirmation') ?? null
}

/** Whether it was decided by an answer in this terminal. */
async function askHere({ place, telling, pending, by }: Question, over: AbortSignal): Promise<boolean> {
  const word = await answer({ place, telling, pending }, over)
  // The line of a question that was taken back is not ended.
  if (over.aborted) process.stderr.write('\n')
  if (word.type !== 'yes' && word.type !== 'no') return false
  const { sessionId } = pending
  const said = {
    ...bound(pending),
    by,
    allow: word.type === 'yes',
    ...('why' in word && word.why ? { why: word.why } : {}),
  }
  try {
    await aside(place, (harness) => harness.session(sessionId).decide(said))
    return true
  } catch (error) {
    // Somebody else was quicker: the log says who.
    if ((error as { readonly code?: unknown }).code === 'decision_stale') return false
    throw error
  }
}

type Asked = Pick<Question, 'place' | 'telling' | 'pending'>

/** An unclear answer is asked again. */
async function answer({ place, telling, pending }: Asked, over: AbortSignal): Promise<ReturnType<typeof wordOf>> {
  for (;;) {
    const word = wordOf(await ask('Allow it? y yes · n no · l later · d all of it › ', over))
    if (word.type === 'yes' || word.type === 'no' || word.type === 'later') return word
    if (word.type !== 'whole') telling.say('Say one of: y, n, l, d. After n you may say why.')
    else {
      const showing = { folder: place.folder, ...seatOf(process.stderr, true) }
      for (const line of (await shownPending(pending, showing)).lines) telling.say(line)
    }
  }
}
