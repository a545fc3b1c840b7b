// `terret cron`: the jobs of a folder.
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

it('B-CRON-26: terret cron adds, lists, runs, switches and removes the jobs of a folder', async () => {
  await scriptedBy(() => 'Reported.')
  const nightly = ['nightly', '0 3 * * *', '--prompt', 'Report.', '--zone', 'Europe/Oslo']
  const added = await stage.terret('cron', 'add', ...nightly, '--missed', 'all', '--overlap', 'queue')
  expect(added).toMatchObject({ code: 0 })
  expect(added.out).toMatch(/^Added: nightly, next at \d{4}-.* 03:00 Europe/)
  expect(added.err).toContain('serve')
  const listed = (await stage.terret('cron', 'list')).out
  expect(listed).toMatch(/^nightly +on +0 3 \* \* \* +Europe\/Oslo +default/)
  expect(listed.match(/^ {2}next {2}\d{4}-\d\d-\d\d 03:00$/gm)).toHaveLength(5)
  expect((await stage.terret('cron', 'run', 'nightly')).out).toMatch(/^Began cron\.nightly\.\d{8}T\d{6}Z/)
  expect(await stage.json('cron', 'list', '--json')).toMatchObject({
    name: 'nightly',
    missed: 'all',
    overlap: 'queue',
    last: { session: expect.stringContaining('cron.nightly.') as string },
  })
  expect((await stage.terret('cron', 'off', 'nightly')).out).toContain('Off: nightly')
  expect((await stage.terret('cron', 'list')).out).toContain(' off ')
  expect((await stage.terret('cron', 'on', 'nightly')).out).toContain('On: nightly, next at')
  expect((await stage.terret('cron', 'remove', 'nightly')).out).toContain('Removed nightly')
  expect((await stage.terret('cron', 'list')).err).toContain('No cron job is here')
})

it('B-CRON-26: a job that cannot be, and a wrong command, are refused with what to do', async () => {
  await scriptedBy(() => 'Reported.')
  for (const [words, code, text] of [
    [['add', 'x', '*/4 * * * *', '--prompt', 'x'], 2, 'at 00:00 and at 00:04'],
    [['add', 'x', '60 * * * *', '--prompt', 'x'], 2, 'cannot be read'],
    [['add', 'x', '0 3 * * *', '--prompt', 'x', '--zone', 'Mars'], 2, 'There is no time zone'],
    [['add', 'x', '0 3 * * *', '--prompt', 'x', '--agent', 'nobody'], 2, 'which is none of'],
    [['add', 'x', '0 3 * * *', '--prompt', 'x', '--missed', 'often'], 2, 'missed'],
    [['add', 'x', '0 3 * * *'], 2, '--prompt says'],
    [['run', 'nobody'], 2, 'There is no cron job "nobody"'],
    [['explode', 'x'], 2, 'Usage: terret cron'],
  ] as const) {
    const { code: exit, err } = await stage.terret('cron', ...words)
    expect(err).toContain(text)
    expect({ exit, err }).toMatchObject({ exit: code })
  }
})
