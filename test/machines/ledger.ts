// The account of `npm run machines`: what the logs of all sessions say, beside what the bank's book and the account of the money say.
// It knows nothing of what the program did: another process could make it from the same store.
import { readAllEvents } from '../../src/cli/state/read-log.ts'
import type { Event, CompleteStore } from '../../src/kernel/index.ts'
import { countNoun, textOf } from '../../src/view/shown-text.ts'
import { usdText } from '../../src/view/usd.ts'
import type { Payment } from './agents.ts'

export type Ledger = { readonly lines: readonly string[]; readonly lost: number; readonly doubled: number }

/** What one session's log says. */
type Tale = {
  readonly payments: number
  readonly approvals: number
  readonly requests: number
  readonly cost: number
  readonly settled: boolean
  /** Who drove it, in order. Null: the log does not say, as the worker was killed before its first answer. */
  readonly drivers: readonly (string | null)[]
  /** Who went on where a worker was cut off, and from whom. */
  readonly takeovers: readonly string[]
}

/** The account of the day, in millionths of a dollar. `assumed` is the part for requests that were cut off, whose price no provider told. */
type Day = { readonly spent: number; readonly assumed: number }

export async function ledgerOf(
  store: CompleteStore,
  book: readonly Payment[],
  { spent, assumed }: Day,
): Promise<Ledger> {
  const cards = await store.list({ limit: 1_000 })
  const tales: Tale[] = []
  let [lost, doubled] = [0, 0]
  for (const { session } of cards) {
    const tale = taleOf(session, await readAllEvents(store, session))
    const paid = book.filter((payment) => payment.session === session).length
    if (paid < 1 || tale.payments < 1 || !tale.settled) lost += 1
    if (paid > 1 || tale.payments > 1) doubled += 1
    tales.push(tale)
  }
  const sum = (of: (tale: Tale) => number): number => tales.reduce((all, tale) => all + of(tale), 0)
  const [cost, requests] = [sum((tale) => tale.cost), sum((tale) => tale.requests)]
  const takeovers = tales.flatMap((tale) => tale.takeovers)
  const more =
    assumed === 0 ? '' : `, with ${usdText(assumed)} more, the most that requests which were cut off can have cost`
  const agrees = cost === spent - assumed ? `so says the account${more}` : `the account says ${usdText(spent)}`
  const lines = [
    `Agents     ${cards.length}, ${tales.filter(({ settled }) => settled).length} of them done`,
    `Payments   ${sum(({ payments }) => payments)} in the logs, ${book.length} in the book of the bank`,
    `           lost ${lost}, doubled ${doubled}`,
    `Approvals  ${sum(({ approvals }) => approvals)} in the logs, each for one exact call`,
    `Workers    ${workersText(tales)}`,
    `Takeovers  ${takeovers.length === 0 ? 'none' : takeovers.length}`,
    ...takeovers.map((text) => `           ${text}`),
    `Money      ${usdText(cost)} for ${countNoun(requests, 'request')} in the logs, and ${agrees}`,
  ]
  return { lines, lost, doubled }
}

function taleOf(session: string, events: readonly Event[]): Tale {
  const owned = events.filter(({ epoch }) => epoch > 0)
  const epochs = [...new Set(owned.map(({ epoch }) => epoch))]
  const drives = epochs.map((epoch) => {
    const own = owned.filter((event) => event.epoch === epoch)
    const [first, last] = [own[0], own.at(-1)]
    const worker = own.map(workerOf).find((name) => name !== null) ?? null
    return { worker, began: first?.at ?? 0, ended: last?.at ?? 0, last: last?.type ?? '' }
  })
  const takeovers = drives.flatMap(({ worker, began }, i) => {
    const before = drives[i - 1]
    if (!before || !AT_WORK.has(before.last)) return []
    const found = events.flatMap((event) => (event.type === 'agent.tool_result' ? [paidBy(event)] : []))
    const from = before.worker ?? found.find((name) => name !== null) ?? 'one that was killed'
    const after = `${((began - before.ended) / 1_000).toFixed(1)} s later`
    return [`${session}: ${worker ?? 'another'} for ${from}, ${CUT[before.last] ?? 'between two turns'}, ${after}`]
  })
  return {
    payments: events.filter((event) => paidBy(event) !== null).length,
    approvals: events.filter((event) => event.type === 'user.tool_confirmation' && event.allow).length,
    requests: events.filter(({ type }) => type === 'model.started').length,
    cost: events.reduce((all, event) => all + ('cost' in event ? (event.cost ?? 0) : 0), 0),
    settled: events.at(-1)?.type === 'run.settled',
    drivers: drives.map(({ worker }) => worker),
    takeovers,
  }
}

/** The last event of an attempt that was cut off: after any other the session rested. */
const AT_WORK: ReadonlySet<string> = new Set(['run.started', 'model.started', 'agent.tool_use', 'agent.tool_result'])
const CUT: Readonly<Record<string, string>> = {
  'agent.tool_use': 'cut off in a payment',
  'model.started': 'cut off in a request',
}

/** Who wrote it: replies begin with the name, and results have it. */
function workerOf(event: Event): string | null {
  if (event.type === 'agent.message') return /^(\w+):/.exec(textOf(event.parts))?.[1] ?? null
  return /; (\w+) found/.exec(resultIn(event))?.[1] ?? paidBy(event)
}

function paidBy(event: Event): string | null {
  return /is paid, by (\w+)/.exec(resultIn(event))?.[1] ?? null
}

function resultIn(event: Event): string {
  return event.type === 'agent.tool_result' && typeof event.content === 'string' ? event.content : ''
}

function workersText(tales: readonly Tale[]): string {
  const names = [...new Set(tales.flatMap(({ drivers }) => drivers))].filter((name) => name !== null).sort()
  const counts = names.map((name) => tales.filter(({ drivers }) => drivers.includes(name)).length)
  return names.map((name, i) => `${name} drove ${counts[i]}${i === 0 ? ' sessions' : ''}`).join(', ')
}
