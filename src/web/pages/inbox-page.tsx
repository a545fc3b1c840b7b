// The inbox: the pending calls of all sessions, oldest first, and one of them in detail. The shown call changes only
// when the person chooses another, so that nothing moves under the mouse while deciding.
import { useEffect, useMemo, useRef, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import type { WirePending } from '../../server/wire.ts'
import { queries, useDue, usePending } from '../data/queries.ts'
import { Ago } from '../parts/figures.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { showToast } from '../shell/toasts.tsx'
import { useKeys } from '../shell/use-keys.ts'
import { PendingDetail, type EndNotice, NotWaiting } from './inbox/pending-detail.tsx'
import { inboxAddress, groupWaiting, waitingId, matchesSearch, WaitingList } from './inbox/waiting-list.tsx'
import '../style/house.css'

export function InboxPage() {
  const { data, isPending, isError, error, refetch } = usePending()
  const all = data?.pending ?? NONE
  const [text, setText] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  const groups = useMemo(() => groupWaiting(all.filter((each) => matchesSearch(each, text))), [all, text])
  // In display order, because keys move through them.
  const waiting = useMemo(() => groups.flatMap(({ items }) => items), [groups])
  const chosen = useChosenPending(waiting, all)
  const oldest = all[0]?.since
  const count = typeof data?.next === 'string' ? `${all.length}+` : all.length
  return (
    <div className="page">
      <PageHead
        title="Inbox"
        about={
          data ? (
            <span role="status">
              {count} waiting
              {oldest === undefined ? null : (
                <>
                  {' · oldest '}
                  <Ago at={oldest} />
                </>
              )}
            </span>
          ) : undefined
        }
      />
      {isPending ? <Loading what="Loading what waits" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && all.length === 0 && chosen.id === null ? <EmptyInbox /> : null}
      {all.length > 0 || chosen.id !== null ? (
        <div className={chosen.isNamed ? 'inbox named' : 'inbox'}>
          <WaitingList groups={groups} chosen={chosen.id} text={text} onText={setText} field={field} />
          <div className="inbox-detail">
            <Link href="/inbox" className="inbox-back">
              ← All {count} waiting
            </Link>
            {chosen.pending ? (
              <PendingDetail
                key={`${waitingId(chosen.pending)} ${chosen.pending.digest ?? ''}`}
                pending={chosen.pending}
                ended={chosen.ended}
                note={chosen.note}
                takesFocus={chosen.takesFocus}
                hasNext={waiting.some((each) => waitingId(each) !== chosen.id)}
                onNext={chosen.next}
                onDone={chosen.done}
                onRefused={chosen.refused}
              />
            ) : data ? (
              <NotWaiting />
            ) : null}
          </div>
        </div>
      ) : null}
      <Outages />
    </div>
  )
}

/** Sessions that wait for a provider. They retry by themselves. */
function Outages() {
  const { data } = useDue()
  const away = (data?.due ?? []).filter(({ tries }) => tries !== undefined)
  if (away.length === 0) return null
  return (
    <section aria-label="Waiting for a provider">
      <h2>Waiting for a provider</h2>
      <ul className="dues">
        {away.map(({ session, due, title, reason = '', tries = 0 }) => (
          <li key={session} className="due">
            <strong>
              next try <Ago at={due} />
            </strong>
            <span className="due-title">
              <Link href={`/s/${encodeURIComponent(session)}`}>
                <Text text={title ?? session} />
              </Link>
              <span className="dim">
                <Text text={`${reason} (${tries === 1 ? '1 try' : `${tries} tries`})`} />
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

const NONE: readonly WirePending[] = []

function EmptyInbox() {
  return (
    <Empty title="Nothing waits for you" command="terret pending">
      Approvals, questions and budgets of all sessions come here. The tab counts them in its title; Settings can notify
      you.
    </Empty>
  )
}

type ChosenPending = {
  readonly id: string | null
  /** The address names the call: a phone then shows it instead of the list. */
  readonly isNamed: boolean
  /** The call as last seen. */
  readonly pending: WirePending | null
  readonly ended: EndNotice | null
  /** Why the last decision did not count. */
  readonly note: string | null
  readonly takesFocus: boolean
  readonly next: () => void
  readonly done: (text: string) => void
  readonly refused: (text: string) => void
}

/** `waiting`: the calls that the list shows. `all`: also those that a search hides. */
function useChosenPending(waiting: readonly WirePending[], all: readonly WirePending[]): ChosenPending {
  const [params] = useSearchParams()
  const [, go] = useLocation()
  const [pinned, setPinned] = useState<string | null>(null)
  const [told, setTold] = useState<(EndNotice & { readonly id: string }) | null>(null)
  const seen = useRef<WirePending | null>(null)
  const acted = useRef(false)
  const session = params.get('session')
  const call = params.get('call')
  const first = waiting[0] ? waitingId(waiting[0]) : null
  // An address that names only a session opens its first pending call, and stays there after the decision.
  const led = useRef<{ readonly session: string; readonly id: string } | null>(null)
  const found = session !== null && call === null ? firstWaitingId(all, session) : null
  if (found !== null && session !== null && led.current?.session !== session) led.current = { session, id: found }
  const named =
    session === null
      ? null
      : call !== null
        ? waitingId({ sessionId: session, callId: call })
        : led.current?.session === session
          ? led.current.id
          : waitingId({ sessionId: session, callId: '' })
  useEffect(() => {
    if (pinned === null && first !== null) setPinned(first)
  }, [pinned, first])
  const id = named ?? pinned ?? first
  const now = all.find((each) => waitingId(each) === id)
  if (now) seen.current = now
  const pending = now ?? (seen.current && waitingId(seen.current) === id ? seen.current : null)
  const ended: EndNotice | null = now ? null : told?.id === id ? told : { tone: 'accent', text: AWAY }
  const choose = (one: WirePending | undefined): void => {
    setPinned(one ? waitingId(one) : null)
    go(one ? inboxAddress(one) : '/inbox', { replace: true })
  }
  const others = waiting.filter((each) => waitingId(each) !== id)
  const move = (by: number): void => {
    const at = waiting.findIndex((each) => waitingId(each) === id)
    choose(waiting[Math.min(Math.max(0, at + by), waiting.length - 1)])
  }
  useKeys({
    next: () => move(1),
    previous: () => move(-1),
    open: () => document.getElementById('waiting')?.focus(),
  })
  const again = (): void => void queries.invalidateQueries({ queryKey: ['pending'] })
  return {
    id,
    isNamed: session !== null,
    pending,
    ended,
    note: now && told?.id === id && told.tone === 'bad' ? told.text : null,
    takesFocus: acted.current || session !== null,
    next: () => {
      acted.current = true
      choose(others[0])
    },
    done: (text) => {
      acted.current = true
      showToast(text)
      again()
      // The decided call stays visible: a second click in the same place must not hit another call.
      if (id !== null) setTold({ id, tone: 'ok', text })
    },
    refused: (text) => {
      if (id !== null) setTold({ id, tone: 'bad', text })
      again()
    },
  }
}

const AWAY =
  'It does not wait any more: it was decided, withdrawn or removed, or its time is over. Its session says how.'

/** The first pending call of a session or of its descendants. */
function firstWaitingId(waiting: readonly WirePending[], session: string): string | null {
  const found = waiting.find(({ sessionId, path }) => sessionId === session || path.includes(session))
  return found ? waitingId(found) : null
}
