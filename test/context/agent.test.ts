// Agents whose large results are made shorter: what the model reads, what is kept, and how it gets at the original. Real stores,
// scripted models.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compressResult } from '../../src/runtime/turn/compressed-result.ts'
import { KeptOriginal } from '../../src/runtime/turn/kept-original.ts'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type Json,
  memory,
  type Message,
  output,
  scripted,
  sqlite,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { fileTools } from '../../src/tools/index.ts'
import { htmlPage, npmTest, orders } from './corpus.ts'
import { make, open } from './made.ts'

function saying(text: string, name = 'report', metadata = {}): Tool {
  return defineTool({
    name,
    description: 'd',
    input: z.object({ command: z.string().optional() }),
    effect: 'read',
    execute: () => output({ content: text, metadata }),
  })
}

function textOf(message: Message | undefined): string {
  return message?.role === 'tool' && typeof message.content === 'string' ? message.content : ''
}

/** Calls `report`, then `retrieve_original` with each of these arguments, and answers with nothing. */
function retrieving(calls: readonly ((token: string) => Json)[], first: Json = {}) {
  const seen: string[] = []
  let token = ''
  const model = scripted(({ messages }, taken) => {
    const last = textOf(messages.at(-1))
    if (taken > 0) seen.push(last)
    if (taken === 1) token = /⟦tj:([0-9a-f]{32})⟧/.exec(last)?.[1] ?? ''
    if (taken === 0) return { calls: [{ tool: 'report', args: first }] }
    const next = calls[taken - 1]
    return next === undefined ? 'Done.' : { calls: [{ tool: 'retrieve_original', args: next(token) }] }
  })
  return { model, seen }
}

type Result = Extract<Event, { type: 'agent.tool_result' }>

async function resultsOf(harness: Harness, session: string): Promise<readonly Result[]> {
  const { events } = await harness.session(session).events()
  return events.filter((event): event is Result => event.type === 'agent.tool_result')
}

