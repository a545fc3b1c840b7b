// One pending call in detail: its facts, the exact arguments, the model's statement, and the decision.
import { useEffect, useRef, useState } from 'react'
import type { WirePending } from '../../../server/wire.ts'
import { BUDGET } from '../../../view/pending-calls.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { Empty } from '../../parts/page-states.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { type ActionProps, SETTLE_MS } from './use-action.ts'
import { ApprovalForm } from './approval-form.tsx'
import { BudgetForm } from './budget-form.tsx'
import { ExactArguments, PendingWarnings } from './exact-arguments.tsx'
import { PendingFacts } from './pending-facts.tsx'
import { QuestionForm } from './question-form.tsx'
import '../../style/house.css'
import '../../style/inbox.css'

/** How the call ended, for a person who still looks at it. */
export type EndNotice = { readonly tone: 'ok' | 'bad' | 'accent'; readonly text: string }

export type PendingDetailProps = ActionProps & {
  /** Null while the call waits. */
  readonly ended: EndNotice | null
  /** Why the last decision did not count, so that the call must be read again. */
  readonly note: string | null
  readonly takesFocus: boolean
  readonly hasNext: boolean
  readonly onNext: () => void
}

export function PendingDetail({
  pending,
  ended,
  note,
  takesFocus,
  hasNext,
  onNext,
  onDone,
  onRefused,
}: PendingDetailProps) {
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (takesFocus) head.current?.focus()
    // Only on mount.
  }, [])
  const isOver = ended !== null
  useEffect(() => {
    // The focused button was removed, so the focus moves to the heading.
    if (isOver && takesFocus) head.current?.focus()
  }, [isOver])
  const [isEdited, setEdited] = useState(false)
  const { callId, needs } = pending
  const acts = { pending, onDone, onRefused }
  return (
    <article className="waiting">
      <header className="waiting-head">
        <h2 ref={head} id="waiting" tabIndex={-1}>
          <PendingTitle pending={pending} />
        </h2>
        <PendingFacts pending={pending} />
      </header>
      {callId === BUDGET ? null : (
        <>
          <PendingWarnings pending={pending} />
          {isQuestion(pending) ? null : <ExactArguments pending={pending} isEdited={isEdited} />}
          <ModelStatement said={pending.said} />
        </>
      )}
      {note === null ? null : (
        <p className="form-trouble" role="alert">
          <Text text={note} />
        </p>
      )}
      {ended ? (
        <EndedFooter ended={ended} pending={pending} hasNext={hasNext} onNext={onNext} />
      ) : callId === BUDGET ? (
        <BudgetForm {...acts} />
      ) : needs === 'answer' ? (
        <QuestionForm {...acts} />
      ) : (
        <ApprovalForm {...acts} onEdit={setEdited} />
      )}
    </article>
  )
}

/** The arguments are the question itself, which is shown as a question. */
function isQuestion({ tool, needs }: Pick<WirePending, 'tool' | 'needs'>): boolean {
  return needs === 'answer' && tool === 'ask_user'
}

function PendingTitle({ pending: { tool, callId, needs, amounts } }: { readonly pending: WirePending }) {
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

function ModelStatement({ said }: { readonly said: string | undefined }) {
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

type EndedFooterProps = Pick<PendingDetailProps, 'pending' | 'hasNext' | 'onNext'> & { readonly ended: EndNotice }

function EndedFooter({ ended: { tone, text }, pending, hasNext, onNext }: EndedFooterProps) {
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

/** The address names a call that does not wait. */
export function NotWaiting() {
  return (
    <Empty title="This does not wait">
      It was decided, its time is over, or this token does not reach it. Its session says how it went on.
    </Empty>
  )
}
