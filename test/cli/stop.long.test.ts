// Stopping and going on: Ctrl-C once and twice, a kill, a worker in the place of a person.
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const list = { calls: [{ tool: 'list', args: {} }] }
/** Begins to answer, and never ends. */
const stalled = { text: 'I think that', chaos: { stallAfterBytes: 0 } }

async function asked(times: number): Promise<void> {
  while ((provider.chaos?.requests.length ?? 0) < times) await new Promise((resolve) => void setTimeout(resolve, 10))
}

describe('Ctrl-C', () => {
  it('B-CLI-50: stops the run, waits until it has settled, says how to go on, and ends with exit code 5', async () => {
    await scriptedBy([list, stalled, 'On it again.'])
    const run = stage.start(['run', 'Think hard.'])
    await asked(2)
    run.child.kill('SIGINT')
    const { code, err } = await run.ended
    expect(code).toBe(5)
    expect(err).toMatch(/Interrupted\. Nothing is lost\. Go on with: terret resume [0-9a-f]{8}/)
    expect((await stage.terret('list')).out).toContain('interrupted')
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 0, out: 'On it again.\n' })
  })

  it('B-CLI-51: a second time leaves at once, also when nothing can be written, and what was written is whole', async () => {
    await scriptedBy([list, stalled])
    const run = stage.start(['run', 'Think hard.'])
    await asked(2)
    const database = new DatabaseSync(join(stage.home, 'terret.db'))
    database.exec('BEGIN IMMEDIATE')
    run.child.kill('SIGINT')
    await run.says('once more leaves at once')
    run.child.kill('SIGINT')
    const { code, err } = await run.ended
    database.exec('ROLLBACK')
    database.close()
    expect([code, err]).toEqual([5, expect.stringMatching(/Left at once\. Go on with: terret resume [0-9a-f]{8}/)])
    expect(await stage.json('replay', 'latest')).toMatchObject({ same: true })
  })

  it('B-CLI-52: told to end (SIGTERM), a run gives its session back, and resume goes on with the same run', async () => {
    await scriptedBy([list, stalled, 'Went on.'])
    const run = stage.start(['run', 'Think hard.'])
    await asked(2)
    run.child.kill('SIGTERM')
    expect((await run.ended).code).toBe(10)
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 0, out: 'Went on.\n' })
    expect(await stage.json('inspect', 'latest')).toMatchObject({ summary: { runs: 1 } })
  })
})

describe('a run that was killed', () => {
  it('B-CLI-53: is finished by another process, once, after a third one approved what it wants', async () => {
    const write = { calls: [{ tool: 'write', args: { path: 'log.txt', content: 'x', append: true } }] }
    await scriptedBy([list, stalled, write, 'Done.'])
    const run = stage.start(['run', 'Work.'])
    await asked(2)
    run.child.kill('SIGKILL')
    await run.ended
    expect((await stage.apart('resume', 'latest')).code).toBe(3)
    expect((await stage.apart('approve', 'latest', '--by', 'ana')).code).toBe(0)
    expect(await stage.apart('resume', 'latest')).toMatchObject({ code: 0, out: 'Done.\n' })
    expect(readFileSync(join(stage.folder, 'log.txt'), 'utf8')).toBe('x')
    const { out } = await stage.terret('history', 'latest', '--event', 'run.started', '--json')
    expect(out.trimEnd().split('\n')).toHaveLength(1)
  }, 60_000)
})

describe('a worker', () => {
  it('B-CLI-54: does what is due in every folder with the tools of that folder, and ends when told', async () => {
    const write = (n: number) => ({ calls: [{ tool: 'write', args: { path: 'out.txt', content: String(n) } }] })
    await scriptedBy([write(1), write(2), 'Done.', 'Done.'])
    const other = join(stage.folder, '..', 'other')
    stage.write('other/a.txt', '')
    await stage.terret('run', 'Here.')
    await stage.terretIn({ cwd: other }, 'run', 'There.')
    const worker = stage.start(['worker'], { cwd: stage.home })
    for (const cwd of [stage.folder, other]) await stage.terretIn({ cwd }, 'approve', 'latest')
    const settled = [stage.folder, other].map((cwd) => stage.start(['tail', 'latest', '--settled'], { cwd }).ended)
    expect((await Promise.all(settled)).map(({ out }) => out.includes('run.settled'))).toEqual([true, true])
    worker.child.kill('SIGTERM')
    expect((await worker.ended).code).toBe(0)
    expect([stage.folder, other].map((folder) => readFileSync(join(folder, 'out.txt'), 'utf8'))).toEqual(['1', '2'])
  })

  it('B-CLI-55: with --idle ends when nothing is due, and one session it cannot drive does not stop the others', async () => {
    const ask = { calls: [{ tool: 'ask_user', args: { question: 'Well?' } }] }
    await scriptedBy([ask, ask, 'Done.'])
    stage.write('other/a.txt', '')
    await stage.terretIn({ cwd: join(stage.folder, '..', 'other') }, 'run', 'There.')
    await stage.terretIn({ cwd: join(stage.folder, '..', 'other') }, 'answer', 'latest', 'Yes.')
    await stage.terret('run', 'Here.')
    await stage.terret('answer', 'latest', 'Yes.')
    stage.write('config/terret/config.json', readFileSync(join(stage.config, 'config.json'), 'utf8'))
    renameSync(join(stage.folder, '..', 'other'), join(stage.folder, '..', 'gone'))
    const { code, err } = await stage.terret('worker', '--idle')
    expect(code).toBe(0)
    expect(err).toContain('There is no folder')
    expect((await stage.terret('list')).out).toContain('completed')
  })

  it('B-CLI-56: interrupt stops a session that another process drives; --pause holds it until resume', async () => {
    // A pause waits for what is open: this one is answered after a while.
    const slow = { ...list, chaos: { stallAfterBytes: 0, stallMs: 1_500 } }
    await scriptedBy([list, stalled, slow, 'Went on.'])
    const run = stage.start(['run', 'Think.'])
    await asked(2)
    expect((await stage.terret('interrupt', 'latest')).code).toBe(0)
    expect((await run.ended).code).toBe(5)
    const again = stage.start(['run', '-c', 'Think again.'])
    await asked(3)
    expect((await stage.terret('interrupt', 'latest', '--pause')).code).toBe(0)
    expect((await again.ended).code).toBe(3)
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 0, out: 'Went on.\n' })
  })
})
