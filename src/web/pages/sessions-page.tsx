// The sessions page: problems first, then sessions that wait for a person, then running and spending ones, then all
// others, newest first.
import { SearchField } from '../parts/search-field.tsx'
import { type RefObject, useDeferredValue, useMemo, useRef, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import type { WireCard } from '../../server/wire.ts'
import { BUDGET } from '../../view/pending-calls.ts'
import { ownOf } from '../../view/untrusted-json.ts'
import { nameIn } from '../../view/tree-rows.ts'
import type { SessionsQuery } from '../data/api.ts'
import { type CardPart, useCards } from '../data/card-list.ts'
import { serverNow } from '../data/server-clock.ts'
import { useAgents, usePending, useUsage } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { moneyText } from '../parts/figures.tsx'
import { Plus, Search } from '../parts/icons.ts'
import { List } from '../parts/virtual-list.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { toggleMark, clearMarks, useMarks } from '../shell/compare-marks.ts'
import { PageHead } from '../shell/page-shell.tsx'
import { runKeyCommand, useKeys } from '../shell/use-keys.ts'
import { useTrees } from './sessions/use-trees.ts'
import { type SessionGroup, type SessionLine, buildSessionLines, WAITING } from './sessions/session-lines.ts'
import { SessionListRow } from './sessions/session-row.tsx'

/** A status with a section shows only that section of the whole list. The others are statuses of the store. */
const STATUSES: readonly (readonly [status: string, name: string, section?: SessionGroup])[] = [
  ['problems', 'Problems', 'Problems'],
  ['waiting', WAITING, WAITING],
  ['paused', 'Paused', 'Paused'],
  ['running', 'Running', 'Running'],
  ['scheduled', 'Scheduled', 'Scheduled'],
  ['idle', 'Resting', 'Earlier'],
  ['terminated', 'Closed'],
]

/** These statuses use the same query as the whole list, so that a section has the same rows in both. */
const SECTIONS = new Set(['problems', 'waiting', 'paused', 'running', 'scheduled'])

/** Old filter values that saved addresses may contain. */
const RENAMED: Readonly<Record<string, string>> = { requires_action: 'waiting', rescheduling: 'scheduled' }

/** The outcome of the last run. */
const OUTCOMES = [
  ['failed', 'Failed'],
  ['halted', 'Halted'],
  ['limit', 'Limit reached'],
  ['unknown', 'Unknown outcome'],
  ['interrupted', 'Interrupted'],
  ['completed', 'Completed'],
] as const

const HOUR_MS = 3_600_000
const TIMES: Readonly<Record<string, { readonly name: string; readonly ms: number }>> = {
  '1h': { name: 'Last hour', ms: HOUR_MS },
  '24h': { name: 'Last 24 hours', ms: 24 * HOUR_MS },
  '7d': { name: 'Last 7 days', ms: 168 * HOUR_MS },
}

export function SessionsPage() {
  const search = useRef<HTMLInputElement>(null)
  const [filter, setFilter] = useListFilter()
  const wanted = useDeferredValue(filter)
  const { found, cards, news, more, isReading, isWhole } = useCards(useSessionsQuery(wanted))
  const { opened, below, toggle } = useTrees(news)
  const waits = useWaitWords()
  const only = sectionOfFilter(wanted)
  const { lines, counts } = useMemo(
    () => buildSessionLines(cards, only, opened, below, waits.roots),
    [cards, only, opened, below, waits.roots],
  )
  const moves = useRowKeys(lines, { search, toggle })
  const marks = useMarks()
  const isFiltered = Object.keys(filter).length > 0
  const isLoading = found.isPending || (isReading && lines.length === 0)
  // A section reads more with its own query, the whole list with the list's query.
  const onEnd = (): void =>
    only === undefined || !isWhole
      ? void (found.hasNextPage && !found.isFetching && found.fetchNextPage())
      : loadMoreOf(only, more)?.()
  const row = (line: SessionLine) =>
    line.type === 'head' ? (
      <GroupHead {...line} hasMore={line.name === WAITING && waits.hasMore} onMore={loadMoreOf(line.name, more)} />
    ) : (
      <SessionListRow
        card={line.card}
        depth={line.depth}
        open={line.open}
        marked={marks.includes(line.card.session)}
        waits={waits.words.get(line.card.session)}
        waitsBelow={waits.below.has(line.card.session)}
        onToggle={toggle}
      />
    )
  return (
    <div className="page">
      <PageHead
        title="Sessions"
        about={
          found.data && isWhole ? (
            <RunningNow running={counts.get('Running')} hasMore={more.has('running')} />
          ) : undefined
        }
      >
        <Filters filter={filter} onChange={setFilter} search={search} />
        <Button kind="primary" onPress={() => runKeyCommand('new')}>
          <Plus size={15} aria-hidden /> New
        </Button>
      </PageHead>
      {marks.length === 1 ? <MarkedNotice session={marks[0] ?? ''} cards={cards} /> : null}
      {isLoading ? <Loading what="Loading sessions" rows={10} /> : null}
      {found.isError && cards.length === 0 ? (
        <ErrorPanel error={found.error} onRetry={() => void found.refetch()} />
      ) : null}
      {found.data && !isLoading && lines.length === 0 ? (
        <NoSessions isFiltered={isFiltered} onAll={() => setFilter({})} />
      ) : null}
      {lines.length > 0 ? (
        <List label="Sessions" items={lines} keyOf={lineKey} chosen={moves.chosen} onEnd={onEnd} row={row} />
      ) : null}
    </div>
  )
}

/** The section that the filter selects, if any. */
function sectionOfFilter({ status }: ListFilter): SessionGroup | undefined {
  return STATUSES.find(([each]) => each === status)?.[2]
}

const PARTS: Partial<Readonly<Record<SessionGroup, CardPart>>> = {
  Problems: 'problems',
  Paused: 'paused',
  Running: 'running',
  Scheduled: 'scheduled',
}

function loadMoreOf(name: SessionGroup, more: ReadonlyMap<CardPart, () => void>): (() => void) | undefined {
  const part = PARTS[name]
  return part === undefined ? undefined : more.get(part)
}

type GroupHeadProps = {
  readonly name: SessionGroup
  readonly count: number
  /** There are more sessions, which this section cannot load. */
  readonly hasMore: boolean
  readonly onMore: (() => void) | undefined
}

function GroupHead({ name, count, hasMore, onMore }: GroupHeadProps) {
  return (
    <div className="session-group">
      <h2>
        {name} <span>{onMore || hasMore ? `${count}+` : count}</span>
      </h2>
      {onMore ? (
        <Button size="small" kind="quiet" label={`Show more of ${name}`} onPress={onMore}>
          Show more
        </Button>
      ) : null}
    </div>
  )
}

type WaitWords = {
  /** The first pending call of each session, in words. A root whose child waits gets the child's words. */
  readonly words: ReadonlyMap<string, string>
  /** Roots with an inbox entry, their own or a child's. */
  readonly roots: ReadonlySet<string>
  /** The roots of which only children wait. */
  readonly below: ReadonlySet<string>
  /** The inbox has more entries than were read. */
  readonly hasMore: boolean
}

/** The list uses the inbox's own data, so that both agree on which sessions wait. */
function useWaitWords(): WaitWords {
  const { pending, next = null } = usePending().data ?? {}
  return useMemo(() => {
    const words = new Map<string, string>()
    const below = new Map<string, string>()
    for (const { sessionId, path, callId, needs, tool } of pending ?? []) {
      const what = callId === BUDGET ? 'more money' : needs === 'answer' ? 'an answer' : `approval of ${tool}`
      const root = path[0] ?? sessionId
      if (!words.has(sessionId)) words.set(sessionId, `waits for ${what}`)
      if (root !== sessionId && !below.has(root)) below.set(root, `${nameIn(sessionId, root)} waits for ${what}`)
    }
    const roots = new Set((pending ?? []).map(({ sessionId, path }) => path[0] ?? sessionId))
    const onlyBelow = new Set([...below.keys()].filter((root) => !words.has(root)))
    return { words: new Map([...below, ...words]), roots, below: onlyBelow, hasMore: next !== null }
  }, [pending, next])
}

function lineKey(line: SessionLine): string {
  return line.type === 'head' ? `head ${line.name}` : line.card.session
}

type ListFilter = Partial<Readonly<Record<(typeof NAMES)[number], string>>>
const NAMES = ['q', 'status', 'outcome', 'since', 'agent'] as const

/** Kept in the address, so that a link shows the same list. */
function useListFilter(): readonly [ListFilter, (next: ListFilter) => void] {
  const [params, setParams] = useSearchParams()
  const [q, named, outcome, since, agent] = NAMES.map((name) => params.get(name) || undefined)
  const status = ownOf(RENAMED, named ?? '') ?? named
  const filter = useMemo(() => omitEmpty({ q, status, outcome, since, agent }), [q, status, outcome, since, agent])
  return [filter, (next) => setParams(omitEmpty(next), { replace: true })]
}

/** The filter as a query. A period like the last hour is counted back from the moment it was chosen. */
function useSessionsQuery({ since = '', ...rest }: ListFilter): SessionsQuery {
  const { status = '', ...others } = rest
  const filter = SECTIONS.has(status) ? others : rest
  const key = JSON.stringify([since, filter])
  return useMemo(() => {
    const ms = ownOf(TIMES, since)?.ms
    return ms === undefined ? filter : { ...filter, since: Math.floor(serverNow() - ms) }
  }, [key])
}

function omitEmpty(some: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(some).filter((entry): entry is [string, string] => Boolean(entry[1])))
}

