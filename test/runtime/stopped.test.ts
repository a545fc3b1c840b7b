// Model calls that were told to stop: what happens to an answer that arrives anyway, and what the next request shows of it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Event,
  type Harness,
  memory,
  type Model,
  type Request,
  scripted,
  type SessionHandle,
  type Step,
} from '../../src/index.ts'
import { bashTool } from '../../src/tools/index.ts'
import { lines, make, moment, tool } from './scene.ts'
import { observed } from './stage.ts'

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const unwantedReply = {
  text: 'I delete it now.',
  calls: [{ tool: 'remove', args: { n: 1 } }],
  usage: { inputTokens: 11, outputTokens: 7 },
  cost: 70,
} as const

type Scene = { readonly session: SessionHandle; readonly ran: string[]; readonly asked: Request[] }

/** A session whose first reply calls `remove`; whose second is "Fine." */
async function scene(
  first: (request: Request, signal: AbortSignal) => Promise<Step>,
  extra: object = {},
): Promise<Scene> {
  const ran: string[] = []
  const asked: Request[] = []
  const remove = tool('remove', { effect: 'once', execute: ({ n }) => void ran.push(`remove ${n}`) })
  const inner = scripted(async (request, taken) => (taken === 0 ? first(request, signal) : 'Fine.'))
  let signal = new AbortController().signal
  const model: Model = {
    name: 'late',
    call: (request, context) => {
      asked.push({ ...request, messages: [...request.messages] })
      signal = context.signal
      return inner.call(request, context)
    },
  }
  const harness: Harness = make(model, { tools: [remove], worker: { graceMs: 2_000 }, ...extra })
  return { session: await harness.open(), ran, asked }
}

const eventsOf = async (session: SessionHandle): Promise<readonly Event[]> => (await session.events()).events
const failuresOf = async (session: SessionHandle) =>
  (await eventsOf(session)).flatMap((event) => (event.type === 'model.failed' ? [event] : []))

