// Inbox: what waits for a person, in all sessions, the oldest first. On the left all of it, beside it one of them, whole. What is shown
// stays until somebody chooses another: nothing moves under the hand of whoever decides.
import { useEffect, useMemo, useRef, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import type { WirePending } from '../../server/wire.ts'
import { queries, useDue, usePending } from '../data/query.ts'
import { Ago } from '../parts/figures.tsx'
import { Empty, Loading, Trouble } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { PageHead } from '../shell/shell.tsx'
import { toast } from '../shell/toasts.tsx'
import { useKeys } from '../shell/use-keys.ts'
import { Detail, type Ended, NotWaiting } from './inbox/detail.tsx'
import { addressOf, groupsOf, idOf, isSought, WaitingList } from './inbox/list.tsx'
import '../style/house.css'

export function InboxPage() {
  const { data, isPending, isError, error, refetch } = usePending()
  const all = data?.pending ?? NONE
  const [text, setText] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useKeys({ search: () => field.current?.focus() })
  const groups = useMemo(() => groupsOf(all.filter((each) => isSought(each, text))), [all, text])
  // In the order they are shown: keys go through them.
  const waiting = useMemo(() => groups.flatMap(({ items }) => items), [groups])
  const chosen = useChosen(waiting, all)
  const oldest = all[0]?.since
  const total = data?.total ?? all.length
  return (
    <div className="page">
      <PageHead
        title="Inbox"
        about={
          data ? (
            <span role="status">
              {total > all.length ? `${all.length} of ${total}` : total} waiting
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
      {isError && !data ? <Trouble error={error} onRetry={() => void refetch()} /> : null}
      {data && all.length === 0 && chosen.id === null ? <Nothing /> : null}
      {all.length > 0 || chosen.id !== null ? (
        <div className={chosen.isNamed ? 'inbox named' : 'inbox'}>
          <WaitingList groups={groups} chosen={chosen.id} text={text} onText={setText} field={field} />
          <div className="inbox-detail">
            <Link href="/inbox" className="inbox-back">
              ← All {total} waiting
            </Link>
            {chosen.pending ? (
              <Detail
                key={`${idOf(chosen.pending)} ${chosen.pending.digest ?? ''}`}
                pending={chosen.pending}
                ended={chosen.ended}
                note={chosen.note}
                takesFocus={chosen.takesFocus}
                hasNext={waiting.some((each) => idOf(each) !== chosen.id)}
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

/** Sessions that wait for a provider. Nobody has to do anything: they are tried again. */
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

function Nothing() {
  return (
    <Empty title="Nothing waits for you" command="terret pending">
      Approvals, questions and budgets of all sessions come here. The tab counts them in its title; Settings can notify
      you.
    </Empty>
  )
}

type Chosen = {
  readonly id: string | null
  /** The address names it: on a phone it is shown instead of the list. */
  readonly isNamed: boolean
  /** As it was when it was seen last. */
  readonly pending: WirePending | null
  readonly ended: Ended | null
  /** Why the last decision of it did not count. */
  readonly note: string | null
  readonly takesFocus: boolean
  readonly next: () => void
  readonly done: (text: string) => void
  readonly refused: (text: string) => void
}

/** `waiting` is what the list shows, `all` also what a search leaves out. */
function useChosen(waiting: readonly WirePending[], all: readonly WirePending[]): Chosen {
  const [params] = useSearchParams()
  const [, go] = useLocation()
  const [pinned, setPinned] = useState<string | null>(null)
  const [told, setTold] = useState<(Ended & { readonly id: string }) | null>(null)
  const seen = useRef<WirePending | null>(null)
  const acted = useRef(false)
  const session = params.get('session')
  const call = params.get('call')
  const first = waiting[0] ? idOf(waiting[0]) : null
  // An address that names only a session leads to what it waits for first, and stays there when that is decided.
  const led = useRef<{ readonly session: string; readonly id: string } | null>(null)
  const found = session !== null && call === null ? firstOf(all, session) : null
  if (found !== null && session !== null && led.current?.session !== session) led.current = { session, id: found }
  const named =
    session === null
      ? null
      : call !== null
        ? idOf({ sessionId: session, callId: call })
        : led.current?.session === session
          ? led.current.id
          : idOf({ sessionId: session, callId: '' })
  useEffect(() => {
    if (pinned === null && first !== null) setPinned(first)
  }, [pinned, first])
  const id = named ?? pinned ?? first
  const now = all.find((each) => idOf(each) === id)
  if (now) seen.current = now
  const pending = now ?? (seen.current && idOf(seen.current) === id ? seen.current : null)
  const ended: Ended | null = now ? null : told?.id === id ? told : { tone: 'accent', text: AWAY }
  const choose = (one: WirePending | undefined): void => {
    setPinned(one ? idOf(one) : null)
    go(one ? addressOf(one) : '/inbox', { replace: true })
  }
  const others = waiting.filter((each) => idOf(each) !== id)
  const move = (by: number): void => {
    const at = waiting.findIndex((each) => idOf(each) === id)
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
      toast(text)
      again()
      // It stays: a second click in the same place must not meet another call.
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

/** What a session waits for first, in it or below it. */
function firstOf(waiting: readonly WirePending[], session: string): string | null {
  const found = waiting.find(({ sessionId, path }) => sessionId === session || path.includes(session))
  return found ? idOf(found) : null
}
