// A line chart over time, drawn as SVG in the page's colours. Pointing at it shows the value there.
import { type PointerEvent, useMemo, useRef, useState } from 'react'
import { useWidth } from './width.ts'

export type ChartProps = {
  readonly label: string
  /** Milliseconds since 1970, ascending. */
  readonly times: readonly number[]
  readonly values: readonly number[]
  readonly unit: (value: number) => string
  readonly height?: number
}

/** The margins, with room for the axis labels. */
const LEFT = 68
const BOTTOM = 22
const TOP = 8
const RIGHT = 8

export function Chart({ label, times, values, unit, height = 150 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const width = useWidth(place)
  const [at, setAt] = useState<number | null>(null)
  const { x, y, line, ticks, days } = useMemo(
    () => layOutChart(times, values, { width, height }),
    [times, values, width, height],
  )
  const last = values.at(-1)
  const point = (event: PointerEvent<SVGSVGElement>): void => {
    const px = event.clientX - event.currentTarget.getBoundingClientRect().left
    setAt(nearestIndex(times.map(x), px))
  }
  const shown = at === null ? undefined : values[at]
  return (
    <figure className="chart">
      <figcaption>
        {label}
        <span className="chart-value">
          {shown === undefined ? '' : `${unit(shown)}, ${timeText(times[at ?? 0] ?? 0)}`}
        </span>
      </figcaption>
      <div ref={place} role="img" aria-label={`${label}: ${last === undefined ? 'nothing yet' : unit(last)} now`}>
        <svg width={width} height={height} onPointerMove={point} onPointerLeave={() => setAt(null)}>
          {ticks.map((tick) => (
            <g key={tick}>
              <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} className="chart-grid" />
              <text x={LEFT - 8} y={y(tick) + 4} className="chart-word end">
                {unit(tick)}
              </text>
            </g>
          ))}
          {days.map(({ time, text }) => (
            <text key={time} x={x(time)} y={height - 5} className="chart-word">
              {text}
            </text>
          ))}
          <path
            d={`${line} L ${x(times.at(-1) ?? 0)} ${y(0)} L ${x(times[0] ?? 0)} ${y(0)} z`}
            className="chart-area"
          />
          <path d={line} className="chart-line" />
          {at === null || shown === undefined ? null : (
            <circle cx={x(times[at] ?? 0)} cy={y(shown)} r={3.5} className="chart-dot" />
          )}
        </svg>
      </div>
    </figure>
  )
}

type ChartSize = { readonly width: number; readonly height: number }

function layOutChart(times: readonly number[], values: readonly number[], { width, height }: ChartSize) {
  const from = times[0] ?? 0
  const span = Math.max(1, (times.at(-1) ?? 0) - from)
  const ticks = ticksUpTo(Math.max(0, ...values))
  const top = ticks.at(-1) ?? 1
  const x = (time: number): number => LEFT + ((time - from) / span) * Math.max(0, width - LEFT - RIGHT)
  const y = (value: number): number => TOP + (1 - value / top) * (height - TOP - BOTTOM)
  const line = times
    .map((time, i) => `${i === 0 ? 'M' : 'L'} ${x(time).toFixed(1)} ${y(values[i] ?? 0).toFixed(1)}`)
    .join(' ')
  const count = Math.max(2, Math.min(7, Math.floor(width / 110)))
  const days = Array.from({ length: count }, (_, i) => from + (span * (i + 0.5)) / count).map((time) => {
    return { time, text: span > 3 * DAY_MS ? dayText(time) : timeText(time) }
  })
  return { x, y, line, ticks, days }
}

const DAY_MS = 86_400_000

/** Ticks from 0, with two or three more in round steps. */
function ticksUpTo(max: number): readonly number[] {
  if (max <= 0) return [0, 1]
  const rough = max / 3
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, i) => i * step)
}

function nearestIndex(places: readonly number[], px: number): number {
  return places.reduce((best, place, i) => (Math.abs(place - px) < Math.abs((places[best] ?? 0) - px) ? i : best), 0)
}

function dayText(time: number): string {
  return new Date(time).toLocaleDateString('en', { month: 'short', day: 'numeric' })
}

function timeText(time: number): string {
  return new Date(time).toLocaleString('en', { weekday: 'short', hour: '2-digit', minute: '2-digit', hour12: false })
}
