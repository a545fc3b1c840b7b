// What a refused call says, keeps and counts: the text for the model, the arguments for the history, the kind of retry.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Proposal } from '../../src/kernel/content.ts'
import { admitAll, edit, one, open, refusal, tool } from './admitting.ts'

describe('what the model is told', () => {
  const nested = tool(
    z
      .object({ path: z.string(), edits: z.array(z.object({ limit: z.int() })), content: z.string().optional() })
      .refine(({ path }) => path !== 'root', { message: 'not the root' }),
  )

  it('B-ADMIT-9: each problem with its dotted path and a short value, the root by name, a missing field without a value', () => {
    const { message } = refusal(nested, '{"edits":[{"limit":"many"}],"path":7}')
    expect(message.split('\n')).toEqual([
      'Invalid arguments for "act":',
      expect.stringMatching(/^- path: .* \(got 7\)$/),
      expect.stringMatching(/^- edits\.0\.limit: .* \(got "many"\)$/),
      'Received: edits (array, 1 items), path (number: 7)',
      'Expected: {path: string, edits: array, content?: string}',
    ])
    expect(refusal(nested, '{"path":"root","edits":[]}').message).toContain('\n- <root>: not the root\n')
    expect(refusal(nested, '{"edits":[]}').message).toMatch(/- path: [^(]*\n/)
    expect(refusal(nested, '[1]').message).toContain('not a JSON object.')
  })

  it('B-ADMIT-9: received fields are named with type, length and the first characters, never with their content', () => {
    const secret = `${'x'.repeat(60)}SECRET`
    const { message } = refusal(nested, JSON.stringify({ content: secret, edits: { [secret]: secret } }))
    expect(message).toContain('content (string, 66 characters: "xxx')
    expect(message).not.toContain('SECRET')
    expect(message).not.toContain('x'.repeat(41))
  })

  it('B-ADMIT-9: the text stays under 2 KB whatever is received', () => {
    const subject = tool(z.strictObject({ path: z.string(), names: z.array(z.int()) }))
    const names = Array.from({ length: 500 }, () => '𝄞'.repeat(200))
    const wide = Object.fromEntries(names.map((name, i) => [`${i}${name}`, name]))
    for (const args of [{ names }, wide, { names, ...wide }]) {
      const { message } = refusal(subject, JSON.stringify(args))
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(2048)
      expect(Buffer.from(message).toString()).toBe(message)
    }
    const many = Array.from({ length: 400 }, (_, i) => tool(open, { name: `tool_number_${i}` }))
    const [proposal] = admitAll(many, '{}') as readonly Proposal[]
    expect(proposal?.gate).toMatchObject({ type: 'refuse', failure: { kind: 'NotFound' } })
    expect(Buffer.byteLength(JSON.stringify(proposal?.gate))).toBeLessThan(2300)
  })

  it('B-ADMIT-11: a refused call keeps its original arguments for the history, unless they are long', () => {
    expect(refusal(nested, '{"path":7}').args).toEqual({ path: 7 })
    expect(refusal(nested, JSON.stringify({ content: 'x'.repeat(3000) })).args).toEqual({})
    expect(refusal(nested, '{"path":').args).toEqual({})
  })

  it('B-ADMIT-10: unreadable text, a schema failure and an unknown tool are told apart by the kind of retry', () => {
    expect(refusal(nested, '{"path').retryKind).toBe('InvalidArguments')
    expect(refusal(nested, '7').retryKind).toBe('InvalidArguments')
    expect(refusal(nested, '{}').retryKind).toBe('ValidationError')
    const [unknown] = admitAll([], '{}') as readonly Proposal[]
    expect(unknown?.gate).toEqual({
      type: 'refuse',
      failure: expect.objectContaining({ kind: 'NotFound' }) as unknown,
    })
    expect(one(tool(edit, { retries: 3 }), '{}').retries).toBe(3)
  })
})
