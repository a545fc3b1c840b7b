// A session that ended at its budget: the amounts, and how much more it gets. Only admins may decide.
import { useState } from 'react'
import { amountTexts } from '../../../view/pending-calls.ts'
import { apiActions } from '../../data/api.ts'
import { useRefusal } from '../../data/use-refusal.ts'
import { Button } from '../../parts/button.tsx'
import { Figure, moneyText } from '../../parts/figures.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { type ActionProps, useAction } from './use-action.ts'
import { ActionFooter } from './action-footer.tsx'

/** Twice what the next call needs, in whole cents. */
function suggestAmount(needed: number | undefined): string {
  return (Math.ceil(Math.max(0.01, (needed ?? 0) * 2) * 100) / 100).toFixed(2)
}

export function BudgetForm(props: ActionProps) {
  const { sessionId, amounts, args } = props.pending
  const texts = amounts && amountTexts(amounts)
  const [typed, setTyped] = useState(() => suggestAmount(amounts?.neededUsd))
  const { busy, trouble, act } = useAction(props)
  const refusal = useRefusal('admin')
  const usd = Number(typed)
  const isGood = typed.trim() !== '' && usd > 0 && usd <= 1_000_000
  const decide = (allow: boolean): void => {
    const body = { callId: 'budget' as const, sessionId, allow, ...(allow ? { usd } : {}) }
    const done = allow ? `${moneyText(usd)} more` : 'It gets no more'
    void act({ body, send: (sent, key) => apiActions.decide(sessionId, sent, key), done })
  }
  const isDead = busy || refusal !== null
  return (
    <>
      {texts ? (
        <dl className="figures">
          <Figure name="Limit">{texts.limit}</Figure>
          <Figure name="Spent">{texts.spent}</Figure>
          <Figure name="Set aside">{texts.held}</Figure>
          <Figure name="The next call may cost">{texts.needed}</Figure>
        </dl>
      ) : (
        <JsonTree value={args} open={2} />
      )}
      <ActionFooter trouble={trouble} refusal={refusal}>
        <label className="decision-why">
          Dollars more
          <input
            className="field"
            type="number"
            min="0.01"
            step="0.01"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </label>
        <div className="decision-acts">
          <Button kind="danger" disabled={isDead} onPress={() => decide(false)}>
            No more money
          </Button>
          <Button kind="primary" disabled={isDead || !isGood} onPress={() => decide(true)}>
            {isGood ? `Add ${moneyText(usd)}` : 'Add'}
          </Button>
        </div>
      </ActionFooter>
    </>
  )
}
