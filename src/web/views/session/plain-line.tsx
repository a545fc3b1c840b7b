// All other timeline rows: messages, waits, decisions, failures with advice, and ends of runs.
import { memo, type ReactNode } from 'react'
import { Link } from 'wouter'
import type { Outcome } from '../../../kernel/index.ts'
import type { TimelineRow } from '../../../view/timeline.ts'
import { oneLine } from '../../../view/clean.ts'
import { changesText } from '../../../view/argument-changes.ts'
import { usdText } from '../../../view/usd.ts'
import { Ago, TimeTaken } from '../../parts/figures.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { reviewAddress } from './call-line.tsx'
import { type RowContext, RowLayout } from './row-layout.tsx'
import { MessageParts } from './turn-line.tsx'

type PlainRow = Exclude<TimelineRow, { type: 'turn' | 'call' }>
type PlainRowOf<T extends PlainRow['type']> = Extract<PlainRow, { type: T }>
type PlainLineProps<T extends PlainRow['type']> = { readonly row: PlainRowOf<T>; readonly around: RowContext }

/** The most characters of an edit on one line; the call's panel shows all of it. */
const CHANGES = 300

export const PlainLine = memo(function PlainLine({
  row,
  around,
}: {
  readonly row: PlainRow
  readonly around: RowContext
}) {
  switch (row.type) {
    case 'message':
      return <MessageLine row={row} around={around} />
    case 'idle':
      return (
        <div className="line idle" data-seq={row.seq} data-depth={0}>
          <span>
            idle <TimeTaken ms={row.endedAt - row.at} />, waiting for {WAITS[row.waits]}
          </span>
        </div>
      )
    case 'begun':
      return <BegunLine row={row} around={around} />
    case 'settled':
      return <SettledLine row={row} around={around} />
    case 'failed':
      return <FailedLine row={row} around={around} />
    case 'compacted':
      return <CompactedLine row={row} around={around} />
    case 'decision':
      return (
        <RowLayout around={around} kind="small" seq={row.seq} at={row.at} depth={1}>
          <StatusLabel
            of={row.allow ? 'ok' : 'denied'}
            words={row.allow ? (row.edited ? 'edited and allowed' : 'allowed') : 'denied'}
          />{' '}
          <Text text={`${around.toolOf(row.call)} by ${row.by}`} />
          {row.edited ? (
            <span className="mono dim">
              {' '}
              <Text text={oneLine(changesText(row.edited.before, row.edited.after), CHANGES)} />
            </span>
          ) : null}
          <ReasonText text={row.why} />
        </RowLayout>
      )
    case 'answer':
      return (
        <RowLayout around={around} kind="small" seq={row.seq} at={row.at} depth={1}>
          <StatusLabel of={row.ok ? 'ok' : 'failed'} words={row.ok ? 'answered' : 'answered with a failure'} />{' '}
          <Text text={around.toolOf(row.call)} />
          <ByAuthor by={row.by} />
        </RowLayout>
      )
    case 'lost':
      return (
        <RowLayout around={around} kind="small lost" seq={row.seq} at={row.at} depth={1}>
          <StatusLabel of="lost" words="attempt lost, asked again" />
          <ReasonText text={row.message} />
        </RowLayout>
      )
    default:
      return <NoteLine row={row} around={around} />
  }
})

const WAITS = { person: 'a person', outside: 'an answer', provider: 'the provider', input: 'a message' } as const

function MessageLine({ row, around }: PlainLineProps<'message'>) {
  const { seq, at, parts, by, when } = row
  const [only] = parts
  return (
    <RowLayout around={around} kind="message" seq={seq} at={at}>
      <div className="line-head">
        <Author by={by ?? 'user'} />
        {when === 'next' ? null : <span className="tag">{when}</span>}
      </div>
      {parts.length === 1 && only?.type === 'text' ? (
        <Text as="block" text={only.text} />
      ) : (
        <MessageParts parts={parts} session={around.session} />
      )}
    </RowLayout>
  )
}

const SESSION = 'session:'

/** The person or session that caused it. */
function ByAuthor({ by }: { readonly by: string | null }) {
  if (by === null) return null
  return (
    <>
      {' '}
      by <Author by={by} />
    </>
  )
}

function Author({ by }: { readonly by: string }) {
  if (!by.startsWith(SESSION))
    return (
      <strong className="by">
        <Text text={by} />
      </strong>
    )
  const id = by.slice(SESSION.length)
  return (
    <Link href={`/s/${encodeURIComponent(id)}`} className="by">
      <Text text={`session ${id}`} />
    </Link>
  )
}

function BegunLine({ row: { seq, at, agent, fork, parent }, around }: PlainLineProps<'begun'>) {
  return (
    <RowLayout around={around} kind={fork ? 'small divider' : 'small'} seq={seq} at={at}>
      {fork ? (
        <>
          forked from{' '}
          <Link href={`/s/${encodeURIComponent(fork.session)}?e=${fork.seq}`}>
            <Text text={fork.session} /> at event {fork.seq}
          </Link>
          , agent <Text text={agent} />
        </>
      ) : (
        <>
          begun, agent <Text text={agent} />
        </>
      )}
      {parent === undefined ? null : (
        <>
          {' '}
          for <Link href={`/s/${encodeURIComponent(parent)}`}>its parent</Link>
        </>
      )}
    </RowLayout>
  )
}

