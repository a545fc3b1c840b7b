// A tree of sessions on the command line: `inspect --tree`, `tail --tree` and `handoffs`, on a store that another program wrote.
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import { type HarnessOptions, sqlite } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { ask, family, gate, play, report, type Roles, use } from '../runtime/children-stage.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

function familyHere(roles: Roles, options: Partial<HarnessOptions> = {}) {
  makeHome(findHome(stage.env))
  const store = sqlite(join(stage.home, 'terret.db'))
  onTestFinished(() => store.close())
  return family(play(roles), { store, ...options })
}

/** A lead with a child that is done, and one that asks below a child of its own. */
const ASKING: Roles = {
  root: [ask({ task: 'dig', agent: 'miner' }, { task: 'think', agent: 'critic' }), report],
  dig: [{ text: 'Found it.', cost: 20_000 }],
  think: [use('ask_user', { question: 'Which one?', choices: ['a', 'b'] }), 'I think so.'],
}
const SUBAGENTS = {
  miner: { description: 'digs' },
  critic: { description: 'thinks' },
} as const

async function asked(): Promise<string> {
  const { harness } = familyHere(ASKING, { subagents: SUBAGENTS, tools: [askUserTool()] })
  const session = await harness.open({ id: 'lead' })
  await session.run('Go.')
  return session.id
}

it('B-CLI-250: inspect --tree draws a session and its children with agent, state, cost, time and what each waits for', async () => {
  await asked()
  const { code, out } = await stage.terret('inspect', 'lead', '--tree')
  expect(code).toBe(0)
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toMatch(/^lead default +\w+ +\$0\.0200 +<?\d+s/)
  expect(lines[1]).toMatch(/^├─ ~\d+\.0 miner +completed +\$0\.0200 +<?\d+s$/)
  expect(lines[2]).toMatch(
    /^└─ ~\d+\.1 critic +requires_action +<?\d+s +waits for an answer \(call \d+\.0\): Which one\?$/,
  )
  const rows = (await stage.terret('inspect', 'lead', '--tree', '--json')).out.trimEnd().split('\n')
  expect(rows.map((row) => JSON.parse(row) as object)).toMatchObject([
    { session: 'lead', parent: null, depth: 0, treeCostUsd: 0.02, costUsd: 0 },
    { parent: 'lead', depth: 1, agent: 'miner', state: 'completed', works: false, waits: [] },
    { parent: 'lead', depth: 1, agent: 'critic', waits: [{ type: 'answer', tool: 'ask_user', says: 'Which one?' }] },
  ])
})

it('B-CLI-251: tail --tree shows the events of all children, also of those that are born later, and drives nothing', async () => {
  const { opened, open } = gate()
  const roles: Roles = {
    root: [ask('dig'), report],
    dig: [async () => (await opened, ask('deeper')), report],
    deeper: ['Gold.'],
  }
  const { harness, store } = familyHere(roles)
  const session = await harness.open({ id: 'lead' })
  const done = session.run('Go.')
  const tail = stage.start(['tail', 'lead', '--tree', '--settled', '--lines', '100'])
  await tail.says('session.created')
  open()
  await done
  const { code, out } = await tail.ended
  expect(code).toBe(0)
  const rows = out.trimEnd().split('\n')
  const seqs = (await store.list({ root: 'lead', limit: 9 })).reduce((sum, { seq }) => sum + seq, 0)
  expect(rows).toHaveLength(seqs)
  expect(rows.some((row) => /^~\d+\.0~\d+\.0 subagent +\d+ .* run\.settled +completed$/.test(row))).toBe(true)
  const some = await stage.terret('tail', 'lead', '--tree', '--settled', '--lines', '4', '--json')
  const last = some.out.trimEnd().split('\n')
  expect(last).toHaveLength(4)
  expect(JSON.parse(last.at(-1) ?? '')).toMatchObject({ session: 'lead', type: 'run.settled' })
})

it('B-CLI-252: handoffs is a record of who gave what to whom: tasks, questions, answers, messages and reports', async () => {
  const id = await asked()
  const shown = (await stage.json('pending', id)) as { readonly sessionId: string; readonly callId: string }
  expect((await stage.terret('answer', shown.sessionId, shown.callId, 'a')).code).toBe(0)
  const { code, out } = await stage.terret('handoffs', id)
  expect(code).toBe(0)
  const heads = out.split('\n').filter((line) => line.includes(' → '))
  expect(
    heads.map((line) =>
      line
        .slice(26)
        .replace(/~\d+/g, '~N')
        .replace(/ {2}sha256 .*/, ''),
    ),
  ).toEqual([
    'default → miner ~N.0  task',
    'default → critic ~N.1  task',
    'miner ~N.0 → default  report, completed',
    expect.stringMatching(/^critic ~N\.1 → default {2}question$/),
    expect.stringMatching(/ → critic ~N\.1 {2}answer$/),
  ])
})
