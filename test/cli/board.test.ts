// `terret board` and `terret tasks`: what a session has to do, and what was started.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { boardPlanner, goalTool, openBoard, todoTool } from '../../src/boards/index.ts'
import { Harness, scripted } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

it('B-BOARD-15: terret board shows the board and the goal of a session, or a shared board, and terret tasks what was started', async () => {
  await scriptedBy(['Done.'])
  expect(await stage.terret('run', 'Go.')).toMatchObject({ code: 0 })
  const store = sqlite(join(stage.home, 'terret.db'))
  const cards = [{ text: 'read \u001b[31mit', status: 'in_progress' }, { text: 'write it' }]
  const model = scripted([
    {
      calls: [
        { tool: 'todo', args: { action: 'add', cards } },
        { tool: 'goal', args: { action: 'set', text: 'All.' } },
      ],
    },
    'Begun.',
  ])
  const tools = [todoTool({ store }), goalTool({ store })]
  const harness = new Harness({ model, store, tools, graphs: [boardPlanner()] })
  await (await harness.open({ id: 'mine' })).run('Go.')
  await openBoard(harness, { id: 'ours', members: [{ name: 'ana', role: 'lead' }], cards: [{ text: 'one' }] })
  await harness.close()
  await store.close()
  const { out } = await stage.terret('board', 'mine')
  expect(out.trim().split('\n')).toEqual([
    'Goal (active): All.',
    'Board, version 1:',
    expect.stringMatching(/^- \[~\] t1: read .*it$/),
    '- [ ] t2: write it',
  ])
  expect(out).not.toContain('\u001b')
  expect((await stage.terret('board', 'ours')).out).toContain('- [ ] t1: one')
  expect(await stage.json('board', 'mine', '--json')).toMatchObject({
    session: 'mine',
    board: { version: 1 },
    goal: { text: 'All.' },
  })
  expect((await stage.terret('board', 'latest')).out).toContain('(no cards)')
  const all = (await stage.terret('tasks', '--all')).out
  expect(all).toMatch(/^mine +Completed +agent +default/m)
  expect(all).toMatch(/^ours +Completed +graph +board/m)
  expect(await stage.terret('board', 'nobody')).toMatchObject({ code: 6 })
})
