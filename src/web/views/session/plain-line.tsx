// All other rows: what people said, waits, decisions, failures with what to do about them, and how runs ended.
import { memo, type ReactNode } from 'react'
import { Link } from 'wouter'
import type { Outcome } from '../../../kernel/index.ts'
import type { TimelineRow } from '../../../view/timeline.ts'
import { oneLine } from '../../../view/clean.ts'
import { changesText } from '../../../view/edited.ts'
import { usdText } from '../../../view/usd.ts'
import { Ago, Took } from '../../parts/figures.tsx'
import { Json } from '../../parts/json.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { reviewOf } from './call-line.tsx'
import { type Around, Line } from './line.tsx'
import { Parts } from './turn-line.tsx'

type Row = Exclude<TimelineRow, { type: 'turn' | 'call' }>
type Of<T extends Row['type']> = Extract<Row, { type: T }>
type Lined<T extends Row['type']> = { readonly row: Of<T>; readonly around: Around }

/** Of what a person changed, on one line; the panel of the call has all of it. */
const CHANGES = 300

export const PlainLine = memo(function PlainLine({ row, around }: { readonly row: Row; readonly around: Around }) {
  switch (row.type) {
    case 'message':
      return <MessageLine row={row} around={around} />
    case 'idle':
      return (
        <div className="line idle" data-seq={row.seq} data-depth={0}>
          <span>
            idle <Took ms={row.endedAt - row.at} />, waiting for {WAITS[row.waits]}
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
        <Line around={around} kind="small" seq={row.seq} at={row.at} depth={1}>
          <Status
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
          <Why text={row.why} />
        </Line>
      )
    case 'answer':
      return (
        <Line around={around} kind="small" seq={row.seq} at={row.at} depth={1}>
          <Status of={row.ok ? 'ok' : 'failed'} words={row.ok ? 'answered' : 'answered with a failure'} />{' '}
          <Text text={around.toolOf(row.call)} />
          <ByWhom by={row.by} />
        </Line>
      )
    case 'lost':
      return (
        <Line around={around} kind="small lost" seq={row.seq} at={row.at} depth={1}>
          <Status of="lost" words="attempt lost, asked again" />
          <Why text={row.message} />
        </Line>
      )
    default:
      return <NoteLine row={row} around={around} />
  }
})

const WAITS = { person: 'a person', outside: 'an answer', provider: 'the provider', input: 'a message' } as const

function MessageLine({ row, around }: Lined<'message'>) {
  const { seq, at, parts, by, when } = row
  const [only] = parts
  return (
    <Line around={around} kind="message" seq={seq} at={at}>
      <div className="line-head">
        <By by={by ?? 'user'} />
        {when === 'next' ? null : <span className="tag">{when}</span>}
      </div>
      {parts.length === 1 && only?.type === 'text' ? (
        <Text as="block" text={only.text} />
      ) : (
        <Parts parts={parts} session={around.session} />
      )}
    </Line>
  )
}

const SESSION = 'session:'

/** A person, or the session that said it. */
function ByWhom({ by }: { readonly by: string | null }) {
  if (by === null) return null
  return (
    <>
      {' '}
      by <By by={by} />
    </>
  )
}

function By({ by }: { readonly by: string }) {
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

function BegunLine({ row: { seq, at, agent, fork, parent }, around }: Lined<'begun'>) {
  return (
    <Line around={around} kind={fork ? 'small divider' : 'small'} seq={seq} at={at}>
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
    </Line>
  )
}

function SettledLine({ row, around }: Lined<'settled'>) {
  const { seq, at, outcome, startedAt, endedAt, cost, output } = row
  return (
    <Line
      around={around}
      kind="settled"
      seq={seq}
      at={at}
      took={startedAt === null ? null : endedAt - startedAt}
      cost={cost}
      costName={around.hasOwnCost ? 'own' : undefined}
    >
      <div className="line-head">
        <Status of={outcome.type} words={outcome.type === 'completed' ? 'run completed' : undefined} />
        <Ending outcome={outcome} />
        {outcome.type === 'limit' && outcome.limit === 'usd' && around.mayReview ? (
          <Link href={reviewOf(around.session, 'budget')}>Raise the budget</Link>
        ) : null}
      </div>
      {output === undefined ? null : <Json value={output} open={1} />}
    </Line>
  )
}

function Ending({ outcome }: { readonly outcome: Outcome }) {
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

/** By the class of a failure. */
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

function FailedLine({ row, around }: Lined<'failed'>) {
  const { seq, at, class: kind, message, retryAt, partial } = row
  return (
    <Line around={around} kind="small failed" seq={seq} at={at} depth={1}>
      <div className="line-head">
        <Status
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
    </Line>
  )
}

function CompactedLine({ row, around }: Lined<'compacted'>) {
  const { seq, at, summary, cleared, before, after, failed } = row
  const sizes =
    before === null || after === null ? '' : `, ${before.toLocaleString('en')} → ${after.toLocaleString('en')} tokens`
  return (
    <Line around={around} kind="small" seq={seq} at={at}>
      {failed === undefined ? (
        <>
          {cleared ? 'older results cleared' : 'context compacted'}
          {sizes}
        </>
      ) : (
        <Status of="failed" words="context could not be compacted" />
      )}
      <Why text={failed ?? ''} />
      {summary === null ? null : (
        <details className="thinking">
          <summary>summary</summary>
          <Text as="block" text={summary} />
        </details>
      )}
    </Line>
  )
}

type Noted = Exclude<
  Row,
  Of<'message' | 'idle' | 'begun' | 'settled' | 'failed' | 'compacted' | 'decision' | 'answer' | 'lost'>
>

function NoteLine({ row, around }: { readonly row: Noted; readonly around: Around }) {
  return (
    <Line around={around} kind="small" seq={row.seq} at={row.at}>
      {noted(row)}
    </Line>
  )
}

function noted(row: Noted): ReactNode {
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
          <Status of="interrupted" words={INTERRUPTS[row.mode]} />
          <ByWhom by={row.by} />
          <Why text={row.why} />
        </>
      )
    case 'wake':
      return (
        <>
          <Status of="rescheduling" words="looks again" /> <Ago at={row.due} />
          <Why text={row.reason} />
        </>
      )
    case 'deferred':
      return (
        <>
          <Status of="rescheduling" words="could not begin" /> <Text text={row.message} />, next try{' '}
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
      return <Status of="terminated" />
    default:
      return <Text mono text={row.name} />
  }
}

const INTERRUPTS = { stop: 'interrupted', pause: 'paused', resume: 'resumed' } as const

function Why({ text }: { readonly text: string }) {
  if (text === '') return null
  return (
    <span className="dim">
      {' '}
      · <Text text={text} />
    </span>
  )
}
