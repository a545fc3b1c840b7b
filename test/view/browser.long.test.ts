// The kernel and the projections as a browser gets them: bundled, and run where there is no Node. What they mean is tested elsewhere.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { expect, it } from 'vitest'
import { readLog } from '../../src/view/session-log.ts'
import { type Event, EMPTY, fold, next } from '../../src/kernel/index.ts'
import { runsOf } from '../../src/view/spans/project-spans.ts'
import { sha256 } from '../../src/view/sha256.ts'
import { cardOf } from '../../src/view/card.ts'
import { timelineOf } from '../../src/view/timeline.ts'
import { simulate } from '../../sim/simulate.ts'
import { repository } from '../tidy/source.ts'

const KERNEL = join(repository, 'src/kernel/index.ts')
const VIEW = join(repository, 'src/view/index.ts')

/** One script that leaves these names in the variable `terret`, and what it would still import. */
async function bundled(code: string): Promise<{ readonly code: string; readonly imports: readonly string[] }> {
  const bundle = await rolldown({
    input: 'page',
    platform: 'browser',
    external: /^node:/,
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? id : null),
        load: (id) => (id === 'page' ? code : null),
      },
    ],
  })
  const { output } = await bundle.generate({ format: 'iife', name: 'terret', minify: true })
  await bundle.close()
  expect(output).toHaveLength(1)
  return { code: output[0].code, imports: output[0].imports }
}

/** Random logs, with crashes, approvals, children and graphs in them. */
async function logs(seeds: readonly number[]): Promise<readonly { session: string; events: readonly Event[] }[]> {
  const found: { session: string; events: readonly Event[] }[] = []
  for (const seed of seeds) {
    await simulate(seed, {
      look: async (store) => {
        for (const { session } of await store.list({ limit: 1_000 }))
          found.push({ session, events: await readLog(store, session) })
      },
    })
  }
  return found
}

const FOLDS = `export { EMPTY, fold, next, open, outsideOf, take } from '${KERNEL}'`

it('B-VIEW-1: what folds and decides is at most 7.5 kB in a browser, and neither it nor the projections import anything of Node', async () => {
  const kernel = await bundled(FOLDS)
  expect(kernel.imports).toEqual([])
  expect(gzipSync(kernel.code, { level: 9 }).length).toBeLessThanOrEqual(7.5 * 1024)
  for (const entry of [KERNEL, VIEW]) {
    const { code, imports } = await bundled(`export * from '${entry}'`)
    expect(imports).toEqual([])
    expect(/["'`]node:[a-z]/.test(code)).toBe(false)
  }
})

it('B-VIEW-2: events taken in place in a browser come to the same session, card, rows and spans as on the server, at any event', async () => {
  const { code } = await bundled(`export * from '${KERNEL}'\nexport * from '${VIEW}'`)
  // Nothing of Node is there, and what every browser has.
  const page = createContext({ TextEncoder, URL })
  runInContext(`${code}\nthis.terret = terret`, page)
  const shown = `(() => {
    const { EMPTY, open, take, next, cardOf, timelineOf, runsOf } = terret
    const { session, events } = JSON.parse(log)
    const s = open(EMPTY)
    for (const event of events) take(s, event)
    const card = cardOf(session, s, next(s, { now: s.at, epoch: s.epoch }))
    return JSON.stringify([s, card, timelineOf(events), runsOf([{ session, events }], 'content')])
  })()`
  let compared = 0
  for (const { session, events } of await logs([11, 12])) {
    // Where the slider stands: at the end, and somewhere before it.
    for (const upTo of [events.length, Math.floor(events.length * 0.37) + 1]) {
      const some = events.slice(0, upTo)
      Object.assign(page, { log: JSON.stringify({ session, events: some }) })
      const s = some.reduce(fold, EMPTY)
      const card = cardOf(session, s, next(s, { now: s.at, epoch: s.epoch }))
      const here = [s, card, timelineOf(some), runsOf([{ session, events: some }], 'content')]
      expect(runInContext(shown, page)).toBe(JSON.stringify(here))
      compared += 1
    }
  }
  expect(compared).toBeGreaterThan(10)
})

it('B-VIEW-3: the SHA-256 of the projections is the one of Node, for texts of every length', () => {
  const texts = ['', 'abc', 'ä€😀', ...Array.from({ length: 130 }, (_, i) => 'x'.repeat(i)), 'y'.repeat(100_000)]
  for (const text of texts) expect(sha256(text)).toBe(createHash('sha256').update(text).digest('hex'))
})
