// The facts of a pending call: its session, effect, age, expiry, votes and roles.
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { WirePending } from '../../../server/wire.ts'
import { ownOf } from '../../../view/untrusted-json.ts'
import { Ago, Money } from '../../parts/figures.tsx'
import { Text } from '../../parts/exact-text.tsx'

const EFFECTS = {
  once: 'once: it changes something, and doing it twice is not the same',
  idempotent: 'idempotent: doing it twice is the same as once',
  read: 'read: it changes nothing',
} as const

export function PendingFacts({ pending }: { readonly pending: WirePending }) {
  const { callId, since, expiresAt, n = 1, votes = [], roles = [], effect, treeCostUsd } = pending
  return (
    <dl className="waiting-facts">
      <Fact name="Session">
        <SessionAndAgent pending={pending} />
      </Fact>
      {effect === undefined ? null : (
        <Fact name="Effect">
          <span title={ownOf(EFFECTS, effect)}>
            <Text text={effect} />
          </span>
        </Fact>
      )}
      {since === undefined ? null : (
        <Fact name="Waits">
          <Ago at={since} />
        </Fact>
      )}
      {typeof expiresAt === 'number' ? (
        <Fact name="Expires">
          <Ago at={expiresAt} />
        </Fact>
      ) : null}
      {n > 1 ? (
        <Fact name="Votes">
          {votes.length} of {n}
          {votes.length > 0 ? <Text text={`: ${votes.join(', ')}`} /> : null}
        </Fact>
      ) : null}
      {roles.length > 0 ? (
        <Fact name="Decided by">
          <Text text={roles.join(' or ')} />
        </Fact>
      ) : null}
      <Fact name="Cost so far">
        <Money usd={treeCostUsd} />
      </Fact>
      <Fact name="Call">
        <code>
          <Text text={callId} />
        </code>
      </Fact>
    </dl>
  )
}

function SessionAndAgent({ pending: { sessionId, title, agent } }: { readonly pending: WirePending }) {
  return (
    <>
      <Link href={`/s/${encodeURIComponent(sessionId)}`}>
        <Text text={title ?? sessionId} />
      </Link>
      {agent ? (
        <span className="dim">
          {' by '}
          <Text text={agent} />
        </span>
      ) : null}
    </>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
