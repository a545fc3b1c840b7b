// The waterfall view: runs, requests, calls and children as bars over time, with waits, cost and duration. Idle time is
// folded, so that an hour of waiting does not squeeze everything else. A range can be zoomed.
import { type KeyboardEvent, memo, useCallback, useDeferredValue, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { childIdOf } from '../../view/spans/span.ts'
import { timelineOf, type TimelineRow } from '../../view/timeline.ts'
import { usdOf } from '../../view/usd.ts'
import { type Bar, type Scale, scaleOf, type TreeBar, treeBars } from '../../view/waterfall.ts'
import { useNow } from '../data/server-clock.ts'
import { useChildren } from '../data/other-logs.ts'
import { Button } from '../parts/button.tsx'
import { Money, TokenCount, TimeTaken, timeTakenText } from '../parts/figures.tsx'
import { List } from '../parts/virtual-list.tsx'
import { Empty } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { useWidth } from '../parts/width.ts'
import { callStatusOf } from '../parts/status-words.ts'
import type { ViewProps } from './view-props.ts'
import { useRangeDrag } from './waterfall-drag.ts'
import {
  clockText,
  zoomBy,
  type FoldedWait,
  buildFolds,
  buildFoldLabels,
  buildAxisMarks,
  rangeMoments,
  moveBy,
  type ScaleRange,
  positionInRange,
  WHOLE,
  zoomTo,
} from './waterfall-scale.ts'
import '../style/views.css'

export function WaterfallView({ card, events, cut, isNow, waiting, chosen, onChoose }: ViewProps) {
  const shown = useDeferredValue(events)
  const rows = useMemo(() => timelineOf(shown), [shown])
  const { bars, closed, onBar, onOpen } = useBars({ card, isNow, onChoose }, rows)
  const clock = useNow()
  const last = shown.at(-1)
  // Open bars end now if the session goes on; the past ends with its last event.
  const goesOn = card.status === 'running' || card.status === 'requires_action'
  const now = goesOn && (last?.seq ?? 0) >= card.seq ? Math.max(clock, last?.at ?? 0) : (last?.at ?? 0)
  const [folded, setFolded] = useState(true)
  const [range, setRange] = useState(WHOLE)
  const scale = useMemo(() => scaleOf(bars, now, folded ? undefined : Number.POSITIVE_INFINITY), [bars, now, folded])
  const axis = useRef<HTMLDivElement>(null)
  const width = useWidth(axis)
  const drag = useRangeDrag(axis, (a, b) => setRange((before) => zoomTo(before, a, b)))
  const folds = useMemo(() => buildFolds(scale, range, rows.filter(isIdle)), [scale, range, rows])
  const own = useMemo(() => bars.filter(({ session }) => session === card.session), [bars, card.session])
  const key = useMemo(() => findBarKey(own, shown, chosen), [own, shown, chosen])
  const ground = useMemo(() => foldBackground(folds), [folds])
  if (bars.length === 0) return <NoBars />
  return (
    <div className="view waterfall" {...drag.handlers}>
      <RangeTools
        scale={scale}
        range={range}
        onRange={setRange}
        folded={folded}
        onFolded={() => {
          setRange(WHOLE)
          setFolded(!folded)
        }}
      />
      {cut ? <p className="view-note">Earlier events are not loaded: bars begin with the first one that is.</p> : null}
      <div className="wf-head">
        <span className="wf-name">Step</span>
        <Axis axis={axis} scale={scale} range={range} width={width} folds={folds} onRange={setRange} />
        <span className="wf-figures">
          <span>Took</span>
          <span>Tokens</span>
          <span>Cost</span>
        </span>
      </div>
      <div className="wf-rows">
        <List
          label="Waterfall"
          items={bars}
          keyOf={(bar) => bar.key}
          chosen={key}
          row={(bar) => (
            <BarRow
              bar={bar}
              {...placeBar(bar, scale, range, now)}
              now={bar.endedAt === null ? now : 0}
              ground={ground}
              cut={cut}
              closed={findClosedChild(bar, closed)}
              says={stateText(bar, waiting)}
              onBar={onBar}
              onOpen={onOpen}
            />
          )}
        />
        {drag.selected === null ? null : (
          <div className="wf-selected" style={{ left: drag.selected.left, width: drag.selected.width }} aria-hidden />
        )}
      </div>
      <TotalsRow card={card} bars={bars} />
    </div>
  )
}

function isIdle(row: TimelineRow): row is Extract<TimelineRow, { type: 'idle' }> {
  return row.type === 'idle'
}

function NoBars() {
  return (
    <Empty title="No bars yet">
      A bar appears with the first request of a run: how long it took, what it waited for and what it cost.
    </Empty>
  )
}

/** The bars of the session and its children, and the actions of a click. */
function useBars(
  { card, isNow, onChoose }: Pick<ViewProps, 'card' | 'isNow' | 'onChoose'>,
  rows: readonly TimelineRow[],
) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const children = useChildren(card, isNow, opened)
  const bars = useMemo(() => treeBars(card.session, rows, children), [card.session, rows, children])
  const closed = useMemo(
    () => new Set(children.flatMap(({ card: { session }, rows: read }) => (read ? [] : [session]))),
    [children],
  )
  const [, go] = useLocation()
  const onBar = useCallback(
    ({ session, seq }: TreeBar): void => {
      if (session === card.session) onChoose(seq)
      else go(`/s/${encodeURIComponent(session)}?v=waterfall&e=${seq}`)
    },
    [card.session, onChoose, go],
  )
  const onOpen = useCallback((session: string): void => setOpened((before) => new Set([...before, session])), [])
  return { bars, closed, onBar, onOpen }
}

