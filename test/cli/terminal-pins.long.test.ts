// Pins at the terminal: a rule that is kept before the first message, one while a run works, the list, and letting one go.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const sent = (n: number): string => JSON.stringify(provider.chaos?.requests[n]?.body)

describe.skipIf(noTmux)('/pin', { timeout: 120_000 }, () => {
  it('B-RULE-4, B-RULE-5: keeps a rule in every later request, also before the first message and while a run works', async () => {
    const stalled = { text: 'I think that it could well be', deltas: 9, chaos: { stallAfterBytes: 900 } }
    await scriptedBy(['Hello.', 'Again.', stalled, 'Done.'])
    const seen = openScreen(stage, {})
    seen.enter('clear; terret interactive --trust')
    await seen.until(PROMPT)
    seen.enter('/pin')
    await seen.until('Nothing is pinned.')
    seen.enter('/pin Only ever deploy to staging-7.')
    await seen.until('Pinned: every later request holds it.')
    seen.enter('Hi.')
    await seen.until(/Hello\.[\s\S]*›$/)
    expect(sent(0)).toContain('Only ever deploy to staging-7.')
    seen.enter('/pin')
    await seen.until(/ \d+ {2}Only ever deploy to staging-7\./)
    const [, number = ''] = / (\d+) {2}Only ever deploy/.exec(seen.text()) ?? []
    seen.enter('/unpin x')
    await seen.until('Name a pin by its number')
    seen.enter(`/unpin ${number}`)
    await seen.until('It is pinned no more.')
    seen.enter('Once more.')
    await seen.until(/Again\.[\s\S]*›$/)
    seen.enter('And think.')
    await seen.until('I think')
    seen.enter('/pin Always use UTC.')
    await seen.until('Pinned: the run reads it next.')
    expect(seen.text()).toContain('queued: Always use UTC.')
  })
})
