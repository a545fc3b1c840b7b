// The frame of every row of a timeline: the number of its event, which is a link to it, what it says, and three figures in columns.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { CallKey } from '../../../kernel/index.ts'
import { momentText, Money, Took, Tokens } from '../../parts/figures.tsx'
import { usdOf } from '../../../view/usd.ts'

export type LineProps = {
  readonly kind: string
  readonly seq: number
  /** When it began. */
  readonly at: number
  readonly children: ReactNode
  readonly depth?: 0 | 1
  readonly took?: number | null
  readonly tokens?: number | null
  /** In millionths of a dollar. */
  readonly cost?: number
  readonly around: Pick<Around, 'hrefOf'>
  /** What is said before the cost. */
  readonly costName?: string | undefined
  /** What the number leads to, if not to its event. */
  readonly to?: string
}

export function Line(props: LineProps) {
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
          <span>{took === null ? '' : <Took ms={took} />}</span>
          <span>{tokens === null ? '' : <Tokens count={tokens} />}</span>
          <span>
            {cost > 0 ? costName : ''} {cost > 0 ? <Money usd={usdOf(cost)} /> : ''}
          </span>
        </div>
      ) : null}
    </div>
  )
}

/** What rows need to know beside themselves. */
export type Around = {
  readonly session: string
  /** Turns are counted from the beginning of the log; where that is not known they have no number. */
  readonly isNumbered: boolean
  /** Only some rows are shown: a call is shown without its turn. */
  readonly isFiltered: boolean
  /** The sessions below this one that wait for somebody. */
  readonly waiting: readonly string[]
  /** Children cost something, too: a cost of this session says that it is its own. */
  readonly hasOwnCost: boolean
  /** Whether what waits can be decided from here. */
  readonly mayReview: boolean
  /** The address of an event, or of a call, on this page. */
  readonly hrefOf: (to: string) => string
  readonly toolOf: (call: CallKey) => string
  readonly isOpen: (key: string) => boolean
  readonly onToggle: (key: string) => void
}

/** For a row that stands by itself. */
export const ALONE: Around = {
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
