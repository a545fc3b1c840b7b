// The comparison of `--triggers` against deliveries that really ran, and against what each kind of fault would leave.
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted } from '../../src/index.ts'
import type { EffectClass } from '../../src/kernel/content.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import type { DeliveryEffect, DeliveryKind, DeliveryRecord } from './deliveries.ts'
import { checkTriggers, type TriggerEvidence } from './trigger-check.ts'

const KINDS: readonly DeliveryKind[] = ['put', 'pay', 'tell']
let evidence: TriggerEvidence

beforeAll(async () => {
  const oracle: DeliveryEffect[] = []
  const note = (key: string, delivery: string, effect: EffectClass) =>
    oracle.push(...(['start', 'end'] as const).map((phase) => ({ key, effect, pid: 1, phase, delivery })))
  const tool = (name: string, effect: EffectClass) =>
    defineTool({
      name,
      description: name,
      input: z.object({}),
      effect,
      execute: (_input, { key }) => {
        note(key, `d-${KINDS.indexOf(name as DeliveryKind) + 1}`, effect)
        return name
      },
    })
  const wanted = (messages: unknown) => /order (put|pay|tell)/.exec(JSON.stringify(messages))?.[1] ?? ''
  const triage = scripted(({ messages }) => {
    const target = wanted(messages) === 'tell' ? { action: 'notify' } : { action: 'react', target_agent: 'clerk' }
    return JSON.stringify({ ...target, prompt: `order ${wanted(messages)}`, reason: 'So.' })
  })
  const store = memory()
  const harness = new Harness({
    model: scripted(({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ tool: wanted(messages), args: {} }] },
    ),
    store,
    tools: [tool('put', 'idempotent'), tool('pay', 'once')],
    subagents: { clerk: { description: 'does what is ordered' } },
    triggers: createTriggers({
      models: [triage],
      sources: { orders: { targets: { react: ['clerk'] } } },
      notify: (_notice, { key }) => void note(key, 'd-3', 'idempotent'),
    }),
  })
  const records: DeliveryRecord[] = []
  for (const [i, kind] of KINDS.entries()) {
    const { sessionId: session } = await harness.trigger({ source: 'orders', label: 'order', payload: `order ${kind}` })
    await harness.session(session).run()
    records.push({ id: `d-${i + 1}`, kind, accepted: [{ session, duplicate: false }] })
  }
  await harness.close()
  const cards = await store.list({ limit: 100 })
  const logs = await Promise.all(
    cards.map(async ({ session }) => [session, (await store.read(session, 0)).events] as const),
  )
  evidence = { records, logs: new Map(logs), oracle }
})

const wrongOf = (change: Partial<TriggerEvidence>) => checkTriggers({ ...evidence, ...change })

it('B-TRIGGER-50: finds nothing wrong where each delivery has one session and one effect', () => {
  expect(wrongOf({})).toEqual({ wrong: [], kept: 3, lost: 0, twice: 0, unknown: 0, repeated: 0 })
})

it('B-TRIGGER-50: finds a delivery whose session or effect is lost, and a session that nobody sent', () => {
  for (const { id, accepted } of evidence.records) {
    const logs = new Map([...evidence.logs].filter(([session]) => session !== accepted[0]?.session))
    expect(wrongOf({ logs })).toMatchObject({ lost: 1 })
    const oracle = evidence.oracle.filter(({ delivery }) => delivery !== id)
    expect(wrongOf({ oracle })).toMatchObject({ lost: 1, kept: 2 })
    const records = evidence.records.filter((record) => record.id !== id)
    expect(wrongOf({ records }).wrong).toContainEqual(expect.stringContaining('that nobody sent'))
  }
})

it('B-TRIGGER-50: finds two sessions of one delivery, two effects of it, and a 202 that was new again', () => {
  const [first, second] = evidence.records as [DeliveryRecord, DeliveryRecord]
  const other = { session: 'trigger.other', duplicate: true }
  const split = [{ ...first, accepted: [...first.accepted, other] }, ...evidence.records.slice(1)]
  expect(wrongOf({ records: split }).wrong).toEqual(['twice: d-1 has two sessions'])
  const again = [{ ...first, accepted: [...first.accepted, ...first.accepted] }, ...evidence.records.slice(1)]
  expect(wrongOf({ records: again }).wrong).toEqual(['d-1 was new again after its 202'])
  const shared = [first, { ...second, accepted: first.accepted }, ...evidence.records.slice(2)]
  expect(wrongOf({ records: shared }).wrong).toContainEqual(expect.stringContaining('are one session'))
  const more = evidence.oracle.filter(({ delivery }) => delivery === 'd-1').map((line) => ({ ...line, key: 'other:1' }))
  expect(wrongOf({ oracle: [...evidence.oracle, ...more] })).toMatchObject({ twice: 1, kept: 2 })
})

it('B-TRIGGER-51: finds a once effect that ran twice, and counts one that ran again under its key as allowed', () => {
  const again = (id: string) => [...evidence.oracle, ...evidence.oracle.filter(({ delivery }) => delivery === id)]
  expect(wrongOf({ oracle: again('d-2') }).wrong).toContainEqual(expect.stringContaining('a once effect ran 2 times'))
  expect(wrongOf({ oracle: again('d-2') })).toMatchObject({ twice: 1 })
  expect(wrongOf({ oracle: again('d-3') })).toMatchObject({ wrong: [], repeated: 1, kept: 3 })
})
