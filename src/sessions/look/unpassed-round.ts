// Whether an event came about in a round of a pursuit that has not passed: what was learned there is not kept yet.
import type { Store } from '../../ports/store.ts'
import { graderId, PURSUIT, readRoundName } from '../../view/pursuits.ts'
import { ROUNDS_MAX } from '../pursuit.ts'
import { gradeOfVerdict, readVerdict } from '../round-verdict.ts'

type Logs = Pick<Store, 'read' | 'card'>

const PAGE = 200

/** The number of that round. Null: the event is of no round, or a round of its pursuit has passed. */
export async function findUnpassedRound(store: Logs, session: string, seq: number): Promise<number | null> {
  const name = readRoundName(await findRunName(store, session, seq))
  return name === null || (await hasPassed(store, name.fingerprint)) ? null : name.round
}

/** What the last run that began before this event is marked with. */
async function findRunName(store: Logs, session: string, seq: number): Promise<unknown> {
  for (let upTo = seq; upTo > 0; upTo -= PAGE) {
    const after = Math.max(0, upTo - PAGE)
    const { events } = await store.read(session, after, upTo - after)
    const started = events.findLast((event) => event.type === 'run.started')
    if (started?.type === 'run.started') return started.metadata?.[PURSUIT]
  }
  return undefined
}

/** Only the last round of a pursuit can have passed. */
async function hasPassed(store: Logs, fingerprint: string): Promise<boolean> {
  for (let round = ROUNDS_MAX; round > 0; round--) {
    const grader = graderId(fingerprint, round)
    if ((await store.card(grader)) !== null) return isGradedPass(store, grader)
  }
  return false
}

/** The first verdict counts. */
async function isGradedPass(store: Logs, grader: string): Promise<boolean> {
  for (let after = 0; ; ) {
    const { events } = await store.read(grader, after, PAGE)
    for (const event of events) {
      const said = event.type === 'agent.message' && event.verdict.type === 'final' ? event.verdict.output : null
      const verdict = readVerdict(said)
      if (verdict !== null) return gradeOfVerdict(verdict).state === 'pass'
    }
    const last = events.at(-1)
    if (last === undefined || events.length < PAGE) return false
    after = last.seq
  }
}
