// Continues a pursuit: asks the grader of a round, or begins the next round. A consumer of settled runs calls it, and it
// does what the logs say is due, so it may be called at any time and again. Each step is one commit that holds only if
// the session has not grown meanwhile: a stop is never overtaken.
import { assert, Fault } from '../kernel/failure.ts'
import type { InboxBody } from '../kernel/event.ts'
import type { Session } from '../kernel/session.ts'
import type { OwnerWrite, Write } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { readSettledRun } from '../runtime/hooks/settled-run.ts'
import { actAsOwner, newSessionWrite, type OwnerChanges } from '../runtime/loop/act-as-owner.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { sleep } from '../runtime/state/sleep.ts'
import { pursuedLabel, type Pursuit, readPursuit, roundMessageId } from '../sessions/look/read-pursuit.ts'
import { graderAgent, graderId, PURSUIT, readRoundName, roundName } from '../view/pursuits.ts'
import { gradingText, nextRoundText } from './round-texts.ts'

/** The harness. `wake`: look at a session. */
export type PursuitHost = { readonly services: Services; readonly wake: (session: string) => Promise<unknown> }

/** `metadata` is that of a run that settled. */
export async function continuePursuit(host: PursuitHost, metadata: Readonly<Record<string, unknown>>): Promise<void> {
  const { fingerprint } = readRoundName(metadata[PURSUIT]) ?? {}
  const { services, wake } = host
  const { store } = services
  const found = fingerprint === undefined ? null : await readPursuit(store, fingerprint)
  if (found === null || found.step === null) return
  const { session } = found.task
  const look = async (id: string): Promise<void> => {
    const { due = null } = (await store.card(id)) ?? {}
    if (due !== null) void wake(id).catch(() => {})
  }
  const step = async (owned: Session): Promise<OwnerChanges<string | null>> => {
    // What was read before may be over by now. What is read here is fenced by the commit.
    const now = await readPursuit(store, found.status.fingerprint)
    return now === null ? NOTHING : stepChanges(services, owned, now)
  }
  try {
    const { value } = await whenFree(services.clock, () => actAsOwner(services, session, step))
    if (value !== null) await look(value)
  } finally {
    // Workers could not look at the session meanwhile.
    await look(session)
  }
}

const NOTHING: OwnerChanges<string | null> = { value: null, events: [] }
const TRIES_MAX = 20
const TRY_MS = 250

/** A worker that only looks at the session gives it back within a moment. */
async function whenFree<T>(clock: Clock, act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'session_busy' || tries === TRIES_MAX) throw error
    }
    await sleep(clock, TRY_MS)
  }
}

/** The writes of the step that is due, and the session to look at then. */
async function stepChanges(
  services: Services,
  owned: Session,
  { task, status, step }: Pursuit,
): Promise<OwnerChanges<string | null>> {
  const { store, redactor } = services
  const { fingerprint } = status
  if (step === null) return NOTHING
  if (step.type === 'begin') {
    const text = nextRoundText(task, step.round, step.verdict)
    const by = `session:${graderId(fingerprint, step.round - 1)}`
    return { value: task.session, events: [], sends: [roundMessage(fingerprint, step.round, text, by)] }
  }
  const { round, run, seq } = step
  const settled = await readSettledRun(store, { session: task.session, run, seq, life: task.life })
  // Its session was removed.
  if (settled === null) return NOTHING
  const { text, output } = settled
  const answer = output === null || typeof output === 'string' ? text : JSON.stringify(output, null, 2)
  const grader = graderId(fingerprint, round)
  const question = roundMessage(fingerprint, round, gradingText(task, answer), `session:${task.session}`)
  const asked: Write = { session: grader, lane: 'inbox', events: [redactor.body(question)] }
  const exists = (await store.card(grader)) !== null
  const made = exists ? [] : [graderWrite(services, { fingerprint, round, session: task.session, owned })]
  return { value: grader, events: [], others: [...made, asked] }
}

/** A message that opens a run of its own, which is marked as this round. */
export function roundMessage(
  fingerprint: string,
  round: number,
  text: string,
  by: string | undefined,
): Extract<InboxBody, { type: 'user.message' }> {
  return {
    type: 'user.message',
    id: roundMessageId(fingerprint, round),
    parts: [{ type: 'text', text }],
    when: 'after',
    ...(by === undefined ? {} : { by }),
    metadata: { [PURSUIT]: roundName(fingerprint, round) },
  }
}

/** The write that creates the session of a round's grader, for the session that is graded. That of the first has the task. */
export function graderWrite(
  services: Services,
  {
    fingerprint,
    round,
    session,
    owned,
    task,
  }: {
    readonly fingerprint: string
    readonly round: number
    readonly session: string
    readonly owned: Session
    readonly task?: Pursuit['task']
  },
): OwnerWrite {
  const { agent, labels, folder, metadata } = owned
  const name = graderAgent(agent)
  const { environment } = services.agent(name)
  const created = newSessionWrite(services, graderId(fingerprint, round), {
    agent: name,
    ...(folder === undefined ? {} : { folder }),
    ...(environment === null ? {} : { environment }),
    labels: { ...labels, ...pursuedLabel(session) },
    metadata: {
      title: `Grades round ${round} of ${session}`,
      ...(metadata?.['owner'] === undefined ? {} : { owner: metadata['owner'] }),
      ...(task === undefined ? {} : { [PURSUIT]: task }),
    },
  })
  assert(!('history' in created), 'a grader begins without history')
  return created
}
