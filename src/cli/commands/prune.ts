// `terret prune`: removes old sessions with nothing left to do. Their cards select them; the store checks each one again.
import type { Card, Removal, Store } from '../../kernel/index.ts'
import { type Call, person } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, isDiskFull, Refusal } from '../exit.ts'
import { removalRefusal } from '../state/disk.ts'
import { sessionsIn } from '../state/folders.ts'
import { removeWith, sweep, sweepLost } from '../state/leftovers.ts'
import { hasStore, inPlace, type Place } from '../state/place.ts'
import { ask, isAttended, print, printJson, shortId, warn } from '../present/print.ts'
import { countOf, sizeOf, whenOf } from './delete.ts'
import { taskOf } from './list.ts'
import { stateOf } from '../../view/tree.ts'

/** A root with its children, as `prune` looks at them. */
type Family = { readonly root: Card; readonly cards: readonly Card[]; readonly events: number; readonly at: number }
type Reason = 'running' | 'waiting' | 'wakes' | 'forked' | 'full'
export type Kept = Record<Reason, number>

export function noneKept(): Kept {
  return { running: 0, waiting: 0, wakes: 0, forked: 0, full: 0 }
}

const DAY_MS = 86_400_000
const PAGE = 2_000
/** Sessions per transaction: others wait at most a tenth of a second. */
const TOGETHER = 16
const STATUSES = ['idle', 'terminated'] as const

export async function prune(call: Call): Promise<number> {
  const days = call.count('older', 0)
  if (days === undefined)
    throw new Refusal(
      EXIT.usage,
      'The age is missing. Usage: terret prune --older DAYS (--dry-run only shows the sessions)',
    )
  const status = STATUSES.find((each) => each === call.text('status'))
  if (call.text('status') !== undefined && !status)
    throw new Refusal(EXIT.usage, `--status must be one of: ${STATUSES.join(', ')}. Others are never pruned.`)
  if (!hasStore()) return told(call, { days, removed: [], kept: noneKept() })
  return inPlace(async (place) => {
    const kept = noneKept()
    const waves = await oldFamilies(place, { days, all: call.is('all'), status, kept })
    if (call.is('dry-run')) return previewed(place, call, { waves, kept, days })
    if (!(await isMeant(call, waves.flat(), days))) {
      warn('Nothing was removed.')
      return EXIT.interrupted
    }
    await sweepLost(place.home, place.store)
    const removed = await removeAll(place, waves, person(call), kept)
    if (kept.full > 0 && removed.length === 0) throw removalRefusal()
    return told(call, { days, removed, kept })
  })
}

type Old = {
  readonly days: number
  /** Of all folders. */
  readonly all: boolean
  readonly status?: Card['status'] | undefined
  /** Counts those that stay. */
  readonly kept: Kept
}

/** Old families with nothing left to do, forks before what they were forked from. */
export async function oldFamilies(place: Place, { days, all, status, kept }: Old): Promise<readonly Family[][]> {
  const before = place.store.now() - days * DAY_MS
  const old = (await familiesIn(place, all)).filter(
    ({ root, at }) => at < before && (status ?? root.status) === root.status,
  )
  const done = old.filter((family) => {
    const reason = reasonOf(family, place.store.now())
    if (reason !== null) kept[reason] += 1
    return reason === null
  })
  const waves = wavesOf(done, await readersOf(place.store, done))
  kept.forked += done.length - waves.flat().length
  return waves
}

