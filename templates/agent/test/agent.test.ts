// Each step is a process of its own, as it is in production: the agent asks, a person decides later, the tool runs once.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.js', import.meta.url))

/** Without MODEL: the tests never ask a real model. */
const { MODEL: _none, ...env } = process.env

function start(cwd: string, ...words: readonly string[]): string {
  return execFileSync(process.execPath, [main, ...words], { cwd, env, encoding: 'utf8' })
}

test('a refund waits for a person, runs once in another process, and is not run again', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const refunds = join(folder, 'refunds.jsonl')

  assert.match(start(folder), /^requires_action[^]*May I refund \{"order":17,"dollars":40\}\?/)
  assert.equal(existsSync(refunds), false)

  assert.equal(start(folder, 'yes'), 'completed: I have handled order 17.\n')
  assert.equal(start(folder, 'yes'), 'Nothing waits for you.\n')
  assert.equal(readFileSync(refunds, 'utf8'), '{"order":17,"dollars":40}\n')
})

test('a no leaves the money where it is', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  start(folder)
  assert.match(start(folder, 'no'), /^completed/)
  assert.equal(existsSync(join(folder, 'refunds.jsonl')), false)
})
