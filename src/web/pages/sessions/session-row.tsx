// One row of the session list: status, title, agent, age and cost. The whole row is a link.
import { memo } from 'react'
import { Link } from 'wouter'
import type { WireCard } from '../../../server/wire.ts'
import { oneLine } from '../../../view/clean.ts'
import { nameIn, stateOf } from '../../../view/tree-rows.ts'
import { Ago, Money } from '../../parts/figures.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { stateWords, unknownWords, statusReason } from '../../parts/status-words.ts'

export type SessionListRowProps = {
  readonly card: WireCard
  readonly depth?: number
  /** Null: no children. */
  readonly open?: boolean | null
  readonly marked?: boolean
  /** Its pending call, in words. */
  readonly waits?: string | undefined
  /** A child waits, but not this session. */
  readonly waitsBelow?: boolean
  readonly onToggle?: (session: string) => void
}

const REASON_CHARS = 500

export const SessionListRow = memo(function SessionRow(props: SessionListRowProps) {
  const { card, depth = 0, open = null, marked = false, waits, waitsBelow = false, onToggle } = props
  const { session, agent, at, treeCostUsd } = card
  const why = waits ?? statusReason(card)
  const unknown = unknownWords(card)
  const title = rowTitle(card, depth)
  // Truncated text is shown as a tooltip of the link, which covers the whole row.
  const reason = oneLine([unknown, why].filter((each) => each !== null).join(' · '), REASON_CHARS)
  return (
    <div
      className={`session-row${marked ? ' marked' : ''}${depth > 0 ? ' child' : ''}`}
      data-depth={Math.min(depth, 4)}
    >
      <StatusLabel of={waitsBelow ? 'requires_action' : stateOf(card)} words={stateWords(card, waitsBelow)} />
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
            {unknown === null ? null : <StatusLabel of="unknown" words={unknown} />}
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

function rowTitle({ title, session, root }: WireCard, depth: number): string {
  return title ?? (depth > 0 ? nameIn(session, root) : session)
}
