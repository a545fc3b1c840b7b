// Processes that are killed while they spend: what was held stays held, what was lost is counted in full, and starting again
// does not start the meter again. The script they run is child-money.ts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { chaosOf, eventsOf, ofType } from '../models/hosted-stage.ts'
import { makeFile, open } from '../stores/folder.ts'
import { until } from '../until.ts'

const SESSION = 'spender'
const LIMIT = 60_000
const ASK = { calls: [{ tool: 'look', args: { city: 'Oslo' } }], usage: { inputTokens: 300, outputTokens: 300 } }

it('B-MONEY-23: killing and starting again does not reset the meter, and a lost call is counted at its full hold (threat 50)', async () => {
  const file = makeFile()
  // The third and the fifth request are never answered: the process that sent them is killed.
  const chaos = await chaosOf((_request, n) => (n === 2 || n === 4 ? { text: '', chaos: { stallAfterBytes: 0 } } : ASK))
  let said = ''
  const start = () => {
    const child = spawn(process.execPath, [childFile(), file, chaos.url, SESSION, String(LIMIT / 1_000_000)])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr.pipe(process.stderr)
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
    })
    return child
  }
  for (const requests of [3, 5]) {
    const child = start()
    await until(() => expect(chaos.requests).toHaveLength(requests))
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(said).toBe('')
  }
  await once(start(), 'exit')
  expect(JSON.parse(said)).toMatchObject({ status: 'limit', pending: [{ callId: 'budget' }] })

  const store = open(file)
  const events = await eventsOf(store, SESSION)
  const lost = ofType(events, 'model.failed')
  expect(lost.map((event) => event.class)).toEqual(['lost', 'lost'])
  const started = ofType(events, 'model.started')
  expect(chaos.requests).toHaveLength(started.length)
  const assumed = lost.reduce((sum, { seq }) => sum + (started.findLast((event) => event.seq < seq)?.held ?? 0), 0)
  const cost = ofType(events, 'agent.message').reduce((sum, event) => sum + (event.cost ?? 0), 0)
  const account = await store.account(`session:${SESSION}`)
  expect(account).toMatchObject({ limit: LIMIT, held: 0, spent: cost + assumed, assumed })
  expect(account?.spent).toBeLessThanOrEqual(LIMIT)
})

/** Compiled by `npm run build:all`, which the tests begin with. */
function childFile(): string {
  return fileURLToPath(new URL('../../.build/test/runtime/child-money.js', import.meta.url))
}
