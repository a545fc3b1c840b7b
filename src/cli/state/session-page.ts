// A session as one HTML page that shows itself: its log, the logs it was forked from, those below it, and the files
// they refer to, inside the page template of the build. Parts that are too large are left out, and the page says so.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Card, Event, CompleteStore } from '../../kernel/index.ts'
import type { Damaged, WireCard } from '../../server/wire.ts'
import type { FileSession, SessionFile } from '../../server/wire-file.ts'
import { cardsBelow, withTreeCost } from '../../stores/plan/tree-cost.ts'
import { blobFor, hashesIn } from '../../view/readable-blobs.ts'
import { safeJson } from '../../view/clean.ts'
import { withoutFolder } from '../../view/without-folder.ts'
import { countNoun } from '../../view/shown-text.ts'
import { VERSION } from '../../version.ts'
import { EXIT, CliError } from '../exit.ts'
import { readPending } from './read-log.ts'

const PAGE = 1_000
const MB = 1_000_000
/** The limits for one file that a log refers to, and for all of them. */
const BLOB_MAX = MB
const BLOBS_MAX = 8 * MB
/** The limit for all logs except that of the session itself, as JSON. */
const OTHERS_MAX = 8 * MB

type ReadableLog = { readonly events: readonly Event[]; readonly damaged?: Damaged }

export async function buildSessionFile(store: CompleteStore, card: Card): Promise<SessionFile> {
  const left: string[] = []
  const own = await readUntilDamage(store, card.session, Number.POSITIVE_INFINITY)
  if (own.damaged)
    left.push(
      `The log is damaged: the events before ${own.damaged.seq} are here, those from there on are not (${own.damaged.reason}).`,
    )
  const sessions: Record<string, FileSession> = { [card.session]: await buildFileSession(store, card, own) }
  let room = OTHERS_MAX
  for (const [other, upTo] of [
    ...(await findForkOrigins(store, own.events)),
    ...(await cardsBelow(store, card)).map((each) => [each, each.seq] as const),
  ]) {
    const read = await readUntilDamage(store, other.session, upTo)
    const size = JSON.stringify(read.events).length
    if (size > room) left.push(`The log of session ${other.session} (${fileSizeText(size)}).`)
    else sessions[other.session] = await buildFileSession(store, other, read)
    room -= Math.min(room, size)
  }
  const { blobs, without } = await collectBlobs(store, sessions)
  left.push(...without)
  const about = { format: 'terret.page', version: 1, by: VERSION, made: store.now() } as const
  return { ...about, session: card.session, sessions, blobs, left }
}

/** Reads up to the first damaged event. */
async function readUntilDamage(store: CompleteStore, session: string, upTo: number): Promise<ReadableLog> {
  const events: Event[] = []
  for (;;) {
    const page = await store.read(session, events.length, PAGE)
    events.push(...page.events.filter(({ seq }) => seq <= upTo))
    if (page.damaged) return { events: withoutFolder(events), damaged: page.damaged }
    if (page.events.length < PAGE || events.length >= upTo) return { events: withoutFolder(events) }
  }
}

async function buildFileSession(
  store: CompleteStore,
  card: Card,
  { events, damaged }: ReadableLog,
): Promise<FileSession> {
  const [costed] = await withTreeCost(store, [card])
  // The folder is left out, because a path of one machine means nothing on another.
  const { folder: _, treeCost: _cost, ...rest } = costed ?? { ...card, treeCost: 0, costUsd: 0, treeCostUsd: 0 }
  // Pending calls are read from all logs of the tree, and one of them may be damaged. The page shows this log anyway.
  const waits = damaged ? [] : await readPending(store, card.root).catch(() => [])
  const pending = waits.filter(({ path }) => path.includes(card.session))
  return {
    card: rest satisfies WireCard,
    events,
    pending,
    ...(damaged ? { damaged } : {}),
  }
}

/** The sessions it was forked from, each with the event of the fork. */
async function findForkOrigins(
  store: CompleteStore,
  [created]: readonly Event[],
): Promise<readonly (readonly [Card, number])[]> {
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

type CollectedBlobs = { readonly blobs: SessionFile['blobs']; readonly without: readonly string[] }

/** The files that the logs name. If there is not enough room for all, the smaller ones come first. */
async function collectBlobs(store: CompleteStore, sessions: SessionFile['sessions']): Promise<CollectedBlobs> {
  const found = new Map<string, { readonly media: string; readonly data: Uint8Array }>()
  const without: string[] = []
  for (const [session, { events }] of Object.entries(sessions)) {
    for (const hash of new Set(events.flatMap((event) => hashesIn(JSON.stringify(event))))) {
      const blob = found.has(hash) ? null : await blobFor(store, session, hash)
      if (blob) found.set(hash, blob)
    }
  }
  const blobs: Record<string, { readonly media: string; readonly data: string }> = {}
  let room = BLOBS_MAX
  for (const [hash, { media, data }] of [...found].toSorted(([, a], [, b]) => a.data.length - b.data.length)) {
    if (data.length > Math.min(BLOB_MAX, room))
      without.push(`The file ${hash} (${media}, ${fileSizeText(data.length)}).`)
    else {
      blobs[hash] = { media, data: Buffer.from(data).toString('base64') }
      room -= data.length
    }
  }
  return { blobs, without }
}

/** The page with the session inside. Nothing in the session can end the element that contains it. */
export function buildPage(file: SessionFile): string {
  const json = safeJson(file)
    .replaceAll('<', '\\u003c')
    .replace(/[\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16)}`)
  return readTemplate().replace('{{SESSION}}', () => json)
}

function readTemplate(): string {
  // The template is beside the bundle, or in `dist` of a checkout.
  for (const place of ['../export/session.html', '../../../dist/export/session.html']) {
    try {
      return readFileSync(fileURLToPath(new URL(place, import.meta.url)), 'utf8')
    } catch {
      continue
    }
  }
  throw new CliError(
    EXIT.config,
    'This build has no page to export into. Run `npm run build`, or export --format json.',
  )
}

export function fileSizeText(bytes: number): string {
  return bytes < MB ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / MB).toFixed(1)} MB`
}

/** The content of the page in words, for the person who exported it. */
export function pageContentText({ sessions, session, blobs }: SessionFile): string {
  const events = sessions[session]?.events.length ?? 0
  const others = Object.keys(sessions).length - 1
  return [
    countNoun(events, 'event'),
    ...(others > 0 ? [countNoun(others, 'other session')] : []),
    countNoun(Object.keys(blobs).length, 'file'),
  ].join(', ')
}
