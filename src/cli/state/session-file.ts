// A session as one page that shows itself: its log, those it was forked from, those below it, and the files they refer to, inside the
// page that the build made. What is too large is left out, and the page says so.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Card, Event, Store } from '../../kernel/index.ts'
import type { Damaged, WireCard } from '../../server/wire.ts'
import type { FileSession, SessionFile } from '../../server/wire-file.ts'
import { cardsBelow, withTreeCost } from '../../stores/plan/tree-cost.ts'
import { blobFor, mentionsIn } from '../../view/blobs.ts'
import { safeJson } from '../../view/clean.ts'
import { withoutFolder } from '../../view/folder.ts'
import { counted } from '../../view/text.ts'
import { VERSION } from '../../version.ts'
import { EXIT, Refusal } from '../exit.ts'
import { pendingIn } from './log.ts'

const PAGE = 1_000
const MB = 1_000_000
/** Of one file that a log refers to, and of all of them. */
const BLOB_MAX = MB
const BLOBS_MAX = 8 * MB
/** Of all logs besides that of the session itself, as JSON. */
const OTHERS_MAX = 8 * MB

type Read = { readonly events: readonly Event[]; readonly damaged?: Damaged }

export async function sessionFile(store: Store, card: Card): Promise<SessionFile> {
  const left: string[] = []
  const own = await readable(store, card.session, Number.POSITIVE_INFINITY)
  if (own.damaged)
    left.push(
      `The log is damaged: the events before ${own.damaged.seq} are here, those from there on are not (${own.damaged.reason}).`,
    )
  const sessions: Record<string, FileSession> = { [card.session]: await kept(store, card, own) }
  let room = OTHERS_MAX
  for (const [other, upTo] of [
    ...(await originsOf(store, own.events)),
    ...(await cardsBelow(store, card)).map((each) => [each, each.seq] as const),
  ]) {
    const read = await readable(store, other.session, upTo)
    const size = JSON.stringify(read.events).length
    if (size > room) left.push(`The log of session ${other.session} (${sizeText(size)}).`)
    else sessions[other.session] = await kept(store, other, read)
    room -= Math.min(room, size)
  }
  const { blobs, without } = await blobsOf(store, sessions)
  left.push(...without)
  const about = { format: 'terret.page', version: 1, by: VERSION, made: store.now() } as const
  return { ...about, session: card.session, sessions, blobs, left }
}

/** Up to the first event that cannot be read. */
async function readable(store: Store, session: string, upTo: number): Promise<Read> {
  const events: Event[] = []
  for (;;) {
    const page = await store.read(session, events.length, PAGE)
    events.push(...page.events.filter(({ seq }) => seq <= upTo))
    if (page.damaged) return { events: withoutFolder(events), damaged: page.damaged }
    if (page.events.length < PAGE || events.length >= upTo) return { events: withoutFolder(events) }
  }
}

async function kept(store: Store, card: Card, { events, damaged }: Read): Promise<FileSession> {
  const [costed] = await withTreeCost(store, [card])
  // A path of one machine means nothing on another.
  const { folder: _, treeCost: _cost, ...rest } = costed ?? { ...card, treeCost: 0, costUsd: 0, treeCostUsd: 0 }
  // Who waits is read from all logs of the tree, of which one may be damaged: the page shows this log all the same.
  const waits = damaged ? [] : await pendingIn(store, card.root).catch(() => [])
  const pending = waits.filter(({ path }) => path.includes(card.session))
  return {
    card: rest satisfies WireCard,
    events,
    pending,
    ...(damaged ? { damaged } : {}),
  }
}

/** The sessions it was forked from, each with the event where it was left. */
async function originsOf(store: Store, [created]: readonly Event[]): Promise<readonly (readonly [Card, number])[]> {
  const origins: (readonly [Card, number])[] = []
  const seen = new Set<string>()
  let fork = created?.type === 'session.created' ? created.fork : undefined
  while (fork && !seen.has(fork.session)) {
    seen.add(fork.session)
    const card = await store.card(fork.session)
    if (card === null) break
    origins.push([card, fork.seq])
    const [first] = (await store.read(card.session, 0, 1)).events
    fork = first?.type === 'session.created' ? first.fork : undefined
  }
  return origins
}

type Kept = { readonly blobs: SessionFile['blobs']; readonly without: readonly string[] }

/** What the logs name, the smaller ones first where there is no room for all. */
async function blobsOf(store: Store, sessions: SessionFile['sessions']): Promise<Kept> {
  const found = new Map<string, { readonly media: string; readonly data: Uint8Array }>()
  const without: string[] = []
  for (const [session, { events }] of Object.entries(sessions)) {
    for (const hash of new Set(events.flatMap((event) => mentionsIn(JSON.stringify(event))))) {
      const blob = found.has(hash) ? null : await blobFor(store, session, hash)
      if (blob) found.set(hash, blob)
    }
  }
  const blobs: Record<string, { readonly media: string; readonly data: string }> = {}
  let room = BLOBS_MAX
  for (const [hash, { media, data }] of [...found].toSorted(([, a], [, b]) => a.data.length - b.data.length)) {
    if (data.length > Math.min(BLOB_MAX, room)) without.push(`The file ${hash} (${media}, ${sizeText(data.length)}).`)
    else {
      blobs[hash] = { media, data: Buffer.from(data).toString('base64') }
      room -= data.length
    }
  }
  return { blobs, without }
}

/** The page with the file inside. Nothing in the file can end the element that it stands in. */
export function pageWith(file: SessionFile): string {
  const json = safeJson(file)
    .replaceAll('<', '\\u003c')
    .replace(/[\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16)}`)
  return template().replace('{{SESSION}}', () => json)
}

function template(): string {
  // Beside the bundle, and from the sources of a checkout.
  for (const place of ['../export/session.html', '../../../dist/export/session.html']) {
    try {
      return readFileSync(fileURLToPath(new URL(place, import.meta.url)), 'utf8')
    } catch {
      continue
    }
  }
  throw new Refusal(EXIT.config, 'This build has no page to export into. Run `npm run build`, or export --format json.')
}

export function sizeText(bytes: number): string {
  return bytes < MB ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / MB).toFixed(1)} MB`
}

/** What is in it, for who made it. */
export function contentText({ sessions, session, blobs }: SessionFile): string {
  const events = sessions[session]?.events.length ?? 0
  const others = Object.keys(sessions).length - 1
  return [
    counted(events, 'event'),
    ...(others > 0 ? [counted(others, 'other session')] : []),
    counted(Object.keys(blobs).length, 'file'),
  ].join(', ')
}
