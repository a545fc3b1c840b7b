// A script in the inspector: the whole program before it runs, and what its lines do while it works. Real server, real browser; pictures
// in .build/shots.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineTool } from '../../src/index.ts'
import { createScripts } from '../../src/scripts/index.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { faults } from './faults.ts'
import { sessionStage, type Stage } from './session-stage.ts'
import { looks, SHOTS } from './stage.ts'

const input = { type: 'object', properties: { path: { type: 'string' } } } as const
const read = defineTool({
  name: 'read',
  description: 'Reads.',
  input,
  effect: 'read',
  execute: async () => 'text',
})
const publish = defineTool({
  name: 'publish',
  description: 'Publishes.',
  input,
  approval: 'ask',
  execute: async () => 'out',
})

const END = '/* the end of a long line */'
const LONG = `// ${'a long line '.repeat(300)}${END}`
const PROGRAM = `const pages = ['news', 'weather', 'sports']
${LONG}
const texts = await Promise.all(pages.map((path) => tool_call('read', { path })))
for (const path of pages)
  await tool_call('publish', { path })
return texts.length`

async function scriptStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-scripts-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'pages.js'), PROGRAM.replace("'sports'", "'culture'"))
  const { tool, planner } = createScripts({ folders: [folder] })
  return sessionStage({ harness: { tools: [read, publish, tool], graphs: [planner] } })
}

async function waiting(stage: Stage, session: string): Promise<string> {
  const { pending } = await stage.rests(session)
  return `/inbox?session=${pending[0]?.sessionId}&call=${pending[0]?.callId}`
}

describe.skipIf(noChromium)('a script in the inspector', () => {
  it('B-CELL-36: a person sees the whole program before it runs, and how it differs from the saved one', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const stage = await scriptStage()
    const session = await stage.open(`Script ${JSON.stringify({ name: 'pages', script: PROGRAM })}`)
    const { page, wrong } = await stage.look(await waiting(stage, session))
    const program = page.getByRole('region', { name: 'program' })
    await program.waitFor()
    expect(await program.getByText(END).count()).toBe(1)
    expect(await program.locator('.diff-line').count()).toBe(6)
    const changes = page.getByRole('region', { name: 'changes' })
    expect(await changes.innerText()).toContain("'sports'")
    expect(await changes.locator('.removed').innerText()).toContain("'culture'")
    await page.screenshot({ path: join(SHOTS, 'script-waits.png'), fullPage: true })
    expect([await faults(page), wrong]).toEqual([[], []])
  }, 120_000)

  it('B-CELL-36: the panel of its call shows what each line has called, which line waits, and leads there', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const stage = await scriptStage()
    const session = await stage.open(`Script ${JSON.stringify({ script: PROGRAM.replace(LONG, '// all pages') })}`)
    await stage.allows(session)
    const cell = `${session}~5.0`
    await until(() => stage.rests(cell))
    for (const { width, dark } of looks()) {
      const { page, wrong } = await stage.look(`/s/${session}?e=5.0`, { width, dark })
      const line = page.locator('[aria-current=true]')
      await line.waitFor()
      expect(await line.innerText()).toMatch(
        /^5\s+await tool_call\('publish', \{ path \}\)\s+1 × publish waiting for a person$/,
      )
      expect(await page.getByRole('region', { name: 'program' }).innerText()).toContain('3 × read ok')
      await page.screenshot({ path: join(SHOTS, `script-lines-${width}-${dark ? 'dark' : 'light'}.png`) })
      expect([await faults(page), wrong]).toEqual([[], []])
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      await page.context().close()
    }
    const { page } = await stage.look(`/s/${session}?e=5.0`)
    await page.getByRole('link', { name: '1 × publish waiting for a person' }).click()
    await page.getByRole('heading', { name: 'Allow publish?' }).waitFor()
    for (let n = 0; n < 3; n++) await until(() => stage.allows(cell))
    await stage.rests(session)
    await page.goto(`${stage.url}/s/${session}?e=5.0`)
    await page.getByText('3 × publish ok').waitFor()
    expect(await page.locator('[aria-current=true]').count()).toBe(0)
  }, 120_000)
})
