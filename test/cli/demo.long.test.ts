// `terret demo` that is stopped, begun again, and whose workers die or fail by themselves.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { demoLog, lives, nodesIn, printed, watchProcesses } from './demo-watch.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

it('B-START-4, B-START-5: stopped by a signal it leaves no process, goes on with the printed command, and a second one begins anew', async () => {
  const watch = watchProcesses(stage)
  const first = stage.start(['demo'], { env: watch.env })
  await first.says('✗ search')
  first.child.kill('SIGTERM')
  const { code, err } = await first.ended
  expect([code, err]).toEqual([5, expect.stringContaining('Stopped; no process is left, and nothing is lost.')])
  expect(watch.workers().filter(({ pid }) => lives(pid))).toEqual([])
  const go = printed(err, 'resume')
  const before = await demoLog(stage, go[1] ?? '')
  const second = stage.start(['demo'], { env: watch.env })
  await second.says('✗ search')
  second.child.kill('SIGINT')
  expect(printed((await second.ended).err, 'resume')[1]).not.toBe(go[1])
  expect(await demoLog(stage, go[1] ?? '')).toEqual(before)
  expect((await stage.terret(...go)).code).toBe(3)
  expect(nodesIn(await demoLog(stage, go[1] ?? '')).slice(0, 2)).toEqual(['plan 1 1', 'search 2 1'])
})

it('B-START-13: a worker that somebody else kills is followed by another, and one that fails ends the demo with its reason', async () => {
  const config = join(stage.config, 'config.json')
  const killing = `import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
if (process.argv[2] === 'resume' && !existsSync(${JSON.stringify(config)})) {
  mkdirSync(${JSON.stringify(stage.config)}, { recursive: true })
  writeFileSync(${JSON.stringify(config)}, '{ "model": 7 }')
  process.kill(process.pid, 'SIGKILL')
}`
  const { code, err } = await stage.start(['demo'], { env: watchProcesses(stage, killing).env }).ended
  expect(code).toBe(7)
  expect(err).toMatch(/^✗ +kill -9 \d+ between two nodes \(SIGKILL, not from here\)$/m)
  expect(err).toMatch(/^terret: Worker process \d+ failed: .*config\.json.* Then: terret resume [0-9a-f]{8} --data/m)
})

it('B-NAMES-6: `list` in the folder where the demo was run shows it, and by npx its commands begin with npx', async () => {
  const demo = stage.start(['demo'], { env: { npm_command: 'exec' } })
  await demo.says('✗ search')
  demo.child.kill('SIGTERM')
  const { err } = await demo.ended
  expect(err).toMatch(/npx terret resume [0-9a-f]{8} --data terret-demo\/data/)
  const plain = await stage.terret('list')
  expect(plain.err).toContain('`terret list --data terret-demo/data` shows them')
  for (const cwd of [stage.folder, join(stage.folder, 'terret-demo'), join(stage.folder, 'terret-demo', 'reports')]) {
    const { out } = await stage.terretIn({ cwd }, 'list', '--data', join(stage.folder, 'terret-demo', 'data'))
    expect([cwd, out]).toEqual([cwd, expect.stringContaining('report: What does a sick-room need')])
  }
  expect((await stage.terret('inspect', 'latest', '--data', 'terret-demo/data')).code).toBe(0)
})
