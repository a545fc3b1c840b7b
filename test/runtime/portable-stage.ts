// A session that pays after an approval, for the tests of export and import. Its payments are recorded outside of the session.
import { hash } from 'node:crypto'
import { z } from 'zod'
import { defineTool, Harness, memory, type Script, scripted, type Store, type Tool } from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import { canonicalJson } from '../../src/tools/core/canonical.ts'
import type { Portable } from '../../src/archive/portable.ts'

export type Desk = {
  readonly harness: Harness
  readonly store: Store
  /** What was really paid. */
  readonly paid: number[]
}

export function payTool(paid: number[], description = 'pays an amount'): Tool {
  return defineTool({
    name: 'pay',
    description,
    input: z.object({ amount: z.number() }),
    approval: 'ask',
    execute: ({ amount }) => {
      paid.push(amount)
      return `paid ${amount}`
    },
  })
}

export const ASKS: Script = [{ text: 'I will pay.', calls: [{ tool: 'pay', args: { amount: 5 } }] }, 'Paid.']

export function desk(script: Script, options: { readonly store?: Store; readonly tools?: readonly Tool[] } = {}): Desk {
  const { store = memory() } = options
  const paid: number[] = []
  const harness = new Harness({ model: scripted(script), tools: options.tools ?? [payTool(paid)], store, secrets: {} })
  return { harness, store, paid }
}

export type Copy = Record<string, unknown> & { events: Event[]; blobs: Record<string, unknown> }

/** A forged change whose checksum is recomputed, too. */
export function forged(value: Portable, change: (copy: Copy) => void): unknown {
  const copy = structuredClone(value) as unknown as Copy
  change(copy)
  const { checksum: _checksum, ...rest } = copy
  return { ...rest, checksum: hash('sha256', canonicalJson(rest)) }
}
