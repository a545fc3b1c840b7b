// The tool boundary through a whole harness: what the host supplies, what is bounded for everyone, what an interrupt waits for,
// which tools there are, and how the model sees its own calls again.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Fault,
  Harness,
  memory,
  type Message,
  output,
  scripted,
  sqlite,
  type Tool,
} from '../../src/index.ts'
import type { ToolAccess } from '../../src/runtime/state/toolbox.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import type { OutputMetadata } from '../../src/tools/core/tool-output.ts'
import { chaosOf, hosted } from '../models/hosted-stage.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-boundary-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const input = z.object({})
const results = (messages: readonly Message[]) => messages.filter((message) => message.role === 'tool')

describe('injected arguments', () => {
  it('B-TOOL-11: the model is not told of them and cannot set them; the handler gets them, and no event holds them (TA-13)', async () => {
    const got: unknown[] = []
    const seen: string[] = []
    const tool = defineTool({
      name: 'lookup',
      description: 'looks up',
      input: z.object({ name: z.string(), tenant: z.string() }),
      injected: { tenant: () => 'acme-17' },
      effect: 'read',
      execute: (args) => {
        got.push(args)
        return 'found'
      },
    })
    const script = scripted((request, n) => {
      seen.push(JSON.stringify(request.tools))
      return n === 0 ? { calls: [{ tool: 'lookup', args: { name: 'a', tenant: 'other' } }] } : 'done'
    })
    const harness = new Harness({ model: script, tools: [tool] })
    const { sessionId, status } = await harness.run('go')
    expect(status).toBe('completed')
    expect(got).toEqual([{ name: 'a', tenant: 'acme-17' }])
    expect(seen.join()).not.toContain('tenant')
    expect(JSON.stringify((await harness.session(sessionId).events()).events)).not.toMatch(/acme-17|other/)
    await harness.close()
  })
})

describe('what is far too long', () => {
  it('B-TOOL-12: of a result over 200,000 characters the model sees both ends, and the whole can be read (S1-27)', async () => {
    const long = `start ${'x'.repeat(300_000)} end`
    const tool = defineTool({ name: 'flood', description: 'f', input, effect: 'read', execute: () => long })
    const store = memory()
    const model = scripted([{ calls: [{ tool: 'flood' }] }, 'done'])
    const harness = new Harness({ model, tools: [tool], store, results: { compression: 'off' } })
    const { messages, sessionId } = await harness.run('go')
    const [result] = results(messages)
    const content = result?.role === 'tool' && typeof result.content === 'string' ? result.content : ''
    expect(content.length).toBeLessThan(60_000)
    expect([content.startsWith('start'), content.endsWith('end')]).toEqual([true, true])
    const event = (await harness.session(sessionId).events()).events.find(({ type }) => type === 'agent.tool_result')
    const { metadata } = event as {
      readonly metadata?: { readonly blob: string; readonly tool_output_clipped: boolean }
    }
    expect(metadata?.tool_output_clipped).toBe(true)
    expect(new TextDecoder().decode((await store.blob(metadata?.blob ?? ''))?.data)).toBe(long)
    await harness.close()
  })
})

