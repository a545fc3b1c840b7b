// A provider that is down for a while: `terret run`, a worker with a wake and a chat finish without help. It is down for three
// seconds, or for as long as TERRET_OUTAGE_S says: `npm run outage` makes that a minute.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { overloadedError } from '../../src/testing/index.ts'
import { Harness } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { hosted } from '../models/hosted-stage.ts'
import { asleep } from '../runtime/wake-stage.ts'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const DOWN_MS = 1_000 * Number(process.env['TERRET_OUTAGE_S'] ?? 3)
const SESSION = '00000000-0000-4000-8000-000000000001'
const wait = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

/** A provider that answers 503 for a while after the first request, and then answers. */
async function downFor(ms: number): Promise<{ readonly url: string; readonly refused: () => number }> {
  let upAt = 0
  let refused = 0
  const chaos = await scriptedBy(() => {
    upAt ||= Date.now() + ms
    if (Date.now() >= upAt) return 'Back again.'
    refused += 1
    return overloadedError()
  })
  return { url: chaos.url, refused: () => refused }
}

describe('a provider that is down for a while', { timeout: 120_000 + 3 * DOWN_MS }, () => {
  it('B-OUTAGE-8: run() of the library waits for it', async () => {
    const { url, refused } = await downFor(DOWN_MS)
    const harness = new Harness({ model: hosted({ url }, 'messages') })
    const result = await harness.run('Hello.', { patienceMs: 900_000 })
    await harness.close()
    expect(result).toMatchObject({ status: 'completed', text: 'Back again.' })
    expect(refused()).toBeGreaterThan(2)
  })

  it('B-OUTAGE-8: terret run says what it waits for, and goes on', async () => {
    await downFor(DOWN_MS)
    // A process of its own: lines that share one are given up after 20 seconds.
    const { code, out, err } = await stage.apart('run', '--patience', '15m', 'Hello.')
    expect([code, out]).toEqual([0, 'Back again.\n'])
    expect(err).toMatch(/Provider unavailable \(server: HTTP 5\d\d.*\)\. Trying again in \d+ s\./)
  })

  it('B-PATIENCE-10: terret run ends when its patience does, list says when the next try is, and resume tries at once', async () => {
    let down = true
    const chaos = await scriptedBy(() => (down ? { ...overloadedError(), retryAfter: 1_800 } : 'Back again.'))
    const { code, err } = await stage.terret('run', '--patience', '1s', 'Hello.')
    expect(code).toBe(10)
    expect(err).toMatch(/HTTP 5\d\d/)
    expect(err).toMatch(/It goes on at \S+, when `terret worker` runs; or now: terret resume/)
    const listed = await stage.terret('list')
    expect(listed.out).toMatch(/rescheduling .*HTTP 5\d\d.*, next try \d{4}-\d\d-\d\dT\d\d:\d\dZ\)/)
    expect(chaos.requests).toHaveLength(1)
    down = false
    const resumed = await stage.terret('resume', 'latest')
    expect([resumed.code, resumed.out]).toEqual([0, 'Back again.\n'])
    expect(chaos.requests).toHaveLength(2)
  })

  it('B-OUTAGE-8: a patience that is no time is refused', async () => {
    for (const patience of ['soon', '5', '-1s', '99999h']) {
      expect((await stage.terret('run', `--patience=${patience}`, 'Hello.')).code).toBe(2)
    }
  })

  it('B-OUTAGE-8: a worker finishes the run of a wake, and list and inspect say why it waits', async () => {
    await downFor(DOWN_MS)
    await stage.terret('list')
    const store = sqlite(join(stage.home, 'terret.db'))
    await asleep(store, SESSION, [{ due: Date.now() }], { program: 'terret' })
    appendFileSync(join(stage.home, 'folders.jsonl'), `\n${JSON.stringify({ session: SESSION, folder: stage.folder })}`)
    // Without --idle: between two tries there may be more time than an idle worker stays for.
    const working = stage.start(['worker'])
    while (!(await stage.terret('list', '--all')).out.includes('HTTP 5')) await wait(50)
    expect((await stage.terret('inspect', '00000000')).out).toMatch(/^Outage {4}Provider unavailable/m)
    while ((await store.card(SESSION))?.status !== 'idle') await wait(50)
    expect(await store.card(SESSION)).toMatchObject({ outcome: 'completed', wakes: 0 })
    working.child.kill('SIGTERM')
    expect((await working.ended).code).toBe(0)
    await store.close()
  })

  it.skipIf(noTmux)('B-OUTAGE-8: a chat says what it waits for, and goes on by itself', async () => {
    await downFor(DOWN_MS)
    const screen = openScreen(stage)
    screen.enter('clear; terret interactive --trust')
    await screen.until(PROMPT)
    screen.enter('Hello.')
    await screen.until(/Provider unavailable \(server/)
    // The last wait may begin just before it is back, and be half a minute long.
    await wait(1.5 * DOWN_MS)
    await screen.until('Back again.')
    await screen.close()
  })
})
