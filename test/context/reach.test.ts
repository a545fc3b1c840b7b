// What a session has said and heard stays within reach of its model: messages and results by token and by words, and nothing of others.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type Json,
  memory,
  scripted,
  type Session,
  type CompleteStore,
} from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
).toString('base64')

const big = defineTool({
  name: 'big',
  description: 'big',
  input: z.object({ chars: z.number(), middle: z.string() }),
  effect: 'read',
  execute: ({ chars, middle }) => {
    const half = 'A line of no interest.\n'.repeat(Math.ceil(chars / 46))
    return `${half}${middle}\n${half}`
  },
})

type Asked = { readonly request: Request; readonly text: string }

type Called = { readonly tool: string; readonly args: Json }
/** What the model calls next, by session. Everything else is answered at length. */
const next = new Map<string, readonly Called[]>()

function make(options: Partial<HarnessOptions> = {}) {
  const asked: Asked[] = []
  const model = scripted((request: Request) => {
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return { text: 'Nothing comes to mind.', usage }
    const last = request.messages.at(-1)
    const text = last?.role === 'tool' ? textIn(last.content) : textOf(last?.parts ?? [])
    asked.push({ request: { ...request, messages: [...request.messages] }, text })
    const who = request.session.includes('~') ? 'child' : request.session
    const calls = next.get(who) ?? []
    next.delete(who)
    if (calls.length > 0) return { calls, usage }
    return { text: `I answer. ${'y'.repeat(1_000)}`, usage }
  })
  const store: CompleteStore = completeStore(options.store ?? memory())
  const harness = new Harness({
    model,
    tools: [big],
    breaker: false,
    context: { compaction: { windowTokens: 1_000_000 } },
    ...options,
    store,
  })
  open.push(harness)
  return { harness, asked, store }
}

async function call(
  session: Session,
  tool: string,
  args: Json,
): Promise<Extract<Event, { type: 'agent.tool_result' }>> {
  next.set(session.id, [{ tool, args }])
  await session.run('Go on.')
  const { events } = await session.events()
  const result = events.findLast((event) => event.type === 'agent.tool_result')
  if (result?.type !== 'agent.tool_result') throw new Error('no result')
  return result
}

