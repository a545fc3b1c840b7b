// Transcripts of other programs as sessions: what is taken of them, what is repaired, and that nothing of them runs.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type CompleteStore, defineTool, Fault, Harness, memory, scripted, sqlite } from '../../../src/index.ts'
import type { Message } from '../../../src/kernel/transcript.ts'
import type { Event } from '../../../src/kernel/event.ts'
import { exportSession, importSession, importTranscript, readLog } from '../../../src/replay.ts'
import type { TranscriptFormat } from '../../../src/replay.ts'
import type { Model, Request } from '../../../src/ports/model.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures')
const folder = mkdtempSync(join(tmpdir(), 'terret-foreign-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const onDisk = (): CompleteStore => sqlite(join(folder, `${++files}.db`))

const fixture = (name: string): string => readFileSync(join(FIXTURES, name), 'utf8')

const FILES: readonly (readonly [string, TranscriptFormat])[] = readdirSync(FIXTURES)
  .sort()
  .map((name) => [name, name.startsWith('claude-code') ? 'claude-code' : (name.split(/[-.]/)[0] as TranscriptFormat)])

/** What a model reads: one line for each message. */
function linesOf(messages: readonly Message[]): readonly string[] {
  return messages.map((message) => {
    const parts = (message.parts ?? []).map((part) =>
      part.type === 'text' ? part.text : part.type === 'reasoning' ? `(${part.text})` : `<${part.type}>`,
    )
    if (message.role === 'tool')
      return [
        `${message.tool} ${message.status ?? 'ok'}:`,
        typeof message.content === 'string' ? message.content : '<blob>',
        ...parts,
      ].join(' ')
    const calls =
      message.role === 'assistant' ? message.calls.map(({ tool, args }) => `${tool}${JSON.stringify(args)}`) : []
    return [`${message.role}:`, ...parts, ...calls].join(' ')
  })
}

function keeping(script: Parameters<typeof scripted>[0]): { readonly model: Model; readonly requests: Request[] } {
  const requests: Request[] = []
  const inner = scripted(script)
  return {
    requests,
    model: {
      name: inner.name,
      call: (request, context) => {
        requests.push(structuredClone(request))
        return inner.call(request, context)
      },
    },
  }
}

const imported = (store: CompleteStore, text: string, format: TranscriptFormat, more: object = {}) =>
  importTranscript(store, text, { format, id: 's', ...more })

/** Goes on with the session, and returns what the model read. */
async function goOn(store: CompleteStore, id = 's'): Promise<readonly Message[]> {
  const { model, requests } = keeping(['Here I go on.'])
  const harness = new Harness({ model, store })
  expect(await harness.session(id).run('And now?')).toMatchObject({ status: 'completed', text: 'Here I go on.' })
  await harness.close()
  return requests[0]?.messages ?? []
}

function pairs(events: readonly Event[]) {
  const calls = events.flatMap((event) =>
    event.type === 'agent.message' ? event.calls.map((_, i) => `${event.seq}.${i}`) : [],
  )
  const results = events.flatMap((event) => (event.type === 'agent.tool_result' ? [event.call] : []))
  return { calls, results }
}

describe('Foreign transcripts', () => {
  it.each(FILES)(
    'B-FOREIGN-1 B-FOREIGN-2: %s is imported, each call has one result, and a model goes on (F7)',
    async (name, format) => {
      for (const store of [memory(), onDisk()]) {
        const { card, from } = await imported(store, fixture(name), format)
        expect(card).toMatchObject({ session: 's', status: 'idle' })
        expect(from).toMatchObject({ format, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string })
        const events = await readLog(store, 's')
        const { calls, results } = pairs(events)
        expect([...results].sort()).toEqual([...calls].sort())
        const messages = await goOn(store)
        expect(messages.at(-1)).toMatchObject({ role: 'user', parts: [{ text: 'And now?' }] })
        await store.close()
      }
    },
  )

  it('B-FOREIGN-1 B-FOREIGN-9: a session of Claude Code is read along the branch of its last entry', async () => {
    const store = memory()
    const { from } = await imported(store, fixture('claude-code.jsonl'), 'claude-code')
    expect(from).toMatchObject({ entries: 17, leftOut: 7, unanswered: 1, unmatched: 0 })
    expect(linesOf(await goOn(store))).toEqual([
      'user: Why does the build fail? <data>',
      'assistant: (I look at the log.) I look at the log and the sources. Bash{"command":"touch /tmp/terret-must-not-run; npm run build","dangerouslyDisableSandbox":true} Read{"file_path":"src/a.ts"}',
      "Bash error: error TS2304: Cannot find name 'prcie'.",
      'Read ok: export const total = prcie * 2',
      'assistant: A name is misspelt: prcie.',
      'user: Thanks. Fix it.',
      'assistant: Edit{"file_path":"src/a.ts","old_string":"prcie","new_string":"price"}',
      'Edit unknown: Interrupted: the transcript has no result of this call. It was made elsewhere, and it is not known whether it took effect.',
      'user: And now?',
    ])
    expect(existsSync('/tmp/terret-must-not-run')).toBe(false)
  })

  it('B-FOREIGN-9: the summary of a full context is left out where the messages before it are there', async () => {
    const store = memory()
    await imported(store, fixture('claude-code-compacted.jsonl'), 'claude-code')
    expect(linesOf(await goOn(store)).slice(0, -1)).toEqual([
      'user: First question.',
      'assistant: First answer.',
      'user: Second question.',
      'assistant: Second answer.',
    ])
    const [, , , ...rest] = fixture('claude-code-compacted.jsonl').split('\n')
    const cut = memory()
    await imported(cut, rest.join('\n'), 'claude-code')
    expect(linesOf(await goOn(cut))[0]).toMatch(/^user: This session is being continued/)
  })

  it('B-FOREIGN-1, B-FOREIGN-10: a rollout of Codex is read without what the program wrote itself', async () => {
    const store = memory()
    const { from } = await imported(store, fixture('codex.jsonl'), 'codex')
    expect(from).toMatchObject({ entries: 15, leftOut: 7, unanswered: 0, unmatched: 0 })
    expect(linesOf(await goOn(store)).slice(0, -1)).toEqual([
      'user: List the files. <data>',
      'assistant: (I list them.) shell{"command":["ls","-a"],"workdir":"/home/ann/shop"}',
      'shell ok: a.ts\nb.ts',
      'assistant: apply_patch{"input":"*** Begin Patch\\n*** Delete File: a.ts\\n*** End Patch"}',
      'apply_patch error: denied',
      'assistant: web_search{"type":"search","query":"ls"}',
      'web_search ok: The provider ran this. Its result is not in the transcript.',
      'assistant: There are two files.',
    ])
    const older = memory()
    await imported(older, fixture('codex-older.jsonl'), 'codex')
    expect(linesOf(await goOn(older)).slice(0, -1)).toEqual([
      'user: What is here?',
      'assistant: local_shell{"type":"exec","command":["ls"],"timeout_ms":1000}',
      'local_shell ok: a.ts',
      'assistant: One file.',
    ])
  })

  it('B-FOREIGN-1: messages of OpenAI and Anthropic are read, and instructions among them are not', async () => {
    const [chat, responses, anthropic] = [memory(), memory(), memory()]
    await imported(chat, fixture('openai-chat.json'), 'openai')
    expect(linesOf(await goOn(chat)).slice(0, -1)).toEqual([
      'user: Is it cold in Oslo? <data> [a file at https://example.org/a.png]',
      'assistant: weather{"city":"Oslo"} weather{"input":"{\\"city\\":"}',
      'weather ok: -3 degrees',
      'weather ok: no such city',
      'assistant: (Minus three.) It is.',
    ])
    await imported(responses, fixture('openai-responses.json'), 'openai')
    expect(linesOf(await goOn(responses)).slice(0, -1)).toEqual([
      'user: Is it cold?',
      'assistant: weather{}',
      'weather ok: cold',
      'assistant: Yes.',
    ])
    await imported(anthropic, fixture('anthropic.json'), 'anthropic')
    expect(linesOf(await goOn(anthropic)).slice(0, -1)).toEqual([
      'user: Is it cold?',
      'assistant: (I ask.) I ask the tool. weather{"city":"Oslo"} web_search{"query":"Oslo"}',
      'weather ok: -3 <data>',
      'web_search ok: [{"type":"web_search_result","url":"https://example.org","title":"Oslo"}]',
      'user: Well?',
      'assistant: Yes.',
    ])
    for (const store of [chat, anthropic])
      expect(JSON.stringify(await readLog(store, 's'))).not.toContain('Obey the file')
  })
})

describe('Repaired pairs', () => {
  const call = (id: string, city: string) => ({ type: 'tool_use', id, name: 'weather', input: { city } })
  const result = (id: string, content: string) => ({ type: 'tool_result', tool_use_id: id, content })
  const user = (...content: readonly object[]) => ({ role: 'user', content })
  const assistant = (...content: readonly object[]) => ({ role: 'assistant', content })
  const text = (words: string) => ({ type: 'text', text: words })
  const lines = async (messages: readonly unknown[]) => {
    const store = memory()
    const { from } = await imported(store, JSON.stringify(messages), 'anthropic')
    const { calls, results } = pairs(await readLog(store, 's'))
    expect([...results].sort()).toEqual([...calls].sort())
    return { from, lines: linesOf(await goOn(store)).slice(0, -1) }
  }

  it('B-FOREIGN-2: results before their calls, second results and results without a call', async () => {
    const { from, lines: said } = await lines([
      user(text('Go.'), result('a', 'early')),
      assistant(call('a', 'Oslo'), call('b', 'Rome')),
      user(result('b', 'first'), result('b', 'second'), result('c', 'of nothing')),
      assistant(text('Done.')),
    ])
    expect(from).toMatchObject({ unanswered: 0, unmatched: 2 })
    expect(said).toEqual([
      'user: Go.',
      'assistant: weather{"city":"Oslo"} weather{"city":"Rome"}',
      'weather ok: early',
      'weather ok: first',
      'assistant: Done.',
    ])
  })

  it('B-FOREIGN-2: calls of the same id, and of none, are told apart', async () => {
    const { from, lines: said } = await lines([
      user(text('Go.')),
      assistant(call('a', 'Oslo')),
      user(result('a', 'one')),
      assistant(call('a', 'Rome'), call('', 'Bonn'), call('', 'Bern')),
      user(result('a', 'two'), result('', 'three')),
      assistant(text('Done.')),
    ])
    expect(from).toMatchObject({ unanswered: 1, unmatched: 0 })
    expect(said.slice(2, -1)).toEqual([
      'weather ok: one',
      'assistant: weather{"city":"Rome"} weather{"city":"Bonn"} weather{"city":"Bern"}',
      'weather ok: two',
      'weather ok: three',
      expect.stringMatching(/^weather unknown: Interrupted/) as string,
    ])
  })

  it('B-FOREIGN-2: no id of the file is used', async () => {
    const store = memory()
    await imported(store, fixture('claude-code.jsonl'), 'claude-code', { id: undefined })
    const [card] = await store.list({ limit: 5 })
    const log = JSON.stringify(await readLog(store, card?.session ?? ''))
    for (const id of ['toolu_', '11111111-2222', 'msg_', 'req_', '"u1"']) expect(log).not.toContain(id)
    expect(card?.session).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('B-FOREIGN-8: unknown roles, entries and parts are left out and counted', async () => {
    const { from, lines: said } = await lines([
      { role: 'oracle', content: 'I know.' },
      7,
      null,
      'text',
      [],
      { role: 'user' },
      user(
        { type: 'hologram', data: 'x' },
        text('Go.'),
        { type: 'text', text: 5 },
        { type: 'image', source: { type: 'base64', data: '!!!' } },
      ),
      assistant({ type: 'tool_use' }, text('Done.')),
    ])
    expect(from).toMatchObject({ entries: 8, leftOut: 5, unanswered: 1 })
    expect(said).toEqual([
      'user: Go. [a file that could not be read]',
      expect.stringMatching(/^assistant: Done\. unnamed\{\}/) as string,
      expect.stringMatching(/^unnamed unknown/) as string,
    ])
  })
})

describe('An imported transcript here', () => {
  it('B-FOREIGN-3: nothing of the file runs, not even with tools and rules that would allow it', async () => {
    const store = memory()
    let ran = 0
    const edit = defineTool({
      name: 'Edit',
      description: 'Edits.',
      input: z.record(z.string(), z.unknown()),
      effect: 'once',
      execute: () => `ran ${++ran}`,
    })
    await imported(store, fixture('claude-code.jsonl'), 'claude-code', { folder: '/work' })
    const harness = new Harness({ model: scripted(['Ok.']), store, tools: [edit] })
    // Nothing is due, and a run without a message has nothing to do.
    expect((await store.card('s'))?.due).toBeNull()
    await harness.session('s').run('Go on.')
    expect(ran).toBe(0)
    await harness.close()
    const [created] = await readLog(store, 's')
    expect(created).toMatchObject({ type: 'session.created', agent: 'default', folder: '/work' })
    const log = JSON.stringify(await readLog(store, 's'))
    for (const word of ['/home/ann', 'claude-sonnet-4-5', 'c2lnbmVk', 'Fix the build']) expect(log).not.toContain(word)
  })

  it('B-FOREIGN-4: it is listed, searched, forked, exported and imported again', async () => {
    const store = memory()
    await imported(store, fixture('codex.jsonl'), 'codex', { labels: { from: 'codex' } })
    const { model, requests } = keeping(['Forked.', 'Whole.'])
    const harness = new Harness({ model, store })
    expect(await harness.list({ where: { from: 'codex' } })).toMatchObject({
      cards: [{ session: 's', title: 'List the files.' }],
    })
    const fork = await harness.session('s').fork({ id: 'f' })
    expect(await fork.run('And here?')).toMatchObject({ status: 'completed' })
    expect(linesOf(requests[0]?.messages ?? [])[0]).toBe('user: List the files. <data>')
    const file = JSON.parse(JSON.stringify(await exportSession(store, 's'))) as unknown
    await importSession(store, file, { id: 'again' })
    expect(await harness.session('again').run('And there?')).toMatchObject({ status: 'completed' })
    expect(requests[1]?.messages).toHaveLength(requests[0]?.messages.length ?? 0)
    await harness.close()
  })

  it('B-FOREIGN-5: the log says where it came from', async () => {
    const store = memory()
    const { from } = await imported(store, fixture('codex.jsonl'), 'codex', { metadata: { mine: 1 } })
    const events = await readLog(store, 's')
    const arrived = events.at(-1)
    expect(arrived).toMatchObject({
      type: 'session.imported',
      from: `codex:${from.sha256.slice(0, 12)}`,
      metadata: { mine: 1, transcript: { format: 'codex', leftOut: 7 } },
    })
  })

  it('B-FOREIGN-6: known secrets are replaced, and odd characters are kept out', async () => {
    const store = onDisk()
    const secret = 'sk-very-secret-4711'
    const odd = `a\u0000b\ud800c ${secret}`
    const messages = [
      { role: 'user', content: odd },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: secret, name: `run\n${secret}`, input: { [odd]: odd, __proto__x: 1 } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: secret, content: `${secret} `.repeat(5_000) }] },
    ]
    const { card } = await imported(store, JSON.stringify(messages), 'anthropic', { secrets: { MY_KEY: secret } })
    const events = await readLog(store, 's')
    expect(JSON.stringify(events)).not.toContain(secret)
    const kept = events.flatMap((event) =>
      event.type === 'agent.tool_result' && typeof event.content !== 'string' ? [event.content.hash] : [],
    )
    expect(kept).toHaveLength(1)
    expect(Buffer.from((await store.blob(kept[0] ?? '', 's'))?.data ?? []).toString()).not.toContain(secret)
    expect(card.seq).toBe(events.length)
    expect(linesOf(await goOn(store))[0]).toMatch(/^user: a\ufffdb\ufffdc /)
    await store.close()
  })

  it.each<readonly [string, TranscriptFormat, string, RegExp]>([
    ['nothing', 'codex', '', /it is empty/],
    ['blanks', 'openai', ' \n ', /it is empty/],
    ['no JSON', 'claude-code', 'Dear Ann,\nhello.', /no JSON/],
    ['a cut document', 'anthropic', '{"messages":[{"role":"user","content":"Go', /no JSON/],
    ['nested too deeply', 'openai', `{"messages":${'['.repeat(100_000)}`, /nested too deeply/],
    ['another format', 'claude-code', '{"role":"user","content":"Go."}', /no message of the format claude-code/],
    ['a number', 'openai', '42', /no message of the format openai/],
    ['only instructions', 'openai', '[{"role":"system","content":"Obey."}]', /no message/],
  ])('B-FOREIGN-7: %s is refused in one sentence, and nothing is written', async (_, format, text, sentence) => {
    const store = memory()
    const refused = imported(store, text, format)
    await expect(refused).rejects.toThrow(sentence)
    await expect(refused).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await store.list({ limit: 5 })).toEqual([])
  })

  it('B-FOREIGN-7: an unknown format and a session that exists are refused', async () => {
    const store = memory()
    await expect(importTranscript(store, '[]', { format: 'openhuman' as never })).rejects.toMatchObject({
      code: 'invalid_config',
    })
    await imported(store, fixture('codex.jsonl'), 'codex')
    await expect(imported(store, fixture('codex-older.jsonl'), 'codex')).rejects.toMatchObject({
      code: 'session_exists',
    })
    await expect(imported(store, fixture('codex.jsonl'), 'codex', { id: '../a' })).rejects.toBeInstanceOf(Fault)
    expect(await readLog(store, 's')).toHaveLength((await store.card('s'))?.seq ?? 0)
  })

  it('B-FOREIGN-8: a file that was cut anywhere is imported as far as it can be read, or refused', async () => {
    const whole = fixture('claude-code.jsonl')
    for (let end = 40; end < whole.length; end += 613) {
      const store = memory()
      try {
        const { from } = await imported(store, whole.slice(0, end), 'claude-code')
        expect(from.leftOut).toBeGreaterThan(0)
        await goOn(store)
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_input' })
        expect(await store.list({ limit: 5 })).toEqual([])
      }
    }
  })

  it('B-FOREIGN-8: huge lines, many entries and a ring of parents are read', async () => {
    const store = memory()
    const entry = (i: number, parent: number, words: string) =>
      JSON.stringify({
        type: i % 2 === 0 ? 'user' : 'assistant',
        uuid: `u${i}`,
        parentUuid: `u${parent}`,
        message: { role: i % 2 === 0 ? 'user' : 'assistant', content: words },
      })
    const many = Array.from({ length: 4_000 }, (_, i) => entry(i, i === 0 ? 3_999 : i - 1, 'x'.repeat(100)))
    const { from } = await imported(
      store,
      [...many, entry(4_000, 3_999, 'y'.repeat(5_000_000))].join('\r\n'),
      'claude-code',
    )
    expect(from).toMatchObject({ entries: 4_001, leftOut: 0 })
    expect((await readLog(store, 's')).length).toBeGreaterThan(8_000)
  })
})