/** The total of all rows, and the cost that is not among them, so that the rows agree with the page's head. */
function TotalsRow({ card, bars }: { readonly card: ViewProps['card']; readonly bars: readonly TreeBar[] }) {
  const outer = bars.filter(({ depth }) => depth === 0)
  const usd = usdOf(outer.reduce((sum, { cost }) => sum + cost, 0))
  const tokens = outer.reduce((sum, bar) => sum + bar.tokens, 0)
  const missing = card.treeCostUsd - usd
  return (
    <div className="wf-sums">
      {missing > MISSING_USD_MIN ? (
        <span className="dim">
          not loaded: <Money usd={missing} />
        </span>
      ) : null}
      <strong>Total</strong>
      <span className="wf-figures">
        <span />
        <span>
          <TokenCount count={tokens} />
        </span>
        <span>
          <Money usd={Math.max(usd, card.treeCostUsd)} />
        </span>
      </span>
    </div>
  )
}

/** A smaller difference comes from rounding. */
const MISSING_USD_MIN = 0.000_001

/** The session that a bar represents. */
function childSessionOf({ session, kind, call }: TreeBar): string | null {
  if (kind !== 'child') return null
  return call === undefined ? session : childIdOf(session, call)
}

/** The child of this bar whose log has not been read. */
function findClosedChild(bar: TreeBar, closed: ReadonlySet<string>): string | null {
  const child = childSessionOf(bar)
  return child !== null && closed.has(child) ? child : null
}

function stateText(bar: TreeBar, waiting: readonly string[]): string {
  const { of, words } = callStatusOf(bar.state, childSessionOf(bar), waiting)
  return words === undefined ? (WORDS[bar.state] ?? bar.state) : `${of === 'waits' ? '◆' : '◌'} ${words}`
}

type RangeToolsProps = {
  readonly scale: Scale
  readonly range: ScaleRange
  readonly onRange: (next: ScaleRange) => void
  readonly folded: boolean
  readonly onFolded: () => void
}

