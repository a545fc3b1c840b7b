// What `useChat` of the AI SDK sends, taken as verbs of a session: a new message, answers to approvals and to calls, a resumed
// stream, a stop. The chunks that it reads are ui-message.ts.
import { Fault } from '../kernel/failure.ts'
import { optionsOf } from '../options.ts'
import type { FilePart, Input } from '../sessions/input.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import { admitToBranch, branchBefore, type Chatting, findMessage, isReusedId, stretchesOf } from './branches.ts'
import { isThere } from './follow.ts'
import { bodyOf, cursorOf, type Fields, type Handler, isFields, refusal, refusing } from './http.ts'
import { type Answered, BYTES_MAX, type Decided, type Known, type Place, sent, take } from './person.ts'
import { UI_OPTIONS, type UiOptions } from './person.ts'
import { type Files, uiMessageContinue, uiMessageResponse, uiMessageResume, uiMessagesOf } from './ui-message.ts'

const checkOptions = optionsOf<UiOptions>('chatHandler', UI_OPTIONS)
const PARTS_MAX = 1_000

/**
 * The server side of `useChat`, for any framework that has requests and responses of the web. The id of the chat is the id of the
 * session. `POST /` takes messages and answers, `GET /ID/stream` resumes, `GET /ID/messages` is the history as
 * `{ messages }`, `GET /ID/files/HASH` is a file of it, `DELETE /ID` stops the run; what stands before in the address does not matter.
 */
export function chatHandler(sessions: Sessions, options: UiOptions): Handler {
  checkOptions(options)
  const place = { sessions, options }
  return refusing((request) => {
    if (request.method === 'POST') return post(place, request)
    const path = new URL(request.url).pathname.split('/').filter((name) => name !== '')
    if (request.method === 'DELETE') return stop(place, request, path.at(-1))
    const act = path.at(-1)
    if (request.method === 'GET' && (act === 'stream' || act === 'messages'))
      return read(place, request, path.at(-2), act)
    if (request.method === 'GET' && path.at(-2) === 'files') return file(place, request, path.at(-3), act)
    return Promise.resolve(refusal(404, 'not_found', HINT))
  })
}

const HINT = 'Use POST, GET ID/stream, GET ID/messages, GET ID/files/HASH or DELETE ID.'

/** A file of this session, and of no other. */
function file(place: Place, request: Request, id = '', hash = ''): Promise<Response> {
  return admitToBranch(place, request, nameOf(id), async ({ session }) => {
    const { fileResponse } = await import('./files.ts')
    return fileResponse(await stretchesOf(place.sessions, session), hash)
  })
}

/** The files of a session beside the rest of it, by a path on the server that the page talks to. */
function filesOf(request: Request, session: string, behind: number): Files {
  const path = new URL(request.url).pathname.replace(/\/+$/, '')
  const base = path
    .split('/')
    .slice(0, behind === 0 ? undefined : -behind)
    .join('/')
  return { fileUrl: ({ hash }) => `${base}/${encodeURIComponent(session)}/files/${hash}` }
}

async function read(place: Place, request: Request, id = '', act: 'stream' | 'messages'): Promise<Response> {
  return admitToBranch(place, request, nameOf(id), async ({ session, chat }) => {
    const there = await isThere(session)
    const files = filesOf(request, chat.id, 2)
    if (act === 'messages') {
      const stretches = there ? await stretchesOf(place.sessions, session) : []
      return Response.json({ messages: await uiMessagesOf(stretches, files) })
    }
    const after = cursorOf(request)
    return there || after !== null ? uiMessageResume(session, after, files) : new Response(null, { status: 204 })
  })
}

function stop(place: Place, request: Request, id = ''): Promise<Response> {
  return admitToBranch(place, request, nameOf(id), async ({ session }) => {
    await session.interrupt()
    return new Response(null, { status: 204 })
  })
}

