// Agents that a run starts and that work on while it goes on: what `terret run` waits for, prints and says.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { childLine, ChildWatcher } from '../../src/cli/chat/child-watcher.ts'
import { createPaint } from '../../src/cli/present/terminal-text.ts'
import { Harness, memory, scripted } from '../../src/index.ts'
import type { Card } from '../../src/kernel/index.ts'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

const use = (tool: string, args: Record<string, string>) => ({ calls: [{ tool, args }] })
type Asked = { readonly body: unknown }
const has = ({ body }: Asked, text: string): boolean => JSON.stringify(body).includes(text)

/** The lead starts one agent, says so, and sums up what was reported. */
const LEADING = (request: Asked) => {
  if (has(request, '<subagent_report')) return 'They found gold.'
  if (has(request, 'spawned_new')) return 'I started it.'
  if (has(request, 'Lead them.')) return use('spawn_subagent', { prompt: 'Dig here.' })
  return 'Gold.'
}

it('B-CLI-255: run goes on until the agents it started have ended, and prints what was said last', async () => {
  await scriptedBy(LEADING)
  const { code, out, err } = await stage.terret('run', 'Lead them.')
  expect([code, out]).toEqual([0, 'They found gold.\n'])
  expect(err).toMatch(/✓ ~\d+\.0 subagent · completed · <?\d+s @1/)
  const { out: record } = await stage.terret('handoffs', 'latest')
  expect(record).toMatch(/default → subagent ~\d+\.0 {2}task[\s\S]*subagent ~\d+\.0 → default {2}report, completed/)
})

it('B-CLI-256: "subagents": false turns them off, and a misspelled setting is refused', async () => {
  const chaos = await scriptedBy(['Done.', 'Done.'], { subagents: false })
  expect((await stage.terret('run', 'Work.')).code).toBe(0)
  expect(JSON.stringify(chaos.requests[0]?.body)).not.toContain('spawn_subagent')
  await scriptedBy(['Done.'], { subagent: false })
  const refused = await stage.refused('run', 'Work.')
  expect([refused.code, refused.err]).toEqual([7, expect.stringContaining('Did you mean "subagents"?')])
})

it('B-CLI-280: with --json what a child waits for is pending of the result', async () => {
  await scriptedBy((request) => {
    const isChild = has(request, 'Dig here.') && !has(request, 'Lead them.')
    return isChild ? use('write', { path: 'found.txt', content: 'Gold.' }) : LEADING(request)
  })
  const { code, out } = await stage.terret('run', 'Lead them.', '--json')
  expect(code).toBe(3)
  expect(JSON.parse(out)).toMatchObject({
    status: 'completed',
    pending: [{ tool: 'write', sessionId: expect.stringMatching(/~\d+\.0$/) as unknown }],
  })
})

it('B-CLI-302: --status requires_action lists a session of which only a child waits for a person, as `pending` has it', async () => {
  await scriptedBy((request) => {
    const isChild = has(request, 'Dig here.') && !has(request, 'Lead them.')
    if (has(request, 'Rest.')) return 'Rested.'
    return isChild ? use('write', { path: 'found.txt', content: 'Gold.' }) : LEADING(request)
  })
  expect((await stage.terret('run', 'Lead them.')).code).toBe(3)
  expect((await stage.terret('run', 'Rest.')).code).toBe(0)
  const asked = ['list', '--status', 'requires_action']
  for (const more of [[], ['--all'], ['--search', 'lead'], ['--limit', '1']]) {
    const { code, out, err } = await stage.terret(...asked, ...more)
    expect([more, code, out]).toEqual([more, 0, expect.stringMatching(/^\S+ .*Lead them\.\n$/)])
    expect(err).toMatch(/^A subagent of \S+ waits for you: `terret pending \S+` shows it\.\n$/)
  }
  expect(await stage.json(...asked)).toMatchObject({ task: 'Lead them.', waitsBelow: true })
  expect((await stage.terret(...asked, '--search', 'rest')).out).toBe('')
  mkdirSync(join(stage.folder, 'elsewhere'))
  expect((await stage.terretIn({ cwd: join(stage.folder, 'elsewhere') }, ...asked)).out).toBe('')
  const [waiting] = ((await stage.json('pending')) as { readonly path: readonly string[] }).path
  expect((await stage.terret('reject', waiting ?? '')).code).toBe(0)
  expect((await stage.terret(...asked)).out).toBe('')
})

it('B-CLI-281: Ctrl-C while only children work stops them, and says how to go on', async () => {
  let asked = (): void => {}
  const works = new Promise<void>((resolve) => (asked = resolve))
  await scriptedBy((request) => {
    const isChild = has(request, 'Dig here.') && !has(request, 'Lead them.')
    if (!isChild) return LEADING(request)
    asked()
    return { text: 'Gold.', chaos: { stallAfterBytes: 0 } }
  })
  const run = stage.start(['run', 'Lead them.'])
  await works
  await run.says('✓ spawn_subagent')
  await until(async () => expect((await stage.terret('list')).out).toContain('completed'))
  run.child.kill('SIGINT')
  const { code, err } = await run.ended
  expect(code).toBe(5)
  expect(err).toMatch(/Its agents were stopped\. Nothing is lost\. Go on with: .*resume/)
})

it('B-CLI-300: the line of a child says how long it has worked until now', async () => {
  let ahead = 0
  const store = memory({ clock: { ...systemClock, now: () => Date.now() + ahead } })
  const harness = new Harness({
    model: scripted([{ calls: [{ tool: 'subagent', args: { agent: 'asker', task: 'Ask.' } }] }]),
    subagents: {
      asker: {
        description: 'asks',
        model: scripted([{ calls: [{ tool: 'ask_user', args: { question: 'Which?' } }] }, { text: 'That one.' }]),
        tools: [askUserTool()],
      },
    },
    store,
  })
  const session = await harness.open({ id: 'top' })
  await session.run('Go.')
  const children = new ChildWatcher(store)
  const line = async (): Promise<string> => {
    await children.look((await store.card('top')) as Card)
    return children.all.map((child) => childLine(child, createPaint(false), 200)).join()
  }
  expect(await line()).toMatch(/Which\?.* · <1s @1$/)
  ahead = 65_000
  expect(await line()).toMatch(/Which\?.* · 1m 0\ds @1$/)
  await harness.close()
})
