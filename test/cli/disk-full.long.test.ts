// A data folder on a real disk that is full: what commands say, how they end, and that a run goes on when there is room.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { create, outcome } from '../contract/fixture.ts'
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../small-disk.ts'
import { stageOfEach } from './scripted.ts'
import { MAIN } from './stage.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()
const FULL = 'The disk is full'
const ADVICE = 'Make room: remove other files there until 1 MB is free'

describe.skipIf(noSmallDisk)('a full disk', { timeout: 120_000 }, () => {
  let disk: SmallDisk
  beforeEach(() => {
    disk = mountSmallDisk(stage.home)
  })

  /** The disk is full from the second request on, when the run has been written down and an answer that needs room comes. */
  async function fillsInTheRun(): Promise<void> {
    await scriptedBy(() => {
      disk.fill()
      return `${'Much to say. '.repeat(10_000)}The end.`
    })
  }

  it('B-FULL-1: list, inspect, pending and doctor work and say that it is full, and run is refused at once', async () => {
    await scriptedBy(() => 'Hello.')
    expect((await stage.apart('run', 'Say hello.')).code).toBe(0)
    disk.fill()
    for (const args of [['list'], ['inspect', 'latest'], ['pending']]) {
      const { code, err } = await stage.apart(...args)
      expect([args[0], code, err]).toEqual([args[0], 0, expect.stringContaining(FULL)])
    }
    const doctor = await stage.apart('doctor')
    expect(doctor.out).toMatch(/store\s+ok/)
    expect(doctor.out).toContain(FULL)
    const run = await stage.apart('run', 'Say hello.')
    expect([run.code, run.err]).toEqual([8, expect.stringContaining('(disk_full)')])
    disk.empty()
    expect((await stage.apart('run', 'Say hello.')).code).toBe(0)
    expect((await stage.apart('list')).err).not.toContain(FULL)
  })

  it('B-FULL-10: list says what to do, prune and delete are refused with the same, and work when that was done', async () => {
    await scriptedBy(() => 'Hello.')
    for (const task of ['One.', 'Two.', 'Three.']) expect((await stage.apart('run', task)).code).toBe(0)
    disk.fill()
    expect((await stage.apart('list')).err).toContain(ADVICE)
    for (const args of [
      ['prune', '--older', '0', '--yes'],
      ['delete', 'latest', '--yes'],
    ]) {
      const { code, err } = await stage.apart(...args)
      expect([args[0], code, err]).toEqual([args[0], 8, expect.stringContaining(ADVICE)])
      expect(err).toContain('(disk_full)')
    }
    disk.fill(1024 * 1024)
    expect((await stage.apart('delete', 'latest', '--yes')).code).toBe(0)
    const pruned = await stage.apart('prune', '--older', '0', '--yes')
    expect([pruned.code, pruned.out]).toEqual([0, expect.stringContaining('Removed 2 sessions')])
  })

  it('B-FULL-11: prune removes what the free room allows, which makes room for larger ones', async () => {
    const words = { small: 'Hello. ', large: 'Much to say. '.repeat(30_000) }
    await scriptedBy(({ body }) => (JSON.stringify(body).includes('Large') ? words.large : words.small.repeat(9_000)))
    for (const task of ['Large.', 'Small 1.', 'Small 2.']) expect((await stage.apart('run', task)).code).toBe(0)
    disk.fill(400 * 1024)
    const pruned = await stage.apart('prune', '--older', '0', '--yes')
    expect([pruned.code, pruned.out]).toEqual([0, expect.stringContaining('Removed 3 sessions')])
  })

  it('B-FULL-12: store check and store backup to another disk work, and a backup to the full disk says that it is full', async () => {
    await scriptedBy(() => 'Hello.')
    expect((await stage.apart('run', 'Say hello.')).code).toBe(0)
    disk.fill()
    const checked = await stage.apart('store', 'check')
    expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('Nothing is wrong.')])
    const copy = join(stage.folder, 'copy.db')
    const backup = await stage.apart('store', 'backup', copy)
    expect([backup.code, backup.out]).toEqual([0, expect.stringContaining('1 session')])
    const store = sqlite(copy)
    expect((await store.list({ limit: 10 })).length).toBe(1)
    await store.close()
    const beside = await stage.apart('store', 'backup', join(stage.home, 'copy.db'))
    expect([beside.code, beside.err]).toEqual([8, expect.stringContaining('(disk_full)')])
    expect(existsSync(join(stage.home, 'copy.db'))).toBe(false)
    const moved = await stage.apart('store', 'move', '--to', join(stage.folder, 'moved.db'))
    expect([moved.code, moved.err]).toEqual([8, expect.stringContaining('(disk_full)')])
  })

  it('B-FULL-13: serve says that the disk is full, and starts when there is room', async () => {
    await scriptedBy(() => 'Hello.')
    expect((await stage.apart('run', 'Say hello.')).code).toBe(0)
    disk.fill()
    const refused = await stage.apart('serve', '--port', '0')
    expect([refused.code, refused.err]).toEqual([8, expect.stringContaining(`${FULL}. `)])
    expect(refused.err).toContain('(disk_full)')
    disk.empty()
    const served = stage.start(['serve', '--port', '0'])
    await served.says('http://')
    served.child.kill('SIGTERM')
    await served.ended
  })

  it('B-FULL-15: init on a full disk says so and leaves no file, and works when there is room', async () => {
    const small = mountSmallDisk(dirname(stage.config))
    small.fill()
    const refused = await stage.apart('init', '--model', 'offline:any')
    expect([refused.code, refused.err]).toEqual([8, expect.stringContaining(FULL)])
    expect(refused.err).toContain('(disk_full)')
    expect(existsSync(stage.config)).toBe(false)
    small.empty()
    expect((await stage.apart('init', '--model', 'offline:any')).code).toBe(0)
    expect((await stage.apart('run', 'Hello.')).code).toBe(0)
  })

  it('B-FULL-16: the commands that a full disk is answered with name the data folder, and the program as it was started', async () => {
    const data = join(stage.home, 'own')
    await stage.apart('run', '--model', 'offline:any', 'Hello.', '--data', data)
    disk.fill()
    const advice = `prune --older DAYS --data ${data}\` then removes old sessions.`
    const { err } = await stage.apart('list', '--data', data)
    expect(err).toContain(`\`terret ${advice}`)
    expect(err).toContain(`\`terret store backup FILE --data ${data}\``)
    expect((await stage.apart('delete', 'latest', '--yes', '--data', data)).err).toContain(`\`terret ${advice}`)
    const npx = await stage.start(['list', '--data', data], { env: { npm_command: 'exec' } }).ended
    expect(npx.err).toContain(`\`npx terret ${advice}`)
    const file = await stage.start(['doctor', '--data', data], { main: MAIN }).ended
    expect(file.out).toContain(`\`node ${MAIN} ${advice}`)
  })

  it('B-FULL-14: a worker says that the disk is full, and ends with 8 if it had to leave work for it', async () => {
    await scriptedBy(() => 'Hello.')
    expect((await stage.apart('run', 'Say hello.')).code).toBe(0)
    disk.fill()
    const idle = await stage.apart('worker', '--idle')
    expect([idle.code, idle.err]).toEqual([0, expect.stringContaining(FULL)])
    disk.empty()
    const killed = await fillsInTheRun().then(() => stage.start(['run', 'Tell me much.']))
    await killed.says(FULL)
    killed.child.kill('SIGKILL')
    await killed.ended
    const left = await stage.apart('worker', '--idle')
    expect([left.code, left.err]).toEqual([8, expect.stringContaining(FULL)])
  })

  it('B-FULL-2: a store that was opened on a full disk is written again when there is room, without being opened anew', async () => {
    const file = join(stage.home, 'terret.db')
    const first = sqlite(file)
    await create(first, 's')
    await first.close()
    disk.fill()
    const store = sqlite(file)
    expect(await store.card('s')).toMatchObject({ seq: 1 })
    expect(await outcome(create(store, 't'))).toBe('disk_full')
    disk.empty()
    expect(await outcome(create(store, 't'))).toBe('ok')
    // Nobody is kept out any more.
    const other = sqlite(file)
    expect(await other.card('t')).toMatchObject({ seq: 1 })
    await other.close()
    await store.close()
  })

  it('B-FULL-3: a run says that it waits for room, and goes on when there is some', async () => {
    await fillsInTheRun()
    const run = stage.start(['run', 'Tell me much.'])
    await run.says(`${FULL}. The run waits for room`)
    disk.empty()
    const { code, out } = await run.ended
    expect([code, out.trimEnd().slice(-8)]).toEqual([0, 'The end.'])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'B-FULL-4: %s ends a run that waits for room, and it can be resumed',
    async (signal) => {
      await fillsInTheRun()
      const run = stage.start(['run', 'Tell me much.'])
      await run.says(FULL)
      run.child.kill(signal)
      expect((await run.ended).code).not.toBe(0)
      expect(existsSync(join(stage.home, 'terret.db'))).toBe(true)
      disk.empty()
      await scriptedBy(() => 'Resumed.')
      const resumed = await stage.apart('resume', 'latest')
      expect([resumed.code, resumed.out]).toEqual([0, expect.stringContaining('Resumed.')])
    },
  )

  it.skipIf(noTmux)('B-FULL-5: the chat says that it waits for room, and Ctrl-C leaves it', async () => {
    await fillsInTheRun()
    const screen = openScreen(stage)
    screen.enter('clear; terret interactive --trust')
    await screen.until(PROMPT)
    screen.enter('Tell me much.')
    await screen.until(FULL)
    screen.keys('C-c')
    await screen.until(/\$$/)
    await screen.close()
  })
})
