// `terret answer`: answers a question of a session, or a call that is answered from outside.
import { type CommandArgs, actorName } from '../args.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { EXIT, CliError } from '../exit.ts'
import { readPending } from '../state/read-log.ts'
import { withStore, findSession } from '../state/command-context.ts'
import { print, printJson, shortId, terretCommand, warn } from '../present/print.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { resumeSession } from './resume-command.ts'
import { shownId } from '../../view/clean.ts'

export function answerCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const [name = '', ...rest] = call.words
    const content = rest.at(-1) ?? ''
    const wanted = rest.length > 1 ? rest[0] : undefined
    const { session, root } = await findSession(place, name)
    const open = (await readPending(place.store, root)).filter(({ needs }) => needs === 'answer')
    const found = open.filter(
      ({ callId, sessionId }) =>
        (wanted === undefined || callId === wanted) && (session === root || sessionId === session),
    )
    const [only] = found
    if (found.length > 1)
      throw new CliError(
        EXIT.usage,
        `Several calls wait for an answer. Name one of them: ${found.map(({ callId }) => shownId(callId)).join(', ')}`,
      )
    if (!only) {
      const what = wanted === undefined ? 'Nothing waits' : `Call ${wanted} does not wait`
      throw new CliError(
        EXIT.conflict,
        `${what} for an answer in session ${shortId(session)}. \`${terretCommand`pending`}\` shows what does.`,
      )
    }
    const { callId, sessionId } = only
    await withoutDriving(place, (harness) =>
      harness.session(sessionId, { stored: true }).answer({ callId, content, by: actorName(call) }),
    )
    const card = await place.store.card(root)
    const elsewhere = drivenElsewhere(place, card)
    if (call.is('resume') && card && elsewhere === null) return resumeSession(place, card, call)
    if (call.is('json')) printJson({ session: sessionId, callId, answered: true })
    else {
      print(`Answered call ${shownId(callId)}.`)
      warn(elsewhere ?? `Go on with: ${terretCommand`resume ${root}`}`)
    }
    return EXIT.ok
  })
}
