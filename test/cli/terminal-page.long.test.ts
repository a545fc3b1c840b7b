// One session in three places at the same time: a chat with its server, a chat of the same folder without it, and the page in a
// real browser. What is said, asked, decided and queued in one of them is in all of them, once.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { looking } from '../web/stage.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()
const call = (tool: string, args: Record<string, string>) => ({ tool, args })
const ASKED = /Allow it\?[^?]*›$/
const WAIT_MS = 60_000
const SETTLED_MS = 1_000

const times = (text: string, part: string): number => text.split(part).length - 1
const tokenOf = (): string =>
  String((JSON.parse(readFileSync(join(stage.home, 'tokens.json'), 'utf8')) as { readonly own: unknown }).own)

async function serve(): Promise<string> {
  const server = stage.start(['serve', '--port', '0'])
  onTestFinished(() => void server.child.kill('SIGKILL'))
  let out = ''
  for (const stream of [server.child.stderr, server.child.stdout]) stream?.on('data', (text: string) => (out += text))
  await server.says('http://')
  return /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0] ?? ''
}

async function chat(line: string, columns: number): Promise<Screen> {
  const opened = openScreen(stage)
  opened.resize(columns, 40)
  opened.enter(`clear; terret ${line}`)
  await opened.until(PROMPT)
  return opened
}

const onPage = (page: Page): Promise<string> => page.locator('.timeline').innerText()

describe.skipIf(noTmux || noChromium)('a session in two terminals and on a page', { timeout: 240_000 }, () => {
  it('B-CLI-410: each place shows what was said, asked, decided and queued in the others, once, at any width', async () => {
    const script = [
      'Hello there.',
      { text: 'I write it.', calls: [call('write', { path: 'one.txt', content: 'one\n' })] },
      'One is written.',
      { text: 'I look first.', calls: [call('bash', { command: 'until [ -e go ]; do sleep 0.1; done' })] },
      'As briefly as you wish.',
    ]
    await scriptedBy(script, { bash: { risk: 'relaxed' } })
    const url = await serve()
    const far = await chat('--server "Say hello."', 100)
    await far.until(/Hello there\.[\s\S]*\n›$/)
    const near = await chat('interactive latest', 80)
    await near.until(/› Say hello\.[\s\S]*Hello there\.[\s\S]*\n›$/)
    const { session } = (await stage.json('list')) as { readonly session: string }
    const { page, wrong } = await looking({ width: 1280, dark: false })
    await page.goto(`${url}/s/${session}#token=${tokenOf()}`)

    /** Every place has this, once. */
    const agreeOn = async (...parts: readonly string[]): Promise<void> => {
      for (const part of parts) {
        for (const seen of [near, far]) {
          const shown = await seen.until(part)
          expect({ part, shown, times: times(shown, part) }).toEqual({ part, shown, times: 1 })
        }
        await expect.poll(async () => times(await onPage(page), part), { timeout: WAIT_MS }).toBe(1)
      }
    }
    await agreeOn('Say hello.', 'Hello there.')

    near.enter('Write one.')
    await near.until(ASKED)
    await far.until(ASKED)
    await agreeOn('Write one.', 'I write it.')
    near.resize(56, 30)
    far.resize(140, 50)
    await page.setViewportSize({ width: 390, height: 800 })
    await near.until(ASKED)
    expect(existsSync(join(stage.folder, 'one.txt'))).toBe(false)
    await page.goto(`${url}/inbox?session=${session}`)
    await page.waitForSelector('.decision', { timeout: WAIT_MS })
    // A click on what nobody can have read yet decides nothing.
    await page.waitForTimeout(SETTLED_MS)
    await page.getByRole('button', { name: 'Allow once' }).click({ timeout: WAIT_MS })
    for (const seen of [near, far]) {
      const shown = await seen.until(/One is written\.[\s\S]*\n›$/)
      expect(times(shown, 'This question is withdrawn: allowed by')).toBe(1)
      expect(times(shown, '✓ write one.txt')).toBe(1)
    }
    await page.goto(`${url}/s/${session}`)
    await agreeOn('One is written.')
    expect(readFileSync(join(stage.folder, 'one.txt'), 'utf8')).toBe('one\n')

    far.enter('Look.')
    await near.until(ASKED)
    near.enter('y')
    // The command runs until a file is there, so this is as long as the places need to show it.
    for (const seen of [near, far]) await seen.until(/I look first\.[\s\S]*Esc stops[^\n]*\n›$/)
    near.enter('Be brief.')
    await near.until('queued: Be brief.')
    await far.until('queued: Be brief.')
    near.resize(110, 40)
    await page.setViewportSize({ width: 1280, height: 860 })
    writeFileSync(join(stage.folder, 'go'), '')
    for (const seen of [near, far]) await seen.until(/› Be brief\.[\s\S]*As briefly as you wish\.[\s\S]*\n›$/)
    await agreeOn('Look.', 'I look first.', 'Be brief.', 'As briefly as you wish.', 'Hello there.', 'One is written.')
    for (const seen of [near, far]) expect(seen.text()).not.toContain('queued: Be brief.')
    expect(wrong).toEqual([])
  })
})
