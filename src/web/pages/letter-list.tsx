// The dead letters of consumers: settled runs that one could not be told of after all its tries, with the reason of the
// last one, and buttons to try again or to drop one.
import { useState } from 'react'
import { Link } from 'wouter'
import type { LetterBody, LetterRow, LettersAnswer } from '../../server/wire.ts'
import { countNoun } from '../../view/shown-text.ts'
import { apiActions } from '../data/api.ts'
import { queries } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Text } from '../parts/exact-text.tsx'
import { Ago } from '../parts/figures.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { toastResult } from '../shell/toasts.tsx'

type DeadLettersProps = {
  readonly letters: readonly LetterRow[]
  /** Of all, also those that are not shown. */
  readonly count: number
  readonly isRefused: boolean
}

export function DeadLetters({ letters, count, isRefused }: DeadLettersProps) {
  if (letters.length === 0) return null
  return (
    <>
      <p className="page-note dim">
        {countNoun(count, 'run')} could not be told to a consumer
        {count > letters.length ? `. These are the newest ${letters.length}` : ''}.
      </p>
      <ul className="dues letters" aria-label="Dead letters">
        {letters.map((letter) => (
          <LetterLine key={`${letter.lane} ${letter.key}`} letter={letter} isRefused={isRefused} />
        ))}
      </ul>
    </>
  )
}

function LetterLine({ letter, isRefused }: { readonly letter: LetterRow; readonly isRefused: boolean }) {
  const { lane, key, consumer, session, tries, reason, at } = letter
  const decide = (decision: LetterBody['decision']): void =>
    toastResult(decideLetter({ lane, key, decision }), decision === 'retry' ? 'It is told again' : 'Dropped')
  return (
    <li className="due trigger letter">
      <Ago at={at} />
      <span className="due-title">
        <Link href={`/s/${encodeURIComponent(session)}`}>
          <Text text={session} />
        </Link>
        <span className="dim">
          <Text text={`${consumer}: ${reason}`} />
        </span>
      </span>
      <span className="trigger-decision">
        <StatusLabel of="failed" words="dead" />
        <span className="dim">{tries === 1 ? '1 try' : `${tries} tries`}</span>
      </span>
      <DeadActs isRefused={isRefused} retry={() => decide('retry')} drop={() => decide('drop')} />
    </li>
  )
}

/** Rejects with what was decided before by somebody else. */
async function decideLetter(body: LetterBody): Promise<void> {
  const { decision, by } = await apiActions.decideLetter(body).catch(async (error: unknown) => {
    await queries.invalidateQueries({ queryKey: ['letters'] })
    throw error
  })
  // Its lane may not have read the decision yet, so the list would still have it.
  queries.setQueryData<LettersAnswer>(['letters'], (seen) => seen && withoutLetter(seen, body))
  if (decision !== body.decision)
    throw new Error(`${by} decided before you: it was ${decision === 'retry' ? 'told again' : 'dropped'}.`)
}

function withoutLetter({ letters, count, now }: LettersAnswer, { lane, key }: LetterBody): LettersAnswer {
  const left = letters.filter((letter) => letter.lane !== lane || letter.key !== key)
  return { letters: left, count: count - (letters.length - left.length), now }
}

type DeadActsProps = { readonly isRefused: boolean; readonly retry: () => void; readonly drop: () => void }

/** What is dropped never runs again, so it is asked for twice. */
export function DeadActs({ isRefused, retry, drop }: DeadActsProps) {
  const [asks, setAsks] = useState(false)
  if (asks)
    return (
      <span className="trigger-acts">
        <Button size="small" onPress={() => setAsks(false)}>
          Keep it
        </Button>
        <Button
          size="small"
          kind="danger"
          onPress={() => {
            setAsks(false)
            drop()
          }}
        >
          Drop it now
        </Button>
      </span>
    )
  return (
    <span className="trigger-acts">
      <Button size="small" disabled={isRefused} onPress={retry}>
        Retry
      </Button>
      <Button size="small" kind="quiet" disabled={isRefused} onPress={() => setAsks(true)}>
        Drop
      </Button>
    </span>
  )
}
