// The process of `--triggers` that is killed: a real server with one signed endpoint, a triage, and an agent whose tool notes its effect
// in the oracle. It says its port, works until it is told to stop, and knows of no kill.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool, Harness, scripted } from '../../src/index.ts'
import type { EffectClass } from '../../src/kernel/content.ts'
import { Bug, Fault } from '../../src/kernel/failure.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { serve } from '../../src/server/index.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { ENDPOINT, type DeliveryEffect, SECRET_VARIABLE, SOURCE } from './deliveries.ts'
import { Appender, type ErrorLine, placesIn } from './evidence.ts'
import { openStore } from './open.ts'

const [folder = '', database = '', leaseMs = '250'] = process.argv.slice(2)
const places = placesIn(folder)
const errors = new Appender<ErrorLine>(places.errors)
const oracle = new Appender<DeliveryEffect>(places.oracle)
const store = openStore(database)

/** Notes that an effect began, takes its time, and notes that it ended. */
async function noteEffect(key: string, delivery: string, effect: EffectClass, ms: number): Promise<void> {
  oracle.add({ key, effect, pid: process.pid, phase: 'start', delivery })
  await sleep(ms)
  oracle.add({ key, effect, pid: process.pid, phase: 'end', delivery })
}

const toolOf = (name: string, effect: EffectClass) =>
  defineTool({
    name,
    description: `${name} (${effect})`,
    input: z.object({ delivery: z.string(), ms: z.number() }),
    effect,
    execute: async ({ delivery, ms }, { key }) => {
      await noteEffect(key, delivery, effect, ms)
      return `${name} ${delivery}`
    },
  })

const triage = scripted(({ messages }) => {
  const [, delivery = '', kind = '', ms = ''] = /event (d-\d+) (\w+) (\d+)/.exec(textOf(messages)) ?? []
  const target = kind === 'tell' ? { action: 'notify' } : { action: 'react', target_agent: 'clerk' }
  const decision = { ...target, prompt: `order ${delivery} ${kind} ${ms}`, reason: 'It was sent.' }
  return { text: JSON.stringify(decision), delayMs: 15 }
})
const clerk = scripted(({ messages }) => {
  if (messages.some(({ role }) => role === 'tool')) return { text: 'Done.', delayMs: 5 }
  const [, delivery = '', tool = '', ms = ''] = /order (d-\d+) (\w+) (\d+)/.exec(textOf(messages)) ?? []
  return { calls: [{ tool, args: { delivery, ms: Number(ms) } }], delayMs: 15 }
})

const harness = new Harness({
  model: clerk,
  store,
  tools: [toolOf('put', 'idempotent'), toolOf('pay', 'once')],
  subagents: { clerk: { description: 'does what is ordered' } },
  // The kills come from outside, not from a session: no session may be left alone for them.
  limits: { lossesMax: 100 },
  worker: { leaseMs: Number(leaseMs), attemptsMax: Number.MAX_SAFE_INTEGER },
  triggers: createTriggers({
    models: [triage],
    sources: { [SOURCE]: { targets: { react: ['clerk'] } } },
    notify: async ({ text }, { key }) => {
      const [, delivery = '', , ms = ''] = /order (d-\d+) (\w+) (\d+)/.exec(text) ?? []
      await noteEffect(key, delivery, 'idempotent', Number(ms))
    },
  }),
  onError: report,
})

function textOf(messages: readonly Message[]): string {
  return JSON.stringify(messages)
}

function report(where: string, error: unknown): void {
  const kind = error instanceof Bug ? 'Bug' : error instanceof Fault ? 'Fault' : 'Error'
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  errors.add({ kind, code: error instanceof Fault ? error.code : '', session: where, text })
}

const endpoints = { [ENDPOINT]: { source: SOURCE, verify: 'github', secret: { env: SECRET_VARIABLE } } } as const
const mounted = await serve({ harness, endpoints, inspector: false, onError: report })
const server = createServer(mounted.listener)
const working = harness.work()
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`))

async function stop(): Promise<void> {
  server.close()
  server.closeAllConnections()
  await mounted.close()
  await harness.close()
  await working
  await store.close()
  process.exit(0)
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  if (line === 'stop') stop().catch((error: unknown) => report('', error))
})
// The parent process is gone, so it cannot stop this one any more.
lines.on('close', () => process.exit(2))
