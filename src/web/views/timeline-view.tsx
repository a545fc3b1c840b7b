// The timeline view: the rows of a session, top to bottom. Only visible rows are in the document, and older and newer
// rows are read on scrolling. It follows the end until the person scrolls up.
import { type MouseEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { VList, type VListHandle } from 'virtua'
import type { CallKey, Event } from '../../kernel/index.ts'
import type { CallRow, TimelineRow } from '../../view/timeline.ts'
import type { LogView } from '../data/log-window.ts'
import { NOTHING_SAID, type LiveReply } from '../data/live-reply.ts'
import { useKeys } from '../shell/use-keys.ts'
import { Empty } from '../parts/page-states.tsx'
import { CallLine } from './session/call-line.tsx'
import { TimelineTools, useRowSearch } from './session/row-search.tsx'
import { ALONE, type RowContext } from './session/row-layout.tsx'
import { rowAddress, rowKey } from './session/find-row.ts'
import { PlainLine } from './session/plain-line.tsx'
import { LiveReplyLine, TurnLine } from './session/turn-line.tsx'

/** `origin`: for rows of the session that this one was forked from. */
type TimelineItem = { readonly key: string; readonly row: TimelineRow | null; readonly origin?: string }

export type TimelineProps = {
  readonly session: string
  readonly view: LogView
  readonly rows: readonly TimelineRow[]
  /** The rows of the fork's origin, up to the fork. */
  readonly origin: { readonly session: string; readonly rows: readonly TimelineRow[] } | null
  readonly said: LiveReply | null
  readonly chosen: TimelineRow | null
  readonly mayReview: boolean
  readonly waiting: readonly string[]
  readonly hasOwnCost: boolean
  /** Turns have numbers only if the number of turns before the window is known. */
  readonly isNumbered: boolean
  /** The rows end at a past moment. */
  readonly isPast: boolean
  /** Increases each time the person asks for the end. */
  readonly ends: number
  readonly hrefOf: (to: string) => string
  readonly onChoose: (to: string) => void
  /** Asks for the whole log in memory, if it is not too long. */
  readonly onWhole: () => void
  readonly onOlder: () => void
  readonly onNewer: () => void
}

const NEAR_PX = 800

export function TimelineView(props: TimelineProps) {
  const { session, view, origin, said, chosen, mayReview, isNumbered, waiting, hasOwnCost, hrefOf, onChoose } = props
  const finding = useRowSearch(props)
  const { rows, isFiltered } = finding
  const { isOpen, onToggle, isCollapsed, onCollapse } = useToggles()
  const items = useItems(rows, isFiltered ? null : isOpen, isFiltered ? null : origin, isFiltered ? null : said)
  const tools = useMemo(
    () => new Map(props.rows.flatMap((row) => (row.type === 'call' ? [[row.call, row.tool] as const] : []))),
    [props.rows],
  )
  const around = useMemo(
    (): RowContext => ({
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
  const chosenKey = chosen ? rowKey(chosen) : null
  const { handle, onScroll, shift } = useScrolling(props, items, chosenKey)
  const step = (by: number): void => {
    const at = rows.findIndex((row) => rowKey(row) === chosenKey)
    const next = rows[at < 0 ? rows.length - 1 : Math.min(rows.length - 1, Math.max(0, at + by))]
    if (next) onChoose(rowAddress(next))
  }
  useKeys({ next: () => step(1), previous: () => step(-1) })
  const onClick = (event: MouseEvent, { row, origin: isOther }: TimelineItem): void => {
    if (row !== null && isOther === undefined && isPress(event.target)) onChoose(rowAddress(row))
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
        {(item: TimelineItem) => (
          <div
            key={item.key}
            role="listitem"
            className={rowClass(item, chosenKey)}
            onClick={(event) => onClick(event, item)}
          >
            {drawItem(item, around, view, said)}
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

/** The collapsed turns and the opened calls. */
function useToggles() {
  const [isCollapsed, setCollapsed] = useState(false)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(NONE)
  // Contains the keys of closed turns and of open calls. While all turns are collapsed, it contains the open turns
  // instead.
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

function rowClass({ key, origin }: TimelineItem, chosen: string | null): string {
  if (origin !== undefined) return 'list-row origin'
  return key === chosen ? 'list-row chosen' : 'list-row'
}

/** A click on the row itself that does not select text. */
function isPress(target: EventTarget): boolean {
  return !isControl(target) && getSelection()?.isCollapsed !== false
}

/** The target is a control of its own. */
function isControl(target: EventTarget): boolean {
  return target instanceof Element && target.closest('a, button, summary, input, pre') !== null
}

function drawItem({ row, origin }: TimelineItem, around: RowContext, view: LogView, said: LiveReply | null) {
  if (row === null) return <LiveReplyLine said={said ?? NOTHING_SAID} />
  const within =
    origin === undefined
      ? around
      : { ...ALONE, session: origin, hrefOf: (to: string) => `/s/${encodeURIComponent(origin)}?e=${to}` }
  return (
    <TimelineLine
      row={row}
      around={within}
      result={origin === undefined ? findResult(row, view) : null}
      events={view.events}
      output={liveOutputOf(row, said)}
    />
  )
}

function findResult(row: TimelineRow, { events, base }: LogView): Extract<Event, { type: 'agent.tool_result' }> | null {
  const event = row.type === 'call' && row.result !== null ? events[row.result - base.seq - 1] : undefined
  return event?.type === 'agent.tool_result' ? event : null
}

function liveOutputOf(row: TimelineRow, said: LiveReply | null): string | undefined {
  return row.type === 'call' ? said?.outputs.get(row.call) : undefined
}

type TimelineLineProps = {
  readonly row: TimelineRow
  readonly around?: RowContext
  readonly result?: Extract<Event, { type: 'agent.tool_result' }> | null
  readonly events?: readonly Event[]
  readonly output?: string | undefined
}

/** One row of any type. */
export function TimelineLine({ row, around = ALONE, result = null, events = [], output }: TimelineLineProps) {
  if (row.type === 'turn') return <TurnLine row={row} around={around} />
  if (row.type === 'call') return <CallLine row={row} around={around} result={result} events={events} output={output} />
  return <PlainLine row={row} around={around} />
}

/** Leaves out the calls of closed turns. If `isClosed` is null, all rows are kept. */
function useItems(
  rows: readonly TimelineRow[],
  isClosed: ((key: string) => boolean) | null,
  origin: TimelineProps['origin'],
  said: LiveReply | null,
): readonly TimelineItem[] {
  const isSaying = said !== null && said.parts.length > 0
  return useMemo(() => {
    const closed = new Set(
      rows.flatMap((row) => (row.type === 'turn' && isClosed?.(`turn ${row.seq}`) ? row.calls : [])),
    )
    const shown = rows.filter((row): boolean => row.type !== 'call' || !closed.has((row satisfies CallRow).call))
    const before = (origin?.rows ?? []).map(
      (row): TimelineItem => ({ key: `origin ${rowKey(row)}`, row, origin: origin?.session ?? '' }),
    )
    const items = shown.map((row): TimelineItem => ({ key: rowKey(row), row }))
    return [...before, ...items, ...(isSaying ? [{ key: 'saying', row: null }] : [])]
  }, [rows, isClosed, origin, isSaying])
}

/**
 * The scroll position: at the end while the list grows, at the chosen row when that changes, and unchanged when rows
 * are added before it.
 */
function useScrolling(
  { view, ends, onOlder, onNewer, said }: TimelineProps,
  items: readonly TimelineItem[],
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
    // Rows added before it only change its index, which must not scroll the list.
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