describe('an answer that comes after its stop', () => {
  it.each([['now'], ['redirect'], ['stop']] as const)(
    'B-DRIVE-13: after "%s" it is text and money in the log, and none of its calls is admitted',
    async (how) => {
      const began = moment()
      const { session, ran } = await scene(async (_request, signal) => {
        began.come()
        while (!signal.aborted) await wait(1)
        await wait(20)
        return unwantedReply
      })
      const running = session.run('Remove it.')
      await began.here
      if (how === 'now') await session.send('Do NOT.', { when: 'now' })
      else if (how === 'redirect') await session.send([{ type: 'redirect', text: 'Do NOT.' }])
      else await session.interrupt()
      const result = await running
      expect(result.status).toBe(how === 'stop' ? 'interrupted' : 'completed')
      expect(ran).toEqual([])
      expect(result.calls).toEqual([])
      expect(result.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 })
      expect(result.cost.micros).toBe(70)
      const kind = how === 'stop' ? 'interrupted' : 'superseded'
      const { usage, cost } = unwantedReply
      expect(await failuresOf(session)).toMatchObject([{ class: kind, partial: 'I delete it now.', usage, cost }])
    },
  )

  it('B-DRIVE-13: a reply that the script gives because of its abort is dropped, and so is one without calls', async () => {
    for (const calls of [unwantedReply.calls, []]) {
      const { session, ran } = await scene(async () => ({
        ...unwantedReply,
        calls,
        delayMs: 60_000,
        onAbort: 'answer',
      }))
      const running = session.run('Remove it.')
      await wait(20)
      await session.send('Do NOT.', { when: 'now' })
      expect(await running).toMatchObject({ status: 'completed', text: 'Fine.' })
      expect(ran).toEqual([])
    }
  })

  it('B-DRIVE-14: which came first is decided by the log: a "now" that is committed before the reply stops it, without an abort', async () => {
    const inner = memory()
    let sent = false
    const { store } = observed(inner, async (writes) => {
      const [write] = writes
      if (sent || write?.lane !== 'owner' || write.events[0]?.type !== 'agent.message') return
      sent = true
      // As another process does it, in the moment before our commit.
      const said = { type: 'user.message', id: 'x', parts: [{ type: 'text', text: 'Do NOT.' }], when: 'now' } as const
      await inner.commit([{ session: write.session, lane: 'inbox', events: [said] }])
    })
    const { session, ran } = await scene(async () => unwantedReply, { store })
    expect(await session.run('Remove it.')).toMatchObject({ status: 'completed', text: 'Fine.' })
    expect(ran).toEqual([])
    expect(await failuresOf(session)).toMatchObject([{ class: 'superseded', cost: 70 }])
  })

  it('B-DRIVE-14: a "now" that stands after the reply in the log leaves its calls as they are', async () => {
    const { session, ran } = await scene(async () => unwantedReply)
    await session.run('Remove it.')
    await session.run('And then?', { when: 'now' })
    expect(ran).toEqual(['remove 1'])
  })

  it('B-DRIVE-15: a model that throws, or fails for good, after it was asked to stop is superseded and not failed', async () => {
    const failing: readonly Step[] = [
      { ...unwantedReply, delayMs: 60_000, onAbort: 'throw' },
      { error: 'auth', delayMs: 60_000 },
    ]
    for (const step of failing) {
      const { session } = await scene(async () => step)
      const running = session.run('Remove it.')
      await wait(20)
      await session.send('Do NOT.', { when: 'now' })
      expect(await running).toMatchObject({ status: 'completed', text: 'Fine.' })
      expect(await failuresOf(session)).toMatchObject([{ class: 'superseded' }])
    }
  })

  it('B-DRIVE-15: without a stop a model that throws fails its run, as before', async () => {
    const { session } = await scene(async () => {
      throw new Error('broken')
    })
    expect(await session.run('Go.')).toMatchObject({ status: 'failed', failure: { message: 'broken' } })
  })

  it('B-DRIVE-16: it is settled at its cost, and counts no action of the hour', async () => {
    const store = memory()
    const began = moment()
    const late = async (): Promise<Step> => {
      began.come()
      return { ...unwantedReply, delayMs: 60_000, onAbort: 'answer' }
    }
    const policy = { rules: [], actionsPerHour: 1 }
    const { session } = await scene(late, { store, budget: { sessionUsd: 1 }, approvals: { policy } })
    const running = session.run('Remove it.')
    await began.here
    await session.send('Do NOT.', { when: 'now' })
    await running
    expect(await store.account(`session:${session.id}`)).toMatchObject({ held: 0 })
    const [failed] = await failuresOf(session)
    expect(failed).toMatchObject({ class: 'superseded', cost: 70 })
    expect(failed?.assumed).toBeUndefined()
    const hours = (await eventsOf(session)).filter(({ type }) => type === 'agent.tool_use')
    expect(hours).toEqual([])
  })

  it('B-DRIVE-17: a tool that was stopped gets a failure for an answer that comes later, and the answer is paid for', async () => {
    const began = moment()
    const heard = moment()
    let type = ''
    const deaf: Model = {
      name: 'deaf',
      call: async (_request, { signal }) => {
        began.come()
        while (!signal.aborted) await wait(1)
        const parts = [{ type: 'text', text: 'Write it.' }] as const
        return { type: 'reply', parts, calls: [], finish: 'stop', usage: { inputTokens: 3, outputTokens: 2 }, cost: 5 }
      },
    }
    const asks = tool('asks', {
      execute: async (_args, { askModel, session }) => {
        const asked = {
          session,
          seq: 1,
          instructions: '',
          tools: [],
          allow: 'none',
          boost: false,
          messages: [],
        } as const
        type = (await askModel(deaf, asked)).type
        heard.come()
        throw new Error('stopped')
      },
    })
    const session = await make([{ calls: [{ tool: 'asks', args: { n: 1 } }] }, 'Fine.'], {
      tools: [asks],
      worker: { graceMs: 2_000 },
    }).open()
    const running = session.run('Go.')
    await began.here
    await session.interrupt()
    await heard.here
    expect(type).toBe('failure')
    expect((await running).cost.micros).toBe(5)
  })
})

