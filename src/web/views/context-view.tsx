// The context view shows what each request sent to the model: the size of each part, the share from the provider's
// cache, and where, why and at what cost the cache missed.
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import {
  type ContextPart,
  requestAt,
  type ShownRequest,
  type ShownSource,
  bySource,
  missText,
  SOURCE_NAMES,
  toolSources,
} from '../../view/request-context.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun, percentText, textOf } from '../../view/shown-text.ts'
import { usdOf } from '../../view/usd.ts'
import { readLogUpTo, useBlobText, useInherited } from '../data/other-logs.ts'
import { Button } from '../parts/button.tsx'
import { Money, TokenCount } from '../parts/figures.tsx'
import { List } from '../parts/virtual-list.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { copyTranscript, buildRequestMarks, type RequestMark } from './context-requests.ts'
import type { ViewProps } from './view-props.ts'
import '../style/views.css'

/** Longer logs are not read just to show one request. */
const EVENTS_MAX = 50_000

/** If only a part of the log is in memory, the rest is read here, up to a limit. */
export function ContextView(props: ViewProps) {
  const { card, events, cut } = props
  const first = events[0]?.seq ?? 1
  const isTooLong = first > EVENTS_MAX
  const { data, error, refetch } = useQuery({
    queryKey: ['log before', card.session, first],
    queryFn: async ({ signal }) => (await readLogUpTo(card.session, first - 1, EVENTS_MAX, signal)).events,
    enabled: cut && !isTooLong,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const whole = useMemo(() => (data ? [...data, ...events] : null), [data, events])
  if (events.length === 0 || !cut) return <Requests {...props} />
  if (whole !== null) return <Requests {...props} events={whole} />
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />
  if (!isTooLong) return <Loading what={`Reading ${countNoun(first - 1, 'earlier event')}`} rows={10} />
  return (
    <div className="view">
      <Empty title="The beginning of this log is not loaded">
        What the model was shown follows from all events before it. This log is too long to read for that here.
      </Empty>
    </div>
  )
}

function Requests({ card, events, chosen, onChoose }: ViewProps) {
  const marks = useMemo(() => buildRequestMarks(events), [events])
  const inherited = useInherited(card.session, events)
  const mark = marks.findLast(({ seq }) => chosen === null || seq <= chosen) ?? marks[0]
  const request = useMemo(
    () => (mark ? requestAt(events, mark.seq, copyTranscript(inherited.data)) : null),
    [events, mark?.seq, inherited.data],
  )
  if (inherited.isLoading) return <Loading what="Reading the log it was forked from" />
  if (inherited.isError) return <ErrorPanel error={inherited.error} onRetry={() => void inherited.refetch()} />
  if (!mark || request === null)
    return (
      <Empty title="No model was asked yet">
        With the first request this shows what the model was given: instructions, tools, messages and results.
      </Empty>
    )
  const n = marks.indexOf(mark)
  const go = (to: number): void => {
    const next = marks[to]
    if (next) onChoose(next.seq)
  }
  return (
    <div className="view context">
      <div className="view-tools" role="toolbar" aria-label="Requests">
        <Button size="small" label="The request before" disabled={n === 0} onPress={() => go(n - 1)}>
          ←
        </Button>
        <strong>
          Request {n + 1} of {marks.length}
        </strong>
        <Button size="small" label="The next request" disabled={n === marks.length - 1} onPress={() => go(n + 1)}>
          →
        </Button>
        <span className="spread" />
        <span className="dim">event {mark.seq}</span>
      </div>
      <Columns marks={marks} at={n} onGo={go} />
      <ShownRequestView session={card.session} request={request} mark={mark} onChoose={onChoose} />
    </div>
  )
}

const COLUMNS_MAX = 400

/** One column per request: cached tokens below, new tokens above. */
function Columns({
  marks,
  at,
  onGo,
}: {
  readonly marks: readonly RequestMark[]
  readonly at: number
  readonly onGo: (to: number) => void
}) {
  const from = Math.min(Math.max(0, at - COLUMNS_MAX / 2), Math.max(0, marks.length - COLUMNS_MAX))
  const shown = marks.slice(from, from + COLUMNS_MAX)
  const most = Math.max(1, ...shown.map(({ inputTokens }) => inputTokens))
  return (
    <figure className="columns">
      <figcaption>
        Input tokens of each request: <span className="key cached">from the cache</span>{' '}
        <span className="key fresh">read anew</span> <span className="key missed">the cache missed</span>
      </figcaption>
      <div className="columns-scroll" tabIndex={0} role="group" aria-label="Requests by size">
        {shown.map(({ seq, inputTokens, cachedTokens, missed, answered }, i) => (
          <button
            type="button"
            key={seq}
            className={`column${from + i === at ? ' chosen' : ''}${missed ? ' missed' : ''}`}
            aria-label={`Request ${from + i + 1}: ${answered === 'failed' ? 'failed' : `${inputTokens} tokens, ${cachedTokens} from the cache${missed ? ', the cache missed' : ''}`}`}
            aria-current={from + i === at}
            onClick={() => onGo(from + i)}
          >
            <span className="column-fresh" style={{ height: `${((inputTokens - cachedTokens) / most) * 100}%` }} />
            <span className="column-cached" style={{ height: `${(cachedTokens / most) * 100}%` }} />
          </button>
        ))}
      </div>
    </figure>
  )
}

type ShownRequestProps = {
  readonly session: string
  readonly request: ShownRequest
  readonly mark: RequestMark
  readonly onChoose: (seq: number) => void
}

function ShownRequestView({ session, request, mark, onChoose }: ShownRequestProps) {
  const told = useBlobText(session, request.prefix?.instructions ?? null).data
  const toolset = useBlobText(session, request.prefix?.toolset ?? null).data
  const sources = useMemo((): readonly ShownSource[] => {
    const tools = toolset === undefined ? [] : toolSources(toolset)
    const toolChars = tools.reduce((sum, { chars }) => sum + chars, 0)
    const all: readonly ShownSource[] = [
      { source: 'instructions', count: 1, chars: told?.length ?? 0 },
      ...(tools.length === 0 ? [] : [{ source: 'tool' as const, count: tools.length, chars: toolChars }]),
      ...sumByKind(bySource(request.parts)),
    ]
    return all.filter(({ chars }) => chars > 0)
  }, [told, toolset, request])
  const all = Math.max(
    1,
    sources.reduce((sum, { chars }) => sum + chars, 0),
  )
  return (
    <>
      <CacheFigures request={request} mark={mark} />
      <div className="context-whole" role="img" aria-label="Share of each part by its size">
        {sources.map(({ source, chars }) => (
          <span key={source} className={`share ${source}`} style={{ width: `${(chars / all) * 100}%` }} />
        ))}
      </div>
      <ul className="context-sources" aria-label="Size by part">
        {sources.map(({ source, count, chars }) => (
          <li key={source}>
            <span className={`swatch ${source}`} aria-hidden />
            <span>
              {SOURCE_NAMES[source]}
              {source === 'instructions' ? '' : <span className="dim"> {count}</span>}
            </span>
            <span className="dim">{chars.toLocaleString('en')} chars</span>
            <span className="context-share">{percentText(chars, all)}</span>
          </li>
        ))}
      </ul>
      <h2 className="view-title">{countNoun(request.parts.length, 'message')}, in the order they were shown</h2>
      <List
        label="Messages of the request"
        items={request.parts.map((part, i) => ({ part, i }))}
        keyOf={({ part, i }) => `${i} ${part.seq}`}
        row={({ part, i }) => (
          <>
            {i > 0 && i === request.kept ? (
              <div className="kept-line">as in the request before up to here, new from here on</div>
            ) : null}
            <PartRow part={part} onChoose={onChoose} />
          </>
        )}
      />
    </>
  )
}

function CacheFigures({ request, mark }: { readonly request: ShownRequest; readonly mark: RequestMark }) {
  const { answer } = request
  if (answer === null) return <p className="view-note">The model has not answered yet.</p>
  if (answer.type === 'failed')
    return (
      <p className="view-note bad">
        The request failed: <Text text={answer.message} />
      </p>
    )
  const { inputTokens, cachedTokens, cacheWriteTokens, cost, missed, kept } = answer
  return (
    <>
      <dl className="context-figures">
        <div>
          <dt>Input</dt>
          <dd>{inputTokens === null ? 'not counted' : <TokenCount count={inputTokens} />}</dd>
        </div>
        <div>
          <dt>From the cache</dt>
          <dd>
            <TokenCount count={cachedTokens} />{' '}
            <span className="dim">{percentText(cachedTokens, inputTokens ?? 0)}</span>
          </dd>
        </div>
        <div>
          <dt>Written to it</dt>
          <dd>
            <TokenCount count={cacheWriteTokens} />
          </dd>
        </div>
        <div>
          <dt>Cost</dt>
          <dd>
            <Money usd={usdOf(cost)} />
          </dd>
        </div>
        {answer.route === undefined ? null : (
          <div>
            <dt>Model</dt>
            <dd>
              <Text text={answer.route} />
            </dd>
          </div>
        )}
      </dl>
      {kept ? (
        <p className="view-note">The answer was kept from an earlier, equal request: no model was asked.</p>
      ) : null}
      {missed === null && mark.missed === null ? null : (
        <div className="notice warn miss" role="note">
          <span>
            <strong>The cache missed:</strong> <Text text={missText(missed ?? { why: '?' })} />.{' '}
            <TokenCount count={missed?.tokens ?? 0} /> tokens were read again for{' '}
            <Money usd={usdOf(missed?.cost ?? 0)} />.
          </span>
        </div>
      )}
    </>
  )
}

function PartRow({ part, onChoose }: { readonly part: ContextPart; readonly onChoose: (seq: number) => void }) {
  const { source, name, seq, chars, inherited } = part
  const says = (
    <>
      <span className={`swatch ${source}`} aria-hidden />
      <span className="part-source">
        {ONE[source]}
        {name === undefined ? null : (
          <>
            {' '}
            <Text mono text={name} />
          </>
        )}
      </span>
      <span className="part-says dim">
        <Text text={partPreview(part)} />
      </span>
      <span className="part-size dim">{chars.toLocaleString('en')}</span>
    </>
  )
  // Its seq belongs to another log.
  return inherited ? (
    <div className="view-row part" title="from the session that this one was forked from">
      {says}
    </div>
  ) : (
    <button type="button" className="view-row part" onClick={() => onChoose(seq)}>
      {says}
    </button>
  )
}

const ONE = {
  instructions: 'instructions',
  tool: 'tool',
  pin: 'pinned',
  summary: 'summary',
  context: 'context',
  notice: 'notice',
  user: 'user',
  assistant: 'model',
  result: 'result of',
  cleared: 'cleared result of',
} as const

const CHARS = 220

function partPreview({ message }: ContextPart): string {
  if (message.role === 'tool') return typeof message.content === 'string' ? oneLine(message.content, CHARS) : 'a file'
  const text = textOf(message.parts)
  const calls = message.role === 'assistant' ? message.calls.map(({ tool }) => `→ ${tool}`).join(' ') : ''
  const others = message.parts.filter(({ type }) => type !== 'text' && type !== 'reasoning').length
  return oneLine(
    [text, calls, others > 0 ? countNoun(others, 'file') : ''].filter((each) => each !== '').join(' '),
    CHARS,
  )
}

/** Sums over all tool names, so that results have one row. */
function sumByKind(sources: readonly ShownSource[]): readonly ShownSource[] {
  const sums = new Map<ShownSource['source'], ShownSource>()
  for (const { source, count, chars } of sources) {
    const before = sums.get(source) ?? { count: 0, chars: 0 }
    sums.set(source, { source, count: before.count + count, chars: before.chars + chars })
  }
  return [...sums.values()]
}
