// `terret answer`: the answer to a question of a session, or to a call that is owned outside.
import { type Call, person } from '../args.ts'
import { aside } from '../state/without-driving.ts'
import { EXIT, Refusal } from '../exit.ts'
import { pendingIn } from '../state/log.ts'
import { inPlace, sessionOf } from '../state/place.ts'
import { print, printJson, shortId, typed, warn } from '../present/print.ts'
import { drivenElsewhere } from '../state/program.ts'
import { resumeSession } from './resume.ts'
import { shownId } from '../../view/clean.ts'

export function answer(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const [name = '', ...rest] = call.words
    const content = rest.at(-1) ?? ''
    const wanted = rest.length > 1 ? rest[0] : undefined
    const { session, root } = await sessionOf(place, name)
    const open = (await pendingIn(place.store, root)).filter(({ needs }) => needs === 'answer')
    const found = open.filter(
      ({ callId, sessionId }) =>
        (wanted === undefined || callId === wanted) && (session === root || sessionId === session),
    )
    const [only] = found
    if (found.length > 1)
      throw new Refusal(
        EXIT.usage,
        `Several calls wait for an answer. Name one of them: ${found.map(({ callId }) => shownId(callId)).join(', ')}`,
      )
    if (!only) {
      const what = wanted === undefined ? 'Nothing waits' : `Call ${wanted} does not wait`
      throw new Refusal(
        EXIT.conflict,
        `${what} for an answer in session ${shortId(session)}. \`${typed`pending`}\` shows what does.`,
      )
    }
    const { callId, sessionId } = only
    await aside(place, (harness) =>
      harness.session(sessionId, { stored: true }).answer({ callId, content, by: person(call) }),
    )
    const card = await place.store.card(root)
    const elsewhere = drivenElsewhere(place, card)
    if (call.is('resume') && card && elsewhere === null) return resumeSession(place, card, call)
    if (call.is('json')) printJson({ session: sessionId, callId, answered: true })
    else {
      print(`Answered call ${shownId(callId)}.`)
      warn(elsewhere ?? `Go on with: ${typed`resume ${root}`}`)
    }
    return EXIT.ok
  })
}
