// A process that is killed while it summarises: another one does it again, once, and no money is lost or counted twice.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { chaosOf, eventsOf, ofType } from '../models/hosted-stage.ts'
import { makeFile, open } from '../stores/folder.ts'
import { GOOD_SUMMARY } from './long-stage.ts'
import { until } from '../until.ts'

const SESSION = 'long'
/** Compiled by `npm run build:all`, which the tests begin with. */
const CHILD = fileURLToPath(new URL('../../.build/test/context/child-compact.js', import.meta.url))

it('B-COMPACT-17: after a kill during the summary another process compacts once, and its money is counted once or as assumed (A6)', async () => {
  const file = makeFile()
  let summaries = 0
  let turns = 0
  const chaos = await chaosOf((request) => {
    if (JSON.stringify(request).includes('You summarise the earlier part')) {
      summaries += 1
      // The first one is never answered: the process that asked is killed.
      if (summaries === 1) return { text: '', chaos: { stallAfterBytes: 0 } }
      return { text: GOOD_SUMMARY, usage: { inputTokens: 700, outputTokens: 20 } }
    }
    turns += 1
    const usage = { inputTokens: turns <= 9 ? 500 * turns : 900, outputTokens: 60 }
    if (turns > 9) return { text: 'All of them are cold.', usage }
    return { text: 'y'.repeat(1_000), calls: [{ tool: 'look', args: { city: 'Oslo' } }], usage }
  })
  let said = ''
  const start = () => {
    const child = spawn(process.execPath, [CHILD, file, chaos.url, SESSION])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr.pipe(process.stderr)
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
    })
    return child
  }
  const child = start()
  await until(() => expect(summaries).toBe(1))
  child.kill('SIGKILL')
  await once(child, 'exit')
  await once(start(), 'exit')
  expect(JSON.parse(said)).toEqual({ status: 'completed' })
  const store = open(file)
  const events = await eventsOf(store, SESSION)
  expect(summaries).toBe(2)
  expect(ofType(events, 'context.compacted').filter(({ summary }) => summary !== undefined)).toHaveLength(1)
  expect(ofType(events, 'model.failed').map((event) => event.class)).toEqual(['lost', 'superseded'])
  const cost = events.reduce((sum, event) => sum + ('cost' in event ? (event.cost ?? 0) : 0), 0)
  const account = await store.account(`session:${SESSION}`)
  // Both that the killed process had asked for are assumed: its request, and its summary.
  expect(account).toMatchObject({ held: 0, spent: cost + (account?.assumed ?? 0) })
  expect(account?.assumed).toBeGreaterThan(0)
})

it('B-TARGET-9: after a kill between a shortened result and the answer another process sends the same bytes (C9)', async () => {
  const file = makeFile()
  const sent: string[] = []
  const chaos = await chaosOf((request) => {
    const body = JSON.stringify(request.body)
    const usage = { inputTokens: 500, outputTokens: 60 }
    if (!body.includes('tool_result'))
      return { text: '', calls: [{ tool: 'look', args: { city: 'Everywhere' } }], usage }
    sent.push(body)
    // The first request with the result is never answered: the process that asked is killed.
    return sent.length === 1 ? { text: '', chaos: { stallAfterBytes: 0 } } : { text: 'Cold.', usage }
  })
  let said = ''
  const start = () => {
    const child = spawn(process.execPath, [CHILD, file, chaos.url, SESSION])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
    })
    return child
  }
  const child = start()
  await until(() => expect(sent).toHaveLength(1))
  child.kill('SIGKILL')
  await once(child, 'exit')
  await once(start(), 'exit')
  expect(JSON.parse(said)).toEqual({ status: 'completed' })
  expect(sent).toHaveLength(2)
  expect(sent[1]).toBe(sent[0])
  expect(sent[0]).toContain('left out to fit the context')
  const events = await eventsOf(open(file), SESSION)
  expect(ofType(events, 'context.compacted').filter(({ fitted }) => fitted !== undefined)).toHaveLength(1)
})
