// What the card of a session says of its last run: why it failed, which limit ended it, and calls that may have happened.
import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/kernel/content.ts'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { cardOf } from '../../src/view/card.ts'
import type { Card } from '../../src/ports/store.ts'
import { proposal, Tale } from '../tracing/tale.ts'

function cardAfter({ events, session }: Tale): Card {
  const state = events.reduce(fold, EMPTY)
  return cardOf(session, state, next(state, { now: state.at, epoch: state.epoch }))
}

function settledWith(outcome: Outcome): Tale {
  const tale = new Tale('s')
  tale.begin([tale.say('go')])
  tale.ask()
  tale.reply([])
  tale.add({ type: 'run.settled', outcome })
  return tale
}

describe('what a card says of the last run', () => {
  it('B-PAGE2-2: the reason of a failure and of a halt, and the limit that was reached', () => {
    const failure = { kind: 'Failed', message: 'The provider refused.' } as const
    expect(cardAfter(settledWith({ type: 'failed', reason: 'provider_error', failure }))).toMatchObject({
      outcome: 'failed',
      cause: 'The provider refused.',
    })
    expect(cardAfter(settledWith({ type: 'halted', reason: 'a hook' }))).toMatchObject({ cause: 'a hook' })
    const broke = cardAfter(settledWith({ type: 'limit', limit: 'usd' }))
    expect(broke).toMatchObject({ outcome: 'limit', limit: 'usd' })
    expect(cardAfter(settledWith({ type: 'completed' }))).not.toHaveProperty('cause')
  })

  it('B-PAGE2-2: calls of unknown outcome are counted until the next run begins', () => {
    const tale = new Tale('s')
    tale.begin([tale.say('go')])
    tale.ask()
    const reply = tale.reply([proposal('pay'), proposal('pay')])
    for (const call of [`${reply}.0`, `${reply}.1`] as const) {
      tale.add({ type: 'agent.tool_use', call })
      tale.add({ type: 'agent.tool_result', call, status: 'unknown', content: 'It may have happened.' })
    }
    tale.ask()
    tale.reply([])
    tale.settle()
    expect(cardAfter(tale)).toMatchObject({ outcome: 'completed', unknown: 2 })
    tale.begin([tale.say('more')])
    expect(cardAfter(tale)).not.toHaveProperty('unknown')
  })
})