function RangeTools({ scale, range, onRange, folded, onFolded }: RangeToolsProps) {
  const [first, last] = rangeMoments(scale, range)
  const isWhole = range.to - range.from >= 1
  return (
    <div className="view-tools" role="toolbar" aria-label="Range of the waterfall">
      <Button size="small" label="Closer" onPress={() => onRange(zoomBy(range, 2))}>
        +
      </Button>
      <Button size="small" label="Further away" disabled={isWhole} onPress={() => onRange(zoomBy(range, 0.5))}>
        −
      </Button>
      <Button size="small" label="Earlier" disabled={range.from <= 0} onPress={() => onRange(moveBy(range, -0.5))}>
        ←
      </Button>
      <Button size="small" label="Later" disabled={range.to >= 1} onPress={() => onRange(moveBy(range, 0.5))}>
        →
      </Button>
      <Button size="small" disabled={isWhole} onPress={() => onRange(WHOLE)}>
        Show all
      </Button>
      <Button size="small" pressed={folded} onPress={onFolded}>
        Fold waits
      </Button>
      <span className="spread" />
      <span className="dim wf-range" role="status">
        {clockText(first)} to {clockText(last)}, {timeTakenText(last - first)}
      </span>
    </div>
  )
}

type AxisProps = {
  readonly axis: React.RefObject<HTMLDivElement | null>
  readonly scale: Scale
  readonly range: ScaleRange
  readonly width: number
  readonly folds: readonly FoldedWait[]
  readonly onRange: (next: ScaleRange) => void
}

/** Keys that work while the axis has the focus. */
const KEYS: Readonly<Record<string, (range: ScaleRange) => ScaleRange>> = {
  '+': (range) => zoomBy(range, 2),
  '=': (range) => zoomBy(range, 2),
  '-': (range) => zoomBy(range, 0.5),
  ArrowLeft: (range) => moveBy(range, -0.25),
  ArrowRight: (range) => moveBy(range, 0.25),
  '0': () => WHOLE,
  Escape: () => WHOLE,
}

function Axis({ axis, scale, range, width, folds, onRange }: AxisProps) {
  const press = (event: KeyboardEvent): void => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key]
    if (!act) return
    // The page's own keys mean something else.
    event.preventDefault()
    onRange(act(range))
  }
  return (
    <div
      className="wf-axis"
      ref={axis}
      tabIndex={0}
      role="group"
      aria-label="Time. Drag over a range to see it closer; with the keyboard: plus, minus, arrows, 0 for all"
      onKeyDown={press}
    >
      {buildFoldLabels(folds, width).map(({ left, x, text, ms, waits }) => (
        <span className="wf-fold-word" key={left} style={{ left: x }} title={`${waits}, ${timeTakenText(ms)}`}>
          {text}
        </span>
      ))}
      {buildAxisMarks(scale, range, width).map(({ x, text }) => (
        <span className="wf-mark" key={x} style={{ left: x }}>
          {text}
        </span>
      ))}
    </div>
  )
}

type BarPlacement = { readonly left: number; readonly right: number; readonly waitLeft: number | null }

function placeBar(bar: Bar, scale: Scale, range: ScaleRange, now: number): BarPlacement {
  const waits = bar.state === 'asked'
  const left = positionInRange(scale, range, waits ? now : bar.startedAt)
  const right = positionInRange(scale, range, waits ? now : (bar.endedAt ?? now))
  return { left, right, waitLeft: bar.askedAt === null ? null : positionInRange(scale, range, bar.askedAt) }
}

type BarRowProps = BarPlacement & {
  readonly bar: TreeBar
  readonly now: number
  readonly ground: string
  /** The status in words. */
  readonly says: string
  /** The beginning of the log is not loaded, so turns cannot be counted. */
  readonly cut: boolean
  /** The child whose rows have not been read. */
  readonly closed: string | null
  readonly onBar: (bar: TreeBar) => void
  readonly onOpen: (session: string) => void
}

