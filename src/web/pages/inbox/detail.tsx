// One thing that waits, whole: what it is, whose it is, exactly what would happen, what the model says of it, and the decision.
import { useEffect, useRef, useState } from 'react'
import type { WirePending } from '../../../server/wire.ts'
import { BUDGET } from '../../../view/pending.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { Empty } from '../../parts/states.tsx'
import { Text } from '../../parts/text.tsx'
import { type ActProps, SETTLE_MS } from './act.ts'
import { Approval } from './approval.tsx'
import { Budget } from './budget.tsx'
import { Exact, Warnings } from './exact.tsx'
import { Facts } from './facts.tsx'
import { Question } from './question.tsx'
import '../../style/house.css'
import '../../style/inbox.css'

/** How it ended, for whoever still looks at it. */
export type Ended = { readonly tone: 'ok' | 'bad' | 'accent'; readonly text: string }

export type DetailProps = ActProps & {
  /** Null: it waits. */
  readonly ended: Ended | null
  /** Why the last decision of it did not count: it is to be read again. */
  readonly note: string | null
  readonly takesFocus: boolean
  readonly hasNext: boolean
  readonly onNext: () => void
}

export function Detail({ pending, ended, note, takesFocus, hasNext, onNext, onDone, onRefused }: DetailProps) {
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (takesFocus) head.current?.focus()
    // Only when it comes into the page.
  }, [])
  const isOver = ended !== null
  useEffect(() => {
    // The button that was pressed is gone.
    if (isOver && takesFocus) head.current?.focus()
  }, [isOver])
  const [isEdited, setEdited] = useState(false)
  const { callId, needs } = pending
  const acts = { pending, onDone, onRefused }
  return (
    <article className="waiting">
      <header className="waiting-head">
        <h2 ref={head} id="waiting" tabIndex={-1}>
          <Title pending={pending} />
        </h2>
        <Facts pending={pending} />
      </header>
      {callId === BUDGET ? null : (
        <>
          <Warnings pending={pending} />
          {isQuestion(pending) ? null : <Exact pending={pending} isEdited={isEdited} />}
          <Said said={pending.said} />
        </>
      )}
      {note === null ? null : (
        <p className="form-trouble" role="alert">
          <Text text={note} />
        </p>
      )}
      {ended ? (
        <Over ended={ended} pending={pending} hasNext={hasNext} onNext={onNext} />
      ) : callId === BUDGET ? (
        <Budget {...acts} />
      ) : needs === 'answer' ? (
        <Question {...acts} />
      ) : (
        <Approval {...acts} onEdit={setEdited} />
      )}
    </article>
  )
}

/** Its arguments are the question itself, which is shown as one. */
function isQuestion({ tool, needs }: Pick<WirePending, 'tool' | 'needs'>): boolean {
  return needs === 'answer' && tool === 'ask_user'
}

function Title({ pending: { tool, callId, needs, amounts } }: { readonly pending: WirePending }) {
  if (callId === BUDGET)
    return amounts && amounts.spentUsd < amounts.limitUsd ? 'The budget would be exceeded' : 'The budget is used up'
  if (isQuestion({ tool, needs })) return 'A question'
  return (
    <>
      {needs === 'answer' ? 'Answer ' : 'Allow '}
      <code>
        <Text text={tool} />
      </code>
      {needs === 'answer' ? null : '?'}
    </>
  )
}

function Said({ said }: { readonly said: string | undefined }) {
  if (said === undefined || said === '') return null
  return (
    <section className="waiting-said">
      <h3>What the model says of it</h3>
      <p className="dim">Its own words. They describe nothing that is checked.</p>
      <blockquote>
        <Text as="block" text={said} />
      </blockquote>
    </section>
  )
}

type OverProps = Pick<DetailProps, 'pending' | 'hasNext' | 'onNext'> & { readonly ended: Ended }

function Over({ ended: { tone, text }, pending, hasNext, onNext }: OverProps) {
  const since = useRef(performance.now())
  const next = (): void => {
    if (performance.now() - since.current >= SETTLE_MS) onNext()
  }
  return (
    <footer className={`decision over ${tone}`}>
      <p role="alert">
        <Text text={text} />
      </p>
      <div className="decision-acts">
        {hasNext ? (
          <Button kind="primary" onPress={next}>
            Next
          </Button>
        ) : null}
        <ButtonLink to={`/s/${encodeURIComponent(pending.sessionId)}`}>Open the session</ButtonLink>
      </div>
    </footer>
  )
}

/** The address names what does not wait. */
export function NotWaiting() {
  return (
    <Empty title="This does not wait">
      It was decided, its time is over, or this token does not reach it. Its session says how it went on.
    </Empty>
  )
}