describe('what cannot be written down', () => {
  it('B-TOOL-15: is left out of the metadata, and the result of a call that happened is kept', async () => {
    const loop: Record<string, unknown> = {}
    loop['itself'] = loop
    for (const [odd, kept] of [
      [{ id: 12n }, { left_out: expect.stringContaining('BigInt') as string }],
      [loop, { left_out: expect.stringContaining('circular') as string }],
      [{ at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ] as const) {
      const metadata = odd as unknown as OutputMetadata
      const tool = defineTool({
        name: 'pay',
        description: 'p',
        input,
        execute: () => output({ content: 'paid', metadata }),
      })
      const harness = new Harness({ model: scripted([{ calls: [{ tool: 'pay' }] }, 'done']), tools: [tool] })
      const { sessionId, status } = await harness.run('go')
      const { events } = await harness.session(sessionId).events()
      const result = events.find((event) => event.type === 'agent.tool_result')
      expect([status, result]).toMatchObject(['completed', { status: 'ok', content: 'paid', metadata: kept }])
      await harness.close()
    }
  })
})

describe('a call that may have taken effect', () => {
  it('B-TOOL-16: says that it ran out of time, or was interrupted, and not that a worker was lost', async () => {
    let running = (): void => {}
    const started = new Promise<void>((resolve) => {
      running = resolve
    })
    const stops = (timeoutMs: number): Tool =>
      defineTool({
        name: 'pay',
        description: 'p',
        input,
        timeoutMs,
        execute: (_args, { signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(new Error('stopped')))
            if (timeoutMs > 20) running()
          }),
      })
    const script = [{ calls: [{ tool: 'pay' }] }, 'done']
    const harnesses = [20, 60_000].map((ms) => new Harness({ model: scripted(script), tools: [stops(ms)] }))
    const [late, cut] = await Promise.all(harnesses.map((harness) => harness.open()))
    const { calls } = (await late?.run('go')) ?? { calls: [] }
    expect(calls[0]).toMatchObject({
      status: 'unknown',
      content: expect.stringMatching(/^Timed out after 20 ms\. It may/) as string,
    })
    const run = cut?.run('go')
    await started
    await cut?.interrupt()
    expect((await run)?.calls[0]).toMatchObject({
      status: 'unknown',
      content: expect.stringMatching(/^Stopped while it ran\. It may or may not have taken effect/) as string,
    })
    for (const harness of harnesses) await harness.close()
  })
})

describe('a call', () => {
  it('B-TOOL-17: knows whether a person was asked about it and said yes; a rule is no person', async () => {
    const seen: boolean[] = []
    const tool = defineTool({
      name: 'save',
      description: 's',
      input,
      approval: 'ask',
      execute: (_args, { approved }) => void seen.push(approved),
    })
    const script = [{ calls: [{ tool: 'save' }] }, 'done']
    const asked = new Harness({ model: scripted(script), tools: [tool] })
    const { sessionId, pending } = await asked.run('go')
    for (const { callId } of pending) await asked.session(sessionId).decide({ callId, allow: true, by: 'ana' })
    await asked.session(sessionId).run()
    await asked.close()
    const policy = { rules: [{ effect: 'allow', tool: 'save' }] } as const
    const ruled = new Harness({ model: scripted(script), tools: [tool], approvals: { policy } })
    await ruled.run('go')
    await ruled.close()
    expect(seen).toEqual([true, false])
  })
})

describe('an interrupt', () => {
  it.each(['cancel', 'block'] as const)(
    'B-TOOL-13: of a call that says %s is aborted, or waited for (S4-29)',
    async (onInterrupt) => {
      let running = (): void => {}
      const started = new Promise<void>((resolve) => {
        running = resolve
      })
      let finish = (): void => {}
      const asked = new Promise<void>((resolve) => {
        finish = resolve
      })
      let aborted = false
      const tool = defineTool({
        name: 'save',
        description: 's',
        input,
        effect: 'idempotent',
        onInterrupt,
        execute: async (_args, { signal }) => {
          running()
          const cut = new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => {
              aborted = true
              resolve()
            })
          })
          await Promise.race([asked, cut])
          signal.throwIfAborted()
          return 'saved'
        },
      })
      const harness = new Harness({ model: scripted([{ calls: [{ tool: 'save' }] }, 'done']), tools: [tool] })
      const session = await harness.open()
      const run = session.run('go')
      await started
      await session.interrupt()
      if (onInterrupt === 'block') finish()
      const { status, calls } = await run
      expect([status, calls[0]?.status, aborted]).toEqual(
        onInterrupt === 'block' ? ['interrupted', 'ok', false] : ['interrupted', 'aborted', true],
      )
      await harness.close()
    },
  )
})

