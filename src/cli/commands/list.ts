// `terret list`: the sessions of this folder, newest first, or those of all folders.
import type { Card, Store } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { startedSessions } from '../folders.ts'
import { hasStore, inPlace, type Place, shortId } from '../place.ts'
import { print, printJson, warn } from '../print.ts'

const LIMIT = 20
const PAGE = 2_000
const STATUSES = ['idle', 'running', 'rescheduling', 'requires_action', 'terminated'] as const

export async function list(call: Call): Promise<number> {
  const limit = call.count('limit') ?? LIMIT
  const status = statusOf(call)
  const all = call.is('all')
  if (!hasStore()) return none(call)
  return inPlace(async (place) => {
    const found = all ? await everywhere(place, status) : await inFolder(place, status, limit)
    const { cards, count } = found
    if (cards.length === 0) return none(call)
    const folders = all ? new Map(startedSessions(place.home).map(({ session, folder }) => [session, folder])) : null
    for (const card of cards.slice(0, limit)) {
      const folder = folders ? (folders.get(card.session) ?? null) : place.folder
      const task = await taskOf(place.store, card.session)
      if (call.is('json')) printJson({ ...card, folder, task })
      else print(line(card, task, folders ? (folder ?? '?') : null))
    }
    if (!call.is('json') && count > limit) warn(`… and ${count - limit} more: --limit N shows them.`)
    return EXIT.ok
  })
}

type Status = Card['status']
type Found = { readonly cards: readonly Card[]; readonly count: number }

function statusOf(call: Call): Status | undefined {
  const given = call.text('status')
  const known = STATUSES.find((each) => each === given)
  if (given !== undefined && !known) throw new Refusal(EXIT.usage, `--status must be one of: ${STATUSES.join(', ')}.`)
  return known
}

function none(call: Call): number {
  if (!call.is('json'))
    warn('No sessions here yet. `terret run TASK` starts one; `terret list --all` looks everywhere.')
  return EXIT.ok
}

/** In the order they were started: only those that are shown are looked at, however many there are. */
async function inFolder({ home, folder, store }: Place, status: Status | undefined, limit: number): Promise<Found> {
  const ids = [...new Set(startedSessions(home).flatMap((each) => (each.folder === folder ? [each.session] : [])))]
  const cards: Card[] = []
  for (const id of ids.toReversed()) {
    if (cards.length === limit && status === undefined) break
    const card = await store.card(id)
    if (card && (status === undefined || card.status === status)) cards.push(card)
  }
  return { cards, count: status === undefined && cards.length === limit ? ids.length : cards.length }
}

/** Everything the store has, also what nobody wrote a folder down for. Children belong to their roots. */
async function everywhere({ store }: Place, status: Status | undefined): Promise<Found> {
  const cards: Card[] = []
  for (let after = ''; ; ) {
    const page = await store.list({ after, limit: PAGE, ...(status ? { status } : {}) })
    cards.push(...page.filter(({ session, root }) => session === root))
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  return { cards: cards.sort((a, b) => b.at - a.at), count: cards.length }
}

/** What it was first asked, as far as its first events say. */
export async function taskOf(store: Store, session: string): Promise<string> {
  const { events } = await store.read(session, 0, 4)
  const asked = events.find((event) => event.type === 'user.message')
  const parts = asked?.type === 'user.message' ? asked.parts : []
  return parts.map((part) => (part.type === 'text' ? part.text : `(${part.type})`)).join(' ')
}

function line(card: Card, task: string, folder: string | null): string {
  const when = new Date(card.at).toISOString().slice(0, 16).replace('T', ' ')
  const cost = card.cost > 0 ? `$${(card.cost / 1_000_000).toFixed(4)}` : ''
  const place = folder === null ? '' : `  ${oneLine(folder, 60)}`
  return `${shortId(card.session).padEnd(8)}  ${stateOf(card).padEnd(15)}  ${when}  ${cost.padStart(8)}${place}  ${oneLine(task, 60)}`
}

/** One word: what it is doing, or how it ended. */
export function stateOf({ status, outcome }: Card): string {
  return status === 'idle' ? (outcome ?? 'new') : status
}