const BarRow = memo(function BarRow(props: BarRowProps) {
  const { bar, left, right, waitLeft, now, ground, cut, closed, says, onBar, onOpen } = props
  const { kind, depth, state, tokens, cost, outside } = bar
  const took = (bar.endedAt ?? Math.max(now, bar.startedAt)) - bar.startedAt
  const tone = BAD.includes(state) ? ' bad' : CALM.includes(state) ? ' calm' : ''
  return (
    <div className="wf-line">
      <button type="button" className={`wf-row depth-${Math.min(depth, DEPTH_MAX)}`} onClick={() => onBar(bar)}>
        <span className={`wf-name ${kind}`}>
          <span className="wf-kind" aria-hidden>
            {GLYPHS[kind]}
          </span>
          <Text text={barName(bar, cut)} />
          <span className={`wf-state${tone}`}>{says}</span>
        </span>
        <span className="wf-track" style={{ backgroundImage: ground }}>
          {waitLeft === null ? null : <BarSegment left={waitLeft} right={left} kind="waited" />}
          <BarSegment left={left} right={right} kind={`${kind}${outside ? ' outside' : ''}${tone}`} />
        </span>
        <span className="wf-figures">
          <span>{state === 'asked' ? '' : <TimeTaken ms={took} />}</span>
          <span>{tokens === 0 ? '' : <TokenCount count={tokens} />}</span>
          <span>{cost === 0 ? '' : <Money usd={usdOf(cost)} />}</span>
        </span>
      </button>
      {closed === null ? null : (
        <Button size="small" kind="quiet" label={`Show the rows of ${bar.name}`} onPress={() => onOpen(closed)}>
          Show rows
        </Button>
      )}
    </div>
  )
})

/** Deeper rows are not indented further. */
const DEPTH_MAX = 9

function barName({ kind, name, turn, child, call }: TreeBar, cut: boolean): string {
  if (kind === 'model') return turn === undefined || cut ? name : `Turn ${turn} · ${name}`
  return kind === 'child' && call !== undefined && child !== undefined ? `${name} → ${child}` : name
}

const GLYPHS = { run: '▸', model: '∴', call: '⚙', child: '↳', compacted: '≡' } as const
const BAD: readonly string[] = ['failed', 'error', 'denied', 'unknown', 'lost', 'timeout']
/** A person stopped it; nothing failed. */
const CALM: readonly string[] = ['interrupted', 'aborted']
const WORDS: Readonly<Record<string, string>> = {
  replied: '',
  ok: '',
  completed: '',
  asked: '◆ waits for approval',
  running: '● running',
  proposed: '',
}

function BarSegment({ left, right, kind }: { readonly left: number; readonly right: number; readonly kind: string }) {
  if (right < 0 || left > 1) return null
  const [from, to] = [Math.max(0, left), Math.min(1, right)]
  return (
    <span className={`wf-bar ${kind}`} style={{ left: `${from * 100}%`, width: `${Math.max(0, to - from) * 100}%` }} />
  )
}

const FOLDS_DRAWN = 80

/** The folded waits as one background image for every row: separate elements in each row would be too many. */
function foldBackground(folds: readonly FoldedWait[]): string {
  const colour = 'var(--fold)'
  const stops = folds.slice(0, FOLDS_DRAWN).flatMap(({ left, right }) => {
    const [from, to] = [Math.max(0, left) * 100, Math.min(1, right) * 100].map((each) => `${each.toFixed(3)}%`)
    return [`transparent ${from}`, `${colour} ${from}`, `${colour} ${to}`, `transparent ${to}`]
  })
  return stops.length === 0 ? 'none' : `linear-gradient(90deg, ${stops.join(', ')})`
}

/** The key of an event's bar: its own, its call's, or the last bar that began before it. */
function findBarKey(bars: readonly Bar[], events: ViewProps['events'], chosen: number | null): string | null {
  if (chosen === null) return null
  const own = bars.find(({ seq }) => seq === chosen)
  if (own) return own.key
  const event = events.find(({ seq }) => seq === chosen)
  const call = event && 'call' in event ? event.call : null
  const before = bars.findLast((bar) => (call === null ? bar.kind !== 'call' && bar.seq <= chosen : bar.call === call))
  return before?.key ?? null
}
