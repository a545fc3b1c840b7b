// Which lines of users are standing rules, and that they outlive a compaction.
import { afterEach, describe, expect, it } from 'vitest'
import { holdsRule, ruleLinesIn } from '../../src/context/rules.ts'
import { SUMMARIZER } from '../../src/context/summary.ts'
import { Harness, memory, scripted } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { charsIn } from '../../src/riders/money/usage-estimate.ts'
import { textOf } from '../../src/view/text.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const RULES = [
  'Only ever deploy to the staging cluster.',
  'Use only the internal registry.',
  'Deploying is only allowed on Mondays.',
  'Under no circumstances touch billing.',
  'Make sure the tests pass before you commit.',
  'From now on, answer in German.',
  'Avoid new dependencies.',
  'Prefer small commits',
  'I prefer tabs over spaces.',
  'Please never force-push.',
  'Always sign your commits!',
  "You mustn't email customers.",
  'Do not use eval. Why would you?',
  'Is this clear? Never delete logs.',
  "- don't edit generated files",
  'At all times keep the port closed.',
  'We never push to main.',
]

const NONE = [
  'Why do you always fail?',
  'Should I avoid this? Do you prefer that?',
  'Is it only me?',
  'This is the only file that fails.',
  'I only looked at the log.',
  'It is not only slow.',
  "I don't know what to do here.",
  '> Never do that, said the manual.',
  '"Always read the manual."',
  'The banner says "Do not touch" in red.',
  'The flag is `--never-ask` and the text is “only once”.',
  '```\n// never call this\n```',
  'Fix the failing test, please.',
  'The avoidance of preferences.',
]

describe('rules of users', () => {
  it.each(RULES)('B-RULE-1: a rule is found: %s', (text) => expect(holdsRule(text)).toBe(true))
  it.each(NONE)('B-RULE-2: a question, a quote, code and a plain statement are no rules: %s', (text) =>
    expect(holdsRule(text)).toBe(false),
  )

  it('B-RULE-1: of a longer text only the lines with rules are taken, and hostile text takes no time', () => {
    const text = 'Here is what I need.\nOnly ever use UTC.\n> Never say never.\nThanks. Avoid floats.'
    expect(ruleLinesIn(text)).toEqual(['Only ever use UTC.', 'Thanks. Avoid floats.'])
    for (const odd of ['“', '"', '. ', '?! ', '```\n', "don't ", '> ', ' '])
      expect(holdsRule(odd.repeat(100_000))).toBeDefined()
  })

  it('B-RULE-3: rules are kept without any option, word for word, and can be switched off', async () => {
    const asked: string[] = []
    const model = scripted((request: Request) => {
      const usage = { inputTokens: Math.ceil(charsIn(request) / 4), outputTokens: 10 }
      if (request.instructions === SUMMARIZER) return { text: 'Nothing comes to mind.', usage }
      const texts = request.messages.map((m) => (m.role === 'tool' ? '' : textOf(m.parts)))
      asked.push(texts.filter((text) => !text.startsWith('<conversation-summary>')).join('\n'))
      return { text: 'y'.repeat(2_000), usage }
    })
    for (const isOn of [true, false]) {
      const harness = new Harness({ model, store: memory(), ...(isOn ? {} : { compaction: { detectPins: false } }) })
      open.push(harness)
      const session = await harness.open()
      await session.run('Only ever deploy to staging-7.')
      await session.run('Should I always ask about kiwis?')
      for (let i = 0; i < 6; i++) await session.run(`question ${i}`)
      await session.compact()
      await session.run('next')
      expect(asked.at(-1)?.includes('Only ever deploy to staging-7.')).toBe(isOn)
      expect(asked.at(-1)).not.toContain('kiwis')
      expect((await session.pins()).map(({ text }) => text)).toEqual(isOn ? ['Only ever deploy to staging-7.'] : [])
    }
  })
})