function textIn(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

const retrieve = (session: Session, args: Json) => call(session, 'retrieve_original', args)

async function read(session: Session, args: Json): Promise<string> {
  const { content, status } = await retrieve(session, args)
  if (status !== 'ok') throw new Error(textIn(content))
  return textIn(content)
}

async function talk(session: Session, turns = 6): Promise<void> {
  for (let i = 0; i < turns; i++) await session.run(`question ${i}`)
}

async function eventsOf(session: Session): Promise<readonly Event[]> {
  return (await session.events()).events
}

async function seqOf(session: Session, words: string): Promise<number> {
  const found = (await eventsOf(session)).find(
    (event) => 'parts' in event && event.parts !== undefined && textOf(event.parts).includes(words),
  )
  return found?.seq ?? 0
}

describe('messages', () => {
  it('B-REACH-1: a picture that a user sent is seen again after a cut, by its token, in another process too', async () => {
    const { harness, asked, store } = make()
    const session = await harness.open()
    await session.run([
      { type: 'text', text: 'This is our logo.' },
      { type: 'image', media: 'image/png', data: PNG },
    ])
    await talk(session)
    await session.compact()
    await session.run('next')
    expect(JSON.stringify(asked.at(-1)?.request.messages)).not.toContain(PNG)
    await harness.close()
    const other = make({ store })
    const again = other.harness.session(session.id)
    const seq = await seqOf(again, 'our logo')
    const result = await retrieve(again, { token: `msg:${seq}` })
    expect(result).toMatchObject({ status: 'ok', parts: [{ type: 'blob', media: 'image/png' }] })
    expect(result.content).toContain('This is our logo.')
    const shown = other.asked.at(-1)?.request.messages.findLast(({ role }) => role === 'tool')
    expect(JSON.stringify(shown)).toContain(PNG)
    expect(await retrieve(again, { token: `msg:${seq}#1` })).toMatchObject({ parts: [{ media: 'image/png' }] })
    expect(await retrieve(again, { token: `msg:${seq}#2` })).toMatchObject({ status: 'error' })
  })

  it('B-REACH-1: what a user and the agent said is read word for word after a cut, with the calls of the agent', async () => {
    const { harness } = make()
    const session = await harness.open()
    const said = `The port is 5433.\n${'Words. '.repeat(50)}\nÄöü 😀 end`
    await session.run(said)
    await call(session, 'big', { chars: 100, middle: 'here' })
    await talk(session)
    await session.compact()
    expect(await read(session, { token: `msg:${await seqOf(session, 'port is 5433')}` })).toBe(said)
    const answer = await seqOf(session, 'I answer.')
    expect(await read(session, { token: `msg:${answer}` })).toMatch(/^I answer\. y{1000}$/)
    const caller = (await eventsOf(session)).find((event) => event.type === 'agent.message' && event.calls.length > 0)
    expect(await read(session, { token: `msg:${caller?.seq}` })).toContain('[calls big {"chars":100,"middle":"here"}]')
    expect(await read(session, { token: `msg:${await seqOf(session, 'port is 5433')}`, line_from: 3 })).toBe(
      'Äöü 😀 end',
    )
  })

  it('B-REACH-2: msg:index lists messages of both sides with their tokens, also from before a fork', async () => {
    const { harness } = make()
    const source = await harness.open()
    await source.run('The first thing.')
    const fork = await source.fork()
    await source.run('Said in the source after the fork.')
    await fork.run('Said in the fork.')
    const list = await read(fork, { token: 'msg:index' })
    expect(list).toMatch(/^msg:\^\d+ user: The first thing\. \(16 characters\)$/m)
    expect(list).toMatch(/^msg:\^\d+ agent: I answer\./m)
    expect(list).toMatch(/^msg:\d+ user: Said in the fork\./m)
    expect(list).not.toContain('after the fork')
    const inherited = /(msg:\^\d+) user: The first/.exec(list)?.[1] ?? ''
    expect(await read(fork, { token: inherited })).toBe('The first thing.')
    const beyond = await seqOf(source, 'after the fork')
    for (const token of [`msg:^${beyond}`, `msg:^^1`, 'msg:0', 'msg:x', 'msg:99999', 'msg:'])
      expect(await retrieve(fork, { token })).toMatchObject({ status: 'error', failure: { kind: 'NotFound' } })
  })

  it('B-REACH-3: a message that a hook held back is not read', async () => {
    const { harness } = make({
      hooks: [
        {
          type: 'user_prompt_submit',
          run: ({ prompt }) => (prompt.includes('forbidden') ? { cancel: 'no' } : undefined),
        },
      ],
    })
    const session = await harness.open()
    await session.run('hello')
    await session.run('A forbidden thing.')
    const held = await seqOf(session, 'forbidden')
    expect(held).toBeGreaterThan(0)
    expect(await retrieve(session, { token: `msg:${held}` })).toMatchObject({ status: 'error' })
    expect(await read(session, { token: 'msg:index' })).not.toContain('forbidden')
    expect(await read(session, { search: 'forbidden thing' })).toMatch(/^Nothing/)
  })

  it('B-REACH-3: what waits for the next run is not read before it', async () => {
    const leave = defineTool({
      name: 'leave',
      description: 'd',
      input: z.object({}),
      effect: 'read',
      execute: async (_args, { session }) => {
        await harness.session(session).send('The walrus waits.', { when: 'after' })
        next.set(session, [
          { tool: 'retrieve_original', args: { search: 'walrus' } },
          { tool: 'retrieve_original', args: { token: 'msg:index' } },
        ])
        return 'ok'
      },
    })
    const { harness } = make({ tools: [leave] })
    const session = await harness.open()
    await call(session, 'leave', {})
    const results = (await eventsOf(session)).filter((event) => event.type === 'agent.tool_result')
    expect(results).toHaveLength(3)
    expect(JSON.stringify(results)).not.toContain('walrus waits')
    await session.run()
    expect(await read(session, { search: 'walrus' })).toContain('The walrus waits.')
  })
})

describe('a search', () => {
  it('B-REACH-4: finds words in messages and results with token and line, rare words first, then the newest, 20 at most', async () => {
    const { harness } = make()
    const session = await harness.open()
    await session.run('The codeword is Zanzibar-7.')
    await call(session, 'big', { chars: 230_000, middle: 'error in the kumquat module' })
    for (let i = 0; i < 25; i++) await session.run(`The error ${i} again.`)
    await session.compact()
    const hits = (await read(session, { search: 'error ZANZIBAR-7 kumquat' })).split('\n')
    expect(hits).toHaveLength(20)
    expect(hits[0]).toMatch(/^(?:call:\d+\.0|msg:\d+) line (?:5001|1): .*(?:kumquat|Zanzibar-7)/)
    const token = /^(call:\S+) line (\d+): error in the kumquat module$/m.exec(hits.join('\n'))
    expect(Number(token?.[2])).toBe(5_001)
    expect(await read(session, { token: token?.[1] ?? '', line_from: 5_001, line_to: 5_001 })).toBe(
      'error in the kumquat module',
    )
    const newest = hits.flatMap((hit) => /The error (\d+) again/.exec(hit)?.[1] ?? [])
    expect(newest.slice(0, 5).map(Number)).toEqual([24, 23, 22, 21, 20])
    expect(await read(session, { search: 'a.*b quagmire' })).toBe('Nothing in this session holds "a.*b" or "quagmire".')
  })

  it('B-REACH-4: needs words, and a call gives a token or words, never both', async () => {
    const { harness } = make()
    const session = await harness.open()
    for (const args of [{}, { search: '  ' }, { token: 'call:index', search: 'x' }])
      expect(await retrieve(session, args)).toMatchObject({ status: 'error', failure: { kind: 'InvalidInput' } })
  })

  it('B-REACH-5: reads this session and those it was forked from up to the fork, and no other one', async () => {
    const store = memory()
    const { harness } = make({ store })
    const other = await harness.open()
    await other.run('The pelican is elsewhere.')
    const source = await harness.open()
    await source.run('The pelican is inherited.')
    const fork = await source.fork()
    await source.run('The pelican came too late.')
    await fork.run('The pelican is here.')
    const found = await read(fork, { search: 'pelican' })
    expect(found).toContain('inherited')
    expect(found).toContain('is here')
    expect(found).not.toMatch(/elsewhere|too late/)
    const foreign = await seqOf(other, 'elsewhere')
    expect(foreign).toBeGreaterThan(0)
    for (const token of [`msg:${other.id}:${foreign}`, `${other.id}:${foreign}`])
      expect(await retrieve(fork, { token })).toMatchObject({ status: 'error' })
  })
})

describe('a child', () => {
  it('B-REACH-5: reads what was said to it, and neither reads its parent nor is read by it', async () => {
    const { harness, asked } = make({ subagents: true })
    const session = await harness.open()
    await session.run('The walrus is a matter of the parent.')
    next.set('child', [
      { tool: 'retrieve_original', args: { search: 'walrus' } },
      { tool: 'retrieve_original', args: { token: 'msg:index' } },
    ])
    const result = await call(session, 'subagent', { task: 'Look for the pelican.' })
    const child = JSON.stringify(asked.filter(({ request }) => request.session.includes('~')).at(-1)?.request.messages)
    expect(child).toContain('Look for the pelican.')
    expect(child).toContain('msg:')
    expect(child).not.toContain('matter of the parent')
    // The parent has the prompt as the arguments of its own call, and of the child's log only the answer.
    expect(result.status).toBe('ok')
    const found = await read(session, { search: 'pelican' })
    expect(found.split('\n').every((line) => line.includes('[calls subagent'))).toBe(true)
  })
})

describe('results', () => {
  it('B-REACH-6: a result that was clipped is read whole by its call, byte for byte, and so is one that its tool cut', async () => {
    const own = defineTool({
      name: 'own',
      description: 'own',
      input: z.object({}),
      effect: 'read',
      execute: async (_args, context) => {
        const { boundContent } = await import('../../src/tools/core/bound-content.ts')
        const { output } = await import('../../src/tools/core/tool-output.ts')
        return output(boundContent(`${'x\n'.repeat(40_000)}needle\n${'x\n'.repeat(40_000)}`, context))
      },
    })
    for (const compression of ['off', 'full'] as const) {
      const { harness } = make({ tools: [big, own], results: { compression } })
      const session = await harness.open()
      const clipped = await call(session, 'big', { chars: 300_000, middle: 'the middle' })
      if (compression === 'off') expect(clipped.metadata).toMatchObject({ tool_output_clipped: true })
      const line = await read(session, { token: `call:${clipped.call}`, line_from: 6_523, line_to: 6_523 })
      expect(line).toBe('the middle')
      const cut = await call(session, 'own', {})
      expect(await read(session, { token: `call:${cut.call}`, line_from: 40_001, line_to: 40_001 })).toBe('needle')
      expect(await read(session, { search: 'needle' })).toContain(`call:${cut.call} line 40001: needle`)
    }
  })

  it('B-REACH-7: one answer is at most a fifth of the window, says how to read on, and reading on gives all of it', async () => {
    const { harness } = make({ context: { compaction: { windowTokens: 20_000 } } })
    const session = await harness.open()
    const result = await call(session, 'big', { chars: 60_000, middle: 'the middle' })
    let whole = ''
    for (let from = 0; from >= 0; ) {
      const { content, metadata } = await retrieve(session, { token: `call:${result.call}`, byte_from: from })
      const text = textIn(content)
      expect(text.length / 4).toBeLessThanOrEqual(4_000 + 50)
      const next = (metadata as { readonly next_byte?: number }).next_byte
      whole += next === undefined ? text : text.slice(0, text.lastIndexOf('\n[bytes '))
      from = next ?? -1
    }
    expect(whole).toBe(
      `${'A line of no interest.\n'.repeat(1_305)}the middle\n${'A line of no interest.\n'.repeat(1_305)}`,
    )
    // Other scripts have more tokens.
    const cyrillic = await call(session, 'big', { chars: 100, middle: 'ж'.repeat(9_000) })
    const { content } = await retrieve(session, { token: `call:${cyrillic.call}` })
    expect(textIn(content).length).toBeLessThan(4_200)
  })

  it('B-REACH-8: what is retrieved is not made shorter by the router, and fits the context like every result', async () => {
    const rows = JSON.stringify(Array.from({ length: 300 }, (_, i) => ({ id: i, name: `row ${i}`, state: 'fine' })))
    const table = defineTool({
      name: 'rows',
      description: 'd',
      input: z.object({}),
      effect: 'read',
      execute: () => rows,
    })
    const { harness, asked } = make({
      tools: [table],
      results: { compression: 'full' },
      context: { compaction: { windowTokens: 20_000 } },
    })
    const session = await harness.open()
    const result = await call(session, 'rows', {})
    expect(textIn(result.content)).not.toContain('row 150')
    expect(await read(session, { token: `call:${result.call}` })).toContain(
      '{"id":150,"name":"row 150","state":"fine"}',
    )
    const reads = [1, 2, 3, 4, 5].map(() => ({ tool: 'retrieve_original', args: { token: `call:${result.call}` } }))
    next.set(session.id, reads)
    await session.run('All of them.')
    const shown =
      asked
        .at(-1)
        ?.request.messages.filter(({ role }) => role === 'tool')
        .slice(-5) ?? []
    const last = (await eventsOf(session)).filter((event) => event.type === 'agent.tool_result').at(-1)
    expect(JSON.stringify(shown)).toMatch(/the whole is call:\d+\.\d/)
    expect(textIn(last?.content)).toContain('row 150')
  })
})

describe('secrets', () => {
  it('B-REACH-9: of a session that came from elsewhere no secret of this place is read or found, in whole or in part', async () => {
    const secret = 'sk-live-4242-abcdef-987654'
    const away = make()
    const session = await away.harness.open()
    const lines = `${'x'.repeat(300)} ${secret} ${'y'.repeat(300)}`
    await session.run(`The key is ${lines}`)
    await call(session, 'big', { chars: 2_000, middle: lines })
    const file = await exportSession(away.store, session.id)
    const here = make({ secrets: { API_KEY: secret } })
    const { session: id } = await importSession(here.store, file)
    const came = here.harness.session(id)
    const message = await seqOf(came, 'The key is')
    const texts = [await read(came, { token: `msg:${message}` })]
    for (let at = 300; at < 345; at += 3)
      texts.push(await read(came, { token: `msg:${message}`, byte_from: at, byte_to: at + 12 }))
    const pieces = ['sk-live', 'sk-live-4242-ab', 'abcdef', '987654']
    for (const search of pieces) expect(await read(came, { search })).toMatch(/^Nothing in this session holds/)
    for (const text of texts)
      for (const piece of ['sk-live', '4242', 'abcdef', '987654']) expect(text).not.toContain(piece)
    expect(texts[0]).toContain('⟦secret:API_KEY⟧')
    expect(await read(came, { search: 'key' })).not.toMatch(/sk-live|abcdef/)
  })
})
