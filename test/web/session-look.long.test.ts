// How the page of a session looks (pictures in .build/shots), and what it is to those who do not see it, from sessions of a real server.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { faults } from './faults.ts'
import { sessionStage, type Stage } from './session-stage.ts'
import { looks, SHOTS } from './stage.ts'

async function addresses(stage: Stage): Promise<Readonly<Record<string, string>>> {
  const [news, done, fail, parent, graph, long] = await Promise.all(
    [
      'Publish the news of Oslo.\nWrite it for children.',
      'Publish the weather.',
      'Fail please',
      'Delegate the weather',
      { topic: 'Oslo' },
      'Count 30',
    ].map((input) => stage.open(input, typeof input === 'object' ? 'report' : undefined)),
  )
  await stage.allows(done ?? '')
  for (const id of [news, done, fail, parent, graph, long]) await stage.rests(id ?? '')
  return {
    waits: `/s/${news}`,
    call: `/s/${news}?e=11.0`,
    done: `/s/${done}`,
    turn: `/s/${done}?e=4`,
    failed: `/s/${fail}`,
    child: `/s/${parent}`,
    graph: `/s/${graph}`,
    past: `/s/${long}?at=40`,
    missing: '/s/nobody',
  }
}

describe.skipIf(noChromium)('the look of a session', () => {
  it('B-WEB-43: in light and dark, at 1280 and 390 pixels, axe finds nothing, nothing is wider than the page, nothing is refused', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const stage = await sessionStage()
    const all = await addresses(stage)
    for (const { width, dark } of looks()) {
      const { page, wrong } = await stage.look('/', { width, dark, height: width === 390 ? 844 : 860 })
      for (const [name, address] of Object.entries(all)) {
        await page.goto(stage.url + address)
        await page.waitForSelector('.line, .face')
        if (address.includes('e=')) await page.waitForSelector('.side-part')
        await page.waitForTimeout(200)
        const shot = `session-${name}-${width}-${dark ? 'dark' : 'light'}`
        await page.screenshot({ path: join(SHOTS, `${shot}.png`) })
        expect([shot, await faults(page)]).toEqual([shot, []])
        expect([shot, await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')]).toEqual([
          shot,
          true,
        ])
      }
      expect(wrong.filter((each) => !each.includes('404'))).toEqual([])
      await page.context().close()
    }
  }, 300_000)
})
