// The server side of the AI SDK's `useChat`, as operations on a session: new messages, answers to approvals and calls,
// resumed streams, stops. The chunks of its responses are in ui-message.ts.
import { Fault } from '../kernel/failure.ts'
import { optionsChecker } from '../options.ts'
import type { FilePart, Input } from '../sessions/input.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import {
  admitToBranch,
  createBranchBefore,
  type AdmittedChat,
  findMessage,
  isReusedId,
  readBranchLogs,
} from './chat-branches.ts'
import { sessionExists } from './follow-items.ts'
import {
  readJsonObject,
  readCursor,
  type JsonFields,
  type Handler,
  isJsonFields,
  refusalResponse,
  answerFaults,
} from './ui-http.ts'
import {
  type PageAnswer,
  REQUEST_BYTES_MAX,
  type PageDecision,
  type AdmittedPerson,
  type UiContext,
  sendFromPage,
  takeAnswers,
} from './person.ts'
import { UI_OPTIONS, type UiOptions } from './person.ts'
import { type FileLinks, uiMessageContinue, uiMessageResponse, uiMessageResume, uiMessagesOf } from './ui-message.ts'

const checkOptions = optionsChecker<UiOptions>('chatHandler', UI_OPTIONS)
const PARTS_MAX = 1_000

/**
 * The server side of `useChat`, for any framework with web requests and responses. The chat's id is the session's id.
 * `POST /` takes messages and answers, `GET /ID/stream` resumes, `GET /ID/messages` returns the history as `{ messages
 * }`, `GET /ID/files/HASH` returns a file of the session, `DELETE /ID` stops the run. Any path may stand before these.
 */
export function chatHandler(sessions: Sessions, options: UiOptions): Handler {
  checkOptions(options)
  const place = { sessions, options }
  return answerFaults((request) => {
    if (request.method === 'POST') return answerPost(place, request)
    const path = new URL(request.url).pathname.split('/').filter((name) => name !== '')
    if (request.method === 'DELETE') return answerStop(place, request, path.at(-1))
    const act = path.at(-1)
    if (request.method === 'GET' && (act === 'stream' || act === 'messages'))
      return answerGet(place, request, path.at(-2), act)
    if (request.method === 'GET' && path.at(-2) === 'files') return answerFile(place, request, path.at(-3), act)
    return Promise.resolve(refusalResponse(404, 'not_found', HINT))
  })
}

const HINT = 'Use POST, GET ID/stream, GET ID/messages, GET ID/files/HASH or DELETE ID.'

/** A file that this session refers to, and no other. */
function answerFile(place: UiContext, request: Request, id = '', hash = ''): Promise<Response> {
  return admitToBranch(place, request, decodeName(id), async ({ session }) => {
    const { fileResponse } = await import('./file-response.ts')
    return fileResponse(await readBranchLogs(place.sessions, session), hash)
  })
}

/** Addresses of a session's files next to the handler's other routes, as a path on the page's server. */
function fileLinksFor(request: Request, session: string, behind: number): FileLinks {
  const path = new URL(request.url).pathname.replace(/\/+$/, '')
  const base = path
    .split('/')
    .slice(0, behind === 0 ? undefined : -behind)
    .join('/')
  return { fileUrl: ({ hash }) => `${base}/${encodeURIComponent(session)}/files/${hash}` }
}

async function answerGet(place: UiContext, request: Request, id = '', act: 'stream' | 'messages'): Promise<Response> {
  return admitToBranch(place, request, decodeName(id), async ({ session, chat }) => {
    const there = await sessionExists(session)
    const files = fileLinksFor(request, chat.id, 2)
    if (act === 'messages') {
      const stretches = there ? await readBranchLogs(place.sessions, session) : []
      return Response.json({ messages: await uiMessagesOf(stretches, files) })
    }
    const after = readCursor(request)
    return there || after !== null ? uiMessageResume(session, after, files) : new Response(null, { status: 204 })
  })
}

function answerStop(place: UiContext, request: Request, id = ''): Promise<Response> {
  return admitToBranch(place, request, decodeName(id), async ({ session }) => {
    await session.interrupt()
    return new Response(null, { status: 204 })
  })
}

