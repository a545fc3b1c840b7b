// Admission as a whole: the text of a call in, a proposal out. The pure parts have their own
// examples in repair.test.ts and truncated.test.ts; what a refused call says is invalid.test.ts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Harness, memory, type Tool } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Model, Reply } from '../../src/ports/model.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { admitAll, edit, one, open, ran, refusal, tool } from './admitting.ts'
import { runs } from '../runs.ts'

describe('admission', () => {
  it('B-ADMIT-1: valid arguments are admitted as they are and at once; no text means no arguments', () => {
    expect(ran(tool(edit), '{"path":"a","old_string":"b"}')).toEqual({ path: 'a', old_string: 'b' })
    for (const text of ['', '  ', '{}', 'null', '""', '[]']) expect(ran(tool(open), text)).toEqual({})
  })

  it('B-ADMIT-4: the repaired value is what is proposed, so history, approval and execution see the same', () => {
    const asked = tool(edit, { approval: 'ask' })
    const repaired = one(asked, '{"filePath":"a","oldString":"b","replaceAll":"true"}')
    const direct = one(asked, '{"path":"a","old_string":"b","replace_all":true}')
    expect(repaired.args).toEqual({ path: 'a', old_string: 'b', replace_all: true })
    expect(repaired.digest).toBe(direct.digest)
  })

  it('B-ADMIT-3: a repair is kept only if the whole is clean; a required value is never invented', () => {
    const { message, kind, args } = refusal(tool(edit), '{"filePath":"a","replaceAll":"true"}')
    expect(kind).toBe('InvalidInput')
    expect(message).toContain('- old_string: ')
    expect(args).toEqual({ filePath: 'a', replaceAll: 'true' })
    expect(refusal(tool(edit), '{"filePath":"a","oldString":"b","colour":1}').args).toHaveProperty('filePath')
  })

  it('B-ADMIT-18: a tool declares other names of its fields, and they are read as these at any depth', () => {
    const aliases = { file_path: 'path', old_str: 'old_string' }
    const declared = tool(edit, { aliases })
    expect(ran(declared, '{"file_path":"a","old_str":"b"}')).toEqual({ path: 'a', old_string: 'b' })
    expect(ran(declared, '{"filePath":"a","old_str":"b"}')).toEqual({ path: 'a', old_string: 'b' })
    const nested = tool(z.object({ edits: z.array(edit) }), { aliases })
    expect(ran(nested, '{"edits":[{"file_path":"a","old_str":"b"}]}')).toEqual({
      edits: [{ path: 'a', old_string: 'b' }],
    })
    // Also where the field may be left out, and a forgiving schema would drop the other name.
    expect(ran(tool(open, { aliases: { file_path: 'path' } }), '{"file_path":"a"}')).toEqual({ path: 'a' })
    expect(refusal(tool(edit), '{"file_path":"a","old_string":"b"}').kind).toBe('InvalidInput')
    expect(() => tool(edit, { aliases: { name: 'title' } })).toThrow('means "title", which is no field of it')
  })

  it('B-ADMIT-19: a field that is given under two names is refused if they differ, and is one field if they do not', () => {
    const aliases = { file_path: 'path', filename: 'path' }
    for (const subject of [tool(edit, { aliases }), tool(edit.extend({}).strict(), { aliases })]) {
      for (const text of [
        '{"path":"a","file_path":"b","old_string":"c"}',
        '{"file_path":"b","path":"a","old_string":"c"}',
        '{"file_path":"a","filename":"b","old_string":"c"}',
        '{"path":"a","filePath":"b","old_string":"c"}',
        '{"colour":1,"path":"a","filePath":"b","old_string":"c"}',
      ]) {
        const { message, retryKind } = refusal(subject, text)
        expect(retryKind).toBe('ValidationError')
        expect(message).toMatch(/- path: is given as ".+" and ".+", with different values. Give "path" alone/)
      }
      const same = '{"path":"a","file_path":"a","filename":"a","old_string":"c"}'
      expect(ran(subject, same)).toEqual({ path: 'a', old_string: 'c' })
    }
  })

  it('B-ADMIT-18: the bundled tools understand the names that other file tools use', () => {
    const tools = new Map(fileTools({ root: '.' }).map((each) => [each.name, each]))
    const args = (name: string, text: string): Json => {
      const given = tools.get(name)
      if (!given) throw new Error(name)
      return ran({ ...given, name: 'act' }, text)
    }
    for (const name of ['file_path', 'filePath', 'filename', 'file'])
      expect(args('read', `{"${name}":"a"}`)).toEqual({ path: 'a' })
    expect(args('write', '{"file_path":"a","contents":"b"}')).toEqual({ path: 'a', content: 'b' })
    const edited = { edits: [{ path: 'a', old_string: 'b', new_string: 'c' }] }
    expect(args('edit', '{"file_path":"a","old_str":"b","new_str":"c"}')).toEqual(edited)
    expect(args('edit', '{"file_path":"a","edits":[{"old_str":"b","new_str":"c"}]}')).toEqual(edited)
    expect(args('edit', '{"edits":[{"filename":"a","old_text":"b","new_text":"c"}]}')).toEqual(edited)
    expect(args('list', '{"directory":"a"}')).toEqual({ path: 'a' })
    const twice = '{"path":"a","file_path":"z","old_str":"b","new_str":"c"}'
    expect(refusal({ ...(tools.get('edit') as Tool), name: 'act' }, twice).message).toContain('different values')
  })

  it('B-ADMIT-5: an echoed envelope is opened, also around text, fences and repairs', () => {
    const wanted = { path: 'a', old_string: 'b' }
    const json = JSON.stringify(wanted)
    for (const key of ['properties', 'arguments', 'args', 'parameters', 'params', 'param', 'input']) {
      expect(ran(tool(edit), `{"${key}":${json}}`)).toEqual(wanted)
    }
    const others = [
      JSON.stringify(json),
      `\`\`\`json\n${json}\n\`\`\``,
      JSON.stringify({ arguments: json }),
      JSON.stringify({ name: 'act', arguments: wanted }),
      JSON.stringify({ type: 'object', properties: wanted, required: ['path'] }),
      '{"input":{"args":{"filePath":"a","oldString":"b"}}}',
    ]
    for (const text of others) expect(ran(tool(edit), text)).toEqual(wanted)
  })

  it('B-ADMIT-5: an envelope is left alone if the tool takes such a field, names another tool, or holds what is still invalid', () => {
    const takes = tool(z.object({ properties: z.object({ path: z.string() }) }))
    expect(ran(takes, '{"properties":{"path":"a"}}')).toEqual({ properties: { path: 'a' } })
    const both = tool(z.object({ input: z.string().optional(), path: z.string().optional() }))
    expect(refusal(both, '{"input":{"path":"a"}}').args).toEqual({ input: { path: 'a' } })
    expect(refusal(tool(edit), '{"name":"other","arguments":{"path":"a","old_string":"b"}}').kind).toBe('InvalidInput')
    expect(refusal(tool(edit), '{"arguments":{"path":"a"}}').args).toEqual({ arguments: { path: 'a' } })
    expect(ran(tool(z.looseObject({})), '{"arguments":{"path":"a"}}')).toEqual({ arguments: { path: 'a' } })
  })

  it('B-ADMIT-6: arguments that a forgiving schema would drop silently are read before they are validated', () => {
    expect(ran(tool(open), '{"arguments":{"path":"a"}}')).toEqual({ path: 'a' })
    const aliased = '{"path":"a","old_string":"b","replaceAll":true}'
    expect(ran(tool(edit), aliased)).toEqual({ path: 'a', old_string: 'b', replace_all: true })
    const many = tool(z.object({ edits: z.array(edit) }))
    expect(ran(many, `{"edits":[${aliased}]}`)).toEqual({ edits: [{ path: 'a', old_string: 'b', replace_all: true }] })
    expect(ran(tool(open), '{"path":"[a.ts](a.ts)"}')).toEqual({ path: 'a.ts' })
    expect(ran(tool(open), '{"path":"[slug].ts"}')).toEqual({ path: '[slug].ts' })
  })

  it('B-ADMIT-7: text that only lacks its brackets is closed; half a string or number is never run', () => {
    const limited = tool(z.object({ path: z.string(), limit: z.int().optional() }), { effect: 'read' })
    expect(ran(limited, '{"path":"a"')).toEqual({ path: 'a' })
    expect(ran(limited, '{"path":"a","limit":2,}')).toEqual({ path: 'a', limit: 2 })
    for (const text of ['{"path":"a', '{"path":"a","limit":2', '{"path":"a","limit":"2']) {
      expect(refusal(limited, text).message).toContain('ends inside a value')
    }
  })

  it('B-ADMIT-7: a lost tail is forgiven to a tool that reads, and to no other', () => {
    const text = '{"path":"a","dry_r'
    const input = z.object({ path: z.string(), dry_run: z.boolean().optional() })
    expect(ran(tool(input, { effect: 'read' }), text)).toEqual({ path: 'a' })
    for (const effect of ['idempotent', 'once'] as const) {
      expect(refusal(tool(input, { effect }), text).message).toContain('Received: path (string, 1 characters: "a")')
    }
  })

  it('B-ADMIT-7: unreadable text means no arguments only where none can be lost and none is required', () => {
    expect(ran(tool(z.object({})), 'go ahead')).toEqual({})
    expect(ran(tool(open, { effect: 'read' }), 'go ahead')).toEqual({})
    expect(refusal(tool(open), 'go ahead').retryKind).toBe('InvalidArguments')
    expect(refusal(tool(edit, { effect: 'read' }), 'go ahead').retryKind).toBe('InvalidArguments')
  })

  it('B-ADMIT-13: the tool’s own normaliser comes before repair', () => {
    const normalise = (args: Json): Json =>
      args !== null && typeof args === 'object' && !('edits' in args) ? { edits: [args] } : args
    const subject = tool(z.strictObject({ edits: z.array(edit.strict()) }), { normalise })
    const wanted = { edits: [{ path: 'a', old_string: 'b' }] }
    expect(ran(subject, '{"path":"a","old_string":"b"}')).toEqual(wanted)
    expect(ran(subject, '{"filePath":"a","oldString":"b"}')).toEqual(wanted)
  })

  it('B-ADMIT-13: a schema or normaliser that throws is a result like a handler that throws, and counts no retry', async () => {
    const boom = (): never => {
      throw new TypeError('no schema today')
    }
    const later = { ...tool(open), validate: () => Promise.reject(new TypeError('no schema today')) }
    expect(refusal(tool(open, { normalise: boom }), '{}')).toMatchObject({ kind: 'Failed', retryKind: undefined })
    expect(refusal({ ...tool(open), validate: boom }, '{}').message).toContain('TypeError: no schema today')
    const [proposal] = await admitAll([later], '{}')
    expect(proposal?.gate).toMatchObject({ failure: { kind: 'Failed' } })
  })

  it('B-ADMIT-14: a schema that checks later holds its place among the calls, and is repaired too', async () => {
    const later = tool(z.object({ deep: z.boolean() }).refine(() => Promise.resolve(true)))
    const admitted = admitAll([later], '{"deep":"true"}', '{"deep":false}', '{"deep":1}')
    expect(admitted).toBeInstanceOf(Promise)
    const proposals = await admitted
    expect(proposals.map(({ id }) => id)).toEqual(['id-0', 'id-1', 'id-2'])
    expect(proposals.map(({ args }) => args)).toEqual([{ deep: true }, { deep: false }, { deep: 1 }])
    expect(proposals[2]?.gate).toMatchObject({ type: 'refuse', retryKind: 'ValidationError' })
  })
})

