// Limits, notices and the breaker in a whole harness: what the model is told, what is refused, how the run ends. When the guard
// speaks is guard.test.ts and progress.test.ts; the counting is the kernel's (test/kernel/limits.test.ts).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type HarnessOptions,
  type Hook,
  memory,
  orThrow,
  type Request,
  type Script,
  type SessionHandle,
  type Step,
  ToolFailure,
} from '../../src/index.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import { FakeClock, settled } from '../models/fake-clock.ts'
import { fileTools } from '../../src/tools/index.ts'
import { makeFile, makeFolder, open } from '../stores/folder.ts'
import { calls, make, moment, tool, users } from './scene.ts'

const look = tool('look')
const notices = (request: Request) => users(request).filter((text) => text.startsWith('<harness_notice'))
const notes = async (session: SessionHandle) =>
  (await session.events()).events.flatMap((event) => (event.type === 'note.added' ? [event.text] : []))

/** Answers by these steps, and keeps every request. */
function recorded(steps: readonly Step[]): { readonly script: Script; readonly seen: Request[] } {
  const seen: Request[] = []
  const script: Script = (request, n) => {
    seen.push({ ...request, messages: [...request.messages] })
    return steps[n] ?? { error: 'bad_request', message: 'asked too often' }
  }
  return { script, seen }
}

function told(): { readonly hooks: readonly Hook[]; readonly events: string[] } {
  const events: string[] = []
  const hooks: readonly Hook[] = [
    { type: 'limit_reached', run: ({ limit, value, count }) => void events.push(`${limit} ${value} ${count}`) },
    { type: 'run_end', run: ({ result }) => void events.push(result.status) },
  ]
  return { hooks, events }
}

const LAST = 'This is the last model request of this run.'
const ONE_CALL = 'One tool call is left in this run.'
const NO_CALL = 'No tool calls are left in this run.'