/** Null if the id in the address cannot be decoded. */
function decodeName(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

async function answerPost(place: UiContext, request: Request): Promise<Response> {
  const body = await readJsonObject(request, place.options.bytesMax ?? REQUEST_BYTES_MAX)
  return admitToBranch(place, request, body['id'], async (known) => {
    const { messages } = body
    const last: unknown = Array.isArray(messages) ? messages.at(-1) : null
    if (!isJsonFields(last) || !Array.isArray(last['parts']) || last['parts'].length > PARTS_MAX)
      throw new Fault('invalid_input', `The last message must have a list of parts, at most ${PARTS_MAX}.`)
    const parts = (last['parts'] as readonly unknown[]).filter(isJsonFields)
    const files = fileLinksFor(request, known.chat.id, 0)
    if (last['role'] === 'assistant') return continueWithAnswers(known, last, parts, files)
    if (last['role'] !== 'user') throw new Fault('invalid_input', 'The last message must be of the user or an answer.')
    const message = { input: inputOf(parts), id: last['id'] }
    const answered = async (session: Session): Promise<Response> =>
      uiMessageResponse(session, await sendFromPage(place, request, { ...known, session }, message), files)
    return answerInBranch(place, known, { ...body, message: last['id'] }, answered)
  })
}

/** Answers in the newest branch, or in a new one if the page edits a message or wants it answered again. */
async function answerInBranch(
  place: UiContext,
  known: AdmittedChat,
  { trigger = 'submit-message', messageId, message: id }: JsonFields,
  answered: (session: Session) => Promise<Response>,
): Promise<Response> {
  const { session: newest } = known
  const isAgain = trigger === 'regenerate-message'
  if (!isAgain && trigger !== 'submit-message')
    throw new Fault('invalid_input', 'The trigger must be submit-message or regenerate-message.')
  const isEdit = !isAgain && typeof messageId === 'string' && messageId === id
  if ((!isAgain && !isEdit) || !(await sessionExists(newest))) {
    if (isAgain) throw new Fault('invalid_input', NOT_THERE)
    return answered(newest)
  }
  const found = await findMessage(place.sessions, newest, id)
  if (isAgain && found === null) throw new Fault('invalid_input', NOT_THERE)
  // A repeated edit is not a new one.
  if (isEdit && (found === null || found.session.id === newest.id)) {
    const same = await answered(newest).catch((error: unknown) => {
      if (found !== null && isReusedId(error)) return null
      throw error
    })
    if (same !== null) return same
  }
  return answered(await createBranchBefore(place.sessions, known, found as NonNullable<typeof found>))
}

const NOT_THERE = 'The chat does not have this message, so it cannot be answered again. Load its messages anew.'

/** Continues after the page answered questions. */
async function continueWithAnswers(
  known: AdmittedPerson,
  { metadata }: JsonFields,
  parts: readonly JsonFields[],
  files: FileLinks,
): Promise<Response> {
  const given = isJsonFields(metadata) ? metadata['position'] : undefined
  // Only calls of the last request can be open.
  const open = parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1)
  const cursor = typeof given === 'string' ? given : null
  const after = await takeAnswers(known, cursor, open.flatMap(decisionIn), open.flatMap(answerIn))
  return uiMessageContinue(known.session, after, files)
}

function decisionIn({ state, approval }: JsonFields): readonly PageDecision[] {
  if (state !== 'approval-responded' || !isJsonFields(approval)) return []
  return [{ id: approval['id'], allow: approval['approved'], why: approval['reason'], args: approval['editedArgs'] }]
}

/** Most are results that the session made itself. They are not open, and are skipped. */
function answerIn({ state, toolCallId, output, errorText }: JsonFields): readonly PageAnswer[] {
  const ok = state === 'output-available'
  if ((!ok && state !== 'output-error') || typeof toolCallId !== 'string') return []
  const said = ok ? output : errorText
  return [{ callId: toolCallId, ok, content: typeof said === 'string' ? said : (JSON.stringify(said) ?? '') }]
}

function inputOf(parts: readonly JsonFields[]): Input {
  return parts.map((part): { type: 'text'; text: string } | FilePart => {
    if (part['type'] === 'text' && typeof part['text'] === 'string') return { type: 'text', text: part['text'] }
    if (part['type'] === 'file') return fileOf(part)
    throw new Fault('invalid_input', 'A message has texts and files. Leave its other parts out.')
  })
}

/** Only inline bytes: a remote address would have to be fetched from here. */
function fileOf({ url, mediaType, filename }: JsonFields): FilePart {
  const [, data] = /^data:[^,]{0,200};base64,([\s\S]*)$/.exec(String(url)) ?? []
  if (data === undefined || typeof mediaType !== 'string')
    throw new Fault('invalid_input', 'A file must come as a data: address with base64, and with its media type.')
  const type = mediaType.startsWith('image/') ? 'image' : 'file'
  return { type, media: mediaType, data, ...(typeof filename === 'string' ? { name: filename } : {}) }
}
