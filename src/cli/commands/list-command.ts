// `terret list`: the sessions of this folder, newest first, or those of all folders.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Card, CompleteStore } from '../../kernel/index.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { cardsHere, DEMO, recordedFolders, sessionIdsIn } from '../state/session-folders.ts'
import { isQuestionBelow, readPending, findWaitingRoots } from '../state/read-log.ts'
import { hasStore, type CommandContext, withStoreToRead } from '../state/command-context.ts'
import { print, printJson, shortId, warn, terretCommand } from '../present/print.ts'
import { describeStart } from '../state/own-folders.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { cardMatchesSearch } from '../../stores/plan/log-facts.ts'
import { cardsBelow, type TreeCard, withTreeCost } from '../../stores/plan/tree-cost.ts'
import { taskText } from '../state/workflow-agents.ts'
import { isQuarantined, nameIn, stateOf } from '../../view/tree-rows.ts'

const LIMIT = 20
const STATUSES = ['idle', 'running', 'rescheduling', 'requires_action', 'terminated'] as const

export async function listCommand(call: CommandArgs): Promise<number> {
  const limit = call.count('limit') ?? LIMIT
  const status = statusFlag(call)
  const all = call.is('all')
  const q = call.text('search')
  if (!hasStore()) return reportNone(call)
  return withStoreToRead(async (place) => {
    // Asks for one more than is shown, to know whether there are more.
    const wanted = { limit: limit + 1, ...(status ? { status } : {}), ...(q === undefined ? {} : { q }) }
    const found = all ? (await place.store.page({ order: 'newest', ...wanted })).cards : await cardsHere(place, wanted)
    const cards = status === 'requires_action' ? await addWaitingBelow(place, found, { all, q }) : found
    if (cards.length === 0) {
      // Nothing has used the store yet: make sure that it works before it counts as empty.
      await place.store.list({ limit: 1 })
      return reportNone(call)
    }
    const shown = await withTreeCost(place.store, cards.slice(0, limit))
    const noted = all ? recordedFolders(place.home) : NOT_NOTED
    for (const card of shown) {
      const folder = all ? (card.folder ?? noted.get(card.session) ?? null) : place.folder
      const json = call.is('json')
      const task = await (json ? sessionTask(place.store, card.session) : sessionTitle(place.store, card)).catch(
        nullIfRemoved,
      )
      if (task === null) continue
      if (json) {
        const { readRequestTokens } = await import('../../context/request-tokens.ts')
        const contextTokens = await readRequestTokens(place.store, card.session, card.seq)
        printJson({ ...card, folder, task, contextTokens, waitsBelow: await isQuestionBelow(place.store, card) })
      } else print(sessionLine(card, task, all ? (folder ?? '?') : null, await stateReason(place.store, card)))
    }
    const other = shown.find((card) => card.due !== null && drivenElsewhere(place, card) !== null)
    if (!call.is('json') && other)
      warn(
        `No worker of this program drives ${shortId(other.session)}. ${oneLine(drivenElsewhere(place, other) ?? '', 300)}`,
      )
    const left = shown.find(isQuarantined)
    if (!call.is('json') && left)
      warn(
        `No worker tries ${shortId(left.session)} any more: \`${terretCommand`inspect ${left.session}`}\` says why, and how to go on.`,
      )
    if (!call.is('json')) await warnOfChildren(place.store, shown)
    if (!call.is('json') && cards.length > limit) warn('… and more: --limit N shows them.')
    return EXIT.ok
  })
}

/** Warns about sessions whose subagents wait for a person: their own cards say `running`, or how they ended. */
async function warnOfChildren(store: CompleteStore, cards: readonly Card[]): Promise<void> {
  for (const card of cards) {
    if (!(await isQuestionBelow(store, card))) continue
    const way = terretCommand`pending ${card.session}`
    warn(`A subagent of ${shortId(card.session)} waits for you: \`${way}\` shows it.`)
  }
}