describe('what was cut by a person', () => {
  it.each([['stop'], ['now']] as const)(
    'B-DRIVE-18: the half of an answer that was shown before a %s stays in the log and in the next request, marked as cut',
    async (how) => {
      const began = moment()
      const { session, asked } = await scene(async () => {
        began.come()
        return { stall: true, deltas: ['Half ', 'an answer'] }
      })
      const running = session.run('Tell me.')
      await began.here
      await wait(30)
      if (how === 'stop') await session.interrupt()
      else await session.send('Shorter.', { when: 'now' })
      await running
      if (how === 'stop') await session.run('Shorter.')
      expect(await failuresOf(session)).toMatchObject([{ partial: 'Half an answer' }])
      const [first, cut, notice, last] = lines(asked.at(-1)?.messages ?? [])
      expect([first, cut, last]).toEqual(['user: Tell me.', 'assistant: Half an answer', 'user: Shorter.'])
      expect(notice).toContain('<harness_notice kind="cut">')
      expect(lines((await session.messages()).slice(0, 4))).toEqual([first, cut, notice, last])
    },
  )

  it('B-DRIVE-18: a model that ignores its abort to the end of its grace has its half kept too', async () => {
    const began = moment()
    const model: Model = {
      name: 'deaf',
      call: (_request, { emit }) => {
        emit({ kind: 'text', part: 0, text: 'Half' })
        began.come()
        return new Promise(() => {})
      },
    }
    const session = await make(model, { worker: { graceMs: 20 } }).open()
    const running = session.run('Tell me.')
    await began.here
    await session.interrupt()
    await running
    expect(await failuresOf(session)).toMatchObject([{ class: 'interrupted', partial: 'Half', assumed: true }])
  })

  it('B-DRIVE-18: what a closing process cuts is asked for again with the same request, and not shown', async () => {
    const store = memory()
    const first = make([{ stall: true, deltas: ['Half'] }], { store })
    const session = await first.open()
    const running = session.run('Tell me.')
    await wait(30)
    await first.close()
    await running.catch(() => {})
    const seen: (readonly string[])[] = []
    const second = make((request) => (seen.push(lines(request.messages)), 'Whole.'), { store })
    expect(await second.session(session.id).run()).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(seen).toEqual([['user: Tell me.']])
  })

  it('B-DRIVE-19: the output of a stopped command is in its result and in the next request, marked as cut', async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'terret-stopped-'))
    onTestFinished(() => rmSync(workspace, { recursive: true, force: true }))
    const printed = moment()
    const onLine = (): void => printed.come()
    const bash = bashTool({ workspace, sandbox: { type: 'none', reason: 'not under test' }, attended: true, onLine })
    const asked: Request[] = []
    const command = 'echo first line; sleep 60'
    const model = scripted((request, taken) => {
      asked.push({ ...request, messages: [...request.messages] })
      return taken === 0 ? { calls: [{ tool: 'bash', args: { command } }] } : 'Fine.'
    })
    const session = await make(model, { tools: [bash], worker: { graceMs: 5_000 } }).open()
    const parked = await session.run('Run it.')
    const [pending] = parked.pending
    await session.decide({ callId: pending?.callId ?? '', allow: true, by: 'test' })
    const running = session.run()
    await printed.here
    await session.interrupt()
    const { calls } = await running
    expect(calls).toMatchObject([{ tool: 'bash', status: 'unknown' }])
    const said = JSON.parse(calls[0]?.content as string) as { stdout: string; interrupted: boolean; message: string }
    expect(said).toMatchObject({ stdout: 'first line\n', exit_code: null, success: false, interrupted: true })
    expect(said.message).toContain('The output is cut here.')
    await session.run('And?')
    expect(lines(asked.at(-1)?.messages ?? []).join('\n')).toContain('first line')
  })
})
