// The search tools of a timeline: text, failures only, and collapsing all turns. It decides which rows are shown.
import { SearchField } from '../../parts/search-field.tsx'
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Event } from '../../../kernel/index.ts'
import { countNoun } from '../../../view/shown-text.ts'
import type { TimelineRow } from '../../../view/timeline.ts'
import type { LogView } from '../../data/log-window.ts'
import { findEvent } from '../../data/other-logs.ts'
import { Button } from '../../parts/button.tsx'
import { useKeys } from '../../shell/use-keys.ts'

export type RowSearch = {
  /** The rows to show. */
  readonly rows: readonly TimelineRow[]
  /** Some rows are hidden. */
  readonly isFiltered: boolean
  readonly text: string
  readonly onText: (text: string) => void
  readonly isFailuresOnly: boolean
  readonly onFailuresOnly: () => void
  readonly rest: UnloadedSearch
}

/** The search among the rows. */
export function useRowSearch(props: RowSearchProps): RowSearch {
  const { rows, onWhole } = props
  const { events, base, cut, opened } = props.view
  const [text, setText] = useState('')
  const [isFailuresOnly, setFailuresOnly] = useState(false)
  const wanted = useDeferredValue(text).trim().toLowerCase()
  const found = useMemo(() => {
    if (wanted === '' && !isFailuresOnly) return rows
    const words = wanted.split(/\s+/)
    const eventAt = (seq: number): Event | undefined => events[seq - base.seq - 1]
    return rows.filter((row) => {
      if (isFailuresOnly && !isFailure(row)) return false
      return wanted === '' || words.every((word) => rowText(row, eventAt).includes(word))
    })
  }, [rows, wanted, isFailuresOnly, events, base])
  const isFiltered = wanted !== '' || isFailuresOnly
  const onFailuresOnly = (): void => setFailuresOnly(!isFailuresOnly)
  const rest = useUnloadedSearch(props, wanted, isFailuresOnly)
  useEffect(() => {
    if (isFiltered && !rest.isWhole) onWhole()
  }, [isFiltered, cut, opened, onWhole])
  return { rows: found, isFiltered, text, onText: setText, isFailuresOnly, onFailuresOnly, rest }
}

/** A subset of the timeline's props. */
type RowSearchProps = {
  readonly session: string
  readonly rows: readonly TimelineRow[]
  readonly view: LogView
  readonly isPast: boolean
  readonly onWhole: () => void
  readonly onChoose: (to: string) => void
}

/** The search in the part of the log that is not in memory. */
type UnloadedSearch = {
  readonly isWhole: boolean
  /** The range of events that was searched, or the outcome of the last search. */
  readonly says: string
  readonly onEarlier: (() => void) | null
  readonly onLater: (() => void) | null
}

const SEARCHING = 'Searching…'

/** The server finds the nearest matching event outside of the window, and the page moves there. */
function useUnloadedSearch(
  { session, view, isPast, onChoose }: RowSearchProps,
  wanted: string,
  isFailuresOnly: boolean,
): UnloadedSearch {
  const { base, events, cut, atEnd, head } = view
  const [said, setSaid] = useState('')
  const first = base.seq + 1
  const last = base.seq + events.length
  // A search is dropped if the query changes or the page is left. It goes on while the log grows, as a working session
  // writes all the time.
  const search = useRef(0)
  useEffect(() => {
    setSaid('')
    return () => void (search.current += 1)
  }, [wanted, isFailuresOnly])
  useEffect(() => setSaid((before) => (before === SEARCHING ? before : '')), [first, last])
  const look = async (from: { readonly before: number } | { readonly after: number }): Promise<void> => {
    const own = ++search.current
    setSaid(SEARCHING)
    // The server searches for one word; the event it finds must contain all of them.
    const words = wanted.split(/\s+/).toSorted((a, b) => b.length - a.length)
    const [q = ''] = words
    const fits = (event: Event): boolean => {
      const text = JSON.stringify(event).toLowerCase()
      return (!isFailuresOnly || isFailureEvent(event)) && words.every((word) => text.includes(word))
    }
    const asked = { fits, ...(q === '' ? {} : { q }), ...(isFailuresOnly ? { types: FAILING } : {}) }
    try {
      const found = await findEvent(session, from, asked)
      if (own !== search.current) return
      if (found) {
        setSaid('')
        onChoose(String(found.seq))
      } else setSaid(`No ${'before' in from ? 'earlier' : 'later'} event is like that.`)
    } catch (error) {
      if (own === search.current) setSaid(error instanceof Error ? error.message : String(error))
    }
  }
  const hasLater = !atEnd && !isPast
  const words = [first, last, head].map((seq) => seq.toLocaleString('en'))
  return {
    isWhole: !cut && !hasLater,
    says: said || `Searched events ${words[0]} to ${words[1]} of ${words[2]}.`,
    onEarlier: cut ? () => void look({ before: first }) : null,
    onLater: hasLater ? () => void look({ after: last }) : null,
  }
}

