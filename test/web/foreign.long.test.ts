// A transcript of another program in the inspector, in a real browser.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { sqlite } from '../../src/index.ts'
import { importTranscript } from '../../src/replay.ts'
import { inspector } from './inspector.ts'

it('B-FOREIGN-4 B-FOREIGN-5: the page of an imported transcript shows its messages, calls and results, and where it came from', async () => {
  const text = readFileSync(new URL('../archive/foreign/fixtures/claude-code.jsonl', import.meta.url), 'utf8')
  const one = await inspector(['unused'])
  // Another process on the same file.
  const store = sqlite(join(one.folder, 'terret.db'))
  onTestFinished(() => store.close())
  await importTranscript(store, text, { format: 'claude-code', id: 'brought' })
  const { page, wrong } = await one.tab('/s/brought')
  for (const words of [
    'Why does the build fail?',
    'A name is misspelt: prcie.',
    'Thanks. Fix it.',
    'imported; it was called claude-code:',
  ])
    await page.getByText(words).first().waitFor()
  expect(await page.getByText('Delete everything instead.').count()).toBe(0)
  expect(wrong).toEqual([])
})
