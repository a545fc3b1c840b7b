// A data folder on a real disk that is full: what commands say, how they end, and that a run goes on when there is room.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { create, outcome } from '../contract/fixture.ts'
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../small-disk.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()
const FULL = 'The disk is full'

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
