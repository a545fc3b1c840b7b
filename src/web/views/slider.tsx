// All events of a session on one slider: the current position, waits, and failures. Moved back, it makes the page show
// the session at that event.
import { useMemo } from 'react'
import { oneLine } from '../../view/clean.ts'
import type { TimelineRow } from '../../view/timeline.ts'
import { durationText } from '../../view/tree-rows.ts'
import { neverChanges } from '../data/api.ts'
import { Button } from '../parts/button.tsx'
import { ChevronLeft, ChevronRight, Split } from '../parts/icons.ts'

export type SliderProps = {
  readonly head: number
  /** The shown moment. */
  readonly at: number
  readonly isLive: boolean
  readonly rows: readonly TimelineRow[]
  readonly onMove: (seq: number) => void
  readonly onLive: () => void
  /** Null: nothing can be asked here. */
  readonly onWhatIf: (() => void) | null
}

type SliderMark = { readonly seq: number; readonly kind: 'wait' | 'idle' | 'bad' | 'end'; readonly says: string }

export function Slider({ head, at, isLive, rows, onMove, onLive, onWhatIf }: SliderProps) {
  const marks = useMemo(() => buildSliderMarks(rows, head), [rows, head])
  const share = (seq: number): number => (head <= 1 ? 1 : (seq - 1) / (head - 1))
  return (
    <div className="slider">
      <Button kind="quiet" label="Previous event" disabled={at <= 1} onPress={() => onMove(at - 1)}>
        <ChevronLeft size={16} aria-hidden />
      </Button>
      <div className="slider-line">
        {marks.map(({ seq, kind, says }) => (
          <span
            key={`${kind} ${seq}`}
            className={`slider-mark ${kind}`}
            style={{ left: sliderLeft(share(seq)) }}
            title={says}
          />
        ))}
        <input
          type="range"
          min={1}
          max={Math.max(1, head)}
          value={at}
          aria-label="Event"
          aria-valuetext={`Event ${at} of ${head}`}
          onChange={(event) => onMove(Number(event.target.value))}
        />
      </div>
      <Button kind="quiet" label="Next event" disabled={at >= head} onPress={() => onMove(at + 1)}>
        <ChevronRight size={16} aria-hidden />
      </Button>
      <span className="slider-count">
        <span className="slider-word">event </span>
        {at.toLocaleString('en')}
        <span className="dim"> / {head.toLocaleString('en')}</span>
      </span>
      {onWhatIf === null ? null : (
        <Button label="What if…" onPress={onWhatIf}>
          <Split size={14} aria-hidden /> <span className="slider-word">What if…</span>
        </Button>
      )}
      <Button pressed={isLive} onPress={onLive}>
        {neverChanges() ? (
          'End'
        ) : (
          <>
            <span aria-hidden>●</span> Live
          </>
        )}
      </Button>
    </div>
  )
}

/** The knob is 16 pixels wide and stays within the line. */
function sliderLeft(share: number): string {
  return `calc(8px + ${share.toFixed(5)} * (100% - 16px))`
}

/** More marks would be indistinguishable. */
const PLACES = 240

function buildSliderMarks(rows: readonly TimelineRow[], head: number): readonly SliderMark[] {
  const places = new Map<string, SliderMark>()
  for (const row of rows) {
    const mark = sliderMarkOf(row)
    if (mark) places.set(`${mark.kind} ${Math.round((PLACES * mark.seq) / Math.max(1, head))}`, mark)
  }
  return [...places.values()]
}

function sliderMarkOf(row: TimelineRow): SliderMark | null {
  if (row.type === 'idle') return { seq: row.seq, kind: 'idle', says: `idle ${durationText(row.endedAt - row.at)}` }
  if (row.type === 'call' && row.gate === 'ask') return { seq: row.seq, kind: 'wait', says: 'waited for approval' }
  if (row.type === 'failed' || row.type === 'lost') return { seq: row.seq, kind: 'bad', says: oneLine(row.message) }
  if (row.type !== 'settled') return null
  return { seq: row.seq, kind: row.outcome.type === 'failed' ? 'bad' : 'end', says: `run ${row.outcome.type}` }
}