type RowKeyOptions = {
  readonly search: RefObject<HTMLInputElement | null>
  readonly toggle: (session: string) => void
}

/** The row that keys act on. */
function useRowKeys(
  lines: readonly SessionLine[],
  { search, toggle }: RowKeyOptions,
): { readonly chosen: string | null } {
  const [chosen, setChosen] = useState<string | null>(null)
  const [, go] = useLocation()
  const ids = lines.flatMap((line) => (line.type === 'head' ? [] : [line.card.session]))
  const move = (by: number): void => {
    const at = chosen === null ? -1 : ids.indexOf(chosen)
    setChosen(ids[Math.min(Math.max(0, at + by), ids.length - 1)] ?? null)
  }
  useKeys({
    next: () => move(1),
    previous: () => move(-1),
    open: () => chosen !== null && go(`/s/${encodeURIComponent(chosen)}`),
    mark: () => {
      const both = chosen === null ? null : toggleMark(chosen)
      if (both !== null) go(both)
    },
    children: () => chosen !== null && toggle(chosen),
    search: () => search.current?.focus(),
  })
  return { chosen }
}

type FiltersProps = {
  readonly filter: ListFilter
  readonly onChange: (next: ListFilter) => void
  readonly search: RefObject<HTMLInputElement | null>
}