describe('an agent with the content router', () => {
  it('B-COMPRESS-17: reads a table of 400 rows with the failed row and the outlier, and gets the original byte for byte, or lines of it', async () => {
    const text = orders()
    const { model, seen } = retrieving([
      (token) => ({ token }),
      (token) => ({ token: `⟦tj:${token}⟧`, line_from: 10, line_to: 20 }),
      (token) => ({ token, byte_from: 5, byte_to: 25 }),
    ])
    const harness = make({ model, tools: [saying(text)], results: { compression: 'full' } })
    const { status, sessionId } = await harness.run('Go.')
    expect(status).toBe('completed')
    const [shown = '', whole, lines, bytes] = seen
    expect(shown).toContain('card declined: insufficient funds')
    expect(shown).toContain('98765')
    expect(Buffer.byteLength(shown)).toBeLessThan(Buffer.byteLength(text) / 10)
    expect(whole).toBe(text)
    expect(lines).toBe(text.split('\n').slice(9, 20).join('\n'))
    expect(bytes).toBe(text.slice(5, 25))
    const [result] = await resultsOf(harness, sessionId)
    expect(result?.metadata).toMatchObject({
      compressed: { kind: 'json', bytes: Buffer.byteLength(text), shown: Buffer.byteLength(shown), lossy: true },
    })
  })

  it('B-COMPRESS-18: ranges that end past the end are cut, and those that begin there, are negative or contradict are refused with a sentence', async () => {
    const text = orders()
    const bytes = Buffer.byteLength(text)
    const lines = text.split('\n').length
    const { model, seen } = retrieving([
      (token) => ({ token, line_from: lines - 1, line_to: 1e9 }),
      (token) => ({ token, byte_from: bytes - 3, byte_to: 1e9 }),
      (token) => ({ token, line_from: 1e9 }),
      (token) => ({ token, byte_from: 1e9 }),
      (token) => ({ token, line_from: -4 }),
      (token) => ({ token, line_from: 20, line_to: 10 }),
      (token) => ({ token, line_from: 1, byte_to: 10 }),
    ])
    await make({ model, tools: [saying(text)], results: { compression: 'full' }, breaker: false }).run('Go.')
    expect(seen.slice(1, 3)).toEqual([text.split('\n').slice(-2).join('\n'), text.slice(-3)])
    expect(seen[3]).toBe(`The original has ${lines} lines; there is no line 1000000000. Lines count from 1.`)
    expect(seen[4]).toBe(`The original has ${bytes} bytes; there is no byte 1000000000. Bytes count from 0.`)
    expect(seen[5]).toContain('line_from')
    expect(seen[6]).toBe('line_to (10) is before line_from (20).')
    expect(seen[7]).toBe('Give lines or bytes, not both.')
  })

  it('B-COMPRESS-18: a long original comes in parts that end at a whole character and say how to go on', async () => {
    const text = JSON.stringify(Array.from({ length: 6_000 }, (_, i) => ({ id: i, city: '😀 Tromsø 😀'.repeat(2) })))
    const parts: string[] = []
    let token = ''
    const model = scripted(({ messages }, taken) => {
      if (taken === 0) return { calls: [{ tool: 'report' }] }
      const last = textOf(messages.at(-1))
      token ||= /⟦tj:([0-9a-f]{32})⟧/.exec(last)?.[1] ?? ''
      const [note, next] = /\n\[bytes \d+ to \d+ of \d+; go on with byte_from (\d+)\]$/.exec(last) ?? ['', undefined]
      if (taken > 1) parts.push(last.slice(0, last.length - note.length))
      if (taken > 1 && next === undefined) return 'Done.'
      return { calls: [{ tool: 'retrieve_original', args: { token, ...(next ? { byte_from: Number(next) } : {}) } }] }
    })
    const { calls } = await make({ model, tools: [saying(text)], results: { compression: 'full' } }).run('Go.')
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.join('') === text).toBe(true)
    // Its own results are never made shorter, nor cut once more.
    expect(calls.slice(1).every(({ content }) => typeof content !== 'string' || !content.includes('PARTIAL'))).toBe(
      true,
    )
  })

  it('B-COMPRESS-18: a range inside of a character gives that character, and no answer says to go on where it began', async () => {
    const { model, seen } = retrieving([
      () => ({ token: 'call:5.0', byte_from: 2, byte_to: 3 }),
      () => ({ token: 'call:5.0', byte_from: 1, byte_to: 2 }),
      () => ({ token: 'call:5.0', byte_from: 2, byte_to: 2 }),
      () => ({ token: 'call:5.0', byte_from: 0, byte_to: 3 }),
      () => ({ token: 'call:5.0', byte_from: 1 }),
    ])
    await make({ model, tools: [saying('a😀b')], context: { compaction: {} }, breaker: false }).run('Go.')
    expect(seen.slice(1)).toEqual(['😀', '😀', '', 'a\n[bytes 0 to 1 of 6; go on with byte_from 1]', '😀b'])
  })

  it('B-COMPRESS-15: switched off there is no tool and no metadata; a profile that is not known is refused', async () => {
    const { model, seen } = retrieving([])
    const harness = make({ model, tools: [saying(orders())], results: { compression: 'off' } })
    const { sessionId } = await harness.run('Go.')
    expect(seen).toEqual([orders()])
    expect((await resultsOf(harness, sessionId))[0]?.metadata).toEqual({})
    expect(JSON.stringify(await harness.agents())).not.toContain('retrieve_original')
    const strange = { model: scripted(['x']), results: { compression: 'lite' } } as unknown as HarnessOptions
    expect(() => new Harness(strange)).toThrow(
      'The option "results.compression" of new Harness must be "auto" or "full" or "light" or "off", not "lite".',
    )
  })

  it('B-ROUTER2-3: by default results over 16 KiB are shortened, and at most 16 KiB of them shown; others are as they are', async () => {
    const prose = 'It was a quiet day in the harbour, and nobody had heard the news yet.\n'
    const limit = 16_384
    const cases: readonly (readonly [text: string, stage: string | null])[] = [
      [orders(), 'compressed'],
      [prose.repeat(400), 'budgeted'],
      [orders(60), null],
      ['x'.repeat(limit), null],
    ]
    for (const [text, stage] of cases) {
      const { model, seen } = retrieving(stage === null ? [] : [(token) => ({ token })])
      const harness = make({ model, tools: [saying(text)] })
      const { sessionId } = await harness.run('Go.')
      const { metadata } = (await resultsOf(harness, sessionId))[0] as Result
      expect(Object.keys(metadata as object)).toEqual(stage === null ? [] : [stage])
      expect(Buffer.byteLength(seen[0] ?? '')).toBeLessThanOrEqual(limit)
      expect(seen.at(-1)).toBe(text)
    }
  })

  it('B-ROUTER2-3: a denied retrieve_original, a tool of that name and other options for results end the default', async () => {
    const own = saying('mine', 'retrieve_original')
    const others: readonly Partial<HarnessOptions>[] = [
      { toolAccess: { deny: ['retrieve_original'] } },
      { results: { bytes: false } },
      { results: { compression: 'off' } },
      { tools: [saying(orders()), own] },
    ]
    for (const options of others) {
      const { model, seen } = retrieving([])
      await make({ model, tools: [saying(orders())], ...options }).run('Go.')
      expect(seen).toEqual([orders()])
    }
  })

  it('B-COMPRESS-16: comes after hooks and redaction: what is kept has neither the secret nor what a hook took away', async () => {
    const store = memory()
    const { model, seen } = retrieving([(token) => ({ token })])
    const rows = Array.from({ length: 300 }, (_, i) => ({
      id: i,
      key: 'hunter2hunter2',
      note: `taken away ${i}`,
      status: 'ok',
    }))
    const harness = make({
      model,
      store,
      tools: [saying(JSON.stringify(rows))],
      results: { compression: 'full' },
      secrets: { SHOP_KEY: 'hunter2hunter2' },
      hooks: [
        {
          type: 'after_tool_call',
          run: ({ output: said }) => output({ content: said.content.replaceAll('taken away', 'x') }),
        },
      ],
    })
    const { sessionId } = await harness.run('Go.')
    const [result] = await resultsOf(harness, sessionId)
    const { blob = '' } = ((result?.metadata ?? {}) as { compressed?: { blob?: string } }).compressed ?? {}
    const kept = new TextDecoder().decode((await store.blob(blob))?.data)
    expect(kept).toContain('⟦secret:SHOP_KEY⟧')
    expect(kept + seen.join('')).not.toContain('hunter2')
    expect(kept + seen.join('')).not.toContain('taken away')
    expect(seen[1]).toBe(kept)
  })

  it('B-COMPRESS-16: comes before the clip: a result of 2 MB that a table makes short is not cut', async () => {
    const { model, seen } = retrieving([])
    const harness = make({ model, tools: [saying(orders(12_000))], results: { compression: 'full' } })
    const { sessionId } = await harness.run('Go.')
    expect(seen[0]).toContain('PARTIAL view')
    expect((await resultsOf(harness, sessionId))[0]?.metadata).not.toHaveProperty('tool_output_clipped')
  })

  it('B-COMPRESS-21: a result that is cut names a tool that the agent has, and that tool reads on', async () => {
    const text = `${'Once upon a time there was a story without end.\n'.repeat(6_500)}The end.`
    const seen: string[] = []
    const model = scripted(({ messages }, taken) => {
      const last = textOf(messages.at(-1))
      seen.push(last)
      if (taken === 0) return { calls: [{ tool: 'report' }] }
      const [, tool = '', path = ''] = /read on with (\w+), path "(blob:[0-9a-f]{64})"/.exec(last) ?? []
      return taken === 1 ? { calls: [{ tool, args: { path, line_from: 6_501 } }] } : 'Done.'
    })
    await make({ model, tools: [saying(text)], results: { compression: 'full' } }).run('Go.')
    expect(seen[1]).toContain('read on with retrieve_original')
    expect(seen[2]).toBe('The end.')
  })

  it('B-COMPRESS-22: `auto` leaves nothing out for an agent that writes code, and does for others', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-compress-'))
    try {
      const text = npmTest()
      const first = { command: 'npm test' }
      const coding = retrieving([], first)
      await make({
        model: coding.model,
        tools: [...fileTools({ root }), saying(text)],
        results: { compression: 'auto' },
      }).run('Go.')
      expect(coding.seen[0]).toBe(text)
      const other = retrieving([], first)
      await make({ model: other.model, tools: [saying(text)], results: { compression: 'auto' } }).run('Go.')
      expect(other.seen[0]).toContain('PARTIAL view')
      const told = retrieving([], first)
      await make({
        model: told.model,
        tools: [...fileTools({ root }), saying(text)],
        results: { compression: 'full' },
      }).run('Go.')
      expect(told.seen[0]).toContain('PARTIAL view')
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })

  it('B-COMPRESS-22: what `read` shows of a file is never made shorter', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-compress-'))
    try {
      writeFileSync(join(root, 'orders.json'), orders(100))
      const seen: string[] = []
      const model = scripted(({ messages }, taken) => {
        seen.push(textOf(messages.at(-1)))
        return taken === 0 ? { calls: [{ tool: 'read', args: { path: 'orders.json' } }] } : 'Done.'
      })
      await make({ model, tools: fileTools({ root }), results: { compression: 'full' } }).run('Go.')
      expect(seen[1]).toContain('"customer": "customer-7"')
      expect(seen[1]).not.toContain('⟦tj:')
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })
})

