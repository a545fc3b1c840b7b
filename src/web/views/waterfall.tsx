// A session as bars over time: runs, requests, calls and children, what each waited for, cost and took. Time in which nothing worked is
// folded, so that an hour of waiting does not press everything else together. A range of it can be looked at more closely.
import { type KeyboardEvent, memo, useCallback, useDeferredValue, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { childIdOf } from '../../view/spans/span.ts'
import { timelineOf, type TimelineRow } from '../../view/timeline.ts'
import { usdOf } from '../../view/usd.ts'
import { type Bar, type Scale, scaleOf, type TreeBar, treeBars } from '../../view/waterfall.ts'
import { useNow } from '../data/clock.ts'
import { useChildren } from '../data/logs.ts'
import { Button } from '../parts/button.tsx'
import { Money, Tokens, Took, tookWords } from '../parts/figures.tsx'
import { List } from '../parts/list.tsx'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { useWidth } from '../parts/width.ts'
import { callLook } from '../parts/why.ts'
import type { ViewProps } from './props.ts'
import { useDrag } from './waterfall-drag.ts'
import {
  clockText,
  closer,
  type Fold,
  foldsOf,
  foldWords,
  marksOf,
  momentsOf,
  moved,
  type Range,
  seenAt,
  WHOLE,
  zoomed,
} from './waterfall-scale.ts'
import '../style/views.css'

export function WaterfallView({ card, events, cut, isNow, waiting, chosen, onChoose }: ViewProps) {
  const shown = useDeferredValue(events)
  const rows = useMemo(() => timelineOf(shown), [shown])
  const { bars, closed, onBar, onOpen } = useTree({ card, isNow, onChoose }, rows)
  const clock = useNow()
  const last = shown.at(-1)
  // Only what is still going on ends now; the past ends with its last event.
  const goesOn = card.status === 'running' || card.status === 'requires_action'
  const now = goesOn && (last?.seq ?? 0) >= card.seq ? Math.max(clock, last?.at ?? 0) : (last?.at ?? 0)
  const [folded, setFolded] = useState(true)
  const [range, setRange] = useState(WHOLE)
  const scale = useMemo(() => scaleOf(bars, now, folded ? undefined : Number.POSITIVE_INFINITY), [bars, now, folded])
  const axis = useRef<HTMLDivElement>(null)
  const width = useWidth(axis)
  const drag = useDrag(axis, (a, b) => setRange((before) => zoomed(before, a, b)))
  const folds = useMemo(() => foldsOf(scale, range, rows.filter(isIdle)), [scale, range, rows])
  const own = useMemo(() => bars.filter(({ session }) => session === card.session), [bars, card.session])
  const key = useMemo(() => keyFor(own, shown, chosen), [own, shown, chosen])
  const ground = useMemo(() => groundOf(folds), [folds])
  if (bars.length === 0) return <NoBars />
  return (
    <div className="view waterfall" {...drag.handlers}>
      <Tools
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
              {...placeOf(bar, scale, range, now)}
              now={bar.endedAt === null ? now : 0}
              ground={ground}
              cut={cut}
              closed={closedChild(bar, closed)}
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
      <Sums card={card} bars={bars} />
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

/** The bars of the session and of its children, and what a press on one of them does. */
function useTree(
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

/** What all rows cost, and what is not among them: rows and the head of the page then agree. */
function Sums({ card, bars }: { readonly card: ViewProps['card']; readonly bars: readonly TreeBar[] }) {
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
          <Tokens count={tokens} />
        </span>
        <span>
          <Money usd={Math.max(usd, card.treeCostUsd)} />
        </span>
      </span>
    </div>
  )
}

/** Less than a millionth of a dollar is a matter of rounding. */
const MISSING_USD_MIN = 0.000_001

/** The session that a bar stands for. */
function childOf({ session, kind, call }: TreeBar): string | null {
  if (kind !== 'child') return null
  return call === undefined ? session : childIdOf(session, call)
}

/** The child of this bar whose log was not read. */
function closedChild(bar: TreeBar, closed: ReadonlySet<string>): string | null {
  const child = childOf(bar)
  return child !== null && closed.has(child) ? child : null
}

function stateText(bar: TreeBar, waiting: readonly string[]): string {
  const { of, words } = callLook(bar.state, childOf(bar), waiting)
  return words === undefined ? (WORDS[bar.state] ?? bar.state) : `${of === 'waits' ? '◆' : '◌'} ${words}`
}

type ToolsProps = {
  readonly scale: Scale
  readonly range: Range
  readonly onRange: (next: Range) => void
  readonly folded: boolean
  readonly onFolded: () => void
}

function Tools({ scale, range, onRange, folded, onFolded }: ToolsProps) {
  const [first, last] = momentsOf(scale, range)
  const isWhole = range.to - range.from >= 1
  return (
    <div className="view-tools" role="toolbar" aria-label="Range of the waterfall">
      <Button size="small" label="Closer" onPress={() => onRange(closer(range, 2))}>
        +
      </Button>
      <Button size="small" label="Further away" disabled={isWhole} onPress={() => onRange(closer(range, 0.5))}>
        −
      </Button>
      <Button size="small" label="Earlier" disabled={range.from <= 0} onPress={() => onRange(moved(range, -0.5))}>
        ←
      </Button>
      <Button size="small" label="Later" disabled={range.to >= 1} onPress={() => onRange(moved(range, 0.5))}>
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
        {clockText(first)} to {clockText(last)}, {tookWords(last - first)}
      </span>
    </div>
  )
}

type AxisProps = {
  readonly axis: React.RefObject<HTMLDivElement | null>
  readonly scale: Scale
  readonly range: Range
  readonly width: number
  readonly folds: readonly Fold[]
  readonly onRange: (next: Range) => void
}

/** Keys that are pressed while it has the focus. */
const KEYS: Readonly<Record<string, (range: Range) => Range>> = {
  '+': (range) => closer(range, 2),
  '=': (range) => closer(range, 2),
  '-': (range) => closer(range, 0.5),
  ArrowLeft: (range) => moved(range, -0.25),
  ArrowRight: (range) => moved(range, 0.25),
  '0': () => WHOLE,
  Escape: () => WHOLE,
}

function Axis({ axis, scale, range, width, folds, onRange }: AxisProps) {
  const press = (event: KeyboardEvent): void => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key]
    if (!act) return
    // The keys of the page mean something else.
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
      {foldWords(folds, width).map(({ left, x, text, ms, waits }) => (
        <span className="wf-fold-word" key={left} style={{ left: x }} title={`${waits}, ${tookWords(ms)}`}>
          {text}
        </span>
      ))}
      {marksOf(scale, range, width).map(({ x, text }) => (
        <span className="wf-mark" key={x} style={{ left: x }}>
          {text}
        </span>
      ))}
    </div>
  )
}

type Placed = { readonly left: number; readonly right: number; readonly waitLeft: number | null }

function placeOf(bar: Bar, scale: Scale, range: Range, now: number): Placed {
  const waits = bar.state === 'asked'
  const left = seenAt(scale, range, waits ? now : bar.startedAt)
  const right = seenAt(scale, range, waits ? now : (bar.endedAt ?? now))
  return { left, right, waitLeft: bar.askedAt === null ? null : seenAt(scale, range, bar.askedAt) }
}

type RowProps = Placed & {
  readonly bar: TreeBar
  readonly now: number
  readonly ground: string
  /** How it stands, in words. */
  readonly says: string
  /** The beginning of the log is not loaded: turns cannot be counted. */
  readonly cut: boolean
  /** The child whose rows are not read yet. */
  readonly closed: string | null
  readonly onBar: (bar: TreeBar) => void
  readonly onOpen: (session: string) => void
}

const BarRow = memo(function BarRow(props: RowProps) {
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
          <Text text={nameOf(bar, cut)} />
          <span className={`wf-state${tone}`}>{says}</span>
        </span>
        <span className="wf-track" style={{ backgroundImage: ground }}>
          {waitLeft === null ? null : <Segment left={waitLeft} right={left} kind="waited" />}
          <Segment left={left} right={right} kind={`${kind}${outside ? ' outside' : ''}${tone}`} />
        </span>
        <span className="wf-figures">
          <span>{state === 'asked' ? '' : <Took ms={took} />}</span>
          <span>{tokens === 0 ? '' : <Tokens count={tokens} />}</span>
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

/** Deeper rows are not moved further to the right. */
const DEPTH_MAX = 9

function nameOf({ kind, name, turn, child, call }: TreeBar, cut: boolean): string {
  if (kind === 'model') return turn === undefined || cut ? name : `Turn ${turn} · ${name}`
  return kind === 'child' && call !== undefined && child !== undefined ? `${name} → ${child}` : name
}

const GLYPHS = { run: '▸', model: '∴', call: '⚙', child: '↳', compacted: '≡' } as const
const BAD: readonly string[] = ['failed', 'error', 'denied', 'unknown', 'lost', 'timeout']
/** Somebody stopped it: nothing went wrong. */
const CALM: readonly string[] = ['interrupted', 'aborted']
const WORDS: Readonly<Record<string, string>> = {
  replied: '',
  ok: '',
  completed: '',
  asked: '◆ waits for approval',
  running: '● running',
  proposed: '',
}

function Segment({ left, right, kind }: { readonly left: number; readonly right: number; readonly kind: string }) {
  if (right < 0 || left > 1) return null
  const [from, to] = [Math.max(0, left), Math.min(1, right)]
  return (
    <span className={`wf-bar ${kind}`} style={{ left: `${from * 100}%`, width: `${Math.max(0, to - from) * 100}%` }} />
  )
}

const FOLDS_DRAWN = 80

/** The folded stretches as one picture behind every row: an element for each of them in each row would be many. */
function groundOf(folds: readonly Fold[]): string {
  const colour = 'var(--fold)'
  const stops = folds.slice(0, FOLDS_DRAWN).flatMap(({ left, right }) => {
    const [from, to] = [Math.max(0, left) * 100, Math.min(1, right) * 100].map((each) => `${each.toFixed(3)}%`)
    return [`transparent ${from}`, `${colour} ${from}`, `${colour} ${to}`, `transparent ${to}`]
  })
  return stops.length === 0 ? 'none' : `linear-gradient(90deg, ${stops.join(', ')})`
}

/** The bar of an event: its own, that of its call, or the last that began before it. */
function keyFor(bars: readonly Bar[], events: ViewProps['events'], chosen: number | null): string | null {
  if (chosen === null) return null
  const own = bars.find(({ seq }) => seq === chosen)
  if (own) return own.key
  const event = events.find(({ seq }) => seq === chosen)
  const call = event && 'call' in event ? event.call : null
  const before = bars.findLast((bar) => (call === null ? bar.kind !== 'call' && bar.seq <= chosen : bar.call === call))
  return before?.key ?? null
}
