// The calls of one turn, through the harness: order, places, how many at once, and what a failure does to its neighbours.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, output, type Script, scripted, ToolFailure, type Tool } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { boundContent } from '../../src/tools/core/bound-content.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { parallelLlmTool } from '../../src/tools/agents/parallel-llm.ts'
import { stage, typesOf } from './stage.ts'

type Extra = Partial<Parameters<typeof defineTool<object>>[0]>

function tool(name: string, execute: () => unknown, extra: Extra = {}): Tool {
  return defineTool({ name, description: name, input: z.object({}), effect: 'read', execute, ...extra })
}

/** Counts how many of its calls were open at the same time. Each is open until the event loop has turned a few times. */
function gauge() {
  let open = 0
  let most = 0
  let done = 0
  const execute = async (): Promise<string> => {
    open += 1
    most = Math.max(most, open)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    open -= 1
    return `${++done}`
  }
  return { execute, most: () => most, done: () => done }
}

/** What the model is shown of the calls of its last turn: id and whether it went well. */
function shown(request: Request): readonly (readonly [id: string, ok: boolean])[] {
  return request.messages.flatMap((message) => (message.role === 'tool' ? [[message.id, message.ok] as const] : []))
}

const many = (name: string, n: number) => Array.from({ length: n }, () => ({ tool: name }))

describe('the calls of a turn', () => {
  it('B-KERNEL-4: a slow one before a quick one keeps its place and id, and one request follows both (AC-13, AC-76)', async () => {
    const landed: string[] = []
    let quick = (): void => {}
    const after = new Promise<void>((resolve) => {
      quick = resolve
    })
    const slow = tool('slow', async () => {
      await after
      landed.push('slow')
    })
    const fast = tool('fast', () => {
      landed.push('fast')
      setImmediate(quick)
    })
    const requests: Request[] = []
    const script: Script = (request, n) => {
      requests.push({ ...request, messages: [...request.messages] })
      const calls = [
        { tool: 'slow', id: 'first' },
        { tool: 'fast', id: 'second' },
      ]
      return n === 0 ? { calls } : 'done'
    }
    const { session, harness } = await stage(script, { tools: [slow, fast] })
    expect(await session.run('go')).toMatchObject({ status: 'completed', usage: { modelRequests: 2 } })
    expect(landed).toEqual(['fast', 'slow'])
    expect(requests).toHaveLength(2)
    expect(shown(requests[1] as Request).map(([id]) => id)).toEqual(['first', 'second'])
    await harness.close()
  })

  it('B-KERNEL-5: one that is sequential, or a limit of one, makes all of them wait for each other (AC-14)', async () => {
    for (const [sequential, parallel, most] of [
      [true, 16, 1],
      [false, 1, 1],
      [false, 16, 3],
    ] as const) {
      const { execute, ...seen } = gauge()
      const tools = [tool('look', execute), tool('act', execute, { sequential })]
      const calls = [{ tool: 'look' }, { tool: 'look' }, { tool: 'act' }]
      const { session, harness } = await stage([{ calls }, 'done'], { tools, limits: { parallel } })
      await session.run('go')
      expect([seen.most(), seen.done()]).toEqual([most, 3])
      await harness.close()
      // Also what comes after the sequential one.
      const later = await stage([{ calls: calls.toReversed() }, 'done'], { tools, limits: { parallel } })
      await later.session.run('go')
      expect([seen.most(), seen.done()]).toEqual([most, 6])
      await later.harness.close()
    }
  })

  it('B-KERNEL-5: more of them than may be open at once are all done, sixteen at a time (AC-15)', async () => {
    const { execute, most, done } = gauge()
    const { session, harness } = await stage([{ calls: many('look', 40) }, 'done'], { tools: [tool('look', execute)] })
    expect(await session.run('go')).toMatchObject({ status: 'completed', usage: { toolCalls: 40 } })
    expect([most(), done()]).toEqual([16, 40])
    await harness.close()
  })

  it('B-HARNESS-7: what throws, hangs, does not fit or is unknown is shown in its place, and its neighbours are done (AC-16, AC-68, AC-76)', async () => {
    let fine = 0
    const tools = [
      tool('fine', () => ++fine),
      tool('boom', () => {
        throw new ToolFailure('Unavailable', 'Nobody is there.')
      }),
      tool('hang', () => new Promise(() => {}), { timeoutMs: 20 }),
      tool('picky', () => 'never', { input: z.object({ city: z.string() }) as z.ZodType<object> }),
    ]
    const calls = ['fine', 'boom', 'hang', 'picky', 'nowhere', 'fine'].map((name, i) => ({ tool: name, id: `c${i}` }))
    let texts = ''
    let places: ReturnType<typeof shown> = []
    const script: Script = (request, n) => {
      if (n === 0) return { calls }
      places = shown(request)
      texts = JSON.stringify(request.messages)
      return 'I see.'
    }
    const { session, harness } = await stage(script, { tools, graceMs: 10 })
    expect(await session.run('go')).toMatchObject({ status: 'completed', text: 'I see.' })
    expect(fine).toBe(2)
    expect(places).toEqual([
      ['c0', true],
      ['c1', false],
      ['c2', false],
      ['c3', false],
      ['c4', false],
      ['c5', true],
    ])
    for (const said of [/Nobody is there/, /Timed out/, /Invalid arguments/, /unknown tool/])
      expect(texts).toMatch(said)
    await harness.close()
  })
})

