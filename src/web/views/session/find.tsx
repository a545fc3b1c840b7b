// The tools of a timeline: words to find, failures alone, and all turns closed or open. Which rows pass is decided here.
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Event } from '../../../kernel/index.ts'
import { counted } from '../../../view/text.ts'
import type { TimelineRow } from '../../../view/timeline.ts'
import type { LogView } from '../../data/log.ts'
import { findEvent } from '../../data/logs.ts'
import { Button } from '../../parts/button.tsx'
import { useKeys } from '../../shell/use-keys.ts'

export type RowSearch = {
  /** The rows to show. */
  readonly rows: readonly TimelineRow[]
  /** Only some of the rows are wanted. */
  readonly isFiltered: boolean
  readonly text: string
  readonly onText: (text: string) => void
  readonly isFailuresOnly: boolean
  readonly onFailuresOnly: () => void
  readonly rest: Rest
}

/** What somebody looks for among the rows. */
export function useFinding(props: Searched): RowSearch {
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
      return wanted === '' || words.every((word) => textOf(row, eventAt).includes(word))
    })
  }, [rows, wanted, isFailuresOnly, events, base])
  const isFiltered = wanted !== '' || isFailuresOnly
  const onFailuresOnly = (): void => setFailuresOnly(!isFailuresOnly)
  const rest = useRest(props, wanted, isFailuresOnly)
  useEffect(() => {
    if (isFiltered && !rest.isWhole) onWhole()
  }, [isFiltered, cut, opened, onWhole])
  return { rows: found, isFiltered, text, onText: setText, isFailuresOnly, onFailuresOnly, rest }
}

/** As the timeline has them. */
type Searched = {
  readonly session: string
  readonly rows: readonly TimelineRow[]
  readonly view: LogView
  readonly isPast: boolean
  readonly onWhole: () => void
  readonly onChoose: (to: string) => void
}

/** What is not in memory of a log, and how it is searched. */
type Rest = {
  readonly isWhole: boolean
  /** Which events were searched, or what came of the search of others. */
  readonly says: string
  readonly onEarlier: (() => void) | null
  readonly onLater: (() => void) | null
}

/** The server finds the nearest event that is not in memory, and the page moves there. */
function useRest({ session, view, isPast, onChoose }: Searched, wanted: string, isFailuresOnly: boolean): Rest {
  const { base, events, cut, atEnd, head } = view
  const [said, setSaid] = useState('')
  const first = base.seq + 1
  const last = base.seq + events.length
  // What was asked before somebody looked for something else, or left the page, moves nothing.
  const search = useRef(0)
  useEffect(() => {
    setSaid('')
    return () => void (search.current += 1)
  }, [wanted, isFailuresOnly, first, last])
  const look = async (from: { readonly before: number } | { readonly after: number }): Promise<void> => {
    const own = ++search.current
    setSaid('Searching…')
    // The server looks for one word; all of them must be in the event that it finds.
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
      if (found) onChoose(String(found.seq))
      else setSaid(`No ${'before' in from ? 'earlier' : 'later'} event is like that.`)
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

/** Of a row and its result, in small letters. Rows are replaced when they change, so that a text belongs to its row for good. */
const texts = new WeakMap<TimelineRow, string>()

function textOf(row: TimelineRow, eventAt: (seq: number) => Event | undefined): string {
  const known = texts.get(row)
  if (known !== undefined) return known
  const result = row.type === 'call' && row.result !== null ? eventAt(row.result) : undefined
  const answer = result?.type === 'agent.tool_result' && result.from !== undefined ? eventAt(result.from) : undefined
  const text = [row, result, answer].map((each) => (each ? JSON.stringify(each) : '')).join(' ')
  const made = text.toLowerCase()
  texts.set(row, made)
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

/** The events of which rows that are failures are made. */
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

type ToolsProps = {
  readonly finding: RowSearch
  readonly all: number
  readonly isCollapsed: boolean
  readonly onCollapse: () => void
}

export function TimelineTools({ finding, all, isCollapsed, onCollapse }: ToolsProps) {
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  const { text, onText, isFailuresOnly, onFailuresOnly, isFiltered, rows, rest } = finding
  return (
    <div className="view-tools timeline-tools" role="search" aria-label="Rows">
      <input
        ref={field}
        className="field"
        type="search"
        aria-label="Search in this session"
        placeholder="Search in this session  /"
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape' || event.key === 'Enter') event.currentTarget.blur()
        }}
      />
      <Button size="small" pressed={isFailuresOnly} onPress={onFailuresOnly}>
        Failures only
      </Button>
      <Button size="small" pressed={isCollapsed} onPress={onCollapse}>
        Collapse all
      </Button>
      <span className="spread" />
      <span className="dim" role="status">
        {isFiltered ? `${rows.length.toLocaleString('en')} of ${counted(all, 'row')}` : ''}
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
