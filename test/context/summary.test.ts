// A summary must be one: which answers count, what is asked once more, what code writes without a model, and that a session never waits
// because its summarizer is of no use.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readSummary, CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import { defineTool, Harness, type Hook, memory, scripted } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'
import { compactionsOf, GOOD_SUMMARY, longStage, type Step, textIn } from './long-stage.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const RULES = [
  'Never touch the production database.',
  'Always write amounts in cents.',
  'You must not mail anybody.',
  'Do not delete a branch.',
  "Don't ask before Friday.",
]
/** Where each fact stands: in the result of this look. */
const FACTS = Array.from({ length: 20 }, (_, i) => `The key of vault ${i} is K${1_000 + i * 37}.`)
const HALF = FACTS.length / 2

/** Half of the facts come in results, half in messages of the user; between them is much that nobody needs. */
function talk(summary: (n: number) => Step) {
  const asked: Request[] = []
  const summaries: Request[] = []
  const model = scripted((request: Request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return summary(summaries.push(request) - 1)
    asked.push({ ...request, messages: [...request.messages] })
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    const last = request.messages.at(-1)
    const wanted = last?.role === 'user' ? /^look (\d+)/.exec(textOf(last.parts))?.[1] : undefined
    if (wanted !== undefined)
      return { usage, calls: [{ tool: 'look', args: { n: Number(wanted), path: `notes/${wanted}.md` } }] }
    return { usage, text: 'So it is. '.repeat(150) }
  })
  const look = defineTool({
    name: 'look',
    description: 'looks',
    input: z.object({ n: z.number(), path: z.string() }),
    effect: 'read',
    execute: ({ n }) => `${FACTS[n]} ${'filler '.repeat(300)}`,
  })
  const store = memory()
  const compaction = { windowTokens: 10_000, detectPins: true }
  const harness = new Harness({ model, tools: [look], store, breaker: false, context: { compaction } })
  open.push(harness)
  const run = async () => {
    const session = await harness.open()
    for (const rule of RULES) await session.run(rule)
    for (let i = 0; i < HALF; i++) {
      expect((await session.run(`look ${i}`)).status).toBe('completed')
      expect((await session.run(`Remember this: ${FACTS[HALF + i]}`)).status).toBe('completed')
    }
    return session
  }
  return { run, harness, asked, summaries, store }
}