describe('which tools there are', () => {
  const named = (name: string): Tool =>
    defineTool({ name, description: name, input, effect: 'read', execute: () => name })
  const offered = async (toolAccess: ToolAccess) => {
    let names: readonly string[] = []
    const script = scripted((request) => {
      names = request.tools.map(({ name }) => name)
      return 'done'
    })
    const harness = new Harness({ model: script, tools: ['a', 'b', 'c'].map(named), toolAccess })
    await harness.run('go')
    await harness.close()
    return names
  }

  it('B-TOOLBOX-6: a missing list is all tools and an empty one is none; a denial wins over what is allowed (TRAP-13, S4-29)', async () => {
    expect(await offered({})).toEqual(['a', 'b', 'c'])
    expect(await offered({ allow: [] })).toEqual([])
    expect(await offered({ allow: ['a', 'b', 'ghost'] })).toEqual(['a', 'b'])
    expect(await offered({ allow: ['a', 'b'], deny: ['b'] })).toEqual(['a'])
    expect(await offered({ deny: ['c'] })).toEqual(['a', 'b'])
  })
})

describe('its own calls', () => {
  const add = defineTool({
    name: 'add',
    description: 'adds',
    input: z.object({ a: z.number(), b: z.number() }),
    effect: 'read',
    execute: ({ a, b }) => `${a + b}`,
  })

  it.each(['chat', 'responses'] as const)(
    'B-ADMIT-16: a model that reads its calls as text sees again exactly what it wrote, unless it was repaired (S1-19, %s)',
    async (dialect) => {
      const spelled = '{ "b": 2,  "a": 1.0 }'
      const chaos = await chaosOf([{ calls: [{ tool: 'add', rawArgs: spelled }] }, { text: 'Done.' }])
      const harness = new Harness({ model: hosted(chaos, dialect), tools: [add] })
      const result = await harness.run('add')
      expect(result.calls[0]).toMatchObject({ args: { a: 1, b: 2 }, status: 'ok' })
      expect(JSON.stringify(chaos.requests.at(-1))).toContain(JSON.stringify(spelled).slice(1, -1))
      await harness.close()
    },
  )
})

describe('an empty answer', () => {
  it.each([
    [undefined, 1, 2, 'completed'],
    [undefined, 2, 2, 'failed'],
    [0, 1, 1, 'failed'],
    [3, 3, 4, 'completed'],
    [3, 4, 4, 'failed'],
  ] as const)(
    'B-LIMIT-9: that was cut is asked for again; with emptyRetries %s and %i of them the model is asked %i times (AC-75)',
    async (emptyRetries, empty, asked, status) => {
      let requests = 0
      const script = scripted((_request, n) => {
        requests += 1
        return n < empty ? { text: '', finish: 'length' as const } : 'here'
      })
      const limits = emptyRetries === undefined ? {} : { emptyRetries }
      const harness = new Harness({ model: script, limits })
      const result = await harness.run('go')
      expect([requests, result.status, result.flags.empty]).toEqual([asked, status, status === 'failed'])
      await harness.close()
    },
  )

  it.each(['prompted', 'tool'] as const)(
    'B-LIMIT-9: that was cut is not asked for again with emptyRetries 0, also where a %s answer is wanted',
    async (mode) => {
      let requests = 0
      const model = scripted(() => {
        requests += 1
        return { text: '', finish: 'length' as const }
      })
      const harness = new Harness({ model, limits: { emptyRetries: 0 }, output: { schema: input, mode } })
      expect(await harness.run('go')).toMatchObject({ status: 'failed', stopReason: 'empty_answer' })
      expect(requests).toBe(1)
      await harness.close()
    },
  )
})

