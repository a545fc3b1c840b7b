// Sessions: what is wrong, what needs somebody, what runs and spends, and all the others, newest first.
import { type RefObject, useDeferredValue, useMemo, useRef, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import type { WireCard } from '../../server/wire.ts'
import { BUDGET } from '../../view/pending.ts'
import { useCards } from '../data/cards.ts'
import { useAgents, usePending, useUsage } from '../data/query.ts'
import { Button } from '../parts/button.tsx'
import { moneyText } from '../parts/figures.tsx'
import { Plus, Search } from '../parts/icons.ts'
import { List } from '../parts/list.tsx'
import { Empty, Loading, Trouble } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { mark, unmark, useMarks } from '../shell/marks.ts'
import { PageHead } from '../shell/shell.tsx'
import { run, useKeys } from '../shell/use-keys.ts'
import { useTrees } from './sessions/trees.ts'
import { type Line, linesOf } from './sessions/lines.ts'
import { SessionRow } from './sessions/row.tsx'

const STATUSES = [
  ['requires_action', 'Requires action'],
  ['running', 'Running'],
  ['rescheduling', 'Scheduled'],
  ['idle', 'Resting'],
  ['terminated', 'Closed'],
] as const

export function SessionsPage() {
  const search = useRef<HTMLInputElement>(null)
  const [filter, setFilter] = useFilter()
  const { found, cards, news } = useCards(useDeferredValue(filter))
  const { opened, below, toggle } = useTrees(news)
  const lines = useMemo(() => linesOf(cards, opened, below), [cards, opened, below])
  const moves = useMoves(lines, { search, toggle })
  const marks = useMarks()
  const waits = useWaits()
  const isFiltered = filter.q !== undefined || filter.status !== undefined || filter.agent !== undefined
  return (
    <div className="page">
      <PageHead title="Sessions" about={found.data ? <Now cards={cards} /> : undefined}>
        <Filters filter={filter} onChange={setFilter} search={search} />
        <Button kind="primary" onPress={() => run('new')}>
          <Plus size={15} aria-hidden /> New
        </Button>
      </PageHead>
      {marks.length === 1 ? <Marked session={marks[0] ?? ''} cards={cards} /> : null}
      {found.isPending ? <Loading what="Loading sessions" rows={10} /> : null}
      {found.isError && cards.length === 0 ? (
        <Trouble error={found.error} onRetry={() => void found.refetch()} />
      ) : null}
      {found.data && cards.length === 0 ? <None isFiltered={isFiltered} onAll={() => setFilter({})} /> : null}
      {lines.length > 0 ? (
        <List
          label="Sessions"
          items={lines}
          keyOf={keyOf}
          chosen={moves.chosen}
          onEnd={() => found.hasNextPage && !found.isFetching && void found.fetchNextPage()}
          row={(line) =>
            line.type === 'head' ? (
              <h2 className="session-group">
                {line.name} <span>{line.count}</span>
              </h2>
            ) : (
              <SessionRow
                card={line.card}
                depth={line.depth}
                open={line.open}
                marked={marks.includes(line.card.session)}
                waits={waits.get(line.card.session)}
                onToggle={toggle}
              />
            )
          }
        />
      ) : null}
    </div>
  )
}

/** What each session waits for first, in words. */
function useWaits(): ReadonlyMap<string, string> {
  const pending = usePending().data?.pending
  return useMemo(() => {
    const words = (pending ?? []).map(({ sessionId, callId, needs, tool }) => {
      const what = callId === BUDGET ? 'more money' : needs === 'answer' ? 'an answer' : `approval of ${tool}`
      return [sessionId, `waits for ${what}`] as const
    })
    return new Map(words.toReversed())
  }, [pending])
}

function keyOf(line: Line): string {
  return line.type === 'head' ? `head ${line.name}` : line.card.session
}

type Filter = { readonly q?: string; readonly status?: string; readonly agent?: string }

/** In the address, so that a link shows the same list. */
function useFilter(): readonly [Filter, (next: Filter) => void] {
  const [params, setParams] = useSearchParams()
  const [q, status, agent] = ['q', 'status', 'agent'].map((name) => params.get(name) || undefined)
  const filter = useMemo(() => given({ q, status, agent }), [q, status, agent])
  return [filter, (next) => setParams(given(next), { replace: true })]
}

type Some = Readonly<Record<'q' | 'status' | 'agent', string | undefined>>

function given(some: Partial<Some>): Record<string, string> {
  return Object.fromEntries(Object.entries(some).filter((entry): entry is [string, string] => Boolean(entry[1])))
}

type Doing = {
  readonly search: RefObject<HTMLInputElement | null>
  readonly toggle: (session: string) => void
}

/** The row that keys act on. */
function useMoves(lines: readonly Line[], { search, toggle }: Doing): { readonly chosen: string | null } {
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
      const both = chosen === null ? null : mark(chosen)
      if (both !== null) go(both)
    },
    children: () => chosen !== null && toggle(chosen),
    search: () => search.current?.focus(),
  })
  return { chosen }
}

