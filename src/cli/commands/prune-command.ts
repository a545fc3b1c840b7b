// `terret prune`: removes old sessions with nothing left to do. Their cards select them; the store checks each one again.
import { countNoun } from '../../view/shown-text.ts'
import { isLaneAgent } from '../../view/lanes.ts'
import type { Card, Removal, CompleteStore } from '../../kernel/index.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, isDiskFull, CliError } from '../exit.ts'
import { removalRefusal } from '../state/disk-space.ts'
import { sessionIdsIn } from '../state/session-folders.ts'
import { removeAndReport, sweepFiles, sweepLostFiles } from '../state/leftovers.ts'
import { hasStore, withStore, type CommandContext } from '../state/command-context.ts'
import { askPerson, isAttended, print, printJson, shortId, warn } from '../present/print.ts'
import { formatSize, formatTime } from './delete-command.ts'
import { sessionTask } from './list-command.ts'
import { stateOf } from '../../view/tree-rows.ts'

/** A root session with its children. */
type SessionFamily = {
  readonly root: Card
  readonly cards: readonly Card[]
  readonly events: number
  readonly at: number
}
type KeepReason = 'running' | 'waiting' | 'wakes' | 'forked' | 'full'
export type KeptCounts = Record<KeepReason, number>

export function emptyKeptCounts(): KeptCounts {
  return { running: 0, waiting: 0, wakes: 0, forked: 0, full: 0 }
}

const DAY_MS = 86_400_000
const PAGE = 2_000
/** Sessions per transaction, so that other writers wait at most a tenth of a second. */
const TOGETHER = 16
const STATUSES = ['idle', 'terminated'] as const

export async function pruneCommand(call: CommandArgs): Promise<number> {
  const days = call.count('older', 0)
  if (days === undefined)
    throw new CliError(
      EXIT.usage,
      'The age is missing. Usage: terret prune --older DAYS (--dry-run only shows the sessions)',
    )
  const status = STATUSES.find((each) => each === call.text('status'))
  if (call.text('status') !== undefined && !status)
    throw new CliError(EXIT.usage, `--status must be one of: ${STATUSES.join(', ')}. Others are never pruned.`)
  if (!hasStore()) return reportPrune(call, { days, removed: [], kept: emptyKeptCounts() })
  return withStore(async (place) => {
    const kept = emptyKeptCounts()
    const waves = await findOldFamilies(place, { days, all: call.is('all'), status, kept })
    if (call.is('dry-run')) return printPreview(place, call, { waves, kept, days })
    if (!(await confirmPrune(call, waves.flat(), days))) {
      warn('Nothing was removed.')
      return EXIT.interrupted
    }
    await sweepLostFiles(place.home, place.store)
    const removed = await removeFamilies(place, waves, actorName(call), kept)
    if (kept.full > 0 && removed.length === 0) throw removalRefusal()
    return reportPrune(call, { days, removed, kept })
  })
}

type AgeFilter = {
  readonly days: number
  /** Whether sessions of all folders are included. */
  readonly all: boolean
  readonly status?: Card['status'] | undefined
  /** Counts the sessions that stay, by reason. */
  readonly kept: KeptCounts
}

/** Old families with nothing left to do, in groups: forks come before their sources. */
export async function findOldFamilies(
  place: CommandContext,
  { days, all, status, kept }: AgeFilter,
): Promise<readonly SessionFamily[][]> {
  const before = place.store.now() - days * DAY_MS
  const old = (await listFamilies(place, all)).filter(
    ({ root, at }) => at < before && (status ?? root.status) === root.status,
  )
  const done = old.filter((family) => {
    const reason = whyKept(family, place.store.now())
    if (reason !== null) kept[reason] += 1
    return reason === null
  })
  const waves = removalOrder(done, await findForkReaders(place.store, done))
  kept.forked += done.length - waves.flat().length
  return waves
}

