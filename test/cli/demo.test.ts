// `terret demo` without a terminal: real workers, real kills, and what is left of them.
import { copyFileSync, existsSync, linkSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { demoLog, lives, nodesIn, printed, watchProcesses } from './demo-watch.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine, type Stage } from './stage.ts'

const { stage } = stageOfEach()
const report = (id: string): string => join(stage.folder, 'terret-demo/reports', `${id}.md`)

const idIn = (text: string): string => printed(text, 'approve')[1] ?? ''

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.replaceAll(/\b(process|kill -9) \d+/g, '$1 N').replaceAll(/[0-9a-f]{8}/g, 'ID'))
}

it('B-START-1, B-START-2, B-START-3: in a pipe it ends at the approval after two kills, each node has one result, and all is in its own folder', async () => {
  const watch = watchProcesses(stage)
  const { code, out, err } = await stage.start(['demo'], { env: watch.env }).ended
  expect([code, out]).toEqual([0, ''])
  expect(linesOf(err)).toEqual([
    'Terret makes a report while its workers get killed. All of it in terret-demo/.',
    'Real: processes, kill -9, SQLite, file. Scripted: writer (no model).',
    '✓ plan      5 questions                           process N',
    '✗ search    kill -9 N while it ran: no result in the log',
    '✓ search    6 of 6 documents                      process N goes on',
    '✓ extract   24 passages from 5 documents          process N',
    '✗ draft     kill -9 N while it ran: no result in the log',
    '✓ draft     5847 bytes                            process N goes on',
    '✓ review    passed                                process N',
    '✓ propose   ID.md, a new file               process N',
    'finalize would write 5847 bytes to terret-demo/reports/ID.md, a new file:',
    '  │ # What does a sick-room need: light, clean air, tea, a good bed and variety?',
    'It waits, and no process runs. Go on today or next week, from any terminal:',
    '  See it:     terret pending ID --whole --data terret-demo/data',
    '  Allow it:   terret approve ID --resume --data terret-demo/data',
    '  Refuse it:  terret reject ID --resume --data terret-demo/data',
    '',
  ])
  const workers = watch.workers()
  expect(workers.map(({ killed }) => killed)).toEqual([true, true, false])
  const killed = [...err.matchAll(/kill -9 (\d+)/g)].map(([, pid]) => Number(pid))
  expect(killed).toEqual(workers.slice(0, 2).map(({ pid }) => pid))
  expect(workers.filter(({ pid }) => lives(pid))).toEqual([])
  const id = idIn(err)
  expect(existsSync(report(id))).toBe(false)
  expect(await stage.terret(...printed(err, 'approve'))).toMatchObject({ code: 0, out: `${report(id)}\n` })
  expect(readFileSync(report(id), 'utf8')).toMatch(/^# What does a sick-room need/)
  expect(nodesIn(await demoLog(stage, id))).toEqual([
    'plan 1 1',
    'search 2 1',
    'extract 1 1',
    'draft 2 1',
    'review 1 1',
    'propose 1 1',
    'finalize 1 1',
  ])
  expect([readdirSync(stage.folder), existsSync(stage.home)]).toEqual([['terret-demo'], false])
  expect(readdirSync(join(stage.folder, '..')).sort()).toEqual(['bin', 'preload.mjs', 'processes', 'work'])
})

it('B-START-6: where no process can be started it says so, does the work itself and kills nothing', async () => {
  const node = copyOfNode(stage)
  const watch = watchProcesses(
    stage,
    `import { unlinkSync } from 'node:fs'\nif (process.argv[2] === 'demo') unlinkSync(process.execPath)`,
  )
  const { code, err } = await stage.start(['demo'], { env: watch.env, node }).ended
  expect(code).toBe(0)
  expect(err).toMatch(
    /^! No worker process can be started \(.*ENOENT\)\. This process does the work; nothing is killed\.$/m,
  )
  expect([watch.workers(), err.match(/^✗/m)]).toEqual([[], null])
  expect(nodesIn(await demoLog(stage, idIn(err)))).toContain('search 1 1')
})

it('B-START-7: --data keeps sessions elsewhere, printed commands name it, and an empty one is refused', async () => {
  stage.write('work/docs/tea.txt', 'Tea\n\nTea is craved by the sick.\n')
  const own = join(dirname(stage.folder), 'own place')
  const start = ['start', 'Tea', '--documents', 'docs', '--model', 'offline:any', '--data', '../own place']
  const { code, err } = await stage.terret(...start)
  expect([code, existsSync(join(own, 'terret.db')), existsSync(stage.home)]).toEqual([0, true, false])
  expect(err).toMatch(/Allow it: {3}terret approve [0-9a-f]{8} --resume --data '.*\/own place'\n/)
  expect((await stage.terret('list', '--data', own)).out).toContain('report: Tea')
  expect((await stage.terret('list')).out).toBe('')
  expect(await stage.terret('approve', 'latest', '--resume', '--data', own)).toMatchObject({ code: 0 })
  expect(await stage.refused('list', '--data', ' ')).toMatchObject({
    code: 2,
    err: 'terret: --data is empty. Name a folder.\n',
  })
})

it('B-START-8: a wrong --hold, and --json for the demo, are refused in one line', async () => {
  await stage.terret('run', 'Hello.', '--model', 'offline:any')
  for (const hold of ['search', 'search=5', 'search=31s', '=5s', 'search=-5ms'])
    expect(await stage.refused('resume', 'latest', '--model', 'offline:any', '--hold', hold)).toMatchObject({
      code: 2,
      err: `terret: --hold takes a tool and a time of at most 30s, such as search=300ms, not "${hold}".\n`,
    })
  expect(lastLine((await stage.refused('demo', '--json')).err)).toMatch(
    /^terret: The demo is to be watched: leave out --json\./,
  )
})

/** A program file of its own, which can be taken away while it runs. */
function copyOfNode({ folder }: Stage): string {
  const copy = join(folder, '..', 'node')
  try {
    linkSync(process.execPath, copy)
  } catch {
    copyFileSync(process.execPath, copy)
  }
  return copy
}
