// One tool and one text through admission, for the tests that look at what comes out. No test itself.
import { expect } from 'vitest'
import { z } from 'zod'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { defineTool, type Tool } from '../../src/index.ts'
import type { Json, Proposal } from '../../src/kernel/content.ts'
import { admitCalls } from '../../src/tools/core/admit.ts'
import { Redactor } from '../../src/runtime/redact/redactor.ts'

export const edit = z.object({ path: z.string(), old_string: z.string(), replace_all: z.boolean().optional() })
export const open = z.object({ path: z.string().optional(), limit: z.int().optional() })

type Extra = Partial<Parameters<typeof defineTool<unknown>>[0]>

export function tool(input: z.ZodType, extra: Extra = {}): Tool {
  return defineTool<unknown>({ name: 'act', description: 'acts', input, execute: () => 'done', ...extra })
}

export function admitAll(tools: readonly Tool[], ...texts: readonly string[]): ReturnType<typeof admitCalls> {
  const byName = new Map(tools.map((one) => [one.name, one]))
  const calls = texts.map((args, i) => ({ id: `id-${i}`, tool: 'act', args }))
  return admitCalls(calls, byName, {
    now: 0,
    clock: runtimeClock,
    approvalMs: null,
    policy: { rules: [] },
    environment: null,
    redactor: new Redactor({}),
  })
}

export function one(subject: Tool, text: string): Proposal {
  const admitted = admitAll([subject], text)
  if (admitted instanceof Promise) throw new Error('admission waited for nothing')
  return admitted[0] as Proposal
}

/** The arguments of a call that will run; fails for one that was refused. */
export function ran(subject: Tool, text: string): Json {
  const proposal = one(subject, text)
  expect(proposal.gate).toBeUndefined()
  return proposal.args
}

export function refusal(
  subject: Tool,
  text: string,
): { message: string; kind: string; retryKind: string | undefined; args: Json } {
  const { gate, args } = one(subject, text)
  if (gate?.type !== 'refuse') throw new Error(`not refused: ${JSON.stringify(args)}`)
  return { message: gate.failure.message, kind: gate.failure.kind, retryKind: gate.retryKind, args }
}