/** The families of this folder, or of the whole store. */
async function listFamilies(place: CommandContext, all: boolean): Promise<readonly SessionFamily[]> {
  const here = all ? null : await sessionIdsIn(place)
  const families = new Map<string, Card[]>()
  for (let after = ''; ; ) {
    const page = await place.store.list({ after, limit: PAGE })
    for (const card of page) {
      if ((here !== null && !here.has(card.root)) || isLaneAgent(card.agent)) continue
      const cards = families.get(card.root)
      if (cards) cards.push(card)
      else families.set(card.root, [card])
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  return [...families].flatMap(([id, cards]): readonly SessionFamily[] => {
    const root = cards.find(({ session }) => session === id)
    if (!root) return []
    const events = cards.reduce((sum, { seq }) => sum + seq, 0)
    return [{ root, cards, events, at: Math.max(...cards.map(({ at }) => at)) }]
  })
}

/** Why a family must stay, or null. A session that workers gave up after too many failures also waits for a person. */
function whyKept({ cards }: SessionFamily, now: number): KeepReason | null {
  const isLeft = ({ due, trouble }: Card): boolean => due === null && trouble !== undefined
  if (cards.some((card) => card.status === 'requires_action' || isLeft(card))) return 'waiting'
  if (cards.some(({ status, due }) => status === 'running' || (due !== null && due <= now))) return 'running'
  return cards.some(({ due }) => due !== null) ? 'wakes' : null
}

/** For each root: the roots of the families that were forked from it. */
async function findForkReaders(
  store: CompleteStore,
  done: readonly SessionFamily[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
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

/**
 * Groups of families in the order of removal: forks before their sources. The source of a fork that stays is in no
 * group.
 */
function removalOrder(
  done: readonly SessionFamily[],
  readers: ReadonlyMap<string, ReadonlySet<string>>,
): readonly SessionFamily[][] {
  const waves: SessionFamily[][] = []
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
async function removeFamilies(
  { home, store }: CommandContext,
  waves: readonly (readonly SessionFamily[])[],
  by: string,
  kept: KeptCounts,
): Promise<readonly Removal[]> {
  const removed: Removal[] = []
  const noRoom = new Set<string>()
  const remove = async (id: string): Promise<readonly Removal[]> => {
    noRoom.delete(id)
    return store.remove(id, by).catch((error: unknown) => {
      if (!isDiskFull(error)) return countRefusal(error, kept)
      noRoom.add(id)
      return []
    })
  }
  const removeTogether = async (ids: readonly string[]): Promise<void> => {
    removed.push(...(await removeAndReport(store, ids, async () => (await Promise.all(ids.map(remove))).flat())))
  }
  try {
    for (const wave of waves) {
      const ids = wave.map(({ root }) => root.session)
      for (let from = 0; from < ids.length; from += TOGETHER) await removeTogether(ids.slice(from, from + TOGETHER))
    }
    // On a full disk, removing a small session makes room to remove a larger one.
    for (let before = 0; noRoom.size > 0 && removed.length > before; ) {
      before = removed.length
      const again = [...noRoom]
      for (const id of again) await removeTogether([id])
    }
  } finally {
    await sweepFiles(home, removed)
  }
  kept.full += noRoom.size
  return removed
}

export function countRefusal(error: unknown, kept: KeptCounts): readonly Removal[] {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  if (code === 'session_busy') kept.running += 1
  else if (code === 'conflict') kept.forked += 1
  else if (code !== 'session_missing') throw error
  return []
}

async function confirmPrune(call: CommandArgs, families: readonly SessionFamily[], days: number): Promise<boolean> {
  if (call.is('yes') || families.length === 0) return true
  const events = families.reduce((sum, family) => sum + family.events, 0)
  const what = `${countNoun(families.length, 'session')} older than ${countNoun(days, 'day')}, with ${countNoun(events, 'event')}`
  if (call.is('json') || !isAttended())
    throw new CliError(EXIT.usage, `This removes ${what}, for good. Confirm with --yes, or look with --dry-run.`)
  warn(`This removes ${what}. \`--dry-run\` shows them.`)
  return /^y(es)?$/i.test((await askPerson('Remove them for good? [y/N] '))?.trim() ?? '')
}

type PrunePreview = {
  readonly waves: readonly (readonly SessionFamily[])[]
  readonly kept: KeptCounts
  readonly days: number
}

async function printPreview(
  { store }: CommandContext,
  call: CommandArgs,
  { waves, kept, days }: PrunePreview,
): Promise<number> {
  const families = waves.flat()
  if (call.is('json')) {
    const would = families.map(({ root, events, at }) => ({ session: root.session, agent: root.agent, events, at }))
    printJson({ dryRun: true, days, would, kept })
    return EXIT.ok
  }
  for (const { root, events, at } of families) {
    const task = await sessionTask(store, root.session).catch(() => '')
    const size = countNoun(events, 'event').padStart(11)
    print(
      `${shortId(root.session).padEnd(8)}  ${stateOf(root).padEnd(15)}  ${formatTime(at)}  ${size}  ${oneLine(task, 60)}`,
    )
  }
  warn(`${countNoun(families.length, 'session')} would be removed. Nothing was.${keptCountsText(kept)}`)
  return EXIT.ok
}

type PruneReport = { readonly days: number; readonly removed: readonly Removal[]; readonly kept: KeptCounts }

function reportPrune(call: CommandArgs, { days, removed, kept }: PruneReport): number {
  const events = removed.reduce((sum, each) => sum + each.events, 0)
  const bytes = removed.reduce((sum, each) => sum + each.bytes, 0)
  if (call.is('json')) printJson({ dryRun: false, days, removed, events, bytes, kept })
  else {
    const what = `Removed ${countNoun(removed.length, 'session')} for good: ${countNoun(events, 'event')}, ${formatSize(bytes)}.`
    print(removed.length === 0 ? `There was no session to remove that is older than ${countNoun(days, 'day')}.` : what)
    if (keptCountsText(kept) !== '') warn(keptCountsText(kept).trim())
    if (kept.full > 0) warn(removalRefusal().message)
  }
  return kept.full > 0 ? EXIT.store : EXIT.ok
}

const SAID: Readonly<Record<KeepReason, string>> = {
  running: 'with work to do',
  waiting: 'waiting for a person',
  wakes: 'with a wake to come',
  forked: 'that a fork reads',
  full: 'whose removal needs more room than the disk has',
}

export function keptCountsText(kept: KeptCounts): string {
  const said = (Object.keys(SAID) as KeepReason[]).flatMap((reason) => {
    return kept[reason] > 0 ? [`${kept[reason]} ${SAID[reason]}`] : []
  })
  return said.length === 0 ? '' : ` Of those as old, these stay: ${said.join(', ')}.`
}
