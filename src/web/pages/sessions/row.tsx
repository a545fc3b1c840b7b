// One session in the list: how it stands, what it is, whose it is, how old, how dear. The whole row is its link.
import { memo } from 'react'
import { Link } from 'wouter'
import type { WireCard } from '../../../server/wire.ts'
import { oneLine } from '../../../view/clean.ts'
import { nameIn, stateOf } from '../../../view/tree.ts'
import { Ago, Money } from '../../parts/figures.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { stateWords, unknownWords, whyOf } from '../../parts/why.ts'

export type SessionRowProps = {
  readonly card: WireCard
  readonly depth?: number
  /** Null: nothing is below it. */
  readonly open?: boolean | null
  readonly marked?: boolean
  /** What it waits for, in words. */
  readonly waits?: string | undefined
  /** A child waits, and not this session. */
  readonly waitsBelow?: boolean
  readonly onToggle?: (session: string) => void
}

const REASON_CHARS = 500

export const SessionRow = memo(function SessionRow(props: SessionRowProps) {
  const { card, depth = 0, open = null, marked = false, waits, waitsBelow = false, onToggle } = props
  const { session, agent, at, treeCostUsd } = card
  const why = waits ?? whyOf(card)
  const unknown = unknownWords(card)
  const title = titleOf(card, depth)
  // What is cut off at the end of its line is shown to a pointer: the link covers the whole row.
  const reason = oneLine([unknown, why].filter((each) => each !== null).join(' · '), REASON_CHARS)
  return (
    <div
      className={`session-row${marked ? ' marked' : ''}${depth > 0 ? ' child' : ''}`}
      data-depth={Math.min(depth, 4)}
    >
      <Status of={waitsBelow ? 'requires_action' : stateOf(card)} words={stateWords(card, waitsBelow)} />
      <span className="session-title">
        <span className="session-name">
          {open === null ? null : (
            <button
              type="button"
              className="session-toggle"
              aria-expanded={open}
              aria-label={`Sessions below ${card.title ?? session}`}
              onClick={() => onToggle?.(session)}
            >
              <ChevronRight size={14} aria-hidden className={open ? 'turned' : ''} />
            </button>
          )}
          <Link
            href={`/s/${encodeURIComponent(session)}`}
            className="session-link"
            title={[oneLine(title), reason].join('\n').trim()}
          >
            <Text text={title} />
          </Link>
          {marked ? <span className="chip">marked</span> : null}
        </span>
        {why === null && unknown === null ? null : (
          <span className="session-why dim" title={reason}>
            {unknown === null ? null : <Status of="unknown" words={unknown} />}
            {why === null ? null : <Text text={why} />}
            {card.outage && card.due !== null && waits === undefined ? (
              <>
                , next try <Ago at={card.due} />
              </>
            ) : null}
          </span>
        )}
      </span>
      <span className="session-agent dim">
        <Text text={agent} />
      </span>
      <span className="session-age dim">
        <Ago at={at} />
      </span>
      <Money usd={treeCostUsd} />
    </div>
  )
})

function titleOf({ title, session, root }: WireCard, depth: number): string {
  return title ?? (depth > 0 ? nameIn(session, root) : session)
}
