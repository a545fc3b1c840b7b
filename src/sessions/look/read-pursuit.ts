// Reads a pursuit from the logs of its session and of its graders, and finds out what must follow. Nothing is stored
// beside these logs: the same logs give the same state in any process.
import type { Labels, Outcome } from '../../kernel/content.ts'
import type { Event, EventOf } from '../../kernel/event.ts'
import type { Card, CompleteStore } from '../../ports/store.ts'
import { readSettledRun } from '../../runtime/hooks/settled-run.ts'
import { readSessionHead } from '../../runtime/state/session-tree.ts'
import { lifeOf } from '../../stores/plan/plan-writes.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import { graderId, PURSUED, PURSUIT, readGraderId, roundName } from '../../view/pursuits.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { usdOf } from '../../view/usd.ts'
import type { PursuitEnd, PursuitState, PursuitStatus, PursuitTrend, RoundGrade } from '../pursuit.ts'
import { gradeOfVerdict, readVerdict, type RoundVerdict } from '../round-verdict.ts'

/** What was asked for, as the first grader's session has it. Money is in millionths of a dollar. */
export type PursuitTask = {
  readonly session: string
  /** Counts the earlier sessions with this id. */
  readonly life: number
  readonly description: string
  readonly rubric: string
  readonly roundsMax: number
  readonly limit: number | null
  /** What the session had spent before. */
  readonly spentBefore: number
}

/** What must follow now: the round that settled is graded, or the next one begins. Null: nothing. */
export type PursuitStep =
  | { readonly type: 'grade'; readonly round: number; readonly run: number; readonly seq: number }
  | { readonly type: 'begin'; readonly round: number; readonly verdict: RoundVerdict }

export type Pursuit = {
  readonly task: PursuitTask
  readonly status: Exclude<PursuitStatus, { state: 'missing_outcome' }>
  readonly step: PursuitStep | null
}

const PAGE = 1_000
const GRADES_KEPT = 12

/** The id of the message that begins a round, and of the question to its grader. No caller can choose it. */
export function roundMessageId(fingerprint: string, round: number): string {
  return harnessId('outcome', roundName(fingerprint, round))
}

/** The label by which the graders of a session are found. */
export function pursuedLabel(session: string): Labels {
  return { [PURSUED]: session }
}

/** The last pursuit of this session. */
export async function readPursuitStatus(store: CompleteStore, session: string): Promise<PursuitStatus> {
  const found = await findPursuit(store, session)
  return found?.status ?? { state: 'missing_outcome' }
}

/** The last pursuit of this session. Null if there was none. */
export async function findPursuit(store: CompleteStore, session: string): Promise<Pursuit | null> {
  let behind: Awaited<ReturnType<CompleteStore['page']>>['next'] = null
  do {
    const page = await store.page({
      where: pursuedLabel(session),
      order: 'made',
      limit: GRADES_KEPT,
      ...(behind ? { behind } : {}),
    })
    for (const card of page.cards) {
      // A fork of a grader's session has its labels too.
      const name = readGraderId(card.session)
      const found = name && (await readPursuit(store, name.fingerprint))
      if (found) return found
    }
    behind = page.next
  } while (behind !== null)
  return null
}

/** Null if its session or the record of it is gone. */
export async function readPursuit(store: CompleteStore, fingerprint: string): Promise<Pursuit | null> {
  const task = await readTask(store, fingerprint)
  const card = task && (await store.card(task.session))
  if (!card) return null
  const { epoch, seq: upTo } = await readSessionHead(store, task.session)
  const { round, asked } = await findLastRound(store, fingerprint, task)
  if (round === 0 || lifeOf(epoch) > task.life) return null
  const rounds = Array.from({ length: Math.min(round, GRADES_KEPT) }, (_, i) => round - i).reverse()
  const graded = await Promise.all(rounds.map((each) => readGrading(store, fingerprint, each)))
  const run = await readRoundRun(store, task.session, { asked, upTo })
  const spent = await readSpent(store, fingerprint, { task, round, card })
  const now = { task, round, run, grading: graded.at(-1) ?? null, spent, closed: card.status === 'terminated' }
  const { end, why, step } = decidePursuit(now)
  const history = graded.flatMap((each) => each?.grade ?? [])
  const grader = await store.card(graderId(fingerprint, round))
  const { description, rubric, roundsMax, limit } = task
  const usd = { usd: limit === null ? null : usdOf(limit), spentUsd: usdOf(spent) }
  const about = { fingerprint, description, rubric, round, roundsMax, ...usd, trend: trendOf(history), history }
  const waits = end === null && step === null ? whyBlocked(run.settled === null ? card : grader) : null
  const state = stateOf(end, waits, history)
  return { task, status: { state, end, why: why ?? waits, ...about }, step }
}

