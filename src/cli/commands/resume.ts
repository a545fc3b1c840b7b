// `terret resume`: goes on with a session: drives open work, ends a pause, releases an imported session, and continues an unfinished
// run.
import type { Harness } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { type Call, person } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clientOf } from '../state/far.ts'
import { allEvents, foldAll } from '../state/log.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { shortId, typed } from '../present/print.ts'
import { type Ear, setupOf, withHarness, work } from '../state/work.ts'
import { isPlanned } from '../state/workflows.ts'

export function resume(call: Call): Promise<number> {
  const [name = '', ...words] = call.words
  return inPlace(async (place) => {
    const card = await sessionOf(place, name)
    const message = words.join(' ').trim()
    return resumeSession(place, card, call, message)
  })
}

export async function resumeSession(place: Place, card: Card, call: Call, message = ''): Promise<number> {
  const { session: id, status, agent } = card
  if (status === 'terminated')
    throw new Refusal(EXIT.conflict, `Session ${shortId(id)} is closed. \`${typed`fork ${id}`}\` goes on from it.`)
  const said = message !== '' ? message : wasCutShort(card) ? goOnOf(card) : ''
  if (said === '' && isUnused(card)) {
    const go = typed`run --continue --session ${id} TASK`
    throw new Refusal(EXIT.conflict, `Session ${shortId(id)} has had no run yet. Give it something to do: ${go}`)
  }
  const client = clientOf(place.store)
  if (client) {
    const { farSay } = await import('../remote/driven.ts')
    return farSay(client.session(id), place, call, { task: said, after: card.seq })
  }
  const setup = await setupOf(place, await workplaceOf(place, id), call, agent)
  const drive = async (harness: Harness, ear: Ear): Promise<number> => {
    const session = harness.session(id, { stored: true })
    const { paused, held, run } = foldAll(await allEvents(place.store, id))
    if (paused || held || (said === '' && isAway(card))) await session.steer([{ type: 'resume' }], { by: person(call) })
    const open = run?.turn?.open ?? []
    return work(call, { store: place.store, harness, setup, session, ear, agent, open, after: card.seq }, (deltas) =>
      session.stream(said === '' ? undefined : said, { ...(said === '' ? { after: card.seq } : {}), deltas }),
    )
  }
  return withHarness(place, setup, call, drive, agent)
}

/** The session waits for a provider that is away, or for children that may wait for one. Who resumes it wants the next try now. */
function isAway({ outage, status, waits }: Card): boolean {
  return outage !== undefined || (status === 'running' && waits.length > 0)
}

/** A workflow takes JSON, not text. */
function goOnOf({ agent }: Card): string {
  return isPlanned(agent) ? '{"retry":true}' : 'Go on.'
}

/** It is idle but not completed. A forked workflow is idle before its first run. */
function wasCutShort({ status, outcome, due, agent }: Card): boolean {
  const begun = outcome !== null || isPlanned(agent)
  return status === 'idle' && due === null && begun && outcome !== 'completed'
}

/** It waits for nothing, and never had a run. One in trouble has a message that no worker tries any more. */
function isUnused({ status, outcome, due, agent, trouble, held }: Card): boolean {
  return status === 'idle' && due === null && outcome === null && !isPlanned(agent) && !trouble && !held
}
