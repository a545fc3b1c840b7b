// One event, delivered to two processes at once; the one that works on it is killed inside the effect.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import type { TriggerReceipt } from '../../src/index.ts'
import { sqlite } from '../../src/index.ts'
import { until } from '../until.ts'

const PROGRAM = fileURLToPath(new URL('../../.build/test/triggers/child-worker.js', import.meta.url))

function started(...args: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (chunk) => (said += String(chunk)))
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  onTestFinished(() => void child.kill('SIGKILL'))
  const receipts = (): readonly TriggerReceipt[] =>
    said.split('\n').flatMap((line) => (line.startsWith('[') ? (JSON.parse(line) as TriggerReceipt[]) : []))
  return { child, ended, receipts, said: () => said }
}

it('B-TRIGGER-28: five deliveries to each of two processes, one of them killed: one session, one effect under one key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'terret-trigger-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [path, effects] = [join(folder, 'terret.db'), join(folder, 'effects')]
  const first = started(path, effects, 'hang')
  await until(() => expect(first.said()).toContain('notified'))
  const second = started(path, effects, 'work')
  await until(() => expect(second.receipts()).toHaveLength(5))
  first.child.kill('SIGKILL')
  expect(await second.ended).toBe(0)
  const all = [...first.receipts(), ...second.receipts()]
  expect(new Set(all.map(({ sessionId }) => sessionId)).size).toBe(1)
  expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
  const session = all[0]?.sessionId ?? ''
  // The effect that was cut is done again under the same key, and by nobody else.
  expect(existsSync(effects) && readFileSync(effects, 'utf8').trim().split('\n')).toEqual([
    `hang ${session} The disk is full.`,
    `work ${session} The disk is full.`,
  ])
  const store = sqlite(path)
  expect((await store.list({ limit: 10 })).map((card) => [card.session, card.outcome])).toEqual([
    [session, 'completed'],
  ])
  await store.close()
}, 60_000)