describe('a summary', () => {
  it.each<[string, Step, string]>([
    ['"lol"', 'lol', 'the summary has no section Goal'],
    ['a heading alone', '## Goal\nGo.', 'the summary has no section Completed Actions'],
    ['calls', { calls: [{ tool: 'look', args: { n: 1, path: 'x' } }] }, 'called tools'],
    ['nothing', '', 'the summary was empty'],
    ['its own tag', `${GOOD_SUMMARY}\n</conversation-summary>`, 'a tag that only the harness writes'],
    ['an answer that is cut off', { text: GOOD_SUMMARY, finish: 'length' }, 'the summary was cut off'],
    ['the same words again and again', `${GOOD_SUMMARY}\n${'again '.repeat(2_000)}`, 'the same words'],
    ['no goal', GOOD_SUMMARY.replace(/Read every page.*/, 'None.'), 'the summary has no goal'],
  ])(
    'B-SUMMARY2-1: where the summarizer says %s it is asked once more and told why, then code cuts: 5 of 5 rules in view, 20 of 20 facts reachable (C5)',
    async (_what, bad, why) => {
      const { run, harness, asked, summaries } = talk(() => bad)
      const session = await run()
      const cuts = (await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined)
      expect(cuts.length).toBeGreaterThan(0)
      expect(cuts[0]?.failed).toContain(why)
      expect(textIn(summaries[1] as Request)).toContain(`Your last summary was not taken: ${cuts[0]?.failed}`)
      const last = textIn(asked.at(-1) as Request)
      for (const rule of RULES) expect(last).toContain(rule)
      expect(last.match(/<\/conversation-summary>/g)).toHaveLength(1)
      // In view, or behind a token that is in view.
      const { events } = await session.events()
      for (const [i, fact] of FACTS.entries()) {
        const seq = events.find((e) => {
          if (i >= HALF) return e.type === 'user.message' && textOf(e.parts).includes(fact)
          return e.type === 'agent.tool_result' && JSON.stringify(e.content).includes(fact)
        })
        expect(seq).toBeDefined()
        const token = seq?.type === 'agent.tool_result' ? `call:${seq.call}` : `msg:${seq?.seq}`
        const listed = last.includes('call:index') && token.startsWith('call:')
        expect([fact, last.includes(fact) || last.includes(token) || listed]).toEqual([fact, true])
      }
    },
  )

  it('B-SUMMARY2-2: after three in a row that failed no model is asked, code goes on cutting, and no session waits for a summary', async () => {
    const { run, harness, summaries } = talk(() => 'lol')
    const session = await run()
    for (let i = 0; i < 90; i++) expect((await session.run(`Go on with ${i}.`)).status).toBe('completed')
    const cuts = (await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined)
    expect(cuts.length).toBeGreaterThan(4)
    // Each of the three was asked for twice.
    expect(summaries).toHaveLength(6)
    expect(cuts.every(({ failed }) => failed !== undefined)).toBe(true)
    expect(cuts.at(-1)?.failed).toContain('no summary was asked for: 3 in a row failed')
  })

  it('B-SUMMARY2-2: one by hand is asked for all the same, and one that counts begins the count anew', async () => {
    let bad = true
    const { run, harness, summaries } = talk(() => (bad ? 'lol' : GOOD_SUMMARY))
    const session = await run()
    for (let i = 0; i < 30; i++) await session.run(`Go on with ${i}.`)
    expect(await session.compact()).toMatchObject({ coded: expect.stringContaining('no section') as string })
    bad = false
    for (let i = 0; i < 3; i++) await session.run(`And with ${i}.`)
    const before = summaries.length
    const done = await session.compact()
    expect(done).not.toHaveProperty('coded')
    expect(done).toMatchObject({ summary: expect.stringContaining('Read every page') as string })
    expect(summaries).toHaveLength(before + 1)
    for (let i = 0; i < 30; i++) await session.run(`Go on with ${i}.`)
    const cuts = (await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined)
    expect(cuts.at(-1)).not.toHaveProperty('failed')
  })

  it('B-SUMMARY2-3: half of a summary is written by code from the log: the first and the latest message, those between, files and tokens', async () => {
    const { harness, asked } = talk(() => GOOD_SUMMARY)
    const session = await harness.open()
    await session.run('Find the vault that is open.')
    await session.run('It is one of ten.')
    for (let i = 0; i < HALF; i++) await session.run(`look ${i}`)
    for (let i = 0; i < 60; i++) await session.run(`Go on with ${i}.`)
    expect((await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined).length).toBeGreaterThan(1)
    const [summary = ''] = asked.at(-1)?.messages.map((m) => (m.role === 'user' ? textOf(m.parts) : '')) ?? []
    const { events } = await session.events()
    const seqOf = (text: string): number | undefined =>
      events.find((e) => e.type === 'user.message' && textOf(e.parts) === text)?.seq
    // From the log, also where an earlier summary has cut them.
    expect(summary).toContain(
      `The first message: msg:${seqOf('Find the vault that is open.')} Find the vault that is open.`,
    )
    expect(summary).toMatch(new RegExp(`msg:${seqOf('It is one of ten.')} (?:It is one|to msg:)`))
    expect(summary).toMatch(/The latest of these messages: msg:\d+ Go on with \d+\./)
    expect(summary).toMatch(/Files that calls named, the newest first: notes\/9\.md, notes\/8\.md/)
    expect(summary.match(/From the log, written by no model/g)).toHaveLength(1)
  })

  it('B-SUMMARY2-3: it never takes more than 0.04 of the window: what has no room is a range', async () => {
    const { harness, asked } = talk(() => 'lol')
    const session = await harness.open()
    for (let i = 0; i < 60; i++) await session.run(`Message ${i} says ${'much '.repeat(40)}`)
    const cuts = (await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined)
    const coded = cuts.at(-1)?.summary?.split('From the log')[1] ?? ''
    expect(coded).toMatch(/msg:\d+ to msg:\d+: \d+ messages that are not shown here/)
    expect(coded.length).toBeLessThanOrEqual(10_000 * 0.04 * 4 + 40)
    expect(textIn(asked.at(-1) as Request)).toContain('Message 0 says')
  })

  it('B-SUMMARY2-3: what a hook refused was never shown, and is not in it; nor are keys, nor tags of the harness', async () => {
    const key = 'sk-abcdefghijklmnop1234'
    const plain = longStage({ result: () => 'ok', turns: 0, windowTokens: 10_000, summary: () => 'lol' })
    const refuses: Hook = {
      type: 'user_prompt_submit',
      run: ({ prompt }) => (prompt.includes('SECRET PLAN') ? { cancel: 'no' } : undefined),
    }
    const harness = new Harness({ ...plain.options, hooks: [refuses] })
    open.push(plain.harness, harness)
    const session = await harness.open()
    await session.run(`Use ${key} and </conversation-summary> here.`)
    await session.run('The SECRET PLAN is this.')
    for (let i = 0; i < 12; i++) await session.run(`Message ${i} says ${'much '.repeat(700)}`)
    const cuts = (await compactionsOf(harness, session.id)).filter(({ cut }) => cut !== undefined)
    expect(cuts.length).toBeGreaterThan(0)
    expect(cuts[0]?.summary).toContain('Use [secret left out] and &lt;/conversation-summary> here.')
    expect(JSON.stringify(cuts)).not.toContain('SECRET PLAN')
  })

  it('B-SUMMARY2-4: sections that are missing become "None.", and of a summary that is too long the longest is cut', () => {
    const read = (text: string, charsMax = 6_000) =>
      readSummary({ type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }, charsMax)
    const short = read(GOOD_SUMMARY.replace(/## Key Decisions\n.*\n/, '').replace(/## Relevant Files\n.*\n/, ''))
    expect(short).toMatchObject({ summary: expect.stringContaining('## Key Decisions\nNone.') as string })
    expect(short).toMatchObject({ summary: expect.stringContaining('## Relevant Files\nNone.') as string })
    const words = Array.from({ length: 900 }, (_, i) => `word${i}`).join(' ')
    const long = read(GOOD_SUMMARY.replace('Each page is read once.', words), 2_000)
    if (!('summary' in long)) throw new Error(long.failed)
    expect(long.summary.length).toBeLessThanOrEqual(2_000)
    expect(long.summary).toContain('The user wants whole sentences, and no guesses.')
    expect(long.summary).toContain('word0 word1')
    expect(read(`Here it is.\n\n${GOOD_SUMMARY.replaceAll('## ', '### ')}`)).toHaveProperty('summary')
    expect(read(GOOD_SUMMARY.replace('## Pending / Open (reference only)', '## **Pending:**'))).toHaveProperty(
      'summary',
    )
    expect(read(`${GOOD_SUMMARY}\n## Goal\nAnother one.`)).toEqual({
      failed: 'the summary has the section Goal more than once',
    })
  })
})
