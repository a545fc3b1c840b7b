// The verb `pursue`: the checks, and one commit with the first grader's session, which keeps the task, and the message of
// the first round.
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { OwnerChanges } from '../runtime/loop/act-as-owner.ts'
import { checkOwnSession } from '../runtime/state/program.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import type { SessionAccess } from '../sessions/await-run.ts'
import { checkHarnessOpen, runOwnerAction } from '../sessions/drive/place.ts'
import { findPursuit, type PursuitTask, readPursuit, roundMessageId } from '../sessions/look/read-pursuit.ts'
import { checkPursue, type PursueOptions, ROUNDS } from '../sessions/pursuit.ts'
import type { PursuitReceipt } from '../sessions/verbs.ts'
import { lifeOf, sessionMissingFault } from '../stores/plan/plan-writes.ts'
import { checkCallersId } from '../stores/plan/store-ids.ts'
import { withTreeCost } from '../stores/plan/tree-cost.ts'
import { readGraderId } from '../view/pursuits.ts'
import { eventId } from '../view/shown-text.ts'
import { firstRoundText } from './round-texts.ts'
import { graderWrite, roundMessage } from './take-step.ts'

/** The first round is on disk when this resolves. */
export async function pursueOutcome(place: SessionAccess, options: PursueOptions): Promise<PursuitReceipt> {
  checkHarnessOpen(place)
  checkPursue(options)
  const { id: session, services } = place
  const { store } = services
  const { id = services.random.id() } = options
  checkCallersId(id)
  await checkPursuable(place)
  const { epoch } = await readSessionHead(store, session)
  // A retry whose first send succeeded is a duplicate, also while the first round works.
  const known = options.id === undefined ? null : await findSent(place, options, fingerprintOf(session, epoch, id))
  if (known !== null) return known
  const { value: fingerprint, sent } = await runOwnerAction(place, (owned, _reader, now) =>
    beginChanges(place, owned, { options, fingerprint: fingerprintOf(session, now, id), epoch: now }),
  )
  if (sent === null) return (await findSent(place, options, fingerprint)) as PursuitReceipt
  const {
    seqs: [seq = 0],
    duplicate,
  } = sent
  return { eventId: eventId(session, seq), seq, duplicate, queued: false, fingerprint }
}

/** Pursuits of sessions that had this id before have other fingerprints. */
function fingerprintOf(session: string, epoch: number, id: string): string {
  return hash('sha256', JSON.stringify([session, lifeOf(epoch), id])).slice(0, 24)
}

async function checkPursuable({ id, services }: SessionAccess): Promise<void> {
  const card = await services.store.card(id)
  if (card === null) throw sessionMissingFault(id)
  checkOwnSession(services, id, card)
  if (card.status === 'terminated') throw new Fault('session_closed', `Session ${id} is closed. Pursue in another one.`)
  if (card.parent !== undefined)
    throw new Fault('invalid_input', `Session ${id} is a child. Pursue an outcome in its root, ${card.root}.`)
  if (readGraderId(id) !== null)
    throw new Fault('invalid_input', `Session ${id} grades rounds. Pursue an outcome in another session.`)
}

/** The receipt of the same pursuit, asked for before under this id. Null if there is none. */
async function findSent(
  { id: session, services: { store, redactor } }: SessionAccess,
  options: PursueOptions,
  fingerprint: string,
): Promise<PursuitReceipt | null> {
  const seq = await store.sent(session, roundMessageId(fingerprint, 1))
  const known = seq === null ? null : await readPursuit(store, fingerprint)
  if (seq === null || known === null) return null
  const { session: _session, life: _life, spentBefore: _spent, ...before } = known.task
  if (!isDeepStrictEqual(before, redactor.values(wantedOf(options))))
    throw new Fault('id_reused', `The id ${options.id} was used for another pursuit of session ${session}.`)
  return { eventId: eventId(session, seq), seq, duplicate: true, queued: false, fingerprint }
}

function wantedOf({ description, rubric, roundsMax = ROUNDS, usd }: PursueOptions) {
  return { description, rubric, roundsMax, limit: usd === undefined ? null : Math.ceil(usd * 1_000_000) }
}

type Begun = { readonly options: PursueOptions; readonly fingerprint: string; readonly epoch: number }

async function beginChanges(
  { id: session, services }: SessionAccess,
  owned: Session,
  { options, fingerprint, epoch }: Begun,
): Promise<OwnerChanges<string>> {
  const { store } = services
  if ((await store.sent(session, roundMessageId(fingerprint, 1))) !== null) return { value: fingerprint, events: [] }
  const open = await findPursuit(store, session)
  if (open?.status.end === null) {
    const { round, roundsMax } = open.status
    const text = `Session ${session} pursues an outcome already, in round ${round} of ${roundsMax}. Wait for its end, or stop it first.`
    throw new Fault('session_busy', text)
  }
  if (owned.run !== null || owned.inputs.length > 0)
    throw new Fault('session_busy', `Session ${session} has an open run. Pursue an outcome when it rests.`)
  const card = await store.card(session)
  const [cost] = card === null ? [] : await withTreeCost(store, [card])
  const task: PursuitTask = {
    session,
    life: lifeOf(epoch),
    ...wantedOf(options),
    spentBefore: cost?.treeCost ?? 0,
  }
  const { by } = options
  return {
    value: fingerprint,
    events: [],
    sends: [roundMessage(fingerprint, 1, firstRoundText(task), by)],
    others: [graderWrite(services, { fingerprint, round: 1, session, owned, task })],
  }
}