describe('the limit of requests', () => {
  it('B-RUNLIMIT-1: of none asks no model, ends the run at its limit, and its end is told once (AC-1)', async () => {
    const { script, seen } = recorded(['never'])
    const { hooks, events } = told()
    const result = await make(script, { limits: { modelRequests: 0 }, hooks }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', stopReason: 'limit_reached', limit: 'model_requests' })
    expect(result).toMatchObject({ usage: { modelRequests: 0 }, flags: { capped: true } })
    expect(seen).toEqual([])
    expect(events).toEqual(['model_requests 0 0', 'limit'])
  })

  it('B-RUNLIMIT-2: of one says so in the very first request (AC-2), and a notice alone is no reached limit (AC-6)', async () => {
    const { script, seen } = recorded(['Done.'])
    const { hooks, events } = told()
    const result = await make(script, { limits: { modelRequests: 1 }, hooks }).run('Go.')
    expect(result).toMatchObject({ status: 'completed', flags: { capped: false } })
    expect(seen.map(notices)).toEqual([[expect.stringContaining(LAST) as string]])
    expect(events).toEqual(['completed'])
  })

  it('B-RUNLIMIT-3: the notice on requests comes before the one on calls, and each is given once (AC-3)', async () => {
    const { script, seen } = recorded([calls('look'), { error: 'server' }, 'Done.'])
    const harness = make(script, { tools: [look], limits: { modelRequests: 2, toolCalls: 1 } })
    const { sessionId, status } = await harness.run('Go.')
    expect(status).toBe('completed')
    const [first = [], again = [], last = []] = seen.map(notices)
    expect(first).toEqual([expect.stringContaining(ONE_CALL) as string])
    // The request that failed and the one that took its place show the same.
    expect(again).toEqual(last)
    expect(last.slice(1)).toEqual([expect.stringContaining(LAST) as string, expect.stringContaining(NO_CALL) as string])
    const said = await notes(harness.session(sessionId))
    expect(new Set(said).size).toBe(said.length)
    expect(said).toHaveLength(3)
  })
})

describe('the limit of calls', () => {
  it('B-RUNLIMIT-4: a batch over it runs none of its calls, and no further request is made (AC-4)', async () => {
    const ran: number[] = []
    const act = tool('act', { execute: ({ n }) => void ran.push(n) })
    const { script, seen } = recorded([calls('act 1'), calls('act 2', 'act 3'), 'never'])
    const { hooks, events } = told()
    const result = await make(script, { tools: [act], limits: { toolCalls: 2 }, hooks }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', limit: 'tool_calls', usage: { modelRequests: 2, toolCalls: 1 } })
    expect(result.calls.map(({ status }) => status)).toEqual(['ok', 'aborted', 'aborted'])
    expect(ran).toEqual([1])
    expect(seen).toHaveLength(2)
    expect(events).toEqual(['tool_calls 2 1', 'limit'])
  })
})

describe('notices over a pause', () => {
  it('B-RUNLIMIT-5: what was said before an approval is not said again after it, also by another process (AC-5)', async () => {
    const file = makeFile()
    const tools = [look, tool('pay', { approval: 'ask', effect: 'once' })]
    const limits = { tokens: 100, toolCalls: 3 }
    const usage = { inputTokens: 80, outputTokens: 5 }
    const before = recorded([
      { ...calls('look 1', 'look 2'), usage },
      { ...calls('pay 3'), usage: { inputTokens: 1, outputTokens: 1 } },
    ])
    const first = make(before.script, { tools, limits, store: open(file) })
    const parked = await first.run('Go.')
    expect(parked.status).toBe('requires_action')
    expect(before.seen.map((request) => notices(request).length)).toEqual([0, 2])
    await first.close()
    const after = recorded(['Done.'])
    const session = make(after.script, { tools, limits, store: open(file) }).session(parked.sessionId)
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', usage: { toolCalls: 3, inputTokens: 81 } })
    const shown = after.seen.flatMap(notices)
    expect(shown.filter((text) => text.includes('80 %'))).toHaveLength(1)
    expect(shown.filter((text) => text.includes(ONE_CALL))).toHaveLength(1)
    expect(shown.filter((text) => text.includes(NO_CALL))).toHaveLength(1)
    expect(await notes(session)).toHaveLength(3)
  })
})

describe('near the end of a run', () => {
  it('B-RUNLIMIT-6: the last request is for the answer and the one before for writing it down; the list of tools stays the same bytes (TRAP-9, S2-19)', async () => {
    const written: string[] = []
    const write = tool('write', { deliverable: true, effect: 'once', execute: ({ n }) => void written.push(`${n}`) })
    const both = calls('look 1', 'write 2')
    const { script, seen } = recorded([calls('look'), calls('look 5'), both, 'The report is written.'])
    const harness = make(script, { tools: [look, write], limits: { modelRequests: 4 } })
    const result = await harness.run('Report.')
    expect(result).toMatchObject({ status: 'completed', text: 'The report is written.' })
    expect(seen.map(({ allow }) => allow)).toEqual(['all', 'all', 'writers', 'none'])
    expect(new Set(seen.map(({ tools }) => JSON.stringify(tools))).size).toBe(1)
    expect(written).toEqual(['2'])
    expect(result.calls.map(({ tool: name, status }) => `${name} ${status}`)).toEqual([
      'look ok',
      'look ok',
      'look denied',
      'write ok',
    ])
    expect(result.calls[2]).toMatchObject({ content: expect.stringContaining('near its limit') as string })
    const started = (await harness.session(result.sessionId).events()).events.filter(
      ({ type }) => type === 'model.started',
    )
    expect(started.map((event) => (event as { allow?: string }).allow)).toEqual([
      undefined,
      undefined,
      'writers',
      'none',
    ])
  })

  it('B-RUNLIMIT-6: the file tools that write are for the deliverable', async () => {
    const root = makeFolder()
    const look = (pattern: string): Step => ({ calls: [{ tool: 'glob', args: { pattern } }] })
    const report = { tool: 'write', args: { path: 'report.md', content: 'all I know' } }
    const { script, seen } = recorded([look('*.a'), look('*.b'), { calls: [report] }, 'It is written.'])
    const tools = fileTools({ root })
    expect(tools.filter(({ deliverable }) => deliverable).map(({ name }) => name)).toEqual(['write', 'edit'])
    const result = await make(script, { tools, limits: { modelRequests: 4 } }).run('Report.')
    expect(result).toMatchObject({ status: 'completed', text: 'It is written.' })
    expect(seen.map(({ allow }) => allow)).toEqual(['all', 'all', 'writers', 'none'])
    expect(readFileSync(join(root, 'report.md'), 'utf8')).toBe('all I know')
  })

  it('B-RUNLIMIT-6: a call in the last request is refused, whatever it is, and the run ends at its limit', async () => {
    const ran: number[] = []
    const act = tool('act', { deliverable: true, execute: ({ n }) => void ran.push(n) })
    const { script } = recorded([calls('act 1'), calls('act 2'), calls('act 3')])
    const result = await make(script, { tools: [act], limits: { modelRequests: 3 } }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', limit: 'model_requests' })
    expect(ran).toEqual([1, 2])
    expect(result.calls.map(({ status }) => status)).toEqual(['ok', 'ok', 'denied'])
  })
})

describe('the limit of tokens', () => {
  it('B-RUNLIMIT-7: ends the run before the next request, with all that was done', async () => {
    const usage = { inputTokens: 40, outputTokens: 20 }
    const { script, seen } = recorded([{ ...calls('look 1'), usage }, { ...calls('look 2'), usage }, 'never'])
    const { hooks, events } = told()
    const result = await make(script, { tools: [look], limits: { tokens: 100 }, hooks }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', limit: 'tokens', usage: { inputTokens: 80, outputTokens: 40 } })
    expect(result.calls.map(({ content }) => content)).toEqual(['look 1', 'look 2'])
    expect(seen).toHaveLength(2)
    expect(events).toEqual(['tokens 100 120', 'limit'])
  })
})

describe('active time', () => {
  /** Moves the clock in steps until it is there. */
  async function during<T>(clock: FakeClock, work: Promise<T>, stepMs = 1_000): Promise<T> {
    let done = false
    void work.finally(() => {
      done = true
    })
    for (let n = 0; n < 5_000; n++) {
      await settled()
      if (done) break
      clock.advance(stepMs)
    }
    return work
  }

  /** Takes this long by the harness's clock, and ignores the stop signal. */
  const taking = (name: string, ms: number, extra: Parameters<typeof tool>[1] = {}) =>
    tool(name, {
      timeoutMs: 10_000_000,
      execute: (_args, { clock }) => new Promise((resolve) => clock.timer(ms, () => resolve(`${ms} ms`))),
      ...extra,
    })

  function timed(
    script: Script,
    options: Partial<HarnessOptions>,
  ): { harness: ReturnType<typeof make>; clock: FakeClock } {
    const clock = new FakeClock()
    return { harness: make(script, { ...options, system: { clock }, store: memory({ clock }) }), clock }
  }

  it('B-RUNLIMIT-8: is bounded by default: a tool that never returns ends the run after ten minutes', async () => {
    const { harness, clock } = timed([calls('hang'), 'never'], { tools: [taking('hang', 9_000_000)] })
    const result = await during(clock, harness.run('Go.'))
    expect(result).toMatchObject({ status: 'limit', limit: 'active_ms', flags: { capped: true } })
    expect(clock.now()).toBeGreaterThanOrEqual(600_000)
    expect(clock.now()).toBeLessThan(660_000)
  })

  it.each([
    [3_000, 'completed'],
    [6_000, 'limit'],
  ] as const)(
    'B-RUNLIMIT-8: does not count the time that a run waits for a person: after a day another %d ms are %s of 10,000',
    async (ms, status) => {
      const tools = [taking('first', 6_000), taking('second', ms, { approval: 'ask' })]
      const { harness, clock } = timed([calls('first'), calls('second'), 'Done.'], {
        tools,
        limits: { activeMs: 10_000 },
      })
      const parked = await during(clock, harness.run('Go.'))
      expect(parked.status).toBe('requires_action')
      clock.advance(86_400_000)
      const session = harness.session(parked.sessionId)
      await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
      expect(await during(clock, session.run())).toMatchObject({ status })
    },
  )
})

describe('a cap after trouble', () => {
  it('B-RUNLIMIT-9: is the reason of the end, and not the trouble that passed before it (TRAP-12)', async () => {
    const { script } = recorded([calls('look'), { error: 'server', message: 'overloaded' }, calls('look 1')])
    const result = await make(script, { tools: [look], limits: { modelRequests: 2 } }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', limit: 'model_requests', usage: { modelRequests: 2 } })
    expect(result).not.toHaveProperty('failure')
    expect(JSON.stringify({ ...result, messages: [] })).not.toContain('overloaded')
  })
})

describe('the breaker', () => {
  const broken = tool('broken', {
    execute: () => {
      throw new ToolFailure('NotFound', 'There is no file news.html.')
    },
  })

  it('B-RUNLIMIT-10: the same failing call is nudged after the second time and halted after the third, also if the process changes in between (AC-84)', async () => {
    const file = makeFile()
    const asked = moment()
    const before: (readonly string[])[] = []
    const first = make(
      (request, n) => {
        before.push(notices(request))
        if (n < 2) return calls('broken 1')
        asked.come()
        return { stall: true }
      },
      { tools: [broken], store: open(file) },
    )
    const { id } = await first.open()
    const left = first.session(id).run('Open it.')
    await asked.here
    expect(before.map(({ length }) => length)).toEqual([0, 0, 1])
    await first.close()
    expect(await left).toMatchObject({ status: 'sleeping' })

    const { script, seen } = recorded([calls('broken 1'), 'never'])
    const { hooks, events } = told()
    const session = make(script, { tools: [broken], store: open(file), hooks }).session(id)
    const result = await session.run()
    expect(seen).toHaveLength(1)
    expect(result).toMatchObject({
      status: 'halted',
      stopReason: 'halted',
      flags: { halted: true, capped: false, empty: false, paused: false },
      reason: expect.stringContaining('There is no file news.html.') as string,
      usage: { modelRequests: 3, toolCalls: 3 },
    })
    expect(() => orThrow(result)).toThrow('There is no file news.html.')
    expect((await notes(session)).filter((text) => text.includes('no progress'))).toHaveLength(1)
    expect(events).toEqual(['halted'])
    expect(
      await make(['On.'], { tools: [broken], store: open(file) })
        .session(id)
        .run('Something else.'),
    ).toMatchObject({
      status: 'completed',
    })
  })

  it('B-RUNLIMIT-10: a nudge that is heeded is all there is, and without the breaker nothing stops it but its limits', async () => {
    const heeded = recorded([calls('broken 1'), calls('broken 1'), calls('look'), 'Done.'])
    expect(await make(heeded.script, { tools: [broken, look] }).run('Go.')).toMatchObject({ status: 'completed' })
    const off = await make(() => calls('broken 1'), {
      tools: [broken],
      breaker: false,
      limits: { modelRequests: 7 },
    }).run('Go.')
    expect(off).toMatchObject({ status: 'limit', limit: 'model_requests', usage: { modelRequests: 7 } })
  })
})

describe('the defaults', () => {
  it('B-RUNLIMIT-11: are those that the guide says, one row each', () => {
    const guide = readFileSync(new URL('../../docs/guide/limits.md', import.meta.url), 'utf8')
    const rows = [...guide.matchAll(/^\| `(\w+)` \| ([\d,]+|none) \|/gm)]
    const said = rows.map(([, name = '', value = '']) => [
      name,
      value === 'none' ? null : Number(value.replaceAll(',', '')),
    ])
    expect(Object.fromEntries(said)).toEqual({ ...DEFAULT_LIMITS, emptyRetries: 1 })
  })
})
