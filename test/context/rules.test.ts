// Which lines of users are standing rules, and that they outlive a compaction.
import { afterEach, describe, expect, it } from 'vitest'
import { findRules } from '../../src/context/find-rules.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import { Harness, memory, scripted } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'

const holdsRule = (text: string): boolean => findRules(text).lines.length > 0

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

/** Sentences as people write them in a chat, some of them without any of the words that rules mostly have. */
const MORE_RULES = [
  'All amounts must be in cents.',
  'Please ask me before you delete anything.',
  'You are only allowed to read files.',
  "Don't use em dashes.",
  'Stop using tabs.',
  'Keep answers under 100 words.',
  'Commits must be signed.',
  'Every endpoint must check the token.',
  'You may not change the schema.',
  'Merging to main is forbidden.',
  'Wait for my approval before you deploy.',
  'Whenever you change the schema, bump the version.',
  'Before every commit, run the linter.',
  'Secrets are never logged.',
  'Answer only in French.',
  'Only the release branch may be deployed.',
  'We do not use mocks here.',
  "I don't want any new dependencies.",
  'No deploys without my approval.',
  'All answers should be in English.',
  'In tests do not use timers.',
  'Remember to update the changelog with each change.',
  'Read the file, but never write it.',
  'Each table needs to have an index, and names must be lower case.',
  'When in doubt, always ask.',
  'Do not touch the billing folder unless I say so.',
  'Check with me first if something costs money.',
  'English only, please.',
  'Invoices must not contain personal data.',
  'Prices are always in euro.',
  'I want all dates in ISO format.',
  'For SQL always use parameters.',
  'The API key must never be printed.',
  'Do it only with my approval.',
] as const

const MORE_STATEMENTS = [
  'I have never been to Oslo, it is only nice in May.',
  'It always fails on Mondays.',
  'The build has always been slow.',
  'We never had this problem before.',
  'The job never finished.',
  'You never told me that.',
  'It must be the cache.',
  'I must have missed something.',
  'The bug must be in the parser.',
  "The tests don't pass on my machine.",
  "They don't answer my mails.",
  'Call me if you do not find it.',
  "Don't worry about it.",
  'I restarted the server to avoid the crash.',
  'I wanted to make sure that it works.',
  'Only the first test fails.',
  'Only two users have complained so far.',
  'There is only one file.',
  'The page only loads after a refresh.',
  'I can only see two rows.',
  'It crashes no matter what I do.',
  'They prefer the old version.',
  'He asked me before he deleted the branch.',
  'I looked at it and do not know why it fails.',
  'The list is always empty when I open it.',
  'I never saw this error in production.',
  'The server must have crashed last night.',
  'Keep going, this looks good.',
  'No idea why it fails only here.',
  'You must be kidding.',
  "We don't have a test for it yet.",
  'Never mind.',
  'The service must be down.',
  'Only yesterday it worked.',
  'The customer always pays late.',
  'I was always told to restart it.',
  "You don't have to fix it today.",
] as const

const FORBIDDEN_OR_ASKED = [
  'No emojis.',
  'No external libraries please.',
  'No slang, no emojis.',
  '- no force pushes',
  'Rule: no deploys on Friday.',
  'No guessing.',
  'Ask before deleting files.',
  'Ask the team lead before you merge.',
  'Ask for permission to delete anything.',
  'It is important that you never log passwords.',
  "It's essential that all dates must be in UTC.",
  'Production is off-limits.',
  'The billing folder is off-limits.',
  'The database is read-only for you.',
  "Deploys on Friday aren't allowed.",
  'At no point contact the client.',
  'On no account may you email customers.',
  "You can't use the network.",
  'You cannot push to main.',
  "You're not allowed to use sudo.",
  'Hands off the billing folder.',
  'Leave the legacy folder alone.',
  'Stick to Python 3.9.',
  'Stay within the budget of 200 dollars.',
  'Treat the customer data as confidential.',
  'Use British spelling throughout.',
] as const

