// `terret workflow`: workflows in files, of the user and of a trusted folder, run and gone on with by several processes.
import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage, scriptedBy } = stageOfEach()

const REVIEW = {
  kind: 'phases',
  description: 'Reviews a change.',
  agents: { reader: { instructions: 'You read the change.' } },
  phases: [
    { name: 'read', description: 'Read it.', agents: ['reader'] },
    { name: 'judge', description: 'Judge it.', agents: ['reader'], depends_on: ['read'] },
  ],
}
const MARKDOWN = `---
description: Plans.
safety_tier: read_only
agents:
  planner: { instructions: You plan. }
phases:
  - { name: plan, agents: [planner] }
---
Notes for people.

## plan
Make a plan.
`
const user = (name: string, content: object | string): string =>
  stage.write(`config/terret/workflows/${name}`, typeof content === 'string' ? content : JSON.stringify(content))
const offline = (): void => stage.configure({ model: 'offline:any' })

describe('terret workflow', () => {
  it('B-FLOW-1: files of the user are listed, shown and run, and their runs are listed', async () => {
    offline()
    user('review.json', REVIEW)
    user('plan.md', MARKDOWN)
    const { workflows } = (await stage.json('workflow', 'list')) as { workflows: { name: string; kind: string }[] }
    expect(workflows.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'report report',
      'report_with_model report',
      'plan phases',
      'review phases',
    ])
    expect((await stage.terret('workflow', 'show', 'review')).out).toContain(
      'n1[["read<br/>agent flow-review--reader"]]',
    )
    const ran = await stage.apart('workflow', 'run', 'review', 'the', 'change')
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.out.trim()).not.toBe('')
    const { runs } = (await stage.json('workflow', 'runs')) as { runs: object[] }
    expect(runs).toMatchObject([{ workflow: 'review', status: 'completed' }])
    expect(await stage.apart('workflow', 'run', 'plan')).toMatchObject({ code: 0 })
  })

  it('B-FLOW-2: what is wrong with a file is one line with the file, the name and the nearest key', async () => {
    offline()
    const file = user('review.json', { ...REVIEW, phase: [] })
    expect(await stage.terret('workflow', 'show', 'review')).toMatchObject({
      code: 7,
      err: `terret: ${file}: Unknown option "phase" of workflow "review": did you mean "phases"?\n`,
    })
    user('review.json', { ...REVIEW, phases: [{ ...REVIEW.phases[0], agents: ['raeder'] }] })
    const wrong = await stage.terret('workflow', 'run', 'review')
    expect(wrong.err).toMatch(/review\.json: UnknownAgent: phases\[0\]\.agents\[0\] is "raeder".*Did you mean "reader"/)
    // Others are listed beside it.
    user('plan.md', MARKDOWN)
    const { workflows } = (await stage.json('workflow', 'list')) as { workflows: { name: string; kind: string }[] }
    expect(workflows.map(({ kind }) => kind)).toEqual(['report', 'report', 'phases', 'wrong'])
    for (const [content, text] of [
      ['{', 'it is no JSON'],
      [{ kind: 'phase' }, '"kind" must be phases, council, delegation'],
      [{ ...REVIEW, id: 'other' }, '"id" must be the name of the file'],
    ] as const) {
      user('review.json', content)
      expect((await stage.terret('workflow', 'show', 'review')).err).toContain(text)
    }
    expect((await stage.terret('workflow', 'show', 'reviw')).err).toContain('Did you mean "review"?')
    expect(await stage.terret('workflow', 'run')).toMatchObject({ code: 2 })
  })

  it('B-FLOW-3: of a folder that is not trusted nothing is read, and that is said; after trust it is', async () => {
    offline()
    stage.write('work/.terret/workflows/review.json', JSON.stringify(REVIEW))
    const before = await stage.terret('workflow', 'list')
    expect(before.out).not.toContain('review.json')
    expect(before.err).toContain('is not trusted: its .terret/workflows is not read')
    expect((await stage.terret('workflow', 'run', 'review')).err).toContain('There is no workflow "review"')
    await stage.terret('trust')
    expect((await stage.terret('workflow', 'list')).out).toContain('review.json')
    // The user's own wins.
    user('review.json', REVIEW)
    expect((await stage.terret('workflow', 'list')).err).toContain('your own workflow "review" has the same name')
  })

  it('B-FLOW-4: a run that failed goes on in another process from its file, with what was done; without the file one line says so', async () => {
    const file = user('review.json', REVIEW)
    const failing = await scriptedBy([
      'The change is read.',
      { status: 400, body: '{"error":{"message":"no"}}' },
    ] as never)
    const first = await stage.apart('workflow', 'run', 'review', 'it')
    expect(first).toMatchObject({ code: 1 })
    expect(first.err).toContain('Node "judge" failed')
    rmSync(file)
    const gone = await stage.apart('resume', 'latest')
    expect(gone.err).toContain('The file of workflow "review" is not there any more: put review.json or review.md back')
    const { runs } = (await stage.json('workflow', 'runs')) as { runs: object[] }
    expect(runs).toMatchObject([{ workflow: 'review', status: 'failed' }])
    user('review.json', { ...REVIEW, phases: [REVIEW.phases[0]] })
    expect((await stage.apart('resume', 'latest')).err).toContain(
      'GraphChanged: graph "flow-review" has no node "judge"',
    )
    user('review.json', REVIEW)
    const asked = failing.requests.length
    await scriptedBy(['Judged.'])
    const last = await stage.apart('resume', 'latest')
    expect(last).toMatchObject({ code: 0 })
    expect(last.out).toContain('Judged.')
    expect(asked).toBeGreaterThan(1)
  })

  it('B-FLOW-5: a council in a file says above its text how many answered, and a folder may not name models that the user did not', async () => {
    offline()
    const council = { kind: 'council', description: 'Asks.', seats: ['offline:a', 'offline:a'], chair: 'offline:any' }
    user('ask.json', council)
    const { code, out } = await stage.apart('workflow', 'run', 'ask', 'What', 'is', 'tea?')
    expect({ code, first: out.split('\n')[0] }).toEqual({ code: 0, first: '# Council: 2 of 2 answered' })
    expect((await stage.terret('workflow', 'run', 'ask')).err).toContain('EmptyQuestion')
    user('ask.json', { ...council, seats: ['offline:any'] })
    expect((await stage.terret('workflow', 'run', 'ask', 'x')).err).toContain('ChairIsMember')
    await stage.terret('trust')
    stage.write('work/.terret/workflows/theirs.json', JSON.stringify(council))
    expect((await stage.terret('workflow', 'run', 'theirs', 'x')).err).toContain('which your configuration does not')
  })

  it('B-FLOW-20: a delegation in a file runs, prints what was done, is inspected, and a worker goes on with one of its agents', async () => {
    user('hand.json', { kind: 'delegation' })
    await scriptedBy(({ body }) => {
      const said = JSON.stringify(body)
      if (said.includes('You plan a task')) return 'The plan.'
      if (said.includes('You review work')) return '{"approved":true,"findings":[]}'
      return said.includes('"role":"tool"')
        ? 'It is done.'
        : { calls: [{ tool: 'write', args: { path: 'a', content: 'x' } }] }
    })
    expect(await stage.terret('workflow', 'run', 'hand')).toMatchObject({
      code: 2,
      err: expect.stringContaining('EmptyGoal') as unknown,
    })
    const first = await stage.apart('workflow', 'run', 'hand', 'Do', 'it.')
    expect(first).toMatchObject({ code: 3 })
    const shown = (await stage.json('pending', 'latest')) as { readonly sessionId: string; readonly callId: string }
    expect(await stage.terret('approve', shown.sessionId, shown.callId)).toMatchObject({ code: 0 })
    expect(await stage.apart('worker', '--idle')).toMatchObject({
      code: 0,
      err: expect.not.stringContaining('no agent') as unknown,
    })
    const last = await stage.apart('resume', 'latest')
    expect(last).toMatchObject({ code: 0, out: 'It is done.\n\napproved after 1 execution\n' })
    expect((await stage.terret('inspect', 'latest')).out).toMatch(/Node +plan +ok/)
    expect((await stage.terret('inspect', 'latest', '--tree')).out).toContain('flow-hand--executor')
  })

  it('B-FLOW-21: a phase that is named like a node of the report says nothing in its words', async () => {
    offline()
    user('plan.md', MARKDOWN)
    const { err } = await stage.apart('workflow', 'run', 'plan')
    expect(err).toContain('✓ plan')
    expect(err).not.toContain('question')
    expect((await stage.terret('inspect', 'latest')).out).not.toContain('question')
  })

  it('B-FLOW-60: a file with the name of a built-in workflow is refused as taken', async () => {
    offline()
    const { workflows: builtIn } = (await stage.json('workflow', 'list')) as { workflows: { name: string }[] }
    for (const { name } of builtIn) {
      const file = user(`${name}.json`, REVIEW)
      const text = `${file}: "${name}" is the name of a workflow that is built in. Give the file another name.`
      expect(await stage.terret('workflow', 'run', name, 'x')).toMatchObject({ code: 7, err: `terret: ${text}\n` })
      const { workflows } = (await stage.json('workflow', 'list')) as { workflows: object[] }
      expect(workflows).toContainEqual({ name, kind: 'wrong', from: file, says: text })
    }
  })

  it('B-FLOW-61: input that is a JSON object is text', async () => {
    const { requests } = await scriptedBy(['Read.', 'Judged.', 'Read.', 'Judged.'])
    user('review.json', REVIEW)
    for (const typed of ['{"retry": true}', '{"input": "other", "results": {}}']) {
      expect(await stage.apart('workflow', 'run', 'review', typed)).toMatchObject({ code: 0 })
      expect(JSON.stringify(requests.at(-2))).toContain(JSON.stringify(typed).slice(1, -1))
    }
  })

  it('B-COUNCIL-13: a question or a goal of invisible characters is empty', async () => {
    offline()
    user('ask.json', { kind: 'council', description: 'Asks.', seats: ['offline:a'], chair: 'offline:any' })
    user('hand.json', { kind: 'delegation' })
    expect((await stage.terret('workflow', 'run', 'ask', '\u200b')).err).toContain('EmptyQuestion')
    expect((await stage.terret('workflow', 'run', 'hand', '\u200b \u2060')).err).toContain('EmptyGoal')
  })
})