describe('retries of a turn', () => {
  it('B-LIMIT-5: bad calls of one tool in one reply use one retry; when it is used up no further request is made (AC-19)', async () => {
    let ran = 0
    let asked = 0
    const picky = tool('picky', () => ++ran, { input: z.object({ city: z.string() }) as z.ZodType<object>, retries: 1 })
    const script: Script = () => {
      asked += 1
      return { calls: many('picky', 3) }
    }
    const { session, harness } = await stage(script, { tools: [picky] })
    expect(await session.run('go')).toMatchObject({ status: 'failed', stopReason: 'tool_retries_exceeded' })
    expect([asked, ran]).toEqual([2, 0])
    await harness.close()
  })

  it('B-ADMIT-10: a tool that does not exist uses up no retries, however often it is called (AC-20)', async () => {
    // Other arguments each time: the same failure over and over is the breaker's matter.
    const script = [...[1, 2, 3].map((n) => ({ calls: [{ tool: 'nowhere', args: { n } }] })), 'Never mind.']
    const { session, harness } = await stage(script, { limits: { toolRetries: 0 } })
    expect(await session.run('go')).toMatchObject({ status: 'completed', text: 'Never mind.', usage: { toolCalls: 3 } })
    await harness.close()
  })

  it('B-TOOL-2: a validation that fails inside of a handler is a failure like others and no retry, thrown or rejected (AC-18)', async () => {
    const inner = z.object({ city: z.string() })
    const tools = [
      tool('thrown', () => inner.parse({}), { retries: 0 }),
      tool('rejected', () => inner.parseAsync({}), { retries: 0 }),
    ]
    const script = [{ calls: [{ tool: 'thrown' }, { tool: 'rejected' }] }, 'Noted.']
    const { session, harness } = await stage(script, { tools })
    expect(await session.run('go')).toMatchObject({ status: 'completed', text: 'Noted.' })
    const { events } = await session.events()
    const results = events.filter((event) => event.type === 'agent.tool_result')
    expect(results.map(({ status, retryKind }) => [status, retryKind])).toEqual([
      ['error', undefined],
      ['error', undefined],
    ])
    await harness.close()
  })
})

it('B-CLASS-14, B-CLASS-15: a call keeps the kind of failure that its tool gave, and Unknown is its own status unless it only reads', async () => {
  const fails = (name: string, kind: 'NotFound' | 'Unknown', effect: 'read' | 'idempotent' | 'once') =>
    tool(
      name,
      () => {
        throw new ToolFailure(kind, 'It was lost on the way.')
      },
      { effect },
    )
  const tools = [
    fails('missing', 'NotFound', 'once'),
    fails('pay', 'Unknown', 'once'),
    fails('set', 'Unknown', 'idempotent'),
    fails('look', 'Unknown', 'read'),
  ]
  const script = [{ calls: tools.map(({ name }) => ({ tool: name })) }, 'done']
  const { session, harness } = await stage(script, { tools })
  const { calls } = await session.run('go')
  expect(calls.map(({ status, failure }) => [status, failure?.kind])).toEqual([
    ['error', 'NotFound'],
    ['unknown', 'Unknown'],
    ['unknown', 'Unknown'],
    ['error', 'Unknown'],
  ])
  await harness.close()
})

it('B-RESULT-4: a result that was cut names the tool that reads on, by the name it has, or says that there is none', async () => {
  const root = mkdtempSync(join(tmpdir(), 'terret-batch-'))
  const long = 'x'.repeat(300_000)
  const tells = tool('tells', () => long)
  const bounds = defineTool({
    name: 'bounds',
    description: 'bounds',
    input: z.object({}),
    effect: 'read',
    execute: (_args, context) => output(boundContent(long, context)),
  })
  const NO_READERS: readonly Tool[] = []
  const read = fileTools({ root }).filter(({ name }) => name === 'read')
  for (const [readers, said] of [
    [read, /characters left out; read on with read, path "blob:[0-9a-f]{64}" …\]/],
    [read.map((each) => ({ ...each, name: 'open_file' })), /; read on with open_file, path "blob:/],
    [[], /; read on with retrieve_original, path "blob:/],
    [NO_READERS, /characters left out; no tool here can read them …\]/],
  ] as const) {
    const script = [{ calls: [{ tool: 'tells' }, { tool: 'bounds' }] }, 'done']
    const tools = [tells, bounds, ...readers]
    const deny = readers === NO_READERS ? ['retrieve_original'] : []
    const { session, harness } = await stage(script, { tools, compression: 'off', deny })
    const { calls } = await session.run('go')
    for (const { content } of calls) expect(content).toMatch(said)
    await harness.close()
  }
  rmSync(root, { recursive: true })
})