describe('admission against hostile text', () => {
  it('B-ADMIT-12: `__proto__` and `constructor` are plain data; nothing is polluted', () => {
    const text = '{"__proto__":{"evil":1},"constructor":{"prototype":{"evil":1}},"filePath":"a","oldString":"b"}'
    const { args } = refusal(tool(edit), text)
    expect(Object.keys(args as object)).toContain('__proto__')
    expect(ran(tool(open), '{"arguments":{"__proto__":{"path":"evil"}}}')).toEqual({})
    expect(refusal(tool(edit), '{"__proto__":{"path":"a","old_string":"b"}}').retryKind).toBe('ValidationError')
    expect(({} as Record<string, unknown>)['evil']).toBeUndefined()
  })

  it('B-ADMIT-12: arguments nested without end are refused, not a crash', () => {
    const subject = tool(z.object({ any: z.any() }), { approval: 'ask' })
    for (const n of [300, 5000, 200_000]) {
      expect(refusal(subject, `{"any":${'['.repeat(n)}${']'.repeat(n)}}`).kind).toBe('InvalidInput')
      expect(refusal(subject, `{"any":${'{"any":'.repeat(n)}`).kind).toBe('InvalidInput')
    }
    expect(one(subject, `{"any":${'['.repeat(200)}${']'.repeat(200)}}`).gate?.type).toBe('ask')
  })

  it('B-ADMIT-2: the flat form of edit is understood with the names of other tools, too', () => {
    const act = fileTools({ root: '.' }).find(({ name }) => name === 'edit') as Tool
    const edits = [{ path: 'a.txt', old_string: 'x', new_string: 'y' }]
    expect(ran({ ...act, name: 'act' }, '{"filePath":"a.txt","oldString":"x","newString":"y"}')).toEqual({ edits })
  })

  it('B-ADMIT-17: what a schema makes of arguments must be JSON, and is refused with what it made', () => {
    const made = (at: (text: string) => unknown) =>
      refusal(tool(z.object({ at: z.string().transform(at) })), '{"at":"2026"}')
    for (const [at, what] of [
      [(text: string) => new Date(text), 'a Date'],
      [(text: string) => new Set([text]), 'a Set'],
      [(text: string) => BigInt(text), 'a bigint'],
      [() => Number.NaN, 'NaN'],
      [() => [{ deep: [undefined] }], 'undefined'],
    ] as const)
      expect(made(at)).toMatchObject({
        kind: 'Failed',
        message: expect.stringContaining(`made ${what} of the arguments`) as string,
      })
    expect(ran(tool(z.object({ n: z.string().transform(Number), left: z.string().optional() })), '{"n":"5"}')).toEqual({
      n: 5,
    })
  })

  it('B-ADMIT-15: whatever the text, admission never throws, and what runs is valid and comes back unchanged', () => {
    const input = z.strictObject({
      path: z.string(),
      deep: z.boolean().optional(),
      names: z.array(z.string()).optional(),
    })
    const subject = tool(input, { effect: 'read' })
    const leaf = fc.oneof(fc.string(), fc.constantFrom('true', '[a](a)', '["x"]', null, 7, true, {}, []))
    const names = fc.constantFrom('path', 'filePath', 'deep', 'names', 'arguments', 'input', '__proto__', 'x')
    const object = fc
      .array(fc.tuple(names, leaf), { maxLength: 4 })
      .map((all) => JSON.stringify(Object.fromEntries(all)))
    const wrapped = fc.oneof(
      object,
      object.map((text) => `{"arguments":${text}}`),
      object.map((text) => JSON.stringify(text)),
    )
    const cut = fc.tuple(wrapped, fc.nat(80)).map(([text, end]) => text.slice(0, end))
    fc.assert(
      fc.property(fc.oneof(fc.string(), wrapped, cut), (text) => {
        const proposal = one(subject, text)
        if (proposal.gate) return
        expect(input.safeParse(proposal.args).success).toBe(true)
        expect(ran(subject, JSON.stringify(proposal.args))).toEqual(proposal.args)
      }),
      { numRuns: runs(3000) },
    )
  })
})