function SettledLine({ row, around }: PlainLineProps<'settled'>) {
  const { seq, at, outcome, startedAt, endedAt, cost, output } = row
  return (
    <RowLayout
      around={around}
      kind="settled"
      seq={seq}
      at={at}
      took={startedAt === null ? null : endedAt - startedAt}
      cost={cost}
      costName={around.hasOwnCost ? 'own' : undefined}
    >
      <div className="line-head">
        <StatusLabel of={outcome.type} words={outcome.type === 'completed' ? 'run completed' : undefined} />
        <OutcomeText outcome={outcome} />
        {outcome.type === 'limit' && outcome.limit === 'usd' && around.mayReview ? (
          <Link href={reviewAddress(around.session, 'budget')}>Raise the budget</Link>
        ) : null}
      </div>
      {output === undefined ? null : <JsonTree value={output} open={1} />}
    </RowLayout>
  )
}

function OutcomeText({ outcome }: { readonly outcome: Outcome }) {
  if (outcome.type === 'halted') return <Text text={outcome.reason} />
  if (outcome.type === 'failed')
    return (
      <span>
        {outcome.reason.replaceAll('_', ' ')}: <Text text={outcome.failure.message} />
      </span>
    )
  if (outcome.type !== 'limit') return null
  const { limit, account, short } = outcome
  return (
    <span>
      {limit === 'usd' ? `budget of the ${account ?? 'session'}` : limit.replaceAll('_', ' ')}
      {short
        ? `: ${usdText(short.spent)} of ${usdText(short.limit)} spent, the next call may cost ${usdText(short.needed)}`
        : ''}
    </span>
  )
}

/** Advice for each class of failure. */
const ADVICE: Readonly<Record<string, string>> = {
  rate_limit: 'The provider wants fewer requests. It is asked again by itself.',
  auth: 'The provider refused the key. Set another one, then wake the session.',
  overflow: 'The conversation is too long for the model. Compact it, or fork from an earlier event.',
  bad_request: 'The provider refused the request as it is. Fork from an earlier event, or use another model.',
  server: 'The provider is in trouble. It is asked again by itself.',
  network: 'The provider could not be reached. Look at the network of the server.',
  timeout: 'The provider took too long. It is asked again by itself.',
  superseded: 'A newer message took its place.',
  interrupted: 'Somebody stopped it.',
}

function FailedLine({ row, around }: PlainLineProps<'failed'>) {
  const { seq, at, class: kind, message, retryAt, partial } = row
  return (
    <RowLayout around={around} kind="small failed" seq={seq} at={at} depth={1}>
      <div className="line-head">
        <StatusLabel
          of={kind === 'superseded' || kind === 'interrupted' ? 'interrupted' : 'failed'}
          words={kind.replaceAll('_', ' ')}
        />
        <Text text={message} />
      </div>
      <p className="dim">
        {ADVICE[kind] ?? 'The message says what the provider answered.'}
        {retryAt === null ? '' : ' Next try: '}
        {retryAt === null ? null : <Ago at={retryAt} />}
      </p>
      {partial === '' ? null : (
        <details className="thinking">
          <summary>what was said before it failed</summary>
          <Text as="block" text={partial} />
        </details>
      )}
    </RowLayout>
  )
}

function CompactedLine({ row, around }: PlainLineProps<'compacted'>) {
  const { seq, at, summary, cleared, before, after, failed } = row
  const sizes =
    before === null || after === null ? '' : `, ${before.toLocaleString('en')} → ${after.toLocaleString('en')} tokens`
  return (
    <RowLayout around={around} kind="small" seq={seq} at={at}>
      {failed === undefined ? (
        <>
          {cleared ? 'older results cleared' : 'context compacted'}
          {sizes}
        </>
      ) : (
        <StatusLabel of="failed" words="context could not be compacted" />
      )}
      <ReasonText text={failed ?? ''} />
      {summary === null ? null : (
        <details className="thinking">
          <summary>summary</summary>
          <Text as="block" text={summary} />
        </details>
      )}
    </RowLayout>
  )
}

type NoteRow = Exclude<
  PlainRow,
  PlainRowOf<'message' | 'idle' | 'begun' | 'settled' | 'failed' | 'compacted' | 'decision' | 'answer' | 'lost'>
>

function NoteLine({ row, around }: { readonly row: NoteRow; readonly around: RowContext }) {
  return (
    <RowLayout around={around} kind="small" seq={row.seq} at={row.at}>
      {drawNote(row)}
    </RowLayout>
  )
}

function drawNote(row: NoteRow): ReactNode {
  switch (row.type) {
    case 'note':
      return (
        <>
          <span className="tag">{row.kind}</span> <Text text={row.text} />
        </>
      )
    case 'interrupt':
      return (
        <>
          <StatusLabel of="interrupted" words={INTERRUPTS[row.mode]} />
          <ByAuthor by={row.by} />
          <ReasonText text={row.why} />
        </>
      )
    case 'wake':
      return (
        <>
          <StatusLabel of="rescheduling" words="looks again" /> <Ago at={row.due} />
          <ReasonText text={row.reason} />
        </>
      )
    case 'deferred':
      return (
        <>
          <StatusLabel of="rescheduling" words="could not begin" /> <Text text={row.message} />, next try{' '}
          <Ago at={row.retryAt} />
        </>
      )
    case 'imported':
      return (
        <>
          imported; it was called <Text mono text={row.from} />
        </>
      )
    case 'reviewed':
      return row.call === null ? 'what the run may do was looked at anew' : `call ${row.call} was looked at anew`
    case 'closed':
      return <StatusLabel of="terminated" />
    default:
      return <Text mono text={row.name} />
  }
}

const INTERRUPTS = { stop: 'interrupted', pause: 'paused', resume: 'resumed' } as const

function ReasonText({ text }: { readonly text: string }) {
  if (text === '') return null
  return (
    <span className="dim">
      {' '}
      · <Text text={text} />
    </span>
  )
}
