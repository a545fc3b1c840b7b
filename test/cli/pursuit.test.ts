// `terret run --outcome`: rounds, grades and exit codes. The built command on a real file.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const graded = (met: 'yes' | 'no', summary: string) => ({
  calls: [{ tool: 'final_result', args: { criteria: [{ criterion: 'It rhymes', met, why: 'read aloud' }], summary } }],
})

describe('terret run --outcome', () => {
  it('B-OUTCOME-26: works in rounds, shows each grade, and ends with 0 once all is met', async () => {
    stage.write('work/rubric.md', '- It rhymes.\n')
    await scriptedBy(['A poem.', graded('no', 'It does not.'), 'A better poem.', graded('yes', 'It does.')])
    const { code, out, err } = await stage.terret('run', '--outcome', 'rubric.md', 'Write', 'a', 'poem.')
    expect([code, out]).toEqual([0, 'A better poem.\n'])
    expect(err).toMatch(/Round 1: fail, 0 of 1 met · graded in \S+\n {2}It does not\.\n/)
    expect(err).toMatch(/Round 2: pass, 1 of 1 met/)
    expect(lastLine(err)).toBe('outcome satisfied · round 2 of 3')
    const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)
    expect(sent(1)).toContain('<answer>\\nA poem.\\n</answer>')
    expect(sent(2)).toContain('It rhymes (not met): read aloud')
  })

  it('B-OUTCOME-26: ends with 1 when something is open after the last round, and says it as JSON', async () => {
    const file = stage.write('work/rubric.md', '- It rhymes.\n')
    await scriptedBy(['A poem.', graded('no', '')])
    const args = ['run', '--json', '--outcome', file, '--rounds', '1', '--usd', '2', 'Write a poem.']
    const { code, out } = await stage.terret(...args)
    expect(code).toBe(1)
    const [result, pursued] = out.trim().split('\n')
    expect(JSON.parse(result ?? '')).toMatchObject({ status: 'completed', text: 'A poem.' })
    expect(JSON.parse(pursued ?? '')).toMatchObject({
      pursuit: { end: 'max_rounds', state: 'fail', usd: 2, roundsMax: 1 },
    })
  })

  it('B-OUTCOME-26: a rubric that is missing or empty, and flags without it, are refused in one sentence', async () => {
    stage.write('work/empty.md', ' \n')
    for (const [code, says, ...args] of [
      [6, 'There is no file none.md.', '--outcome', 'none.md'],
      [
        7,
        'The option "rubric" of pursue is empty: list the criteria that the result must meet.',
        '--outcome',
        'empty.md',
      ],
      [2, '--rounds and --usd go with --outcome', '--rounds', '2'],
    ] as const) {
      const ended = await stage.terret('run', '--model', 'offline:any', ...args, 'Say hello.')
      expect([ended.code, ended.out]).toEqual([code, ''])
      expect(ended.err).toContain(says)
    }
  })
})