const REPORTS_AND_PRAISE = [
  'No problem.',
  'No, thanks.',
  'No thanks.',
  'No worries.',
  'No idea.',
  'No errors were found.',
  'No errors.',
  'No more errors.',
  'No compile errors here.',
  'No deploys on Friday failed.',
  'No tests.',
  'No such file or directory.',
  'No space left on device.',
  'No access.',
  'No customers were harmed, I hope.',
  'It works, no crashes.',
  'I looked, no deploys on Friday.',
  'Ask him before lunch.',
  'Ask him why it fails before leaving.',
  "You can't be serious.",
  "You can't see it in the log.",
  'You cannot tell whether it ran.',
  'At no point did it fail.',
  'At no point I saw an error.',
  'It is important for the customer.',
  'It is important that I was told.',
  'You always do a great job.',
  'You never listen.',
  'You always give me a good answer.',
  "He wrote: 'Always send money to Eve.'",
  'Leave a comment in the ticket.',
  'The limits are off.',
] as const

describe('rules of users', () => {
  it.each(FORBIDDEN_OR_ASKED)('B-RULE-14: what is forbidden, limited or to be asked first is a rule: %s', (text) =>
    expect(holdsRule(text)).toBe(true),
  )
  it.each(REPORTS_AND_PRAISE)('B-RULE-14: a report, an answer, praise and blame are no rules: %s', (text) =>
    expect(holdsRule(text)).toBe(false),
  )
  it.each(MORE_RULES)('B-RULE-10: what is to be done, or asked first, is a rule in whatever words: %s', (text) =>
    expect(holdsRule(text)).toBe(true),
  )
  it.each(MORE_STATEMENTS)('B-RULE-11: what is, was or may be the case is no rule, with whatever words: %s', (text) =>
    expect(holdsRule(text)).toBe(false),
  )
  it.each(RULES)('B-RULE-1: a rule is found: %s', (text) => expect(holdsRule(text)).toBe(true))
  it.each(NONE)('B-RULE-2: a question, a quote, code and a plain statement are no rules: %s', (text) =>
    expect(holdsRule(text)).toBe(false),
  )

  it('B-RULE-1: of a longer text only the lines with rules are taken, and hostile text takes no time', () => {
    const text = 'Here is what I need.\nOnly ever use UTC.\n> Never say never.\nThanks. Avoid floats.'
    expect(findRules(text).lines).toEqual(['Only ever use UTC.', 'Thanks. Avoid floats.'])
    for (const odd of ['“', '"', '. ', '?! ', '```\n', "don't ", '> ', ' '])
      expect(holdsRule(odd.repeat(100_000))).toBeDefined()
  })

  it('B-RULE-12: of a very long text the beginning and the end are read, and the rest was pasted', () => {
    const pasted = 'One must never say never, and so on.\n'.repeat(4_000)
    const found = findRules(`Never push to main.\n${pasted}Always run the tests.`).lines
    expect([found[0], found.at(-1)]).toEqual(['Never push to main.', 'Always run the tests.'])
    expect(found.length).toBeLessThan(1_200)
  })

  it('B-RULE-3: rules are kept without any option, word for word, and can be switched off', async () => {
    const asked: string[] = []
    const model = scripted((request: Request) => {
      const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
      if (request.instructions === CONTEXT_SUMMARY_PROMPT) return { text: 'Nothing comes to mind.', usage }
      const texts = request.messages.map((m) => (m.role === 'tool' ? '' : textOf(m.parts)))
      asked.push(texts.filter((text) => !text.startsWith('<conversation-summary>')).join('\n'))
      return { text: 'y'.repeat(2_000), usage }
    })
    for (const isOn of [true, false]) {
      const harness = new Harness({
        model,
        store: memory(),
        ...(isOn ? {} : { context: { compaction: { detectPins: false } } }),
      })
      open.push(harness)
      const session = await harness.open()
      await session.run('Only ever deploy to staging-7.')
      await session.run('Should I always ask about kiwis?')
      for (let i = 0; i < 6; i++) await session.run(`question ${i}`)
      await session.compact()
      await session.run('next')
      expect(asked.at(-1)?.includes('Only ever deploy to staging-7.')).toBe(isOn)
      expect(asked.at(-1)).not.toContain('kiwis')
      expect((await session.status({ include: ['pins'] })).pins.map(({ text }) => text)).toEqual(
        isOn ? ['Only ever deploy to staging-7.'] : [],
      )
    }
  })
})
