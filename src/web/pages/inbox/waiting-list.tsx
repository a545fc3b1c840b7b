// The list of pending calls, grouped by root session and searchable.
import { SearchField } from '../../parts/search-field.tsx'
import type { RefObject } from 'react'
import { Link } from 'wouter'
import type { WirePending } from '../../../server/wire.ts'
import { BUDGET, pendingLine } from '../../../view/pending-calls.ts'
import { nameIn } from '../../../view/tree-rows.ts'
import { Ago } from '../../parts/figures.tsx'
import { Text } from '../../parts/exact-text.tsx'

/** The pending calls of one root and its descendants, oldest first. */
export type WaitingGroup = { readonly root: string; readonly items: readonly WirePending[] }

const LINE_CHARS = 160

/** The group with the longest-waiting call comes first. */
export function groupWaiting(waiting: readonly WirePending[]): readonly WaitingGroup[] {
  const groups = new Map<string, WirePending[]>()
  for (const each of waiting) {
    const root = each.path[0] ?? each.sessionId
    const known = groups.get(root)
    if (known) known.push(each)
    else groups.set(root, [each])
  }
  return [...groups].map(([root, items]) => ({ root, items }))
}

/** Each word must occur in the tool, the summary, the title, the agent or the session. */
export function matchesSearch(pending: WirePending, text: string): boolean {
  const { tool, title = '', agent = '', sessionId } = pending
  const found = [tool, pendingLine(pending, SOUGHT_CHARS), title, agent, sessionId].join('\n').toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => found.includes(word))
}
const SOUGHT_CHARS = 2_000

export function waitingId({ sessionId, callId }: Pick<WirePending, 'sessionId' | 'callId'>): string {
  return JSON.stringify([sessionId, callId])
}

export function inboxAddress({ sessionId, callId }: WirePending): string {
  return `/inbox?${new URLSearchParams({ session: sessionId, call: callId }).toString()}`
}

type WaitingListProps = {
  readonly groups: readonly WaitingGroup[]
  readonly chosen: string | null
  readonly text: string
  readonly onText: (text: string) => void
  readonly field: RefObject<HTMLInputElement | null>
}

export function WaitingList({ groups, chosen, text, onText, field }: WaitingListProps) {
  return (
    <div className="inbox-list">
      <div className="inbox-search">
        <SearchField label="Search what waits" value={text} onText={onText} field={field} />
      </div>
      {groups.length === 0 ? <p className="inbox-none dim">Nothing that waits is like that.</p> : null}
      {groups.map(({ root, items }) => (
        <WaitingGroupList key={root} root={root} items={items} chosen={chosen} />
      ))}
    </div>
  )
}

/** A single call names its session itself and needs no heading. */
function WaitingGroupList({ root, items, chosen }: WaitingGroup & { readonly chosen: string | null }) {
  const [first] = items
  const isAlone = items.length === 1
  const title = items.find(({ sessionId }) => sessionId === root)?.title ?? first?.title ?? root
  return (
    <>
      {isAlone ? null : (
        <h2 className="inbox-group">
          <Text text={title} /> <span>{items.length}</span>
        </h2>
      )}
      <ul aria-label={isAlone ? 'Waiting' : `Waiting in ${title}`}>
        {items.map((each) => (
          <WaitingItem
            key={waitingId(each)}
            pending={each}
            root={root}
            isAlone={isAlone}
            isChosen={waitingId(each) === chosen}
          />
        ))}
      </ul>
    </>
  )
}

type WaitingItemProps = {
  readonly pending: WirePending
  readonly root: string
  readonly isAlone: boolean
  readonly isChosen: boolean
}

function WaitingItem({ pending, root, isAlone, isChosen }: WaitingItemProps) {
  const { tool, callId, needs, agent, title, sessionId, since, n = 1, votes = [] } = pending
  const kind = callId === BUDGET ? 'budget' : needs
  const isQuestion = kind === 'answer' && tool === 'ask_user'
  const about = [
    ...(isAlone ? [title ?? sessionId] : sessionId === root ? [] : [nameIn(sessionId, root)]),
    ...(agent ? [agent] : []),
    ...(n > 1 ? [`${votes.length} of ${n}`] : []),
  ]
  return (
    <li>
      <Link
        href={inboxAddress(pending)}
        replace
        className={isChosen ? 'inbox-item chosen' : 'inbox-item'}
        aria-current={isChosen ? 'true' : undefined}
      >
        <span className={`inbox-kind ${kind}`} aria-hidden>
          {MARKS[kind]}
        </span>
        <span className="inbox-tool">
          {kind === 'budget' ? 'More money' : isQuestion ? 'Question' : <Text text={tool} />}
        </span>
        <span className="inbox-age dim">{since === undefined ? null : <Ago at={since} />}</span>
        <span className={kind === 'budget' ? 'inbox-what wraps' : isQuestion ? 'inbox-what' : 'inbox-what mono'}>
          <Text text={pendingLine(pending, LINE_CHARS)} />
        </span>
        <span className="inbox-about dim">
          <Text text={about.join(' · ')} />
        </span>
      </Link>
    </li>
  )
}

const MARKS = { approval: '◆', answer: '?', budget: '$' } as const