describe('refused calls in a run', () => {
  function rawModel(...replies: readonly (readonly string[])[]): Model {
    let taken = 0
    return {
      name: 'raw',
      call: () => {
        const texts = replies[taken++]
        const calls = (texts ?? []).map((args, i) => ({ id: `c${taken}-${i}`, tool: 'act', args }))
        const reply: Reply = {
          type: 'reply',
          parts: texts ? [] : [{ type: 'text', text: 'done' }],
          calls,
          finish: texts ? 'calls' : 'stop',
          usage: null,
        }
        return Promise.resolve(reply)
      },
    }
  }

  async function outcome(subject: Tool, ...replies: readonly (readonly string[])[]): Promise<string> {
    const store = memory()
    const harness = new Harness({ model: rawModel(...replies), tools: [subject], store })
    try {
      const { status, stopReason } = await harness.run('Go.')
      return `${status} ${stopReason}`
    } finally {
      await harness.close()
      await store.close()
    }
  }

  it('B-ADMIT-10: malformed arguments are retried within the tool’s budget and then succeed', async () => {
    const seen: unknown[] = []
    const execute = (args: unknown): string => {
      seen.push(args)
      return 'done'
    }
    const status = await outcome(tool(edit, { execute, retries: 1 }), ['{"path'], ['{"filePath":"a","oldString":"b"}'])
    expect(status).toMatch(/^completed/)
    expect(seen).toEqual([{ path: 'a', old_string: 'b' }])
  })

  it('B-ADMIT-10: over the budget the run ends; the failures of one reply count once; none ran', async () => {
    expect(await outcome(tool(edit, { retries: 1 }), ['{}'], ['{"path'])).toBe('failed tool_retries_exceeded')
    expect(await outcome(tool(edit, { retries: 1 }), ['{}', '{"path'])).toBe('completed end_turn')
    expect(await outcome(tool(edit, { retries: 0 }), ['7'])).toBe('failed tool_retries_exceeded')
  })
})
