// Answers requests from a session file, in place of a server. Nothing leaves the page.
import { EMPTY, type Event, open, take, Transcript } from '../../kernel/index.ts'
import { textOf } from '../../view/shown-text.ts'
import type { FileSession, SessionFile } from '../../server/wire-file.ts'
import type { Damaged, EventsAnswer, PinsAnswer, Session, WireError } from '../../server/wire.ts'

const LIMIT = 200
const STORE = 'file'

/** Works like `fetch`, for addresses under `/v1/`. */
export function createFileFetch(file: SessionFile): (url: string, init: RequestInit) => Promise<Response> {
  return async (url, { method }) => {
    const { pathname, searchParams } = new URL(url, 'http://file')
    if (method !== 'GET')
      return fileRefusal(
        403,
        'forbidden',
        'This page is a file. What it shows can be read, and nothing can be done from it.',
      )
    return answerPath(file, pathname.replace('/v1/', '').split('/').map(decodeURIComponent), searchParams)
  }
}

function answerPath(
  file: SessionFile,
  [area = '', id = '', part = '', name = '']: readonly string[],
  query: URLSearchParams,
): Response {
  const about = { now: file.made, store: STORE }
  if (area === 'me') return Response.json({ name: 'file', role: 'viewer', roles: [], reach: 'own', ...about })
  if (area === 'pending') return Response.json({ pending: file.sessions[file.session]?.pending ?? [], ...about })
  if (area === 'agents') return Response.json({ agents: [] })
  if (area === 'cron') return Response.json({ jobs: [], next: null, ...about })
  if (area === 'due') return Response.json({ due: [], ...about })
  if (area !== 'sessions' || id === '')
    return fileRefusal(404, 'not_found', 'This page is a file of one session: the rest is not in it.')
  const session = Object.hasOwn(file.sessions, id) ? file.sessions[id] : undefined
  if (!session) return fileRefusal(404, 'session_missing', 'This session is not in the file.')
  const head = session.events.at(-1)?.seq ?? 0
  const damage = session.damaged ? { damaged: session.damaged } : {}
  switch (part) {
    case '':
      return Response.json({ card: session.card, pending: session.pending, accounts: [], head, ...about, ...damage })
    case 'events':
      return Response.json(pageEvents(session, head, query))
    case 'state':
      return answerState(session, head, Number(query.get('at') ?? head))
    case 'messages':
      return Response.json({ messages: foldMessages(session.events), head })
    case 'pins':
      return Response.json({ pins: pinsOfFile(session.events) })
    case 'result':
      return Response.json({ open: false, result: null })
    case 'blobs':
      return answerBlob(file, name)
    case 'export':
      return new Response(session.events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    default:
      return fileRefusal(404, 'not_found', 'This is not in the file.')
  }
}

function pinsOfFile(events: readonly Event[]): PinsAnswer['pins'] {
  return foldMessages(events).flatMap((message) => {
    if (message.role !== 'user' || message.pin !== true) return []
    const text = textOf(message.parts)
    return [{ seq: message.seq, text: text.replace(/^<harness_notice kind="pin">\n|\n<\/harness_notice>$/g, '') }]
  })
}

/** Pages events after or before a position, as the server does. */
function pageEvents(
  { events, damaged }: FileSession,
  head: number,
  query: URLSearchParams,
): EventsAnswer & { readonly damaged?: Damaged } {
  const limit = Number(query.get('limit') ?? LIMIT)
  const types = query.get('types')?.split(',')
  const q = query.get('q')?.toLowerCase() ?? ''
  const fits = (event: Event): boolean =>
    (types === undefined || types.includes(event.type)) && (q === '' || JSON.stringify(event).toLowerCase().includes(q))
  const before = query.get('before')
  const after = Number(query.get('after') ?? 0)
  const all = events.filter(
    (event) => (before === null ? event.seq > after : event.seq < Number(before)) && fits(event),
  )
  const found = before === null ? all.slice(0, limit) : all.slice(-limit)
  const [first, last] = [found[0]?.seq ?? 1, found.at(-1)?.seq ?? head]
  return {
    events: found,
    head,
    after: last < head ? last : null,
    before: first > 1 ? first : null,
    ...(types || q ? { scanned: head } : {}),
    ...(damaged ? { damaged } : {}),
  }
}

function answerState({ events }: FileSession, head: number, at: number): Response {
  if (at > head) return fileRefusal(409, 'cursor_stale', `The log ends at ${head}. There is no event ${at}.`)
  const session = open(EMPTY)
  for (const event of events) if (event.seq <= at) take(session, event)
  return Response.json({ seq: at, head, session: session as Session })
}

function foldMessages(events: readonly Event[]): Transcript['messages'] {
  const transcript = new Transcript()
  for (const event of events) transcript.take(event)
  return transcript.messages
}

function answerBlob({ blobs }: SessionFile, hash: string): Response {
  const blob = Object.hasOwn(blobs, hash) ? blobs[hash] : undefined
  if (!blob) return fileRefusal(404, 'not_found', 'This part was left out of the file.')
  const bytes = Uint8Array.from(atob(blob.data), (char) => char.charCodeAt(0))
  return new Response(bytes, { headers: { 'content-type': 'application/octet-stream' } })
}

function fileRefusal(status: number, code: WireError['error']['code'], message: string): Response {
  return Response.json({ error: { code, message } } satisfies WireError, { status })
}