/** The task stands in the session of the first grader. */
async function readTask(store: CompleteStore, fingerprint: string): Promise<PursuitTask | null> {
  const [created] = (await store.read(graderId(fingerprint, 1), 0, 1)).events
  const task = created?.type === 'session.created' ? created.metadata?.[PURSUIT] : undefined
  // Only the harness creates sessions with such ids.
  return isObject(task) ? (task as unknown as PursuitTask) : null
}

async function findLastRound(store: CompleteStore, fingerprint: string, { session, roundsMax }: PursuitTask) {
  let last = { round: 0, asked: 0 }
  for (let round = 1; round <= roundsMax; round++) {
    const asked = await store.sent(session, roundMessageId(fingerprint, round))
    if (asked === null) break
    last = { round, asked }
  }
  return last
}

/** The run that the message of a round opened. `stoppedAt`: when the session was first told to stop after that message. */
type RoundRun = {
  readonly settled: EventOf<'run.settled'> | null
  /** The seq of its `run.started`, or of its end if it could not begin. */
  readonly run: number
  readonly stoppedAt: number | null
}

async function readRoundRun(
  store: CompleteStore,
  session: string,
  { asked, upTo }: { readonly asked: number; readonly upTo: number },
): Promise<RoundRun> {
  let found: RoundRun = { settled: null, run: 0, stoppedAt: null }
  for (let after = asked; after < upTo; ) {
    const { events } = await store.read(session, after, Math.min(PAGE, upTo - after))
    for (const event of events) found = roundRunAfter(found, event, asked)
    after = events.at(-1)?.seq ?? upTo
  }
  return found
}

function roundRunAfter(found: RoundRun, event: Event, asked: number): RoundRun {
  const { settled, run, stoppedAt } = found
  switch (event.type) {
    case 'run.started':
      return event.inputs.includes(asked) ? { ...found, run: event.seq } : found
    case 'run.settled': {
      if (settled !== null) return found
      const unbegun = run === 0 && event.inputs?.includes(asked) === true
      return run > 0 || unbegun ? { ...found, run: run || event.seq, settled: event } : found
    }
    case 'user.interrupt': {
      const stops = event.mode === 'stop' && (event.run === undefined || event.run === run)
      return stops && stoppedAt === null ? { ...found, stoppedAt: event.at } : found
    }
    default:
      return found
  }
}

/** The grading of a round, which ended at `at`; null while it works. `grade` is null if it ended without a verdict. */
type Grading = { readonly at: number | null; readonly grade: RoundGrade | null; readonly verdict: RoundVerdict | null }

/** Null while no grader was asked. Of several runs in the grader's session the first that was asked to grade counts. */
async function readGrading(store: CompleteStore, fingerprint: string, round: number): Promise<Grading | null> {
  const session = graderId(fingerprint, round)
  const asked = await store.sent(session, roundMessageId(fingerprint, round))
  if (asked === null) return null
  const { seq: upTo } = await readSessionHead(store, session)
  const { settled, run } = await readRoundRun(store, session, { asked, upTo })
  if (settled === null) return { at: null, verdict: null, grade: null }
  const { at, seq, epoch } = settled
  const ended = await readSettledRun(store, { session, run, seq, life: lifeOf(epoch) })
  const verdict = readVerdict(ended?.output)
  return { at, verdict, grade: verdict && { round, ...gradeOfVerdict(verdict), at, session } }
}

