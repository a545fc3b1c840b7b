// `terret list` where there is nothing to list, or no way to, and where there is more than it shows.
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { recordFolder } from '../../src/cli/state/session-folders.ts'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import { defineTool, Harness, scripted, sqlite } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { makeOldSession } from '../old-session.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const ONE_LINE = /^terret: [^\n]+\n$/

it('B-CLI-153: a home that cannot be used has no empty list: it is said in one line, with exit code 8', async () => {
  const file = stage.write('a-file', '')
  const inFile = join(file, 'below')
  const odd = stage.write('odd/folders.jsonl/x', '')
  mkdirSync(join(odd, '..', '..', 'terret.db'))
  const broken = stage.write('broken/terret.db', 'This is no database, and long enough to be read as one. '.repeat(99))
  for (const home of [file, inFile, join(odd, '..', '..'), join(broken, '..')]) {
    for (const args of [['list'], ['list', '--all'], ['list', '--json'], ['pending']]) {
      const { code, out, err } = await stage.terretIn({ env: { TERRET_HOME: home } }, ...args)
      expect([home, args, code, out]).toEqual([home, args, 8, ''])
      expect(err).toMatch(ONE_LINE)
    }
  }
}, 60_000)

it('B-CLI-154: --all shows the newest of all folders, says if there are more, and finds folders by odd ids too', async () => {
  for (const task of ['One.', 'Two.', 'Three.']) await stage.terret('run', '--model', 'offline:any', task)
  const some = await stage.terret('list', '--all', '--limit', '2')
  expect(
    some.out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/).at(-1)),
  ).toEqual(['Three.', 'Two.'])
  expect(some.err).toBe('… and more: --limit N shows them.\n')
  expect((await stage.terret('list', '--all', '--limit', '3')).err).toBe('')
  const store = sqlite(join(stage.home, 'terret.db'))
  await makeOldSession(store, 'an "odd" id', { folder: stage.folder, text: 'Four.' })
  await store.close()
  const { out } = await stage.terret('list', '--all', '--json')
  const listed = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly session: string; readonly folder: string })
  expect(listed).toHaveLength(4)
  for (const { folder } of listed) expect(folder).toBe(stage.folder)
  expect(listed.map(({ session }) => session)).toContain('an "odd" id')
})

type Listed = { readonly session: string; readonly folder: string | null }
const listed = (out: string): readonly Listed[] =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Listed)
const offline = ['--model', 'offline:any'] as const

it('B-CLI-193: where a session works is in its log, and nothing is written beside the database for it', async () => {
  const { session } = (await stage.json('run', ...offline, 'One.')) as Listed
  const forked = (await stage.json('fork', session)) as Listed
  const [created] = listed((await stage.terret('history', session, '--json')).out)
  expect(created).toMatchObject({ type: 'session.created', folder: stage.folder })
  expect(existsSync(join(stage.home, 'folders.jsonl'))).toBe(false)
  const all = listed((await stage.terret('list', '--json')).out)
  expect(all.map((each) => [each.session, each.folder])).toEqual([
    [forked.session, stage.folder],
    [session, stage.folder],
  ])
  expect((await stage.terret('run', ...offline, '--continue', '--session', session, 'Two.')).code).toBe(0)
  // The beginning counts, not the newest event.
  expect(await stage.json('inspect', 'latest')).toMatchObject({ session: forked.session })
})

it('B-CLI-194: a session from before, whose folder is only in folders.jsonl, is found, resumed and removed as the others', async () => {
  makeHome(findHome(stage.env))
  const store = sqlite(join(stage.home, 'terret.db'))
  const harness = new Harness({ model: scripted(['One.', 'Two.']), store, program: 'terret' })
  for (const id of ['old-here', 'old-there']) await (await harness.open({ id })).run('Old.')
  await harness.close()
  await store.close()
  const other = realpathSync(join(stage.write('other/a.txt', ''), '..'))
  recordFolder(findHome(stage.env), { session: 'old-here', folder: stage.folder })
  recordFolder(findHome(stage.env), { session: 'old-there', folder: other })
  const before = readFileSync(join(stage.home, 'folders.jsonl'), 'utf8')
  const { session } = (await stage.json('run', ...offline, 'New.')) as Listed
  const ids = async (...args: readonly string[]) =>
    listed((await stage.terret('list', '--json', ...args)).out).map((each) => [each.session, each.folder])
  const [old, made, there] = [
    ['old-here', stage.folder],
    [session, stage.folder],
    ['old-there', other],
  ]
  expect(await ids()).toEqual([made, old])
  expect(await ids('--limit', '1')).toEqual([made])
  expect(await ids('--status', 'terminated')).toEqual([])
  expect(await ids('--all')).toEqual([made, there, old])
  expect((await stage.terret('run', ...offline, '-c', '--session', 'old-here', 'More.')).code).toBe(0)
  expect(await ids()).toEqual([made, old])
  const forked = (await stage.json('fork', 'old-there')) as Listed
  expect(await stage.json('inspect', forked.session)).toMatchObject({ folder: other })
  expect(readFileSync(join(stage.home, 'folders.jsonl'), 'utf8')).toBe(before)
  expect((await stage.terret('delete', 'old-here', '--yes')).code).toBe(0)
  expect(await ids()).toEqual([made])
  expect((await stage.terret('prune', '--older', '0', '--yes')).code).toBe(0)
  expect(await ids('--all')).toHaveLength(2)
})

