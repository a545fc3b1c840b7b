// `terret approve` and `terret reject`: one decision about one pending call, bound to the exact action that was shown. It is on
// disk when the command ends; the session goes on with `resume`.
import type { Pending } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { aside } from '../aside.ts'
import { oneLine } from '../clean.ts'
import { pendingLines } from '../ending.ts'
import { EXIT, Refusal } from '../exit.ts'
import { pendingIn } from '../log.ts'
import { inPlace, type Place, sessionOf, shortId } from '../place.ts'
import { ask } from '../prompt.ts'
import { isAttended, print, printJson, typed, warn } from '../print.ts'
import { person } from '../work.ts'
import { resumeSession } from './resume.ts'

export const approve = (call: Call): Promise<number> => inPlace((place) => decide(place, call, true))
export const reject = (call: Call): Promise<number> => inPlace((place) => decide(place, call, false))

const BUDGET = 'budget'

async function decide(place: Place, call: Call, allow: boolean): Promise<number> {
  const [name = '', wanted] = call.words
  const card = await sessionOf(place, name)
  const by = person(call)
  const why = call.text('why')
  const role = call.text('role')
  const word = { allow, by, ...(why === undefined ? {} : { why }), ...(role === undefined ? {} : { role }) }
  const pending = wanted === BUDGET ? null : await chosen(place, card, wanted)
  if (pending && !(await isMeant(call, pending, allow))) {
    warn('Nothing was decided.')
    return EXIT.waits
  }
  const { digest, callId = BUDGET, sessionId = card.session } = pending ?? {}
  const usd = call.text('usd')
  const what = {
    callId,
    sessionId,
    ...(digest === undefined ? {} : { digest }),
    ...(usd === undefined ? {} : { usd: Number(usd) }),
  }
  await aside(place, (harness) => harness.session(sessionId).decide({ ...what, ...word }))
  if (call.is('resume')) return resumeSession(place, (await place.store.card(card.root)) ?? card, call)
  const { root } = card
  if (call.is('json'))
    printJson({ session: sessionId, callId, tool: pending?.tool ?? BUDGET, allow, by, digest: digest ?? null })
  else {
    print(`${allow ? 'Approved' : 'Rejected'} ${oneLine(pending?.tool ?? BUDGET)} (call ${callId}) as ${oneLine(by)}.`)
    warn(`Go on with: ${typed(`resume ${shortId(root)}`)}`)
  }
  return EXIT.ok
}

/** The call that is meant. With several that wait, one must be named. */
async function chosen({ store }: Place, { session, root }: Card, wanted: string | undefined): Promise<Pending> {
  const all = (await pendingIn(store, root)).filter(({ needs }) => needs === 'approval')
  const here = all.filter(({ sessionId }) => session === root || sessionId === session)
  const found = wanted === undefined ? here : here.filter(({ callId }) => callId === wanted)
  const [only] = found
  if (only && found.length === 1) return only
  if (found.length > 1) {
    const names = found.map(({ sessionId, callId, tool }) => `${shortId(sessionId)} ${callId} (${tool})`)
    throw new Refusal(EXIT.usage, `Several calls wait. Name one of them: ${names.join(', ')}`)
  }
  if (wanted === undefined)
    throw new Refusal(
      EXIT.conflict,
      `Nothing of session ${shortId(session)} waits for an approval: it was decided, or never asked.`,
    )
  const known = /^\d+\.\d+$/.test(wanted) && Number(wanted.split('.')[0]) <= ((await store.card(session))?.seq ?? 0)
  if (known)
    throw new Refusal(
      EXIT.conflict,
      `Call ${wanted} does not wait for an approval any more. The first decision stands.`,
    )
  throw new Refusal(
    EXIT.missing,
    `Session ${shortId(session)} has no call "${wanted}". \`terret pending ${shortId(session)}\` shows what waits.`,
  )
}

/** The exact action is shown first. At a terminal the person is asked back; in a script the command is the decision. */
async function isMeant(call: Call, pending: Pending, allow: boolean): Promise<boolean> {
  const charsMax = call.is('whole') ? Number.POSITIVE_INFINITY : undefined
  if (!call.is('json')) for (const line of pendingLines(pending, charsMax).slice(0, 2)) warn(line)
  if (call.is('yes') || call.is('json') || !isAttended()) return true
  const said = await ask(`${allow ? 'Approve' : 'Reject'} exactly this? [y/N] `)
  return /^y(es)?$/i.test(said?.trim() ?? '')
}
