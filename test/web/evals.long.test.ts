// The evals page of a real server, in a real browser.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { defineSuite, judgedBy, runSuite } from '../../src/evals/index.ts'
import { scripted } from '../../src/index.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector } from './inspector.ts'
import { SHOTS } from './stage.ts'

const HOSTILE = '<img src=x onerror="document.title=1"> is not right'

const suiteOf = (answer: string) => {
  const isRight = answer === 'right'
  const opinion = { criterion: 'kind', reason: isRight ? 'It is.' : 'It is rude.', met: isRight }
  return defineSuite({
    name: 'refunds-of-last-year',
    agent: { model: scripted(() => answer, isRight ? 'right' : 'wrong') },
    cases: Array.from({ length: 6 }, (_, i) => ({ id: `case-${i}`, input: 'What is it?' })),
    trials: 2,
    scorers: [
      function says({ text }) {
        return isRight || { score: 0, why: text }
      },
      judgedBy({
        rubric: { kind: 'is kind' },
        model: scripted(() => JSON.stringify({ criteria: [opinion] }), 'judge'),
      }),
    ],
  })
}

describe.skipIf(noChromium)('the evals page', () => {
  it('B-EVAL-32: shows runs, cases and trials, why one did not pass, its session one click away, and two runs compared', async () => {
    const one = await inspector(() => 'Done.')
    const { store } = one.host
    await runSuite(suiteOf(HOSTILE), { store })
    await runSuite(suiteOf('right'), { store })
    const { page, wrong } = await one.tab('/evals')
    const runs = page.locator('.eval-run')
    await until(async () => expect(await runs.count()).toBe(2))
    await runs.filter({ hasText: 'failed' }).getByRole('link').click()
    const trials = page.locator('.eval-trial')
    await until(async () => expect(await page.locator('.eval-head').innerText()).toContain('failed'))
    expect(await trials.count()).toBe(12)
    const first = await trials.first().innerText()
    for (const part of ['failed', 'Trial 1', 'is not right', 'not met: is kind. It is rude.'])
      expect(first).toContain(part)
    expect(await page.locator('.eval-report img').count()).toBe(0)
    for (const [width, dark] of [
      [1280, false],
      [1280, true],
      [390, false],
      [390, true],
    ] as const) {
      const shown = await one.tab('/evals', { width, dark })
      await shown.page.waitForSelector('.eval-trial')
      await shown.page.screenshot({ path: join(SHOTS, `evals-${width}-${dark ? 'dark' : 'light'}.png`) })
      const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
      expect(await shown.page.evaluate(wide)).toBe(false)
      expect(shown.wrong).toEqual([])
      await shown.page.close()
    }
    await runs.filter({ hasText: 'passed' }).last().getByRole('link').click()
    const compared = page.getByLabel('Compared with', { exact: true })
    await compared.selectOption({ index: 1 })
    await until(async () =>
      expect(await page.locator('.eval-report .standing').innerText()).toMatch(/^(?:better|worse): /),
    )
    expect(await page.locator('.eval-cases h3').first().innerText()).toMatch(/→/)
    await trials.first().getByRole('button').click()
    await trials.first().getByRole('link', { name: 'Trial 1' }).click()
    await page.waitForURL(/\/s\/eval\.refunds-of-last-year\.case-0/)
    expect(wrong).toEqual([])
  }, 180_000)

  it('B-EVAL-32: says how to run a suite, and a session is copied as a case', async () => {
    const one = await inspector(() => 'The answer is 42.')
    const empty = await one.tab('/evals')
    await empty.page.waitForSelector('.face')
    expect(await empty.page.locator('.face').innerText()).toMatch(/No suite was run[^]*terret eval run/)
    const session = await one.host.harness.open({ id: 'talk' })
    await session.run('What is it?')
    const { page, wrong } = await one.tab('/s/talk')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Make this a test' }).click()
    await until(async () => expect(await page.locator('.toasts').innerText()).toContain('A case of a suite is copied'))
    const copied: unknown = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'))
    expect(copied).toMatchObject({ id: 'talk', input: 'What is it?', recording: 'talk' })
    expect(wrong).toEqual([])
  }, 180_000)
})
