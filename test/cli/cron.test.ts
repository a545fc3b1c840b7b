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
    [['add', 'a b', '0 3 * * *', '--prompt', 'x'], 2, '"name" of a cron job must be'],
    [['add', 'x', '0 3 * * *', '--prompt', 'x'.repeat(10_001)], 2, 'at most 10000 fit'],
    [['run', 'nobody'], 6, 'There is no cron job "nobody"'],
    [['on', 'nobody'], 6, 'There is no cron job "nobody"'],
    [['remove', 'nobody'], 6, 'There is no cron job "nobody"'],
    [['explode', 'x'], 2, 'Usage: terret cron'],
  ] as const) {
    const { code: exit, err } = await stage.terret('cron', ...words)
    expect(err).toContain(text)
    expect({ exit, err }).toMatchObject({ exit: code })
  }
})

it('B-CRON-29: terret import leaves a job off, and terret cron on switches it on, also under another id', async () => {
  await scriptedBy(() => 'Reported.')
  await stage.terret('cron', 'add', 'nightly', '0 3 * * *', '--prompt', 'Report.', '--zone', 'UTC')
  const file = stage.write('nightly.json', (await stage.terret('export', 'cron.nightly', '--format', 'json')).out)
  await stage.terret('delete', 'cron.nightly', '--yes')
  const imported = await stage.terret('import', file)
  expect(imported.out).toContain('it wakes at')
  expect((await stage.terret('cron', 'list')).out).toMatch(/^nightly +off +0 3 \* \* \*/)
  expect((await stage.terret('cron', 'on', 'nightly')).out).toMatch(/^On: nightly, next at .* 03:00 UTC/)
  await stage.terret('import', file, '--id', 'cron.second')
  // What differs is the session, so the list names it.
  expect((await stage.terret('cron', 'list')).out).toContain('cron.second')
  expect((await stage.terret('cron', 'on', 'cron.second')).out).toMatch(/^On: nightly/)
})

it('B-CRON-31: terret fork does not fork a job', async () => {
  await scriptedBy(() => 'Reported.')
  await stage.terret('cron', 'add', 'nightly', '0 3 * * *', '--prompt', 'Report.')
  const { code, err } = await stage.terret('fork', 'cron.nightly')
  expect({ code, err }).toMatchObject({ code: 2 })
  expect(err).toContain('would begin its runs a second time')
})
