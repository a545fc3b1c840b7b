// Sessions that are not as they should be: missing, removed, damaged, empty, away; and what is far too long or hostile.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { meddle } from '../stores/folder.ts'
import { Tale } from '../tracing/tale.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { written } from './session-server.ts'
import { sessionStage } from './session-stage.ts'

const LONG = 180_000

describe.skipIf(noChromium)('the faces of a session', () => {
  it(
    'B-WEB-40: a session that is missing, removed while it is read, or new says so',
    async () => {
      const stage = await sessionStage()
      const page = await stage.page('/s/nobody')
      await until(async () => expect(await page.locator('h1').innerText()).toBe('There is no such session'))
      const { session: fresh } = await stage.json<{ session: string }>('POST', '/v1/sessions', { body: {} })
      await page.goto(`${stage.url}/s/${fresh}`)
      await until(async () => expect(await page.locator('.face').innerText()).toContain('Nothing was said yet'))
      await stage.json('DELETE', `/v1/sessions/${fresh}`)
      await until(async () => expect(await page.locator('h1').innerText()).toBe('This session was removed'))
    },
    LONG,
  )

  it(
    'B-WEB-40: a damaged log is read up to its last good event, and says which one that is',
    async () => {
      const stage = await sessionStage({ harness: { worker: { drives: false } } })
      const tale = new Tale('damaged')
      for (let i = 0; i < 30; i++) tale.say(`message ${i + 2}`)
      const id = await written(stage, tale)
      meddle(join(stage.folder, 'terret.db'), (db) => {
        db.exec('DROP TRIGGER events_keep; DROP TRIGGER events_stay')
        db.exec(`UPDATE events SET body = '{}' WHERE pos = (SELECT pos FROM events ORDER BY pos LIMIT 1 OFFSET 11)`)
      })
      const page = await stage.page(`/s/${id}`)
      await page.waitForSelector('.line')
      expect(await page.locator('.notice.bad').first().innerText()).toContain('It is readable to event 11')
      expect((await page.locator('.line-seq').allInnerTexts()).map(Number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
      expect(await page.locator('.slider-count').innerText()).toContain('11 / 11')
    },
    LONG,
  )

  it(
    'B-WEB-40: when the server goes away the page keeps what it has and nothing can be sent; the first load can be tried again',
    async () => {
      const stage = await sessionStage()
      const id = await stage.open('Publish the news.')
      await stage.rests(id)
      const page = await stage.page(`/s/${id}`)
      await page.waitForSelector('.line.call')
      await stage.server.close()
      await page.waitForSelector('.notice.bad')
      expect(await page.locator('.timeline').innerText()).toContain('publish')
      expect(await page.getByRole('button', { name: 'Send…' }).isDisabled()).toBe(true)
    },
    LONG,
  )
})

describe.skipIf(noChromium)('what is long or hostile in a session', () => {
  it(
    'B-WEB-39: of an argument of 10 MB and a result of 100 MB the beginning, the end and the length are shown, and the page goes on answering',
    async () => {
      const stage = await sessionStage()
      const [take, dump] = await Promise.all([stage.open('Take 10000000'), stage.open('Dump 100')])
      await stage.rests(take)
      await stage.rests(dump)
      const page = await stage.page(`/s/${take}`)
      await page.locator('.line.call').click()
      await until(async () => expect(await page.locator('.side').innerText()).toMatch(/FIRSTx+/))
      const args = await page.locator('.side').innerText()
      expect(args).toMatch(/x+LAST/)
      expect(args).toContain('9,997,409 characters are not shown')
      await page.goto(`${stage.url}/s/${dump}`)
      await page.locator('.line.call').click()
      await until(async () => expect(await page.locator('.side').innerText()).toContain('THE BEGINNING'))
      expect(await page.locator('.side').innerText()).toMatch(/a part of 10\d,\d{3},\d{3} bytes/)
      await page.getByRole('button', { name: 'Show the whole' }).click()
      await page.getByRole('button', { name: 'Show the end' }).click()
      await until(async () => expect(await page.locator('.side').innerText()).toContain('THE END'))
      await page.keyboard.press('k')
      await until(() => expect(new URL(page.url()).searchParams.get('e')).not.toBeNull())
    },
    LONG,
  )

  it(
    'B-WEB-44: text of a log is text, in every row and in the panel: no element, no dialog, no request, and what is not drawn has its code',
    async () => {
      const stage = await sessionStage({ harness: { worker: { drives: false } } })
      const bad = `<img src=x onerror="alert(1)"><script>alert(2)</script>[x](javascript:alert(3))\u202e\u200b\u001b[31m`
      const id = await written(stage, hostile(bad))
      const { page, wrong } = await stage.look(`/s/${id}`)
      await page.waitForSelector('.line.settled')
      const text = await page.locator('.timeline').innerText()
      for (const code of ['202e', '200b']) expect(text).toContain(`\\u{${code}}`)
      // Every row, from the last to the first, with all that its panel can open.
      for (let before: string | null = null; ; ) {
        await page.locator('h1').click()
        await page.keyboard.press('k')
        await page.waitForSelector('.side')
        for (const toggle of await page.locator('.side .json-toggle[aria-expanded=false]').all()) await toggle.click()
        const now = new URL(page.url()).searchParams.get('e')
        if (now === before) break
        before = now
      }
      expect(new URL(page.url()).searchParams.get('e')).toBe('1')
      expect(await page.locator('#page img, #page script, #page iframe, #page a[href^="javascript:"]').count()).toBe(0)
      expect(wrong).toEqual([])
    },
    LONG,
  )
})

/** Every kind of row, with this text wherever there is one. */
function hostile(bad: string): Tale {
  const tale = new Tale('hostile')
  const said = tale.say(bad)
  tale.begin([said])
  tale.ask([said])
  const args = { [bad]: bad, list: [bad, { deep: bad }] }
  const ask = { type: 'ask', class: bad, n: 1, roles: [bad], expiresAt: null } as const
  const call = { id: bad, tool: bad, args, effect: 'once', timeoutMs: 1_000 } as const
  const parts = [
    { type: 'reasoning', text: bad } as const,
    { type: 'text', text: bad } as const,
    { type: 'source', url: `https://example.org/${bad}`, title: bad } as const,
  ]
  const reply = tale.reply([call, { ...call, gate: ask, digest: 'd'.repeat(64) }], { parts, route: bad })
  tale.add({
    type: 'user.tool_confirmation',
    id: 'c',
    call: `${reply}.1`,
    digest: 'd'.repeat(64),
    allow: false,
    by: bad,
    why: bad,
  })
  tale.add({ type: 'agent.tool_use', call: `${reply}.0` })
  tale.add({
    type: 'agent.tool_result',
    call: `${reply}.0`,
    status: 'error',
    content: bad,
    failure: { kind: 'Failed', message: bad },
  })
  tale.add({
    type: 'agent.tool_result',
    call: `${reply}.1`,
    status: 'denied',
    content: bad,
    failure: { kind: 'Denied', message: bad },
  })
  tale.ask()
  tale.add({ type: 'model.failed', class: 'server', message: bad, retryable: true, partial: bad, route: bad })
  tale.add({ type: 'note.added', kind: 'nudge', text: bad })
  tale.add({ type: 'context.compacted', summary: bad, failed: bad })
  tale.add({ type: 'wake.scheduled', due: 5_000, reason: bad, key: bad })
  tale.add({ type: 'user.interrupt', id: 'i', mode: 'stop', why: bad })
  tale.add({
    type: 'run.settled',
    outcome: { type: 'failed', reason: 'provider_error', failure: { kind: 'Failed', message: bad } },
    output: args,
  })
  return tale
}
