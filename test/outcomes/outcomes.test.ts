// Outcomes in one process: rounds and grades, and every end. Killed processes are in kill.long.test.ts.
import { describe, expect, it } from 'vitest'
import { ended, lastText, look, roundsIn, stage, TASK, verdict } from './stage.ts'

describe('a pursuit', () => {
  it('B-OUTCOME-1: goes on until a grader finds every criterion met, and each round gets what was still open', async () => {
    const { harness, asked, reports } = stage({
      work: (_request, n) => `Poem ${n}.`,
      grade: (_request, n) => verdict(n - 1, `Grade ${n}.`),
    })
    const session = await harness.open({ id: 's' })
    const receipt = await session.pursue(TASK)
    expect(receipt).toMatchObject({ duplicate: false, fingerprint: expect.stringMatching(/^[0-9a-f]{24}$/) as string })
    const pursuit = await ended(session)
    expect(pursuit).toMatchObject({
      state: 'pass',
      end: 'satisfied',
      why: null,
      round: 3,
      roundsMax: 3,
      usd: null,
      trend: 'improving',
      description: TASK.description,
      rubric: TASK.rubric,
      history: [
        { round: 1, state: 'fail', met: 0, of: 2, summary: 'Grade 1.' },
        { round: 2, state: 'fail', met: 1, of: 2 },
        { round: 3, state: 'pass', met: 2, of: 2, session: `outcome.${receipt.fingerprint}.3` },
      ],
    })
    expect(asked.work.map(lastText)).toEqual([
      expect.stringContaining('It has four lines.') as string,
      expect.stringContaining('- It rhymes (not met): because 0\n- Four lines (not met): because 1\n\nGrade 1.') as string,
      expect.stringContaining('- Four lines (not met): because 1') as string,
    ])
    expect(asked.grade.map((request) => /Poem \d/.exec(lastText(request))?.[0])).toEqual(['Poem 1', 'Poem 2', 'Poem 3'])
    expect(asked.grade.map(({ messages }) => messages.length)).toEqual([1, 1, 1])
    expect(await roundsIn(harness, 's')).toEqual([1, 2, 3].map((n) => `terret:outcome:${receipt.fingerprint}.${n}`))
    expect(reports).toEqual([])
  })
})