/** The money of the session since the pursuit began, and of its graders, with everything below them. */
async function readSpent(
  store: CompleteStore,
  fingerprint: string,
  { task, round, card }: { readonly task: PursuitTask; readonly round: number; readonly card: Card },
): Promise<number> {
  const ids = Array.from({ length: round }, (_, i) => graderId(fingerprint, i + 1))
  const graders = (await Promise.all(ids.map((id) => store.card(id)))).filter((each) => each !== null)
  const costs = await withTreeCost(store, [card, ...graders])
  return costs.reduce((sum, { treeCost }) => sum + treeCost, -task.spentBefore)
}

type PursuitFacts = {
  readonly task: PursuitTask
  readonly round: number
  readonly run: RoundRun
  readonly grading: Grading | null
  readonly spent: number
  readonly closed: boolean
}
type PursuitDecision = {
  readonly end: PursuitEnd | null
  readonly why: string | null
  readonly step: PursuitStep | null
}

const MONEY = 'Its money was spent.'

/** Pure. A stop after the end changes nothing: the end stays what it was. */
export function decidePursuit({ task, round, run, grading, spent, closed }: PursuitFacts): PursuitDecision {
  const ended = (end: PursuitEnd, why: string | null = null): PursuitDecision => ({ end, why, step: null })
  const goesOn = (step: PursuitStep | null): PursuitDecision => ({ end: null, why: null, step })
  const { settled, stoppedAt } = run
  if (settled === null) return closed ? ended('interrupted') : goesOn(null)
  const { outcome, seq } = settled
  if (outcome.type === 'interrupted') return ended('interrupted')
  if (outcome.type !== 'completed') return ended('failed', `Round ${round} did not complete: ${reasonOf(outcome)}`)
  const isSpent = task.limit !== null && spent >= task.limit
  const { grade = null, verdict = null, at = null } = grading ?? {}
  if (at === null) {
    if (stoppedAt !== null || closed) return ended('interrupted')
    if (grading !== null) return goesOn(null)
    return isSpent ? ended('ungraded', MONEY) : goesOn({ type: 'grade', round, run: run.run, seq })
  }
  if (stoppedAt !== null && stoppedAt <= at) return ended('interrupted')
  if (grade === null || verdict === null) return ended('ungraded', `The grader of round ${round} gave no verdict.`)
  if (grade.state === 'pass') return ended('satisfied')
  if (round >= task.roundsMax) return ended('max_rounds')
  if (stoppedAt !== null || closed) return ended('interrupted')
  return isSpent ? ended('failed', MONEY) : goesOn({ type: 'begin', round: round + 1, verdict })
}

function reasonOf(outcome: Outcome): string {
  switch (outcome.type) {
    case 'failed':
      return outcome.failure.message
    case 'halted':
      return outcome.reason
    case 'limit':
      return `the limit "${outcome.limit}" was reached.`
    default:
      return `${outcome.type}.`
  }
}

/** Why a session cannot go on by itself; null if it can. */
function whyBlocked(card: Card | null): string | null {
  if (card?.trouble !== undefined) return `Session ${card.session} failed too often: ${card.trouble.reason}`
  return card?.status === 'requires_action' ? `Session ${card.session} waits for a person.` : null
}

function stateOf(end: PursuitEnd | null, waits: string | null, history: readonly RoundGrade[]) {
  const last = history.at(-1)?.state ?? 'fail'
  const states: Readonly<Record<PursuitEnd, Exclude<PursuitState, 'missing_outcome'>>> = {
    satisfied: 'pass',
    max_rounds: last,
    failed: 'fail',
    interrupted: 'not_ready',
    ungraded: 'uncertain',
  }
  if (end !== null) return states[end]
  return waits === null ? 'not_ready' : 'blocked'
}

const RANK: Readonly<Record<RoundGrade['state'], number>> = { fail: 0, uncertain: 1, pass: 2 }

/** A better state counts first, and then the share of the criteria that are met. */
function trendOf(history: readonly RoundGrade[]): PursuitTrend {
  const [before, last] = history.slice(-2)
  if (before === undefined || last === undefined) return 'first_iteration'
  const change = RANK[last.state] - RANK[before.state] || last.met / last.of - before.met / before.of
  return change === 0 ? 'stable' : change > 0 ? 'improving' : 'regressing'
}