/** The prefix of outcomes among the status options. */
const LAST = 'last:'

function Filters({ filter, onChange, search }: FiltersProps) {
  return (
    <>
      <div className="search">
        <Search size={15} aria-hidden />
        <SearchField
          label="Search sessions"
          placeholder="Search"
          charsMax={200}
          value={filter.q ?? ''}
          onText={(q) => onChange({ ...filter, q })}
          field={search}
        />
        <kbd aria-hidden>/</kbd>
      </div>
      <select
        className="field"
        aria-label="Status"
        value={filter.outcome === undefined ? (filter.status ?? '') : `${LAST}${filter.outcome}`}
        onChange={({ target: { value } }) => {
          const { status: _status, outcome: _outcome, ...rest } = filter
          onChange(value.startsWith(LAST) ? { ...rest, outcome: value.slice(LAST.length) } : { ...rest, status: value })
        }}
      >
        <option value="">Any status</option>
        {STATUSES.map(([status, name]) => (
          <option key={status} value={status}>
            {name}
          </option>
        ))}
        <optgroup label="Last run">
          {OUTCOMES.map(([outcome, name]) => (
            <option key={outcome} value={`${LAST}${outcome}`}>
              {name}
            </option>
          ))}
        </optgroup>
      </select>
      <select
        className="field"
        aria-label="Time"
        value={filter.since ?? ''}
        onChange={(event) => onChange({ ...filter, since: event.target.value })}
      >
        <option value="">Any time</option>
        {Object.entries(TIMES).map(([since, { name }]) => (
          <option key={since} value={since}>
            {name}
          </option>
        ))}
      </select>
      <AgentFilter filter={filter} onChange={onChange} />
    </>
  )
}

function AgentFilter({ filter, onChange }: Omit<FiltersProps, 'search'>) {
  const agents = useAgents().data?.agents ?? []
  const names = [...new Set([...agents.map(({ name }) => name), ...(filter.agent ? [filter.agent] : [])])]
  return (
    <select
      className="field"
      aria-label="Agent"
      value={filter.agent ?? ''}
      onChange={(event) => onChange({ ...filter, agent: event.target.value })}
    >
      <option value="">Any agent</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  )
}

/** The number of running sessions, and the spending per hour. */
function RunningNow({ running = 0, hasMore }: { readonly running: number | undefined; readonly hasMore: boolean }) {
  const usage = useUsage(1).data
  return (
    <span className="now">
      {typeof usage?.hourUsd === 'number' ? (
        <span title="Spent in the last sixty minutes">{moneyText(usage.hourUsd)}/h</span>
      ) : null}
      <span className={running > 0 ? 'status accent' : 'status'}>
        <span className={running > 0 ? 'glyph beats' : 'glyph'} aria-hidden>
          ●
        </span>
        {hasMore ? `${running}+` : running} running
      </span>
    </span>
  )
}

function MarkedNotice({ session, cards }: { readonly session: string; readonly cards: readonly WireCard[] }) {
  const title = cards.find((card) => card.session === session)?.title ?? session
  return (
    <div className="notice accent" role="status">
      <span className="marked">
        Compare “<Text text={title} />” with another: choose it, then press <kbd>x</kbd>
      </span>
      <span className="spread" />
      <Button size="small" onPress={clearMarks}>
        Clear
      </Button>
    </div>
  )
}

function NoSessions({ isFiltered, onAll }: { readonly isFiltered: boolean; readonly onAll: () => void }) {
  if (isFiltered)
    return (
      <Empty title="No session is like that">
        Search looks at titles, agents, ids and labels. <Button onPress={onAll}>Show all sessions</Button>
      </Empty>
    )
  return (
    <Empty title="No sessions yet" command={'terret run "What changed here this week?"'}>
      A session appears here as soon as it begins, from the command line, a program or this page.
    </Empty>
  )
}
