// The page of one session: its head, one of five views of its log, the details of the chosen row, and the event slider.
// All of them show the same moment: now, or an earlier event.
import { type ComponentType, useCallback, useState } from 'react'
import { Link } from 'wouter'
import type { SessionAnswer } from '../../server/wire.ts'
import { ApiError } from '../data/api.ts'
import type { LogWindow, LogView } from '../data/log-window.ts'
import { useLiveState, useMe } from '../data/queries.ts'
import { type OpenLog, useLog, useSession } from '../data/use-log.ts'
import { Button } from '../parts/button.tsx'
import { ForkDialog } from '../parts/fork-dialog.tsx'
import { WhatIfDialog } from '../parts/what-if-dialog.tsx'
import { DamageNotice, Empty, Loading, Notice, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { useKeys } from '../shell/use-keys.ts'
import { ContextView } from '../views/context-view.tsx'
import { GraphView } from '../views/graph-view.tsx'
import { Panel } from '../views/panel.tsx'
import type { ViewProps } from '../views/view-props.ts'
import { RawView } from '../views/raw-view.tsx'
import { type PageAddress, usePageAddress, type ViewName, VIEWS } from '../views/session/page-address.ts'
import { SessionHead } from '../views/session/session-head.tsx'
import {
  rowEvents,
  useIsPhone,
  useForkOrigin,
  useOpenAround,
  useShownMoment,
  useWholeLog,
} from '../views/session/shown-moment.ts'
import { Slider } from '../views/slider.tsx'
import { TimelineView } from '../views/timeline-view.tsx'
import { WaterfallView } from '../views/waterfall-view.tsx'
import '../style/session.css'

/** These views are in the same bundle as the page, so that none is loaded separately. */
const OTHERS: Readonly<Record<Exclude<ViewName, 'timeline'>, ComponentType<ViewProps>>> = {
  waterfall: WaterfallView,
  graph: GraphView,
  context: ContextView,
  raw: RawView,
}

export function OneSessionPage({ id }: { readonly id: string }) {
  const { data, isPending, error, refetch } = useSession(id)
  if (isPending) return <Loading what="Loading the session" rows={10} />
  if (error instanceof ApiError && error.status === 404) return <MissingSession id={id} />
  // A change of store discards everything that was read.
  if (data) return <SessionView id={id} answer={data} key={data.store} />
  return <ErrorPanel error={error} onRetry={() => void refetch()} />
}

function MissingSession({ id, removed = false }: { readonly id: string; readonly removed?: boolean }) {
  return (
    <div className="page">
      <PageHead title={removed ? 'This session was removed' : 'There is no such session'} />
      <Empty title={removed ? 'It was taken out for good' : 'It is not here, or this token does not reach it'}>
        <Text text={id} />
      </Empty>
    </div>
  )
}

type SessionViewProps = { readonly id: string; readonly answer: SessionAnswer }

function SessionView({ id, answer }: SessionViewProps) {
  const address = usePageAddress()
  const opened = useLog(id, answer, address.at ?? address.chosen?.seq ?? null)
  const { log, view, gone } = opened
  useOpenAround(log, address.at)
  useWholeLog(log, view, address.view !== 'timeline' && address.view !== 'graph')
  useOpenAround(log, address.chosen?.seq ?? null)
  const [ends, setEnds] = useState(0)
  const onLive = useCallback(() => {
    address.move(null)
    if (address.chosen !== null) address.go({ e: null, at: null })
    if (!log.view.atEnd) void log.openAt(null)
    setEnds((count) => count + 1)
  }, [log, address])
  const onMove = useCallback(
    (seq: number) => (seq >= log.view.head ? onLive() : address.move(Math.max(1, seq))),
    [log, address.move, onLive],
  )
  useMoveKeys(view, address, onMove, onLive)
  if (gone) return <MissingSession id={id} removed />
  return (
    <MomentText id={id} answer={answer} address={address} opened={opened} ends={ends} onMove={onMove} onLive={onLive} />
  )
}

type MoveHandlers = { readonly onMove: (seq: number) => void; readonly onLive: () => void }
type MomentProps = SessionViewProps &
  MoveHandlers & { readonly address: PageAddress; readonly opened: OpenLog; readonly ends: number }

/** The keys of the event slider and of the views. */
function useMoveKeys(
  { events, head }: LogView,
  { at, go }: PageAddress,
  onMove: MoveHandlers['onMove'],
  onLive: MoveHandlers['onLive'],
): void {
  const now = at ?? events.at(-1)?.seq ?? head
  const turns = (): readonly number[] => events.flatMap(({ type, seq }) => (type === 'model.started' ? [seq] : []))
  useKeys({
    'event.next': () => onMove(now + 1),
    'event.previous': () => onMove(now - 1),
    'turn.next': () => onMove(turns().find((seq) => seq > now) ?? head),
    'turn.previous': () => onMove(turns().findLast((seq) => seq < now) ?? 1),
    live: onLive,
    ...Object.fromEntries(VIEWS.map((v) => [`view.${v}`, () => go({ v })])),
  })
}

/** The whole page at the shown moment. */
function MomentText({ id, answer, address, opened, ends, onMove, onLive }: MomentProps) {
  const { log, view, said } = opened
  const { at, chosen } = address
  const [forks, setForks] = useState<number | null>(null)
  const [asksFrom, setAsksFrom] = useState<number | null>(null)
  const me = useMe().data
  const dead = useWhyReadOnly(at, view.head)
  const { all, rows, last, isNow, focus, event, row, props, isNumbered } = useShownMoment(answer, opened, address)
  const { card, state } = props
  const isPhone = useIsPhone()
  const choose = useCallback((to: string) => address.go({ e: to }), [address.go])
  const mayReview = dead === null
  const mayAct = me?.role === 'operator' || me?.role === 'admin'
  // A child goes on only with its parent, and the code of a workflow may do anything.
  const mayAsk = mayAct && card.parent === undefined && state?.planner === undefined
  return (
    <div className="page session">
      <SessionHead card={card} state={state} me={me} dead={dead} forkAt={focus?.seq ?? last} pending={answer.pending} />
      <Tabs address={address} />
      <Banners answer={answer} view={view} at={at} log={log} onLive={onLive} />
      <div className="session-body">
        <div className="session-view">
          {view.isNew ? (
            <LogLoading view={view} onRetry={() => void log.openAt(at)} />
          ) : address.view === 'timeline' ? (
            <TimelineRows
              {...{ address, opened, rows, mayReview, ends, isNumbered }}
              session={id}
              chosen={row}
              waiting={props.waiting}
              hasOwnCost={card.treeCostUsd > card.costUsd}
              said={isNow ? said : null}
              onChoose={choose}
            />
          ) : (
            <OtherView view={address.view} props={props} />
          )}
        </div>
        {row !== null && (chosen !== null || !isPhone) ? (
          <Panel
            {...{ row, event, state, dead }}
            session={id}
            events={rowEvents(row, props.events, view.base)}
            pending={answer.pending}
            onChoose={choose}
            onFork={mayAct ? setForks : null}
            onClose={() => (chosen === null ? onLive() : address.go({ e: null }))}
            isSheet={isPhone}
          />
        ) : null}
      </div>
      <Slider
        {...{ onMove, onLive }}
        head={view.head}
        at={at ?? last}
        isLive={isNow}
        rows={all}
        onWhatIf={mayAsk ? () => setAsksFrom(at ?? last) : null}
      />
      {asksFrom === null ? null : (
        <WhatIfDialog session={id} agent={card.agent} at={asksFrom} onClose={() => setAsksFrom(null)} />
      )}
      {forks === null ? null : <ForkDialog session={id} at={forks} onClose={() => setForks(null)} />}
    </div>
  )
}

/** Why nothing can be sent or decided at the shown moment. */
function useWhyReadOnly(at: number | null, head: number): string | null {
  const live = useLiveState()
  if (at !== null) return `This is event ${at} of ${head}. Go back to live to send or decide.`
  return live === 'offline' ? 'The server does not answer.' : null
}

const NAMES: Readonly<Record<ViewName, string>> = {
  timeline: 'Timeline',
  waterfall: 'Waterfall',
  graph: 'Graph',
  context: 'Context',
  raw: 'Raw',
}

function Tabs({ address }: { readonly address: PageAddress }) {
  return (
    <nav className="tabs" aria-label="Views">
      {VIEWS.map((v) => (
        <Link
          key={v}
          href={address.hrefOf({ v })}
          className={v === address.view ? 'tab here' : 'tab'}
          aria-current={v === address.view ? 'page' : undefined}
        >
          {NAMES[v]}
        </Link>
      ))}
    </nav>
  )
}

type BannerProps = {
  readonly answer: SessionAnswer
  readonly view: LogView
  readonly at: number | null
  readonly log: LogWindow
  readonly onLive: () => void
}

function Banners({ answer, view, at, log, onLive }: BannerProps) {
  const damaged = view.damaged ?? answer.damaged
  const back = (
    <Button size="small" onPress={onLive}>
      Back to live
    </Button>
  )
  const words = (seq: number): string => seq.toLocaleString('en')
  return (
    <>
      {damaged ? <DamageNotice seq={damaged.seq} reason={damaged.reason} /> : null}
      {view.error !== null && !view.isNew ? (
        <Notice tone="bad">
          {view.error instanceof Error ? view.error.message : 'More could not be read.'}{' '}
          <Button size="small" onPress={() => void log.openAt(at)}>
            Try again
          </Button>
        </Notice>
      ) : null}
      {at === null ? null : (
        <Notice tone="accent">
          Event {words(at)} of {words(view.head)} · nothing can be sent or decided from here · {back}
        </Notice>
      )}
      {at === null && !view.isNew && !view.atEnd ? (
        <Notice tone="accent">
          Events {words(log.first)} to {words(log.last)} of {words(view.head)} · {back}
        </Notice>
      ) : null}
    </>
  )
}

function LogLoading({ view, onRetry }: { readonly view: LogView; readonly onRetry: () => void }) {
  return view.error === null ? (
    <Loading what="Loading the log" rows={10} />
  ) : (
    <ErrorPanel error={view.error} onRetry={onRetry} />
  )
}

function OtherView({ view, props }: { readonly view: Exclude<ViewName, 'timeline'>; readonly props: ViewProps }) {
  const View = OTHERS[view]
  return <View {...props} />
}

type TimelineRowsProps = Pick<
  Parameters<typeof TimelineView>[0],
  'session' | 'rows' | 'chosen' | 'said' | 'mayReview' | 'ends' | 'onChoose' | 'isNumbered' | 'waiting' | 'hasOwnCost'
> & {
  readonly address: PageAddress
  readonly opened: OpenLog
}

function TimelineRows({ address, opened: { log, view }, rows, ...props }: TimelineRowsProps) {
  const origin = useForkOrigin(view)
  const hrefOf = useCallback((to: string) => address.hrefOf({ e: to }), [address.hrefOf])
  const isPast = address.at !== null
  const onWhole = useCallback(() => void log.readBack().then(() => (isPast ? undefined : log.readOn())), [log, isPast])
  const [only] = rows
  if (rows.length === 1 && only?.type === 'begun' && !only.fork && view.atEnd)
    return <Empty title="Nothing was said yet">Send it a message, and what happens comes here.</Empty>
  return (
    <TimelineView
      {...props}
      view={view}
      rows={rows}
      origin={origin}
      isPast={isPast}
      onWhole={onWhole}
      hrefOf={hrefOf}
      onOlder={() => void log.older()}
      // At a past moment the rows end at the slider, so no newer rows are read.
      onNewer={() => void (!isPast && log.newer())}
    />
  )
}