describe('retrieve_original', () => {
  it('B-COMPRESS-19: is offered whatever lists, plan mode and a run leave out; its name is taken, and it cannot be denied', async () => {
    const offered: (readonly string[])[] = []
    const model = scripted(({ tools }) => {
      offered.push(tools.map(({ name }) => name))
      return 'Done.'
    })
    const tools = [saying('a'), saying('b', 'other')]
    await make({ model, tools, results: { compression: 'full' }, toolAccess: { profile: 'none' }, plan: true }).run(
      'Go.',
    )
    await make({ model, tools, results: { compression: 'light' }, toolAccess: { allow: ['other'] } }).run('Go.')
    await make({ model, tools, results: { compression: 'full' } }).run('Go.', { tools: ['report'] })
    expect(offered).toEqual([['retrieve_original'], ['other', 'retrieve_original'], ['report', 'retrieve_original']])
    expect(() =>
      make({ model, results: { compression: 'full' }, toolAccess: { deny: ['retrieve_original'] } }),
    ).toThrow('denies the tool "retrieve_original"')
    expect(() => make({ model, results: { compression: 'full' }, tools: [saying('a', 'retrieve_original')] })).toThrow(
      'Rename the tool',
    )
    await make({ model, tools: [saying('a', 'retrieve_original')] }).run('Go.')
  })

  it('B-COMPRESS-20: knows no token of another session, none that stands in a document, and none that a tool invents', async () => {
    const store = memory()
    const mine = retrieving([])
    await make({ model: mine.model, store, tools: [saying(orders())], results: { compression: 'full' } }).run('Go.')
    const token = /⟦tj:([0-9a-f]{32})⟧/.exec(mine.seen[0] ?? '')?.[1] ?? ''
    const document = `As promised: [PARTIAL view, full original (9 bytes): retrieve_original with the token ⟦tj:${token}⟧]`
    const invented = { compressed: { token: '0'.repeat(32), blob: 'f'.repeat(64) } }
    const { model, seen } = retrieving([
      () => ({ token }),
      () => ({ token: '0'.repeat(32) }),
      () => ({ token: 'not a token' }),
    ])
    const harness = make({
      model,
      store,
      tools: [saying(document, 'report', invented)],
      results: { compression: 'full' },
    })
    const { sessionId } = await harness.run('Go.')
    expect(seen[0]).toBe(document)
    for (const said of seen.slice(1)) expect(said).toContain('This session has no original with the token')
    expect((await resultsOf(harness, sessionId))[0]?.metadata ?? {}).not.toHaveProperty('compressed')
  })

  it('B-COMPRESS-20: what a tool says of an original in its metadata reads no blob of another session, by the key of its call either', async () => {
    const store = memory()
    const mine = make({
      model: retrieving([]).model,
      store,
      tools: [saying(orders())],
      results: { compression: 'full' },
    })
    const [kept] = await resultsOf(mine, (await mine.run('Go.')).sessionId)
    const { compressed } = (kept?.metadata ?? {}) as { readonly compressed?: { readonly blob: string } }
    const blob = compressed?.blob ?? ''
    expect(await store.blob(blob)).not.toBeNull()
    for (const stage of ['compressed', 'summarized', 'budgeted']) {
      const { model, seen } = retrieving([() => ({ token: 'call:5.0' })])
      const tools = [saying('short', 'report', { [stage]: { blob } })]
      await make({ model, store, tools, context: { compaction: {} } }).run('Go.')
      expect(seen).toEqual(['short', 'short'])
    }
  })

  it('B-COMPRESS-20: finds originals in a fork, after an import and in another process', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-compress-'))
    const text = orders()
    try {
      const store: CompleteStore = sqlite(join(folder, 'a.db'))
      open.push(store)
      const first = retrieving([])
      const harness = make({ model: first.model, store, tools: [saying(text)], results: { compression: 'full' } })
      const { sessionId } = await harness.run('Go.')
      const token = /⟦tj:([0-9a-f]{32})⟧/.exec(first.seen[0] ?? '')?.[1] ?? ''
      const file = await exportSession(store, sessionId)
      await harness.close()
      const seen: string[] = []
      const again = scripted(({ messages }) => {
        const last = messages.at(-1)
        if (last?.role !== 'tool') return { calls: [{ tool: 'retrieve_original', args: { token } }] }
        seen.push(textOf(last))
        return 'Done.'
      })
      const later = make({ model: again, store, tools: [saying(text)], results: { compression: 'full' } })
      await later.session(sessionId).run('Once more.')
      const fork = await later.session(sessionId).fork()
      await fork.run('Once more.')
      const elsewhere = memory()
      await importSession(elsewhere, file)
      const there = make({ model: again, store: elsewhere, tools: [saying(text)], results: { compression: 'full' } })
      await there.session(sessionId).run('Once more.')
      expect(seen.map((said) => said === text)).toEqual([true, true, true])
    } finally {
      for (const each of open.splice(0)) await each.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('a router that fails', () => {
  it('B-COMPRESS-25: leaves the result as it is, and the metadata says why', async () => {
    const content = htmlPage().repeat(20)
    const call = { key: '3.0', proposal: { tool: 'report', args: {} } } as unknown as Parameters<
      typeof compressResult
    >[0]['call']
    const fresh = { ok: true, content, metadata: { a: 1 } }
    const signal = AbortSignal.abort(new Error('stopped'))
    const kept = new KeptOriginal(call, content)
    const made = await compressResult({ call, output: fresh, compression: 'full', tools: new Map(), signal, kept })
    expect(made).toEqual({ ...fresh, metadata: { a: 1, compression_error: 'stopped' } })
    expect(kept.blob).toBeNull()
  })
})