describe('a turn and its run', () => {
  it('B-ADMIT-4: what was repaired is what runs, what the log holds and what the model is shown of its own call (AC-65)', async () => {
    const ran: unknown[] = []
    const edit = defineTool({
      name: 'edit',
      description: 'edits',
      input: z.object({ path: z.string(), replace_all: z.boolean().optional() }),
      effect: 'read',
      execute: (args) => {
        ran.push(args)
        return 'done'
      },
    })
    let seen: unknown
    const script: Script = (request, n) => {
      if (n === 0) return { calls: [{ tool: 'edit', args: { filePath: 'a.ts', replaceAll: 'true' } }] }
      seen = request.messages.flatMap((m) => (m.role === 'assistant' ? m.calls.map((call) => call.args) : []))
      return 'done'
    }
    const { session, harness } = await stage(script, { tools: [edit] })
    await session.run('go')
    const repaired = { path: 'a.ts', replace_all: true }
    const { events } = await session.events()
    expect(ran).toEqual([repaired])
    expect(seen).toEqual([repaired])
    expect(events.find((event) => event.type === 'agent.message')).toMatchObject({ calls: [{ args: repaired }] })
    await harness.close()
  })

  it('B-DRIVE-11: a tool that changes its result after it gave it changes nothing of ours (F47)', async () => {
    const rows = [1, 2]
    const late = tool('late', () => {
      setImmediate(() => rows.push(3))
      return output({ ok: true, content: 'two rows', metadata: { rows } })
    })
    // The results of a turn are written together: this one is still open when the other is changed.
    const wait = tool('wait', () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
    const script = [{ calls: [{ tool: 'late' }, { tool: 'wait' }] }, 'done']
    const { session, harness } = await stage(script, { tools: [late, wait] })
    await session.run('go')
    expect(rows).toEqual([1, 2, 3])
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'agent.tool_result')).toMatchObject({ metadata: { rows: [1, 2] } })
    await harness.close()
  })

  it('B-LIMIT-3: a tool that hangs is stopped when the active time of the run is over (AC-80)', async () => {
    let stopped = false
    const hang = defineTool({
      name: 'hang',
      description: 'hangs',
      input: z.object({}),
      effect: 'read',
      execute: (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            stopped = true
            reject(new Error('stopped'))
          })
        }),
    })
    const { session, harness } = await stage([{ calls: [{ tool: 'hang' }] }, 'never'], {
      tools: [hang],
      limits: { activeMs: 1_500 },
    })
    expect(await session.run('go')).toMatchObject({ status: 'limit', limit: 'active_ms', usage: { modelRequests: 1 } })
    expect(stopped).toBe(true)
    expect((await typesOf(session)).slice(-2)).toEqual(['agent.tool_result', 'run.settled'])
    await harness.close()
  })

  it('B-FILES-73: a read after a write or an edit of the same reply sees what it did (S0-85)', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-batch-'))
    const calls = [
      { tool: 'write', args: { path: 'b', content: 'first\n' } },
      { tool: 'read', args: { path: 'b' } },
      { tool: 'edit', args: { path: 'b', old_string: 'first', new_string: 'second' } },
      { tool: 'read', args: { path: 'b' } },
    ]
    const { session, harness } = await stage([{ calls }, 'done'], { tools: fileTools({ root }) })
    const { calls: ran } = await session.run('go')
    expect(ran.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(ran[1]?.content).toContain('first')
    expect(ran[3]?.content).toContain('second')
    await harness.close()
    rmSync(root, { recursive: true })
  })

  it('B-PARALLEL-13: a read after prompts that write to a file sees the file; prompts without one run beside others', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-batch-'))
    const model = scripted(() => 'an answer')
    const tools = [...fileTools({ root }), parallelLlmTool({ model, root })]
    const source = { type: 'inline', prompts: ['one'] }
    const asks = (args: object) => ({ tool: 'parallel_llm', args: { source, ...args } })
    const read = { tool: 'read', args: { path: 'out.json' } }
    const script = [{ calls: [asks({ output_file: 'out.json' }), read] }, { calls: [asks({}), read] }, 'done']
    const { session, harness } = await stage(script, { tools })
    const { calls } = await session.run('go')
    expect(calls.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect(calls[1]?.content).toContain('an answer')
    const replies = (await session.events()).events.filter((event) => event.type === 'agent.message')
    const flags = replies.map((reply) => reply.calls.map(({ sequential }) => sequential))
    expect(flags).toEqual([[true, true], [undefined, undefined], []])
    await harness.close()
    rmSync(root, { recursive: true })
  })
})
