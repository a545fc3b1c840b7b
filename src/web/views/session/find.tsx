// The tools of a timeline: words to find, failures alone, and all turns closed or open. Which rows pass is decided here.
import { useDeferredValue, useMemo, useRef, useState } from 'react'
import type { Event } from '../../../kernel/index.ts'
import { counted } from '../../../view/text.ts'
import type { TimelineRow } from '../../../view/timeline.ts'
import type { LogView } from '../../data/log.ts'
import { Button } from '../../parts/button.tsx'
import { useKeys } from '../../shell/use-keys.ts'

export type Finding = {
  /** The rows to show. */
  readonly rows: readonly TimelineRow[]
  /** Only some of the rows are wanted. */
  readonly isFiltered: boolean
  readonly text: string
  readonly onText: (text: string) => void
  readonly isFailuresOnly: boolean
  readonly onFailuresOnly: () => void
}

/** What somebody looks for among the rows. */
export function useFinding(rows: readonly TimelineRow[], { events, base }: LogView): Finding {
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
  return { rows: found, isFiltered, text, onText: setText, isFailuresOnly, onFailuresOnly }
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

type ToolsProps = {
  readonly finding: Finding
  readonly all: number
  /** The beginning of the log is not in memory. */
  readonly cut: boolean
  readonly isCollapsed: boolean
  readonly onCollapse: () => void
}

export function TimelineTools({ finding, all, cut, isCollapsed, onCollapse }: ToolsProps) {
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  const { text, onText, isFailuresOnly, onFailuresOnly, isFiltered, rows } = finding
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
        {isFiltered && cut ? ', earlier events are not loaded' : ''}
      </span>
    </div>
  )
}