/** The lower-case text of a row and its result. Changed rows are new objects, so a cached text stays valid. */
const textsByRow = new WeakMap<TimelineRow, string>()

function rowText(row: TimelineRow, eventAt: (seq: number) => Event | undefined): string {
  const known = textsByRow.get(row)
  if (known !== undefined) return known
  const result = row.type === 'call' && row.result !== null ? eventAt(row.result) : undefined
  const answer = result?.type === 'agent.tool_result' && result.from !== undefined ? eventAt(result.from) : undefined
  const text = [row, result, answer].map((each) => (each ? JSON.stringify(each) : '')).join(' ')
  const made = text.toLowerCase()
  textsByRow.set(row, made)
  return made
}

const FAILED_CALLS: readonly string[] = ['error', 'denied', 'timeout', 'unknown']
const FAILED_RUNS: readonly string[] = ['failed', 'halted', 'limit']

function isFailure(row: TimelineRow): boolean {
  switch (row.type) {
    case 'call':
      return FAILED_CALLS.includes(row.state)
    case 'turn':
      return row.state === 'failed' || row.state === 'lost'
    case 'failed':
      return row.class !== 'interrupted' && row.class !== 'superseded'
    case 'settled':
      return FAILED_RUNS.includes(row.outcome.type)
    case 'compacted':
      return row.failed !== undefined
    case 'lost':
    case 'deferred':
      return true
    default:
      return false
  }
}

/** The types of events that can become failure rows. */
const FAILING = 'agent.tool_result,model.failed,run.settled,run.deferred,context.compacted'

function isFailureEvent(event: Event): boolean {
  switch (event.type) {
    case 'agent.tool_result':
      return FAILED_CALLS.includes(event.status)
    case 'model.failed':
      return event.class !== 'interrupted' && event.class !== 'superseded'
    case 'run.settled':
      return FAILED_RUNS.includes(event.outcome.type)
    case 'context.compacted':
      return event.failed !== undefined
    default:
      return event.type === 'run.deferred'
  }
}

type TimelineToolsProps = {
  readonly finding: RowSearch
  readonly all: number
  readonly isCollapsed: boolean
  readonly onCollapse: () => void
}

export function TimelineTools({ finding, all, isCollapsed, onCollapse }: TimelineToolsProps) {
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  const { text, onText, isFailuresOnly, onFailuresOnly, isFiltered, rows, rest } = finding
  return (
    <div className="view-tools timeline-tools" role="search" aria-label="Rows">
      <SearchField label="Search in this session" value={text} onText={onText} field={field} />
      <Button size="small" pressed={isFailuresOnly} onPress={onFailuresOnly}>
        Failures only
      </Button>
      <Button size="small" pressed={isCollapsed} onPress={onCollapse}>
        Collapse all
      </Button>
      <span className="spread" />
      <span className="dim" role="status">
        {isFiltered ? `${rows.length.toLocaleString('en')} of ${countNoun(all, 'row')}` : ''}
        {isFiltered && !rest.isWhole ? `. ${rest.says}` : ''}
      </span>
      {isFiltered && rest.onEarlier ? (
        <Button size="small" onPress={rest.onEarlier}>
          Search earlier events
        </Button>
      ) : null}
      {isFiltered && rest.onLater ? (
        <Button size="small" onPress={rest.onLater}>
          Search later events
        </Button>
      ) : null}
    </div>
  )
}
