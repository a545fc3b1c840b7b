// The rows of a session, from top to bottom. Only what is seen is in the page; older and newer rows are read as somebody scrolls; at the
// end it stays at the end, until somebody scrolls up.
import { type MouseEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { VList, type VListHandle } from 'virtua'
import type { CallKey, Event } from '../../kernel/index.ts'
import type { CallRow, TimelineRow } from '../../view/timeline.ts'
import type { LogView } from '../data/log.ts'
import { NOTHING_SAID, type Said } from '../data/said.ts'
import { useKeys } from '../shell/use-keys.ts'
import { Empty } from '../parts/states.tsx'
import { CallLine } from './session/call-line.tsx'
import { TimelineTools, useFinding } from './session/find.tsx'
import { ALONE, type Around } from './session/line.tsx'
import { addressOf, keyOf } from './session/lookup.ts'
import { PlainLine } from './session/plain-line.tsx'
import { SayingLine, TurnLine } from './session/turn-line.tsx'

/** Rows of the session that this one was forked from have its name. */
type Item = { readonly key: string; readonly row: TimelineRow | null; readonly origin?: string }

export type TimelineProps = {
  readonly session: string
  readonly view: LogView
  readonly rows: readonly TimelineRow[]
  /** What the session was forked from said until then. */
  readonly origin: { readonly session: string; readonly rows: readonly TimelineRow[] } | null
  readonly said: Said | null
  readonly chosen: TimelineRow | null
  readonly mayReview: boolean
  readonly waiting: readonly string[]
  readonly hasOwnCost: boolean
  /** Turns have numbers: how many are before the part in memory is known. */
  readonly isNumbered: boolean
  /** Rows end at a moment of the past. */
  readonly isPast: boolean
  /** Another number each time somebody wants to see the end. */
  readonly ends: number
  readonly hrefOf: (to: string) => string
  readonly onChoose: (to: string) => void
  /** All of the log is wanted in memory, if it is not too long. */
  readonly onWhole: () => void
  readonly onOlder: () => void
  readonly onNewer: () => void
}

const NEAR_PX = 800

export function TimelineView(props: TimelineProps) {
  const { session, view, origin, said, chosen, mayReview, isNumbered, waiting, hasOwnCost, hrefOf, onChoose } = props
  const finding = useFinding(props)
  const { rows, isFiltered } = finding
  const { isOpen, onToggle, isCollapsed, onCollapse } = useToggles()
  const items = useItems(rows, isFiltered ? null : isOpen, isFiltered ? null : origin, isFiltered ? null : said)
  const tools = useMemo(
    () => new Map(props.rows.flatMap((row) => (row.type === 'call' ? [[row.call, row.tool] as const] : []))),
    [props.rows],
  )
  const around = useMemo(
    (): Around => ({
      session,
      isNumbered,
      isFiltered,
      waiting,
      hasOwnCost,
      mayReview,
      hrefOf,
      toolOf: (call: CallKey) => tools.get(call) ?? `call ${call}`,
      isOpen,
      onToggle,
    }),
    [session, isNumbered, isFiltered, waiting, hasOwnCost, mayReview, tools, isOpen, hrefOf],
  )
  const chosenKey = chosen ? keyOf(chosen) : null
  const { handle, onScroll, shift } = useScrolling(props, items, chosenKey)
  const step = (by: number): void => {
    const at = rows.findIndex((row) => keyOf(row) === chosenKey)
    const next = rows[at < 0 ? rows.length - 1 : Math.min(rows.length - 1, Math.max(0, at + by))]
    if (next) onChoose(addressOf(next))
  }
  useKeys({ next: () => step(1), previous: () => step(-1) })
  const onClick = (event: MouseEvent, { row, origin: isOther }: Item): void => {
    if (row !== null && isOther === undefined && isPress(event.target)) onChoose(addressOf(row))
  }
  return (
    <div className="timeline-view">
      <h2 className="unseen">Timeline</h2>
      <TimelineTools finding={finding} all={props.rows.length} isCollapsed={isCollapsed} onCollapse={onCollapse} />
      {isFiltered && rows.length === 0 ? <NoRows isWhole={finding.rest.isWhole} /> : null}
      <VList
        key={view.opened}
        ref={handle}
        className="list timeline"
        role="list"
        aria-label="Timeline"
        tabIndex={0}
        shift={shift}
        data={items}
        onScroll={onScroll}
      >
        {(item: Item) => (
          <div
            key={item.key}
            role="listitem"
            className={rowName(item, chosenKey)}
            onClick={(event) => onClick(event, item)}
          >
            {drawn(item, around, view, said)}
          </div>
        )}
      </VList>
    </div>
  )
}

function NoRows({ isWhole }: { readonly isWhole: boolean }) {
  return (
    <Empty title={isWhole ? 'No row is like that' : 'No loaded row is like that'}>
      Search looks at messages, replies, calls and their results.
    </Empty>
  )
}

/** Which turns are closed and which calls are open. */
function useToggles() {
  const [isCollapsed, setCollapsed] = useState(false)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(NONE)
  // Of turns it has those that are closed, of calls those that are open. While all turns are closed, it has the open ones.
  const isOpen = useCallback(
    (key: string) => (key.startsWith('turn ') ? toggled.has(key) !== isCollapsed : toggled.has(key)),
    [toggled, isCollapsed],
  )
  const onToggle = useCallback((key: string) => {
    setToggled((before) => new Set(before.has(key) ? [...before].filter((each) => each !== key) : [...before, key]))
  }, [])
  const onCollapse = (): void => {
    setToggled(NONE)
    setCollapsed(!isCollapsed)
  }
  return { isOpen, onToggle, isCollapsed, onCollapse }
}

const NONE: ReadonlySet<string> = new Set()

function rowName({ key, origin }: Item, chosen: string | null): string {
  if (origin !== undefined) return 'list-row origin'
  return key === chosen ? 'list-row chosen' : 'list-row'
}

/** A press on the row itself, which selects no text in it. */
function isPress(target: EventTarget): boolean {
  return !isOwn(target) && getSelection()?.isCollapsed !== false
}

/** What is pressed by itself. */
function isOwn(target: EventTarget): boolean {
  return target instanceof Element && target.closest('a, button, summary, input, pre') !== null
}

function drawn({ row, origin }: Item, around: Around, view: LogView, said: Said | null) {
  if (row === null) return <SayingLine said={said ?? NOTHING_SAID} />
  const within =
    origin === undefined
      ? around
      : { ...ALONE, session: origin, hrefOf: (to: string) => `/s/${encodeURIComponent(origin)}?e=${to}` }
  return (
    <TimelineLine
      row={row}
      around={within}
      result={origin === undefined ? resultOf(row, view) : null}
      events={view.events}
      output={outputOf(row, said)}
    />
  )
}

function resultOf(row: TimelineRow, { events, base }: LogView): Extract<Event, { type: 'agent.tool_result' }> | null {
  const event = row.type === 'call' && row.result !== null ? events[row.result - base.seq - 1] : undefined
  return event?.type === 'agent.tool_result' ? event : null
}

function outputOf(row: TimelineRow, said: Said | null): string | undefined {
  return row.type === 'call' ? said?.outputs.get(row.call) : undefined
}

type LineOf = {
  readonly row: TimelineRow
  readonly around?: Around
  readonly result?: Extract<Event, { type: 'agent.tool_result' }> | null
  readonly events?: readonly Event[]
  readonly output?: string | undefined
}

/** One row, of whatever type. */
export function TimelineLine({ row, around = ALONE, result = null, events = [], output }: LineOf) {
  if (row.type === 'turn') return <TurnLine row={row} around={around} />
  if (row.type === 'call') return <CallLine row={row} around={around} result={result} events={events} output={output} />
  return <PlainLine row={row} around={around} />
}

/** Without the calls of turns that are closed. With null for `isClosed` each row is there. */
function useItems(
  rows: readonly TimelineRow[],
  isClosed: ((key: string) => boolean) | null,
  origin: TimelineProps['origin'],
  said: Said | null,
): readonly Item[] {
  const isSaying = said !== null && said.parts.length > 0
  return useMemo(() => {
    const closed = new Set(
      rows.flatMap((row) => (row.type === 'turn' && isClosed?.(`turn ${row.seq}`) ? row.calls : [])),
    )
    const shown = rows.filter((row): boolean => row.type !== 'call' || !closed.has((row satisfies CallRow).call))
    const before = (origin?.rows ?? []).map(
      (row): Item => ({ key: `origin ${keyOf(row)}`, row, origin: origin?.session ?? '' }),
    )
    const items = shown.map((row): Item => ({ key: keyOf(row), row }))
    return [...before, ...items, ...(isSaying ? [{ key: 'saying', row: null }] : [])]
  }, [rows, isClosed, origin, isSaying])
}

/** Where the list stands: at the end while it grows, at the chosen row when that changes, and where it was when rows come before it. */
function useScrolling(
  { view, ends, onOlder, onNewer, said }: TimelineProps,
  items: readonly Item[],
  chosen: string | null,
) {
  const handle = useRef<VListHandle>(null)
  const index = chosen === null ? -1 : items.findIndex(({ key }) => key === chosen)
  const atEnd = useRef(false)
  const before = useRef({ opened: -1, seq: view.base.seq })
  const isOther = before.current.opened !== view.opened
  const shift = !isOther && before.current.seq !== view.base.seq
  useEffect(() => {
    atEnd.current = view.atEnd && index < 0
    if (index >= 0) handle.current?.scrollToIndex(index, { align: isOther ? 'center' : 'nearest' })
    // Not when rows come before it: then it only has another number.
  }, [chosen, view.opened])
  useEffect(() => {
    if (ends > 0) atEnd.current = true
  }, [ends])
  useEffect(() => {
    before.current = { opened: view.opened, seq: view.base.seq }
    if (atEnd.current) handle.current?.scrollToIndex(items.length - 1, { align: 'end' })
  }, [items, said, ends])
  const onScroll = (offset: number): void => {
    const { scrollSize = 0, viewportSize = 0 } = handle.current ?? {}
    const left = scrollSize - viewportSize - offset
    atEnd.current = left < 8
    if (offset < NEAR_PX) onOlder()
    if (left < NEAR_PX && !view.atEnd) onNewer()
  }
  return { handle, onScroll, shift }
}