describe('people', () => {
  const risky = (ran: string[]): Tool =>
    defineTool({ name: 'risky', description: 'r', input, approval: 'ask', execute: () => ran.push('x') })

  it('B-POLICY-19: are asked so many times an hour and not more: further questions are refused (threat 34)', async () => {
    const ran: string[] = []
    const calls = Array.from({ length: 5 }, () => ({ tool: 'risky' }))
    const harness = new Harness({
      model: scripted([{ calls }, 'done']),
      tools: [risky(ran)],
      approvals: { policy: { rules: [], asksPerHour: 2 } },
    })
    const first = await harness.run('go')
    expect([first.status, first.pending.length]).toEqual(['requires_action', 2])
    const session = harness.session(first.sessionId)
    for (const { callId } of first.pending) await session.decide({ callId, allow: true, by: 'ann' })
    const end = await session.run()
    expect([end.status, ran.length]).toEqual(['completed', 2])
    expect(end.calls.map(({ status }) => status)).toEqual(['ok', 'ok', 'denied', 'denied', 'denied'])
    await harness.close()
  })

  it.each(['memory', 'sqlite'])(
    'B-APPROVE-8: of two decisions at the same moment one is taken and the other is refused (S4-13, %s)',
    async (where) => {
      for (let round = 0; round < 10; round++) {
        const ran: string[] = []
        const store = where === 'memory' ? memory() : sqlite(join(folder, `two-${round}.db`))
        const harness = new Harness({
          model: scripted([{ calls: [{ tool: 'risky' }] }, 'done']),
          tools: [risky(ran)],
          store,
        })
        const { sessionId, pending } = await harness.run('go')
        const session = harness.session(sessionId)
        const callId = pending[0]?.callId ?? ''
        const said = await Promise.allSettled(
          [true, false].map((allow) => session.decide({ callId, allow, by: allow ? 'ann' : 'bob' })),
        )
        const refused = said.filter((each) => each.status === 'rejected')
        expect(refused.map(({ reason }) => (reason as Fault).code)).toEqual(['decision_stale'])
        const end = await session.run()
        const allowed = said[0]?.status === 'fulfilled'
        expect([end.status, ran.length]).toEqual(['completed', allowed ? 1 : 0])
        await harness.close()
        await store.close()
      }
    },
  )

  it('B-APPROVE-9: a decision without the role is refused at once, and one with the role is still taken', async () => {
    const ran: string[] = []
    const policy = { rules: [{ effect: 'ask', tool: 'risky', roles: ['lead'] }] } as const
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'risky' }] }, 'done']),
      tools: [risky(ran)],
      approvals: { policy },
    })
    const { sessionId, pending } = await harness.run('go')
    const session = harness.session(sessionId)
    const callId = pending[0]?.callId ?? ''
    await expect(session.decide({ callId, allow: true, by: 'bob' })).rejects.toMatchObject({ code: 'invalid_input' })
    await session.decide({ callId, allow: true, by: 'ann', role: 'lead' })
    expect([(await session.run()).status, ran.length]).toEqual(['completed', 1])
    await harness.close()
  })
})

describe('edit after a crash', () => {
  it('B-FILES-70: an edit that was lost after it happened is verified by the files; one that cannot be told is unknown (F8)', async () => {
    const tools = fileTools({ root: folder })
    const edit = tools.find(({ name }) => name === 'edit')
    writeFileSync(join(folder, 'a.txt'), 'one NEW three')
    const args = { edits: [{ path: 'a.txt', old_string: 'two', new_string: 'NEW' }] }
    // Sound: a reconcile of files looks at files alone.
    const reconcile = (what: unknown): Promise<unknown> => Promise.resolve(edit?.reconcile?.(what, {} as never))
    expect(await reconcile(args)).toMatchObject({ ok: true, metadata: { verified: true } })
    writeFileSync(join(folder, 'a.txt'), 'one two three')
    expect(await reconcile(args)).toBeUndefined()
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('one two three')
  })
})
