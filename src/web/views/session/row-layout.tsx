// The layout of every timeline row: the event's number as a link, the content, and three columns of figures.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { CallKey } from '../../../kernel/index.ts'
import { momentText, Money, TimeTaken, TokenCount } from '../../parts/figures.tsx'
import { usdOf } from '../../../view/usd.ts'

export type RowLayoutProps = {
  readonly kind: string
  readonly seq: number
  /** The time at which it began. */
  readonly at: number
  readonly children: ReactNode
  readonly depth?: 0 | 1
  readonly took?: number | null
  readonly tokens?: number | null
  /** In millionths of a dollar. */
  readonly cost?: number
  readonly around: Pick<RowContext, 'hrefOf'>
  /** A label before the cost. */
  readonly costName?: string | undefined
  /** The link target of the number, if it is not the event. */
  readonly to?: string
}

export function RowLayout(props: RowLayoutProps) {
  const { kind, seq, at, children, depth = 0, took = null, tokens = null, cost = 0, costName, around, to } = props
  const hasFigures = took !== null || tokens !== null || cost > 0
  return (
    <div className={`line ${kind}`} data-seq={seq} data-depth={depth}>
      <Link
        href={around.hrefOf(to ?? String(seq))}
        className="line-seq"
        aria-label={`Event ${seq}`}
        title={momentText(at)}
      >
        {seq}
      </Link>
      <div className="line-main">{children}</div>
      {hasFigures ? (
        <div className="line-figures">
          <span>{took === null ? '' : <TimeTaken ms={took} />}</span>
          <span>{tokens === null ? '' : <TokenCount count={tokens} />}</span>
          <span>
            {cost > 0 ? costName : ''} {cost > 0 ? <Money usd={usdOf(cost)} /> : ''}
          </span>
        </div>
      ) : null}
    </div>
  )
}

/** The context that timeline rows share. */
export type RowContext = {
  readonly session: string
  /** Turns are counted from the beginning of the log. Without it they have no numbers. */
  readonly isNumbered: boolean
  /** Some rows are hidden, so a call may be shown without its turn. */
  readonly isFiltered: boolean
  /** The sessions below this one that wait for a person. */
  readonly waiting: readonly string[]
  /** Children have costs too, so the session's own cost is labelled as such. */
  readonly hasOwnCost: boolean
  /** Whether pending calls can be decided from here. */
  readonly mayReview: boolean
  /** The address of an event or call on this page. */
  readonly hrefOf: (to: string) => string
  readonly toolOf: (call: CallKey) => string
  readonly isOpen: (key: string) => boolean
  readonly onToggle: (key: string) => void
}

/** For a row outside of a session's page. */
export const ALONE: RowContext = {
  session: '',
  isNumbered: true,
  isFiltered: false,
  waiting: [],
  hasOwnCost: false,
  mayReview: false,
  hrefOf: (to) => `?e=${to}`,
  toolOf: (call) => call,
  isOpen: () => false,
  onToggle: () => {},
}
