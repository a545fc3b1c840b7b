// The person of a request, the session that they may use, and what they decided: the part of both handlers that does not depend on
// the protocol. What a browser says of itself is not believed.
import type { CallKey, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { callable, type Checks, count, needed } from '../options.ts'
import { messageOf } from '../sessions/command.ts'
import type { Input } from '../sessions/input.ts'
import type { AgentChoice, OpenOptions, RunStream, Session, Sessions } from '../sessions/verbs.ts'
import { namedBy } from './approval.ts'
import { isThere, readAll } from './follow.ts'
import { type Handler, refusal } from './http.ts'
import { logOf, readPosition } from './position.ts'

/** A name, as the log will have it, and the role in which the person decides. */
export type Person = string | { readonly name: string; readonly role?: string }
type Opening = AgentChoice & Omit<OpenOptions, 'id' | 'reuse'>

export type UiOptions = {
  /**
   * Who is behind the request, if they may read this session and write to it; null refuses them. Take it from your own login,
   * never from what the browser says of itself.
   */
  readonly by: (request: Request, session: string) => Person | null | Promise<Person | null>
  /** How a session is opened that a page names for the first time. */
  readonly open?: (request: Request, session: string) => Opening | Promise<Opening>
  /** The longest request, in bytes. Default: 16 MiB. */
  readonly bytesMax?: number
}

export const UI_OPTIONS: Checks<UiOptions> = {
  by: needed(callable, 'Give a function that says who is behind a request, or null to refuse it.'),
  open: callable,
  bytesMax: count(1),
}
export const BYTES_MAX = 16 * 1024 * 1024

export type Known = { readonly session: Session; readonly name: string; readonly role: string | undefined }

/** Lets `act` have the session if the person may, and answers 403 otherwise. */
export async function admitted(
  { sessions, options }: Place,
  request: Request,
  id: unknown,
  act: (known: Known) => ReturnType<Handler>,
): Promise<Response> {
  if (typeof id !== 'string') throw new Fault('invalid_input', 'Name the session by its id, which is a text.')
  // Checked first: `by` is not asked about an id that no session may have.
  const session = sessions.session(id)
  const person = named(await options.by(request, id))
  if (person === null) return refusal(403, 'forbidden', 'You may not use this session.')
  return act({ session, ...person })
}

/** Null unless there is a name: `false`, nothing and an empty text refuse too. */
function named(person: unknown): Omit<Known, 'session'> | null {
  const { name, role } = (typeof person === 'string' ? { name: person } : (person ?? {})) as Record<string, unknown>
  const good = typeof name === 'string' && name.trim() !== '' && (role === undefined || typeof role === 'string')
  return good ? { name, role } : null
}

export type Place = { readonly sessions: Sessions; readonly options: UiOptions }

/** Sends the message of a page, and makes its session if there is none. A message that is refused makes none. */
export async function sent(
  place: Place,
  request: Request,
  { session, name }: Known,
  { input, id }: { readonly input: Input; readonly id: unknown },
): Promise<RunStream> {
  const own = typeof id === 'string' && id !== '' ? { id } : {}
  await opened(place, request, { session, name }, () => messageOf(input, own, UNNAMED))
  return session.stream(input, { ...own, by: name, deltas: true, detach: true })
}

/** For a message that is only looked at. */
const UNNAMED = { id: () => 'unnamed' }

/**
 * The session, made if there is none and `check` does not throw. Of two pages that open it at once one makes it. It belongs to the person
 * of the request, unless the host names another owner: what it teaches an agent is for sessions of the same owner.
 */
export async function opened(
  { sessions, options }: Place,
  request: Request,
  { session, name }: Pick<Known, 'session' | 'name'>,
  check: () => void = () => {},
): Promise<void> {
  if (await isThere(session)) return
  check()
  const given = (await options.open?.(request, session.id)) ?? {}
  const metadata = { owner: name, ...given.metadata }
  await sessions.open({ ...given, metadata, id: session.id, reuse: true })
}

/** `args`: other arguments than were shown; absent, undefined or null: those that were. */
export type Decided = {
  readonly id: unknown
  readonly allow: unknown
  readonly why: unknown
  readonly args?: unknown
}

export type Answered = { readonly callId: CallKey; readonly content: string; readonly ok: boolean }

/**
 * Takes what a page decided and answered, in order. What is not asked any more is passed over; if all of it is, the first refusal is
 * thrown: the page shows something else than the session. Returns the position to go on from: the cursor, which is checked first, or
 * without one where the session stood before.
 */
export async function take(
  known: Known,
  cursor: unknown,
  decisions: readonly Decided[],
  answers: readonly Answered[],
): Promise<unknown> {
  const { session } = known
  const after = cursor ?? (await readAll(session, () => {})).position
  await readPosition(session, await logOf(session), after)
  const all = [...decisions.map((one) => decide(known, one)), ...answers.map((one) => answer(known, one))]
  if (all.length === 0)
    throw new Fault('invalid_input', 'This answers nothing. Send a message, or answer what is asked.')
  const refused: unknown[] = []
  for (const act of all) await act().catch((error: unknown) => refused.push(error))
  if (refused.length === all.length) throw refused[0]
  return after
}

function decide({ session, name, role }: Known, { id, allow, why, args }: Decided): () => Promise<unknown> {
  return async () => {
    if (typeof allow !== 'boolean') throw new Fault('invalid_input', 'An approval is answered with true or false.')
    const more = {
      ...(role === undefined ? {} : { role }),
      ...(typeof why === 'string' && why !== '' ? { why: why.slice(0, WHY_CHARS_MAX) } : {}),
      ...(args === undefined || args === null ? {} : { args: args as Json }),
    }
    return session.decide({ ...namedBy(id, session.id), allow, by: name, ...more })
  }
}

const WHY_CHARS_MAX = 2_000

function answer({ session, name }: Known, given: Answered): () => Promise<unknown> {
  return () => session.answer({ ...given, by: name })
}
