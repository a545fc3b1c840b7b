// Gives a session another title in lists. It is an event of the inbox: it needs no lease, wakes nobody, and is in every
// store and every file that has the log. What counts as a title is in view/title.ts.
import { Fault } from '../kernel/failure.ts'
import type { InboxBody } from '../kernel/event.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import { checkCallersId } from '../stores/plan/store-ids.ts'
import { titleFromText } from '../view/title.ts'
import type { SessionAccess } from './await-run.ts'
import { refuseLane } from './lane-guard.ts'
import { checkRename, type RenamedSession, type RenameOptions } from './verb-options.ts'

/** Resolves when the title is on disk. */
export async function renameSession(
  { id: session, services }: Pick<SessionAccess, 'id' | 'services'>,
  given: string,
  options: RenameOptions = {},
): Promise<RenamedSession> {
  checkRename(options)
  const { id = services.random.id(), by } = options
  checkCallersId(id)
  const title = readTitle(given, services)
  await refuseLane(services, session)
  const event: InboxBody = { type: 'user.rename', id, title, ...(by === undefined ? {} : { by }) }
  const [receipt] = await commitWithRetry(services, [
    { session, lane: 'inbox', events: [services.redactor.body(event)] },
  ])
  return { title, seq: receipt?.seqs[0] ?? 0, duplicate: receipt?.duplicate ?? false }
}

/** A secret is looked for before the text is cut, and again in what is left without invisible characters. */
function readTitle(given: unknown, { redactor }: SessionAccess['services']): string {
  const line = typeof given === 'string' ? titleFromText(redactor.text(given)) : null
  const title = line && titleFromText(redactor.text(line))
  if (title) return title
  throw new Fault('invalid_input', 'A title is a text with something visible in it. Give one.')
}
