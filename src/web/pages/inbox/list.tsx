// The list of what waits: what each would do, grouped by the session it is for, and found by words.
import type { RefObject } from 'react'
import { Link } from 'wouter'
import type { WirePending } from '../../../server/wire.ts'
import { BUDGET, pendingLine } from '../../../view/pending.ts'
import { nameIn } from '../../../view/tree.ts'
import { Ago } from '../../parts/figures.tsx'
import { Text } from '../../parts/text.tsx'

/** What waits in one root and below it, the oldest first. */
export type WaitingGroup = { readonly root: string; readonly items: readonly WirePending[] }

const LINE_CHARS = 160

/** The group with what waits longest comes first. */
export function groupsOf(waiting: readonly WirePending[]): readonly WaitingGroup[] {
  const groups = new Map<string, WirePending[]>()
  for (const each of waiting) {
    const root = each.path[0] ?? each.sessionId
    const known = groups.get(root)
    if (known) known.push(each)
    else groups.set(root, [each])
  }
  return [...groups].map(([root, items]) => ({ root, items }))
}

/** Each word must be in the tool, in what it would do, in the title, the agent or the session. */
export function isSought(pending: WirePending, text: string): boolean {
  const { tool, title = '', agent = '', sessionId } = pending
  const found = [tool, pendingLine(pending, SOUGHT_CHARS), title, agent, sessionId].join('\n').toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => found.includes(word))
}
const SOUGHT_CHARS = 2_000

export function idOf({ sessionId, callId }: Pick<WirePending, 'sessionId' | 'callId'>): string {
  return JSON.stringify([sessionId, callId])
}

export function addressOf({ sessionId, callId }: WirePending): string {
  return `/inbox?${new URLSearchParams({ session: sessionId, call: callId }).toString()}`
}

type ListProps = {
  readonly groups: readonly WaitingGroup[]
  readonly chosen: string | null
  readonly text: string
  readonly onText: (text: string) => void
  readonly field: RefObject<HTMLInputElement | null>
}

export function WaitingList({ groups, chosen, text, onText, field }: ListProps) {
  return (
    <div className="inbox-list">
      <div className="inbox-search">
        <input
          ref={field}
          className="field"
          type="search"
          aria-label="Search what waits"
          placeholder="Search what waits  /"
          value={text}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape' || event.key === 'Enter') event.currentTarget.blur()
          }}
        />
      </div>
      {groups.length === 0 ? <p className="inbox-none dim">Nothing that waits is like that.</p> : null}
      {groups.map(({ root, items }) => (
        <Group key={root} root={root} items={items} chosen={chosen} />
      ))}
    </div>
  )
}

/** What waits alone says itself which session it is for. */
function Group({ root, items, chosen }: WaitingGroup & { readonly chosen: string | null }) {
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
          <Item key={idOf(each)} pending={each} root={root} isAlone={isAlone} isChosen={idOf(each) === chosen} />
        ))}
      </ul>
    </>
  )
}

type ItemProps = {
  readonly pending: WirePending
  readonly root: string
  readonly isAlone: boolean
  readonly isChosen: boolean
}

function Item({ pending, root, isAlone, isChosen }: ItemProps) {
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
        href={addressOf(pending)}
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
