// The raw view: the events of the log as JSON rows, filtered by type and text.
import { SearchField } from '../parts/search-field.tsx'
import { memo, useDeferredValue, useMemo, useRef, useState } from 'react'
import type { Event } from '../../server/wire.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { CopyButton } from '../parts/button.tsx'
import { ChevronRight } from '../parts/icons.ts'
import { JsonTree } from '../parts/json-tree.tsx'
import { List } from '../parts/virtual-list.tsx'
import { Empty } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { useKeys } from '../shell/use-keys.ts'
import type { ViewProps } from './view-props.ts'
import { clockText } from './waterfall-scale.ts'
import '../style/views.css'

export function RawView({ events, cut, chosen, onChoose }: ViewProps) {
  const [typed, setTyped] = useState('')
  const [type, setType] = useState('')
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set())
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  // Searching a long log takes a moment, so typing is not blocked by it.
  const text = useDeferredValue(typed)
  const types = useMemo(() => countTypes(events), [events])
  const found = useMemo(() => events.filter((event) => matchesTypeAndText(event, type, text)), [events, type, text])
  const toggle = (seq: number): void => {
    const next = new Set(opened)
    if (!next.delete(seq)) next.add(seq)
    setOpened(next)
    onChoose(seq)
  }
  return (
    <div className="view raw">
      <div className="view-tools" role="search" aria-label="Events">
        <SearchField label="Search in events" value={typed} onText={setTyped} field={field} />
        <select className="field" aria-label="Type" value={type} onChange={(event) => setType(event.target.value)}>
          <option value="">Every type</option>
          {types.map(([name, count]) => (
            <option key={name} value={name}>
              {oneLine(name, 60)} ({count})
            </option>
          ))}
        </select>
        <span className="spread" />
        <span className="dim" role="status">
          {found.length === events.length
            ? countNoun(events.length, 'event')
            : `${found.length} of ${countNoun(events.length, 'event')}`}
          {cut ? ', earlier ones are not loaded' : ''}
        </span>
      </div>
      {found.length === 0 ? (
        <Empty title={events.length === 0 ? 'No events yet' : 'No event is like that'}>
          {events.length === 0 ? 'They appear here as they are written.' : 'Other words or another type may find it.'}
        </Empty>
      ) : (
        <List
          label="Events"
          items={found}
          keyOf={({ seq }) => String(seq)}
          chosen={chosen === null ? null : String(chosen)}
          row={(event) => <RawRow event={event} isOpen={opened.has(event.seq)} onToggle={toggle} />}
        />
      )}
    </div>
  )
}

type RawRowProps = { readonly event: Event; readonly isOpen: boolean; readonly onToggle: (seq: number) => void }

const RawRow = memo(
  function RawRow({ event, isOpen, onToggle }: RawRowProps) {
    const { seq, at, type, ...rest } = event
    return (
      <div className="raw-event">
        <button type="button" className="view-row raw-row" aria-expanded={isOpen} onClick={() => onToggle(seq)}>
          <ChevronRight size={13} aria-hidden className={isOpen ? 'turned' : ''} />
          <span className="raw-seq dim">{seq}</span>
          <span className="raw-type mono">
            <Text text={type} />
          </span>
          <span className="raw-at dim">{clockText(at, 1)}</span>
          <span className="raw-line mono dim">{isOpen ? '' : <Text text={eventPreview(rest)} />}</span>
        </button>
        {isOpen ? (
          <div className="raw-whole">
            <CopyButton text={JSON.stringify(event, null, 2)} label={`Copy event ${seq}`} />
            <JsonTree value={event} open={2} />
          </div>
        ) : null}
      </div>
    )
  },
  (before, now) => before.event === now.event && before.isOpen === now.isOpen,
)

/** The event may be very long. */
function eventPreview(rest: object): string {
  return oneLine(JSON.stringify(rest), 240)
}

function countTypes(events: readonly Event[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>()
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

function matchesTypeAndText(event: Event, type: string, text: string): boolean {
  if (type !== '' && event.type !== type) return false
  return text === '' || JSON.stringify(event).toLowerCase().includes(text.toLowerCase())
}
