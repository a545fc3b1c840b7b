// The person behind a request, the session they may use, and their decisions: the part of both handlers that is
// independent of the protocol. Claims of the browser about the person are ignored.
import type { CallKey, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { functionCheck, type Checks, countCheck, requiredCheck } from '../options.ts'
import { buildMessage } from '../sessions/command.ts'
import type { Input } from '../sessions/input.ts'
import type { AgentChoice, OpenOptions, RunStream, Session, Sessions } from '../sessions/verbs.ts'
import { parseApprovalId } from './page-approval.ts'
import { sessionExists, readAllItems } from './follow-items.ts'
import { type Handler, refusalResponse } from './ui-http.ts'
import { readLogId, readPosition } from './reader-position.ts'

/** The person's name in the log, and the role in which they decide. */
export type Person = string | { readonly name: string; readonly role?: string }
type NewChatOptions = AgentChoice & Omit<OpenOptions, 'id' | 'reuse'>

/**
 * Options of `chatHandler` and `agUiHandler`: who the person behind a request is, and with what a new chat is opened.
 */
export type UiOptions = {
  /**
   * Returns the person behind the request if they may read and write this session; null refuses them. Take the person
   * from your own login, never from what the browser claims.
   */
  readonly by: (request: Request, session: string) => Person | null | Promise<Person | null>
  /** Options for a session that a page uses for the first time. */
  readonly open?: (request: Request, session: string) => NewChatOptions | Promise<NewChatOptions>
  /** The most bytes of a request. Default: 16 MiB. */
  readonly bytesMax?: number
}

export const UI_OPTIONS: Checks<UiOptions> = {
  by: requiredCheck(functionCheck, 'Give a function that says who is behind a request, or null to refuse it.'),
  open: functionCheck,
  bytesMax: countCheck(1),
}
export const REQUEST_BYTES_MAX = 16 * 1024 * 1024

export type AdmittedPerson = { readonly session: Session; readonly name: string; readonly role: string | undefined }

/** Calls `act` with the session if the person may use it, and answers 403 otherwise. */
export async function admitPerson(
  { sessions, options }: UiContext,
  request: Request,
  id: unknown,
  act: (known: AdmittedPerson) => ReturnType<Handler>,
): Promise<Response> {
  if (typeof id !== 'string') throw new Fault('invalid_input', 'Name the session by its id, which is a text.')
  // Checked first, so that `by` is never asked about an invalid id.
  const session = sessions.session(id)
  const person = parsePerson(await options.by(request, id))
  if (person === null) return refusalResponse(403, 'forbidden', 'You may not use this session.')
  return act({ session, ...person })
}

/** Null unless there is a name: `false`, undefined and an empty text refuse too. */
function parsePerson(person: unknown): Omit<AdmittedPerson, 'session'> | null {
  const { name, role } = (typeof person === 'string' ? { name: person } : (person ?? {})) as Record<string, unknown>
  const good = typeof name === 'string' && name.trim() !== '' && (role === undefined || typeof role === 'string')
  return good ? { name, role } : null
}

export type UiContext = { readonly sessions: Sessions; readonly options: UiOptions }

/** Sends the message of a page, and opens the session if there is none. A refused message opens none. */
export async function sendFromPage(
  place: UiContext,
  request: Request,
  { session, name }: AdmittedPerson,
  { input, id }: { readonly input: Input; readonly id: unknown },
): Promise<RunStream> {
  const own = typeof id === 'string' && id !== '' ? { id } : {}
  await openIfMissing(place, request, { session, name }, () => buildMessage(input, own, UNNAMED))
  return session.stream(input, { ...own, by: name, deltas: true, detach: true })
}

/** Used only to validate a message. */
const UNNAMED = { id: () => 'unnamed' }

/**
 * Opens the session if it does not exist and `check` does not throw. If two pages open it at once, one of them does. It
 * belongs to the person of the request, unless the host names another owner: what it teaches an agent applies to
 * sessions of the same owner.
 */
export async function openIfMissing(
  { sessions, options }: UiContext,
  request: Request,
  { session, name }: Pick<AdmittedPerson, 'session' | 'name'>,
  check: () => void = () => {},
): Promise<void> {
  if (await sessionExists(session)) return
  check()
  const given = (await options.open?.(request, session.id)) ?? {}
  const metadata = { owner: name, ...given.metadata }
  await sessions.open({ ...given, metadata, id: session.id, reuse: true })
}

/** `args`: edited arguments. Undefined or null: the arguments as shown. */
export type PageDecision = {
  readonly id: unknown
  readonly allow: unknown
  readonly why: unknown
  readonly args?: unknown
}

export type PageAnswer = { readonly callId: CallKey; readonly content: string; readonly ok: boolean }

/**
 * Records a page's decisions and answers, in order. Questions that are no longer open are skipped; if all are, the
 * first refusal is thrown, because the page is out of date. Returns the position to continue from: the given cursor,
 * once checked, or else the position before the answers.
 */
export async function takeAnswers(
  known: AdmittedPerson,
  cursor: unknown,
  decisions: readonly PageDecision[],
  answers: readonly PageAnswer[],
): Promise<unknown> {
  const { session } = known
  const after = cursor ?? (await readAllItems(session, () => {})).position
  await readPosition(session, await readLogId(session), after)
  const all = [
    ...decisions.map((one) => prepareDecision(known, one)),
    ...answers.map((one) => prepareAnswer(known, one)),
  ]
  if (all.length === 0)
    throw new Fault('invalid_input', 'This answers nothing. Send a message, or answer what is asked.')
  const refused: unknown[] = []
  for (const act of all) await act().catch((error: unknown) => refused.push(error))
  if (refused.length === all.length) throw refused[0]
  return after
}

function prepareDecision(
  { session, name, role }: AdmittedPerson,
  { id, allow, why, args }: PageDecision,
): () => Promise<unknown> {
  return async () => {
    if (typeof allow !== 'boolean') throw new Fault('invalid_input', 'An approval is answered with true or false.')
    const more = {
      ...(role === undefined ? {} : { role }),
      ...(typeof why === 'string' && why !== '' ? { why: why.slice(0, WHY_CHARS_MAX) } : {}),
      ...(args === undefined || args === null ? {} : { args: args as Json }),
    }
    return session.decide({ ...parseApprovalId(id, session.id), allow, by: name, ...more })
  }
}

const WHY_CHARS_MAX = 2_000

function prepareAnswer({ session, name }: AdmittedPerson, given: PageAnswer): () => Promise<unknown> {
  return () => session.answer({ ...given, by: name })
}