/** Adds sessions that work or have ended, but have a child that waits for a person, as in the inbox. */
async function addWaitingBelow(
  place: CommandContext,
  cards: readonly Card[],
  { all, q = '' }: { readonly all: boolean; readonly q: string | undefined },
): Promise<readonly Card[]> {
  const known = new Set(cards.map(({ session }) => session))
  const others = (await findWaitingRoots(place.store)).filter((root) => !known.has(root))
  const here = all || others.length === 0 ? null : await sessionIdsIn(place)
  const below: Card[] = []
  for (const root of others.filter((each) => here === null || here.has(each))) {
    const card = await place.store.card(root)
    if (card && cardMatchesSearch(card, q) && (await readPending(place.store, root)).length > 0) below.push(card)
  }
  const timeOf = ({ at, created = at }: Card): number => (all ? at : created)
  return below.length === 0 ? cards : [...cards, ...below].toSorted((a, b) => timeOf(b) - timeOf(a))
}

type CardStatus = Card['status']
const NOT_NOTED: ReadonlyMap<string, string> = new Map()

function statusFlag(call: CommandArgs): CardStatus | undefined {
  const given = call.text('status')
  const known = STATUSES.find((each) => each === given)
  if (given !== undefined && !known) throw new CliError(EXIT.usage, `--status must be one of: ${STATUSES.join(', ')}.`)
  return known
}

/** The title of a session, or else its first message. */
export async function sessionTitle(store: CompleteStore, card: Card): Promise<string> {
  return ownTitle(card) ?? sessionTask(store, card.session)
}

/** Null if it has no title, or if the title is only the input of a report. */
function ownTitle({ title }: Card): string | null {
  return title === undefined || title.startsWith('{"topic":') ? null : title
}

function reportNone(call: CommandArgs): number {
  const sought = call.text('search')
  if (sought !== undefined) {
    if (!call.is('json')) warn(`No session here has "${oneLine(sought, 60)}" in its title, agent, id or labels.`)
  } else if (!call.is('json')) {
    const where = call.is('all') ? '' : ` \`${terretCommand`list --all`}\` looks in all folders.`
    const what = call.text('status') === undefined ? 'No sessions' : 'No such sessions'
    warn(`${what}${call.is('all') ? '' : ' in this folder'} yet. ${describeStart()}${where}`)
    if (existsSync(join(DEMO.data, 'terret.db')) && call.text('data') === undefined)
      warn(`The demo keeps its sessions apart: \`${terretCommand`list --data ${DEMO.data}`}\` shows them.`)
  }
  return EXIT.ok
}

/** The session was removed after its card was read. */
function nullIfRemoved(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'session_missing') return null
  throw error
}

/** The first message of a session, if it is among its first events. */
export async function sessionTask(store: CompleteStore, session: string): Promise<string> {
  const { events } = await store.read(session, 0, 4)
  const asked = events.find((event) => event.type === 'user.message')
  const parts = asked?.type === 'user.message' ? asked.parts : []
  return taskText(parts.map((part) => (part.type === 'text' ? part.text : `(${part.type})`)).join(' '))
}

/**
 * Why a session waits for a provider and when the next try is, or why it halted. If its own card says nothing, the
 * reason of a child is used.
 */
async function stateReason(store: CompleteStore, card: Card): Promise<string | null> {
  if (card.outage) return outageReason(card)
  if (stateOf(card) === 'halted') return card.cause ?? null
  if (card.status !== 'running' || card.due !== null || card.waits.length === 0) return null
  const away = (await cardsBelow(store, card)).find(({ outage }) => outage !== undefined)
  return away === undefined ? null : `${nameIn(away.session, card.session)} ${outageReason(away) ?? ''}`
}

function outageReason({ outage, due, status }: Card): string | null {
  if (!outage) return null
  const again =
    status === 'rescheduling' && due !== null ? `, next try ${new Date(due).toISOString().slice(0, 16)}Z` : ''
  return `${oneLine(outage.reason, 80)}${again}`
}

function sessionLine(card: TreeCard, task: string, folder: string | null, why: string | null): string {
  const when = new Date(card.at).toISOString().slice(0, 16).replace('T', ' ')
  const cost = card.treeCost > 0 ? `$${(card.treeCost / 1_000_000).toFixed(4)}` : ''
  const place = folder === null ? '' : `  ${oneLine(folder, 60)}`
  const outage = why === null ? '' : `  (${oneLine(why, 120)})`
  return `${shortId(card.session).padEnd(8)}  ${stateOf(card).padEnd(15)}  ${when}  ${cost.padStart(8)}${place}  ${oneLine(task, 60)}${outage}`
}
