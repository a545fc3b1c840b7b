// Gives a session another title in lists. It is an event of the inbox: it needs no lease, wakes nobody, and is in every
// store and every file that has the log. What counts as a title is in view/title.ts.
import { hash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { InboxBody } from '../kernel/event.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { checkCallersId, harnessId } from '../stores/plan/store-ids.ts'
import { titleFromText } from '../view/title.ts'
import type { SessionAccess } from './await-run.ts'
import { refuseLane } from './lane-guard.ts'
import { checkRename, type RenamedSession, type RenameOptions } from './verb-options.ts'

/** Resolves when the title is on disk. */
export async function renameSession(
  { id: session, services }: SessionAccess,
  given: string,
  options: RenameOptions,
): Promise<RenamedSession> {
  checkRename(options)
  const { id = services.random.id(), by } = options
  checkCallersId(id)
  const title = readTitle(services, given)
  if (title === null) throw new Fault('invalid_input', 'A title is a text with something visible in it. Give one.')
  await refuseLane(services, session)
  return writeTitle(services, session, { type: 'user.rename', id, title, ...(by === undefined ? {} : { by }) })
}

/** For code of the harness. The same key twice is one title. A text that is no title changes nothing. */
export async function giveTitle(
  services: Services,
  session: string,
  { given, key, by }: { readonly given: string; readonly key: string; readonly by: string },
): Promise<void> {
  const title = readTitle(services, given)
  const id = harnessId('title', hash('sha256', key))
  if (title !== null) await writeTitle(services, session, { type: 'user.rename', id, title, by })
}

async function writeTitle(
  services: Services,
  session: string,
  event: Extract<InboxBody, { type: 'user.rename' }>,
): Promise<RenamedSession> {
  const write = { session, lane: 'inbox', events: [services.redactor.body(event)] } as const
  const [receipt] = await commitWithRetry(services, [write])
  return { title: event.title, seq: receipt?.seqs[0] ?? 0, duplicate: receipt?.duplicate ?? false }
}

/** A secret is looked for before the text is cut, and again in what is left without invisible characters. */
function readTitle({ redactor }: Services, given: unknown): string | null {
  const line = typeof given === 'string' ? titleFromText(redactor.text(given)) : null
  return line === null ? null : titleFromText(redactor.text(line))
}
