// Each command as a process of its own: a real start and a real end. Most other tests run their lines in a process that stays (lines.ts).
import { expect, it } from 'vitest'
import { TABLE } from '../../src/cli/table.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()
const call = (tool: string, args: Readonly<Record<string, string>>) => ({ calls: [{ tool, args }] })

// Lines that need no session, and their exit codes.
const WITHOUT_SESSION = {
  'create shop': 0,
  trust: 0,
  policy: 0,
  tools: 0,
  'script list': 0,
  agents: 0,
  models: 0,
  model: 0,
  'mcp list': 0,
  workflow: 0,
  'workflow list': 0,
  'workflow runs': 0,
  'workflow run nothing': 6,
  worktree: 2,
  store: 2,
  'store check': 0,
  'worktree merge': 2,
  memory: 6,
  demo: 0,
  acp: 0,
  interactive: 2,
}

const SUITE = 'name: tea\nmodel: offline:any\nscorers: [settled]\ncases: [{ id: green, input: Tea. }]\n'
const CRASH_TEST = `
import { scripted } from '${new URL('../../dist/index.js', import.meta.url).href}'
export default { world: () => ({ look: () => [] }), options: () => ({ model: scripted(() => 'Tea.') }), run: 'Tea.' }
`

it('B-CLI-197: every command ends by itself, with its exit code', async () => {
  const named = new Set<string>()
  const each = async (lines: Readonly<Record<string, number>>): Promise<void> => {
    for (const [line, code] of Object.entries(lines)) {
      const [command = '', ...args] = line.split(' ')
      named.add(command)
      expect({ line, ...(await stage.apart(command, ...args)) }).toMatchObject({ line, code })
    }
  }
  await each({ help: 0, version: 0, 'completion bash': 0, 'init --model offline:any': 0 })
  await each(WITHOUT_SESSION)
  await scriptedBy([
    call('write', { path: 'a', content: 'a' }),
    'Written.',
    call('ask_user', { question: 'Which?' }),
    'So be it.',
    call('write', { path: 'b', content: 'b' }),
  ])
  await each({
    'run Write.': 3,
    list: 0,
    pending: 0,
    'inspect latest': 0,
    'inspect latest --context': 0,
    'inspect latest --tree': 0,
    'history latest': 0,
    'approve latest': 0,
  })
  await each({ 'handoffs latest': 0, 'board latest': 0, tasks: 0, 'tasks latest': 0, letters: 0, 'cron list': 0 })
  await each({ 'triggers list': 0 })
  await each({
    'resume latest': 0,
    'undo latest': 0,
    'compact latest': 0,
    'rename latest Tea': 0,
    'wake latest': 0,
    'pin latest': 0,
    'replay latest': 0,
    'what-if latest --at 3': 0,
    'blueprint latest': 0,
    'doctor --session latest': 0,
  })
  await each({ 'export latest --format json --out x': 0, 'delete latest --yes': 0, 'import x --id copy': 0 })
  await each({
    'run Ask.': 3,
    'answer latest This.': 0,
    'worker --idle': 0,
    'tail latest --settled': 0,
    'tail latest --settled --tree': 0,
    'fork latest': 0,
  })
  await each({ 'run Write.': 3, 'reject latest': 0, 'interrupt latest': 0, 'prune --older 0 --yes': 0 })
  stage.write('work/docs/tea.txt', 'Tea\n\nTea is craved by the sick.\n')
  await each({ 'start Tea --documents docs --model offline:any': 0, 'approve latest --resume': 0 })
  await each({ 'token list': 0 })
  stage.write('work/tea.yaml', SUITE)
  stage.write('work/crash.mjs', CRASH_TEST)
  await each({ 'eval run tea.yaml': 0, 'crash-test crash.mjs': 0 })
  named.add('serve')
  expect(Object.keys(TABLE).filter((name) => !named.has(name))).toEqual([])
  // More than sixty processes, one after another.
}, 240_000)

it('B-CLI-197: serve ends when it is told to, with its exit code', async () => {
  const server = stage.start(['serve', '--port', '0'])
  await server.says('http://')
  server.child.kill('SIGTERM')
  expect(await server.ended).toMatchObject({ code: 0 })
})
