// The question of the demo: it shows the planned write and asks in this terminal, while it reads the log for a decision
// from elsewhere.
import type { Pending } from '../../index.ts'
import { decisionTarget, parseReply } from '../present/ask-approval.ts'
import { drawPending } from '../present/result-output.ts'
import { oneLine } from '../../view/clean.ts'
import { askPerson, pathToType, outputStyle } from '../present/print.ts'
import { clipToWidth } from '../present/terminal-text.ts'
import type { CommandContext } from '../state/command-context.ts'
import { withoutDriving } from '../state/without-driving.ts'
import type { LogReader } from './log-reader.ts'
import type { DemoOutput } from './demo-output.ts'

const LINE_CHARS_MAX = 400
/** A decision from elsewhere may come with a process that goes on at once. The demo waits this long for its end. */
const ELSEWHERE_MS = 1_500

export type DemoQuestion = {
  readonly place: CommandContext
  readonly log: LogReader
  readonly telling: DemoOutput
  readonly pending: Pending
  readonly by: string
}

/** Shows the size, the path and the first line of the planned write. */
export function showQuestion({ telling, pending }: Pick<DemoQuestion, 'telling' | 'pending'>): void {
  const { path, bytes, text } = pending.args as Readonly<Record<'path' | 'bytes' | 'text', unknown>>
  telling.say(`finalize would write ${String(bytes)} bytes to ${pathToType(String(path))}, a new file:`, 'bold')
  const { columns } = outputStyle(process.stderr).room
  telling.say(`  │ ${clipToWidth(oneLine(String(text).split('\n')[0] ?? '', LINE_CHARS_MAX), columns - 4)}`)
}

/** True if the call was decided, here or elsewhere. */
export async function awaitDecision(question: DemoQuestion, leaving: AbortSignal): Promise<boolean> {
  const { log, telling } = question
  const elsewhere = new AbortController()
  const closed = new AbortController()
  const watched = log
    .until(() => findDecision(log), AbortSignal.any([leaving, closed.signal]))
    .then((found) => found && elsewhere.abort())
  const isHere = await askAtTerminal(question, AbortSignal.any([leaving, elsewhere.signal]))
  closed.abort()
  await watched
  if (findDecision(log) === null) return false
  telling.news()
  if (isHere) return true
  // Not AbortSignal.timeout: a signal that only AbortSignal.any refers to may be collected early, and then never
  // aborts.
  const soon = new AbortController()
  const timer = setTimeout(() => soon.abort(), ELSEWHERE_MS)
  await log.until(() => log.isSettled || null, AbortSignal.any([leaving, soon.signal]))
  clearTimeout(timer)
  return true
}

function findDecision({ events }: LogReader): object | null {
  return events.find(({ type }) => type === 'user.tool_confirmation') ?? null
}

/** True if the call was decided by an answer in this terminal. */
async function askAtTerminal({ place, telling, pending, by }: DemoQuestion, over: AbortSignal): Promise<boolean> {
  const word = await readReply({ place, telling, pending }, over)
  // A withdrawn question leaves its line unfinished.
  if (over.aborted) process.stderr.write('\n')
  if (word.type !== 'yes' && word.type !== 'no') return false
  const { sessionId } = pending
  const said = {
    ...decisionTarget(pending),
    by,
    allow: word.type === 'yes',
    ...('why' in word && word.why ? { why: word.why } : {}),
  }
  try {
    await withoutDriving(place, (harness) => harness.session(sessionId).decide(said))
    return true
  } catch (error) {
    // Another decision came first. The log says whose.
    if ((error as { readonly code?: unknown }).code === 'decision_stale') return false
    throw error
  }
}

type AskParts = Pick<DemoQuestion, 'place' | 'telling' | 'pending'>

/** An unclear answer is asked again. */
async function readReply(
  { place, telling, pending }: AskParts,
  over: AbortSignal,
): Promise<ReturnType<typeof parseReply>> {
  for (;;) {
    const word = parseReply(await askPerson('Allow it? y yes · n no · l later · d all of it › ', over))
    if (word.type === 'yes' || word.type === 'no' || word.type === 'later') return word
    if (word.type !== 'whole') telling.say('Say one of: y, n, l, d. After n you may say why.')
    else {
      const showing = { folder: place.folder, ...outputStyle(process.stderr, true) }
      for (const line of (await drawPending(pending, showing)).lines) telling.say(line)
    }
  }
}