/** Of this folder, or all of the store. */
async function familiesIn(place: Place, all: boolean): Promise<readonly Family[]> {
  const here = all ? null : await sessionsIn(place)
  const families = new Map<string, Card[]>()
  for (let after = ''; ; ) {
    const page = await place.store.list({ after, limit: PAGE })
    for (const card of page) {
      if (here !== null && !here.has(card.root)) continue
      const cards = families.get(card.root)
      if (cards) cards.push(card)
      else families.set(card.root, [card])
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  return [...families].flatMap(([id, cards]): readonly Family[] => {
    const root = cards.find(({ session }) => session === id)
    if (!root) return []
    const events = cards.reduce((sum, { seq }) => sum + seq, 0)
    return [{ root, cards, events, at: Math.max(...cards.map(({ at }) => at)) }]
  })
}

/** Why it must stay, or null. A session left alone after too many failures waits for a person too. */
function reasonOf({ cards }: Family, now: number): Reason | null {
  const isLeft = ({ due, trouble }: Card): boolean => due === null && trouble !== undefined
  if (cards.some((card) => card.status === 'requires_action' || isLeft(card))) return 'waiting'
  if (cards.some(({ status, due }) => status === 'running' || (due !== null && due <= now))) return 'running'
  return cards.some(({ due }) => due !== null) ? 'wakes' : null
}

/** By the root of a family: the roots of the families forked from it. */
async function readersOf(store: Store, done: readonly Family[]): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const readers = new Map<string, Set<string>>()
  const roots = new Map(done.flatMap(({ root, cards }) => cards.map(({ session }) => [session, root.session] as const)))
  for (let after = ''; roots.size > 0; ) {
    const page = await store.list({ after, limit: PAGE })
    for (const { session, root } of page) {
      const [created] = (await store.read(session, 0, 1).catch(() => ({ events: [] }))).events
      const origin = created?.type === 'session.created' ? created.fork?.session : undefined
      const read = origin === undefined ? undefined : roots.get(origin)
      if (read !== undefined && read !== root) readers.set(read, (readers.get(read) ?? new Set()).add(root))
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  return readers
}

/** Forks are removed before their sources. The source of a fork that stays is in no wave. */
function wavesOf(done: readonly Family[], readers: ReadonlyMap<string, ReadonlySet<string>>): readonly Family[][] {
  const waves: Family[][] = []
  const gone = new Set<string>()
  for (let left = [...done]; ; ) {
    const wave = left.filter(({ root }) => [...(readers.get(root.session) ?? [])].every((reader) => gone.has(reader)))
    if (wave.length === 0) return waves
    waves.push(wave)
    for (const { root } of wave) gone.add(root.session)
    left = left.filter(({ root }) => !gone.has(root.session))
  }
}

/** A session that went on in the meantime stays. */
async function removeAll(
  { home, store }: Place,
  waves: readonly (readonly Family[])[],
  by: string,
  kept: Kept,
): Promise<readonly Removal[]> {
  const removed: Removal[] = []
  const noRoom = new Set<string>()
  const remove = async (id: string): Promise<readonly Removal[]> => {
    noRoom.delete(id)
    return store.remove(id, by).catch((error: unknown) => {
      if (!isDiskFull(error)) return refused(error, kept)
      noRoom.add(id)
      return []
    })
  }
  const removeTogether = async (ids: readonly string[]): Promise<void> => {
    removed.push(...(await removeWith(store, ids, async () => (await Promise.all(ids.map(remove))).flat())))
  }
  try {
    for (const wave of waves) {
      const ids = wave.map(({ root }) => root.session)
      for (let from = 0; from < ids.length; from += TOGETHER) await removeTogether(ids.slice(from, from + TOGETHER))
    }
    // On a full disk the removal of one makes room for the removal of a larger one.
    for (let before = 0; noRoom.size > 0 && removed.length > before; ) {
      before = removed.length
      const again = [...noRoom]
      for (const id of again) await removeTogether([id])
    }
  } finally {
    await sweep(home, removed)
  }
  kept.full += noRoom.size
  return removed
}

export function refused(error: unknown, kept: Kept): readonly Removal[] {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  if (code === 'session_busy') kept.running += 1
  else if (code === 'conflict') kept.forked += 1
  else if (code !== 'session_missing') throw error
  return []
}

async function isMeant(call: Call, families: readonly Family[], days: number): Promise<boolean> {
  if (call.is('yes') || families.length === 0) return true
  const events = families.reduce((sum, family) => sum + family.events, 0)
  const what = `${countOf(families.length, 'session')} older than ${countOf(days, 'day')}, with ${countOf(events, 'event')}`
  if (call.is('json') || !isAttended())
    throw new Refusal(EXIT.usage, `This removes ${what}, for good. Confirm with --yes, or look with --dry-run.`)
  warn(`This removes ${what}. \`--dry-run\` shows them.`)
  return /^y(es)?$/i.test((await ask('Remove them for good? [y/N] '))?.trim() ?? '')
}

type Preview = { readonly waves: readonly (readonly Family[])[]; readonly kept: Kept; readonly days: number }

async function previewed({ store }: Place, call: Call, { waves, kept, days }: Preview): Promise<number> {
  const families = waves.flat()
  if (call.is('json')) {
    const would = families.map(({ root, events, at }) => ({ session: root.session, agent: root.agent, events, at }))
    printJson({ dryRun: true, days, would, kept })
    return EXIT.ok
  }
  for (const { root, events, at } of families) {
    const task = await taskOf(store, root.session).catch(() => '')
    const size = countOf(events, 'event').padStart(11)
    print(
      `${shortId(root.session).padEnd(8)}  ${stateOf(root).padEnd(15)}  ${whenOf(at)}  ${size}  ${oneLine(task, 60)}`,
    )
  }
  warn(`${countOf(families.length, 'session')} would be removed. Nothing was.${keptText(kept)}`)
  return EXIT.ok
}

type Told = { readonly days: number; readonly removed: readonly Removal[]; readonly kept: Kept }

function told(call: Call, { days, removed, kept }: Told): number {
  const events = removed.reduce((sum, each) => sum + each.events, 0)
  const bytes = removed.reduce((sum, each) => sum + each.bytes, 0)
  if (call.is('json')) printJson({ dryRun: false, days, removed, events, bytes, kept })
  else {
    const what = `Removed ${countOf(removed.length, 'session')} for good: ${countOf(events, 'event')}, ${sizeOf(bytes)}.`
    print(removed.length === 0 ? `There was no session to remove that is older than ${countOf(days, 'day')}.` : what)
    if (keptText(kept) !== '') warn(keptText(kept).trim())
    if (kept.full > 0) warn(removalRefusal().message)
  }
  return kept.full > 0 ? EXIT.store : EXIT.ok
}

const SAID: Readonly<Record<Reason, string>> = {
  running: 'with work to do',
  waiting: 'waiting for a person',
  wakes: 'with a wake to come',
  forked: 'that a fork reads',
  full: 'whose removal needs more room than the disk has',
}

export function keptText(kept: Kept): string {
  const said = (Object.keys(SAID) as Reason[]).flatMap((reason) => {
    return kept[reason] > 0 ? [`${kept[reason]} ${SAID[reason]}`] : []
  })
  return said.length === 0 ? '' : ` Of those as old, these stay: ${said.join(', ')}.`
}