it('B-CLI-195: a folder whose path holds a secret is in no log; its sessions are listed and go on all the same', async () => {
  const env = { DOOR_PASSWORD: 'tulips-and-roses' }
  const cwd = join(stage.write('tulips-and-roses/a.txt', ''), '..')
  const run = (...args: readonly string[]) => stage.terretIn({ cwd, env }, ...args)
  expect((await run('run', ...offline, 'One.')).code).toBe(0)
  expect((await run('history', 'latest', '--json')).out).not.toContain('tulips')
  expect((await run('run', ...offline, '-c', 'Two.')).code).toBe(0)
  expect((await run('export', 'latest', '--format', 'json', '--out', join(stage.folder, 's.json'))).code).toBe(0)
  expect((await run('import', join(stage.folder, 's.json'), '--id', 'copy')).code).toBe(0)
  expect((await run('history', 'copy', '--json')).out).not.toContain('tulips')
  const found = listed((await run('list', '--json')).out)
  expect(found.map(({ folder }) => folder)).toEqual([realpathSync(cwd), realpathSync(cwd)])
})

it('B-CLI-196: an export says nothing of the folder, and an imported session works where it was imported', async () => {
  const { session } = (await stage.json('run', ...offline, 'One.')) as Listed
  const out = join(stage.folder, '..', 'out')
  expect((await stage.terret('export', session, '--format', 'folder', '--out', out)).code).toBe(0)
  for (const file of readdirSync(out).filter((name) => /json/.test(name)))
    expect([file, readFileSync(join(out, file), 'utf8')]).not.toEqual([file, expect.stringContaining('"folder"')])
  for (const format of ['json', 'jsonl', 'md'])
    expect((await stage.terret('export', session, '--format', format)).out).not.toContain('"folder"')
  const other = realpathSync(join(stage.write('other/a.txt', ''), '..'))
  const from = join(out, 'session.json')
  expect((await stage.terretIn({ cwd: other }, 'import', from, '--id', 'copy')).code).toBe(0)
  expect(await stage.json('inspect', 'copy')).toMatchObject({ folder: other })
  expect(existsSync(join(stage.home, 'folders.jsonl'))).toBe(false)
})

it('B-CARD-6: a session whose subagent waits for a person is listed as running, and a line says where the question is', async () => {
  makeHome(findHome(stage.env))
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: {},
    effect: 'once',
    approval: 'ask',
    execute: () => 'paid',
  })
  const harness = new Harness({
    model: scripted([{ calls: [{ tool: 'subagent', args: { agent: 'payer', task: 'Pay.' } }] }]),
    subagents: { payer: { description: 'pays', model: scripted([{ calls: [{ tool: 'pay' }] }]), tools: [pay] } },
    store: sqlite(join(stage.home, 'terret.db')),
  })
  await (await harness.open({ id: 'top', folder: stage.folder })).run('Go.')
  await harness.close()
  const { out, err } = await stage.terret('list')
  expect(out).toMatch(/^top +running .*Go\.\n$/)
  expect(err).toBe('A subagent of top waits for you: `terret pending top` shows it.\n')
  const { out: waits } = await stage.terret('pending', 'top')
  expect(waits).toContain('pay')
  expect((await stage.terret('list', '--json')).err).toBe('')
})

it('B-CLI-301: a session that has ended while its subagent waits for a person is said in a line, and in JSON', async () => {
  makeHome(findHome(stage.env))
  const harness = new Harness({
    model: scripted([
      { calls: [{ tool: 'spawn_subagent', args: { agent_id: 'asker', prompt: 'Ask.' } }] },
      { text: 'I started it.' },
      { text: 'It asks you.' },
    ]),
    subagents: {
      asker: {
        description: 'asks',
        model: scripted([{ calls: [{ tool: 'ask_user', args: { question: 'Which one?' } }] }]),
        tools: [askUserTool()],
      },
    },
    detached: true,
    store: sqlite(join(stage.home, 'terret.db')),
  })
  await (await harness.open({ id: 'top', folder: stage.folder })).run('Go.')
  await until(async () => expect(await harness.pending()).toHaveLength(1))
  // It also tells its parent.
  await until(async () =>
    expect((await harness.list({ order: 'id', limit: 500, root: 'top' })).cards[0]).toMatchObject({
      status: 'idle',
      due: null,
    }),
  )
  await harness.close()
  const { out, err } = await stage.terret('list')
  expect(out).toMatch(/^top +completed .*Go\.\n$/)
  expect(err).toBe('A subagent of top waits for you: `terret pending top` shows it.\n')
  expect(await stage.json('list')).toMatchObject({ session: 'top', waitsBelow: true })
})

it('B-CARD-16: titles are shown, and --search shows only sessions that have its words', async () => {
  for (const task of ['Fix the flaky test.', 'Publish\nthe news.'])
    await stage.terret('run', '--model', 'offline:any', task)
  const lines = async (...args: string[]) => (await stage.terret('list', ...args)).out.split('\n').filter(Boolean)
  const [first = '', second = ''] = await lines()
  expect([first, second].map((line) => line.split(/\s{2,}/).at(-1))).toEqual([
    'Publish the news.',
    'Fix the flaky test.',
  ])
  expect(await lines('--search', 'FLAKY fix')).toEqual([second])
  expect(await lines('--all', '-s', 'news')).toHaveLength(1)
  const json = await stage.terret('list', '--search', 'news', '--json')
  expect(JSON.parse(json.out)).toMatchObject({ title: 'Publish the news.', tokens: expect.any(Number) as number })
  const none = await stage.terret('list', '--search', 'nothing like it')
  expect([none.code, none.out, none.err]).toEqual([
    0,
    '',
    'No session here has "nothing like it" in its title, agent, id or labels.\n',
  ])
  expect((await stage.terret('list', '--search', 'x'.repeat(300))).code).not.toBe(0)
})
