// The watchdog in a real process whose event loop is really blocked: what it reports, and that it does not keep the process alive.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Watchdog } from '../../src/engine/watchdog.ts'

const script = fileURLToPath(new URL('../../.build/test/runtime/child-watchdog.js', import.meta.url))

function child(...args: readonly string[]): { readonly lines: readonly string[]; readonly over: boolean } {
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], {
    encoding: 'utf8',
    timeout: 25_000,
  })
  return { lines: stderr.split('\n').filter((line) => line !== ''), over: status === 0 && stdout === 'over\n' }
}

describe('the watchdog', () => {
  it('B-WATCHDOG-1: names the open calls once when a handler blocks the event loop, and says when it is over', () => {
    const { lines, over } = child('2000', '600')
    expect(over).toBe(true)
    // A machine under load may block the loop by itself; only our call is looked at.
    const named = lines.filter((line) => line.includes('crunch'))
    expect(named).toEqual([
      'terret watchdog: the event loop has not turned for 600 ms; open: crunch (call 5.1 of session child), idle (call 5.0 of session child)',
    ])
    const after = lines[lines.indexOf(named[0] ?? '') + 1]
    expect(Number(/turns again after (\d+) ms$/.exec(after ?? '')?.[1])).toBeGreaterThan(600)
  })

  it('B-WATCHDOG-2: says nothing of a loop that turns, and keeps no process alive, closed or not', () => {
    expect(child('10', '5000')).toEqual({ lines: [], over: true })
    expect(child('10', '5000', 'close')).toEqual({ lines: [], over: true })
  })

  it('B-WATCHDOG-3: a time that is no whole number of at least ten milliseconds is refused', () => {
    for (const ms of [0, -1, 9, 0.5, Number.NaN]) expect(() => new Watchdog(ms)).toThrow('watchdogMs')
  })
})
