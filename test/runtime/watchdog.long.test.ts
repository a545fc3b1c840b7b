// The watchdog in a real process whose event loop is really blocked: what it reports, and that it does not keep the process alive.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Watchdog } from '../../src/runtime/state/watchdog.ts'

const script = fileURLToPath(new URL('../../.build/test/runtime/child-watchdog.js', import.meta.url))

/** Rejects if it does not end well in time. */
async function child(
  ...args: readonly string[]
): Promise<{ readonly lines: readonly string[]; readonly over: boolean }> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, ...args], { timeout: 25_000 })
  return { lines: stderr.split('\n').filter((line) => line !== ''), over: stdout === 'over\n' }
}

describe('the watchdog', () => {
  it('B-WATCHDOG-1: names the open calls once when a handler blocks the event loop, and says when it is over', async () => {
    const { lines, over } = await child('2000', '600')
    expect(over).toBe(true)
    // A machine under load may block the loop by itself; only our call is looked at.
    const named = lines.filter((line) => line.includes('crunch'))
    expect(named).toEqual([
      'terret watchdog: the event loop has not turned for 600 ms; open: crunch (call 5.1 of session child), idle (call 5.0 of session child)',
    ])
    const after = lines[lines.indexOf(named[0] ?? '') + 1]
    expect(Number(/turns again after (\d+) ms$/.exec(after ?? '')?.[1])).toBeGreaterThan(600)
  })

  it('B-WATCHDOG-2: says nothing of a loop that turns, and keeps no process alive, closed or not', async () => {
    const quiet = { lines: [], over: true }
    expect(await Promise.all([child('10', '5000'), child('10', '5000', 'close')])).toEqual([quiet, quiet])
  })

  it('B-WATCHDOG-3: a time that is no whole number of at least ten milliseconds is refused', () => {
    for (const ms of [0, -1, 9, 0.5, Number.NaN]) expect(() => new Watchdog(ms)).toThrow('watchdogMs')
  })
})