/** Null if the name in the address cannot be decoded. */
function nameOf(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

async function post(place: Place, request: Request): Promise<Response> {
  const body = await bodyOf(request, place.options.bytesMax ?? BYTES_MAX)
  return admitToBranch(place, request, body['id'], async (known) => {
    const { messages } = body
    const last: unknown = Array.isArray(messages) ? messages.at(-1) : null
    if (!isFields(last) || !Array.isArray(last['parts']) || last['parts'].length > PARTS_MAX)
      throw new Fault('invalid_input', `The last message must have a list of parts, at most ${PARTS_MAX}.`)
    const parts = (last['parts'] as readonly unknown[]).filter(isFields)
    const files = filesOf(request, known.chat.id, 0)
    if (last['role'] === 'assistant') return goOn(known, last, parts, files)
    if (last['role'] !== 'user') throw new Fault('invalid_input', 'The last message must be of the user or an answer.')
    const message = { input: inputOf(parts), id: last['id'] }
    const answered = async (session: Session): Promise<Response> =>
      uiMessageResponse(session, await sent(place, request, { ...known, session }, message), files)
    return branched(place, known, { ...body, message: last['id'] }, answered)
  })
}

/** Answers in the newest branch, or in a new one if the page edits a message of the chat or wants another answer to it. */
async function branched(
  place: Place,
  known: Chatting,
  { trigger = 'submit-message', messageId, message: id }: Fields,
  answered: (session: Session) => Promise<Response>,
): Promise<Response> {
  const { session: newest } = known
  const isAgain = trigger === 'regenerate-message'
  if (!isAgain && trigger !== 'submit-message')
    throw new Fault('invalid_input', 'The trigger must be submit-message or regenerate-message.')
  const isEdit = !isAgain && typeof messageId === 'string' && messageId === id
  if ((!isAgain && !isEdit) || !(await isThere(newest))) {
    if (isAgain) throw new Fault('invalid_input', NOT_THERE)
    return answered(newest)
  }
  const found = await findMessage(place.sessions, newest, id)
  if (isAgain && found === null) throw new Fault('invalid_input', NOT_THERE)
  // The same edit again is no other one.
  if (isEdit && (found === null || found.session.id === newest.id)) {
    const same = await answered(newest).catch((error: unknown) => {
      if (found !== null && isReusedId(error)) return null
      throw error
    })
    if (same !== null) return same
  }
  return answered(await branchBefore(place.sessions, known, found as NonNullable<typeof found>))
}

const NOT_THERE = 'The chat does not have this message, so it cannot be answered again. Load its messages anew.'

/** The page answered what was asked. */
async function goOn(known: Known, { metadata }: Fields, parts: readonly Fields[], files: Files): Promise<Response> {
  const given = isFields(metadata) ? metadata['position'] : undefined
  // Only calls of the last request can be open.
  const open = parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1)
  const cursor = typeof given === 'string' ? given : null
  const after = await take(known, cursor, open.flatMap(decisionIn), open.flatMap(answerIn))
  return uiMessageContinue(known.session, after, files)
}

function decisionIn({ state, approval }: Fields): readonly Decided[] {
  if (state !== 'approval-responded' || !isFields(approval)) return []
  return [{ id: approval['id'], allow: approval['approved'], why: approval['reason'], args: approval['editedArgs'] }]
}

/** Most are results that the session made itself: those are not open, and passed over. */
function answerIn({ state, toolCallId, output, errorText }: Fields): readonly Answered[] {
  const ok = state === 'output-available'
  if ((!ok && state !== 'output-error') || typeof toolCallId !== 'string') return []
  const said = ok ? output : errorText
  return [{ callId: toolCallId, ok, content: typeof said === 'string' ? said : (JSON.stringify(said) ?? '') }]
}

function inputOf(parts: readonly Fields[]): Input {
  return parts.map((part): { type: 'text'; text: string } | FilePart => {
    if (part['type'] === 'text' && typeof part['text'] === 'string') return { type: 'text', text: part['text'] }
    if (part['type'] === 'file') return fileOf(part)
    throw new Fault('invalid_input', 'A message has texts and files. Leave its other parts out.')
  })
}

/** Only the bytes themselves: an address would have to be fetched from here. */
function fileOf({ url, mediaType, filename }: Fields): FilePart {
  const [, data] = /^data:[^,]{0,200};base64,([\s\S]*)$/.exec(String(url)) ?? []
  if (data === undefined || typeof mediaType !== 'string')
    throw new Fault('invalid_input', 'A file must come as a data: address with base64, and with its media type.')
  const type = mediaType.startsWith('image/') ? 'image' : 'file'
  return { type, media: mediaType, data, ...(typeof filename === 'string' ? { name: filename } : {}) }
}