type FiltersProps = {
  readonly filter: Filter
  readonly onChange: (next: Filter) => void
  readonly search: RefObject<HTMLInputElement | null>
}

function Filters({ filter, onChange, search }: FiltersProps) {
  const agents = useAgents().data?.agents ?? []
  const names = [...new Set([...agents.map(({ name }) => name), ...(filter.agent ? [filter.agent] : [])])]
  return (
    <>
      <div className="search">
        <Search size={15} aria-hidden />
        <input
          ref={search}
          className="field"
          type="search"
          aria-label="Search sessions"
          placeholder="Search"
          maxLength={200}
          value={filter.q ?? ''}
          onChange={(event) => onChange({ ...filter, q: event.target.value })}
          onKeyDown={(event) => {
            if (event.key === 'Escape' || event.key === 'Enter') event.currentTarget.blur()
          }}
        />
        <kbd aria-hidden>/</kbd>
      </div>
      <select
        className="field"
        aria-label="Status"
        value={filter.status ?? ''}
        onChange={(event) => onChange({ ...filter, status: event.target.value })}
      >
        <option value="">Every status</option>
        {STATUSES.map(([status, name]) => (
          <option key={status} value={status}>
            {name}
          </option>
        ))}
      </select>
      <select
        className="field"
        aria-label="Agent"
        value={filter.agent ?? ''}
        onChange={(event) => onChange({ ...filter, agent: event.target.value })}
      >
        <option value="">Every agent</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </>
  )
}

/** What runs and spends. */
function Now({ cards }: { readonly cards: readonly WireCard[] }) {
  const usage = useUsage(1).data
  const running = cards.filter(({ status }) => status === 'running').length
  return (
    <span className="now">
      {typeof usage?.hourUsd === 'number' ? (
        <span title="Spent in the last sixty minutes">{moneyText(usage.hourUsd)}/h</span>
      ) : null}
      <span className={running > 0 ? 'status accent' : 'status'}>
        <span className={running > 0 ? 'glyph beats' : 'glyph'} aria-hidden>
          ●
        </span>
        {running} live
      </span>
    </span>
  )
}

function Marked({ session, cards }: { readonly session: string; readonly cards: readonly WireCard[] }) {
  const title = cards.find((card) => card.session === session)?.title ?? session
  return (
    <div className="notice accent" role="status">
      <span className="marked">
        Compare “<Text text={title} />” with another: choose it, then press <kbd>x</kbd>
      </span>
      <span className="spread" />
      <Button size="small" onPress={unmark}>
        Clear
      </Button>
    </div>
  )
}

function None({ isFiltered, onAll }: { readonly isFiltered: boolean; readonly onAll: () => void }) {
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
