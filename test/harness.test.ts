// The public verbs on a scripted model: what a user of the library sees. The same tests run on memory and on SQLite.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Fault,
  Harness,
  type HarnessOptions,
  memory,
  type Script,
  scripted,
  sqlite,
  type CompleteStore,
  type Tool,
} from '../src/index.ts'
import { fold } from '../src/kernel/fold.ts'
import { EMPTY } from '../src/kernel/session.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-harness-'))
const open: { readonly harness: Harness; readonly store: CompleteStore }[] = []
let count = 0

afterEach(async () => {
  for (const { harness, store } of open.splice(0)) {
    await harness.close()
    await store.close()
  }
})

const stores: Readonly<Record<string, () => CompleteStore>> = {
  memory: () => memory(),
  sqlite: () => sqlite(join(folder, `${count++}.db`)),
}

function make(store: CompleteStore, script: Script, tools: readonly Tool[] = []): Harness {
  const harness = new Harness({ model: scripted(script), tools, store })
  open.push({ harness, store })
  return harness
}

/** What a tool message says; content beside the log is put back before a model sees it. */
function contentOf(message: { readonly content: unknown }): string {
  return typeof message.content === 'string' ? message.content : 'not text'
}

const city = z.object({ city: z.string() })

function tool(name: string, extra: Partial<Parameters<typeof defineTool<{ city: string }>>[0]> = {}): Tool {
  return defineTool({
    name,
    description: name,
    input: city,
    effect: 'read',
    execute: ({ city: c }) => ({ city: c, ok: true }),
    ...extra,
  })
}

const asks = (name: string, id = 'c1') => ({ calls: [{ tool: name, args: { city: 'Oslo' }, id }] })

describe.each(Object.entries(stores))('the harness on %s', (_name, makeStore) => {
  it('B-HARNESS-1: runs a message to its end: reply, call, result, answer', async () => {
    const harness = make(makeStore(), [asks('look'), 'Wear a coat.'], [tool('look')])
    const result = await harness.run('What should I wear in Oslo?')
    expect(result).toMatchObject({ status: 'completed', text: 'Wear a coat.', stopReason: 'end_turn' })
    expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1 })
  })

  it('B-HARNESS-2: parks for an approval, and what was approved executes once, in another harness if need be (P5, F10, F11)', async () => {
    const store = makeStore()
    let ran = 0
    const risky = (): Tool => tool('publish', { approval: 'ask', effect: 'once', execute: () => `published ${++ran}` })
    const first = make(store, [asks('publish')], [risky()])
    const parked = await first.run('Publish it.')
    expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
    const [pending] = parked.pending
    expect(pending).toMatchObject({ tool: 'publish', args: { city: 'Oslo' }, needs: 'approval' })
    const second = make(store, ['Done.'], [risky()])
    const session = second.session(parked.sessionId)
    const digest = pending?.digest ?? ''
    await expect(
      session.decide({ callId: pending?.callId ?? '', allow: true, by: 'ana', digest: 'x' }),
    ).rejects.toMatchObject({ code: 'decision_stale' })
    await session.decide({ callId: pending?.callId ?? '', allow: true, by: 'ana', digest })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(ran).toBe(1)
    await expect(session.decide({ callId: pending?.callId ?? '', allow: false, by: 'bob' })).rejects.toMatchObject({
      code: 'decision_stale',
    })
  })

  it('B-HARNESS-3: an outside call is answered with answer, once', async () => {
    const host = defineTool({ name: 'ask_human', description: 'asks', input: city, effect: 'once' })
    const harness = make(makeStore(), [asks('ask_human'), 'Noted.'], [host])
    const parked = await harness.run('Ask them.')
    expect(parked).toMatchObject({
      status: 'requires_action',
      stopReason: 'answer_required',
      pending: [{ needs: 'answer' }],
    })
    const session = harness.session(parked.sessionId)
    const callId = parked.pending[0]?.callId ?? ''
    await session.answer({ callId, content: 'They said yes.' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Noted.' })
    await expect(session.answer({ callId, content: 'They said no.' })).rejects.toMatchObject({ code: 'decision_stale' })
    const { events } = await session.events()
    expect(events.filter((event) => event.type === 'user.custom_tool_result')).toHaveLength(1)
  })

  it('B-HARNESS-4: steering joins at the next request; a follow-up starts its own run; the same id is one message', async () => {
    const seen: string[][] = []
    const script: Script = (request) => {
      seen.push(
        request.messages.flatMap((m) =>
          m.role === 'user' ? m.parts.map((p) => (p.type === 'text' ? p.text : '')) : [],
        ),
      )
      return seen.length === 1 ? { ...asks('slow'), delayMs: 1 } : `answer ${seen.length}`
    }
    const harness = make(makeStore(), script, [
      tool('slow', { execute: () => new Promise((resolve) => setTimeout(resolve, 60, 'ok')) }),
    ])
    const session = await harness.open()
    const running = session.run('one')
    await session.send('two', { when: 'next', id: 'two' })
    expect(await session.send('two', { when: 'next', id: 'two' })).toMatchObject({ duplicate: true })
    await session.send('three', { when: 'after' })
    expect(await running).toMatchObject({ status: 'completed' })
    expect(await session.run('four')).toMatchObject({ status: 'completed' })
    expect(seen.at(-1)).toEqual(['one', 'two', 'three', 'four'])
    expect(seen.some((texts) => texts.length === 2 && texts[1] === 'two')).toBe(true)
  })

  it('B-HARNESS-5: an interrupt ends the run as interrupted, and the session takes new input', async () => {
    let asked = (): void => {}
    const thinking = new Promise<void>((resolve) => {
      asked = resolve
    })
    const harness = make(makeStore(), (_request, n) => {
      asked()
      return n === 0 ? { stall: true } : 'Fine.'
    })
    const session = await harness.open()
    const running = session.run('Think for ever.')
    await thinking
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    expect(await session.run('Now answer.')).toMatchObject({ status: 'completed', text: 'Fine.' })
  })

  it('B-HARNESS-6: a model that never answers is named as such, with how long and how often (TRAP-29)', async () => {
    const model = scripted(() => ({ stall: true }))
    const harness = new Harness({ model, limits: { modelMs: 30, modelAttempts: 2 } })
    const result = await harness.run('go')
    expect(result).toMatchObject({ status: 'failed', failure: { classified: { class: 'Timeout' } } })
    if (result.status === 'failed')
      expect(result.failure.message).toMatch(/timed out after \d+ ms.*Given up after 2 tries\./)
    await harness.close()
  })

  it('B-HARNESS-6: provider trouble is retried; trouble that stays is a classified failure with a message, not a throw', async () => {
    const retried = make(makeStore(), [{ error: 'server', message: 'overloaded' }, 'Back again.'])
    expect(await retried.run('Hello?')).toMatchObject({ status: 'completed', text: 'Back again.' })
    const failed = make(makeStore(), [{ error: 'auth', message: 'The key was refused.' }])
    expect(await failed.run('Hello?')).toMatchObject({
      status: 'failed',
      stopReason: 'provider_error',
      failure: { message: 'The key was refused.' },
    })
  })

  it('B-HARNESS-7: bad arguments, an unknown tool and a throwing tool are results the model can read; the run goes on', async () => {
    const script: Script = [
      { calls: [{ tool: 'look', args: { city: 7 } }, { tool: 'nowhere' }, { tool: 'boom', args: { city: 'Oslo' } }] },
      (request) => request.messages.flatMap((m) => (m.role === 'tool' ? [contentOf(m)] : [])).join(' | '),
    ]
    const boom = tool('boom', { execute: () => Promise.reject(new Error('')) })
    const result = await make(makeStore(), script, [tool('look'), boom]).run('Try.')
    expect(result.status).toBe('completed')
    expect(result.text).toMatch(
      /Invalid arguments for "look":\n- city: .* \| unknown tool "nowhere".*look, boom \| Error: no message/s,
    )
  })

  it('B-HARNESS-8: streams history then live, with deltas when asked, no gap and no duplicate; the result comes with it', async () => {
    const harness = make(makeStore(), [{ deltas: ['Wear ', 'a ', 'coat.'] }])
    const stream = harness.stream('What?', { deltas: true })
    const seqs: number[] = []
    let text = ''
    for await (const event of stream) {
      if (event.type === 'delta') text += event.text
      else seqs.push(event.seq)
    }
    expect(text).toBe('Wear a coat.')
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => i + 2))
    expect(await stream.result).toMatchObject({ status: 'completed', text: 'Wear a coat.' })
  })

  it('B-HARNESS-9: leaving the stream that started a run interrupts it', async () => {
    const harness = make(makeStore(), [{ stall: true }])
    const stream = harness.stream('Go.')
    for await (const event of stream) if (event.type === 'model.started') break
    expect(await stream.result).toMatchObject({ status: 'interrupted' })
  })

  it('B-HARNESS-10: a closed session accepts nothing; a closed harness refuses; unknown and empty input say what to do', async () => {
    const harness = make(makeStore(), ['Hi.'])
    const session = await harness.open()
    await session.run('Hello.')
    await session.close()
    await expect(session.send('More?')).rejects.toMatchObject({ code: 'session_closed' })
    await expect(harness.session('nobody').send('Hello?')).rejects.toMatchObject({ code: 'session_missing' })
    await expect((await harness.open()).send('  ')).rejects.toMatchObject({ code: 'invalid_input' })
    await harness.close()
    expect(() => harness.session('x')).toThrow(Fault)
  })

  it('B-HARNESS-11: a message during an approval is kept, and its receipt says it waits', async () => {
    const harness = make(makeStore(), [asks('publish'), 'Done.'], [tool('publish', { approval: 'ask' })])
    const parked = await harness.run('Publish.')
    const session = harness.session(parked.sessionId)
    expect(await session.send('And hurry.')).toMatchObject({ queued: true, duplicate: false })
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: false, by: 'ana', why: 'not yet' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
  })

  it('B-HARNESS-13: the log as read is lines of JSON that fold to the same session anywhere (AC-69 as export)', async () => {
    const harness = make(makeStore(), [asks('look'), 'Wear a coat.'], [tool('look')])
    const { sessionId } = await harness.run('What?')
    const lines = (await harness.session(sessionId).events()).events.map((event) => JSON.stringify(event)).join('\n')
    const events = lines.split('\n').map((line) => JSON.parse(line) as Event)
    expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1))
    expect(events.reduce(fold, EMPTY)).toMatchObject({ run: null, inputs: [], last: { type: 'completed' } })
  })

  it('B-HARNESS-31: open with reuse makes a session once and takes it as it is after that; without it other options are refused', async () => {
    const harness = make(makeStore(), ['once'])
    const labels = { kind: 'nightly' }
    const both = [
      harness.open({ id: 'night', reuse: true, labels }),
      harness.open({ id: 'night', reuse: true, labels }),
    ]
    for (const session of await Promise.all(both))
      expect(await session.run('Report.', { id: 'report' })).toMatchObject({ status: 'completed', text: 'once' })
    await harness.open({ id: 'night', reuse: true, labels: { kind: 'other' } })
    expect((await harness.list({ order: 'id', limit: 500, where: labels })).cards).toMatchObject([
      { session: 'night', labels },
    ])
    await expect(harness.open({ id: 'night' })).rejects.toMatchObject({ code: 'id_reused' })
  })

  it('B-HARNESS-14: a tool that changed or is gone since the run began is refused, not run as something else (F28)', async () => {
    const store = makeStore()
    const script: Script = (request) =>
      request.messages.flatMap((m) => (m.role === 'tool' ? [contentOf(m)] : [])).join()
    const first = make(store, [asks('publish')], [tool('publish', { approval: 'ask' })])
    const parked = await first.run('Publish.')
    await first.close()
    const second = make(store, script, [tool('publish', { approval: 'ask', description: 'delete everything' })])
    const session = second.session(parked.sessionId)
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({
      status: 'completed',
      text: expect.stringContaining('ToolChanged') as string,
    })
  })
})

describe('a damaged session', () => {
  it('B-HARNESS-15: can be read up to its last good event, says so, and is not written on; other sessions go on', async () => {
    const file = join(folder, 'damaged.db')
    const first = make(sqlite(file), ['one', 'two'])
    const { sessionId } = await first.run('Keep this.')
    const other = await first.run('And this.')
    for (const { harness, store } of open.splice(0)) {
      await harness.close()
      await store.close()
    }
    const raw = readFileSync(file)
    raw.write('kept', raw.indexOf('Keep this.'))
    writeFileSync(file, raw)
    const harness = make(sqlite(file), ['three'])
    const page = await harness.session(sessionId).events()
    expect(page).toMatchObject({ events: [{ type: 'session.created' }], damaged: { seq: page.events.length + 1 } })
    await expect(harness.session(sessionId).run('More.')).rejects.toMatchObject({ code: 'session_damaged' })
    expect(await harness.session(other.sessionId).run('More.')).toMatchObject({ status: 'completed', text: 'three' })
  })
})

describe('configuration', () => {
  it('B-HARNESS-12: two tools of one name, a bad tool name and a missing model are refused in one sentence', () => {
    const refused = (name: string) =>
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(name) as string }) as Error
    expect(() => make(memory(), [], [tool('a'), tool('a')])).toThrow(refused('"a"'))
    expect(() => tool('a b')).toThrow(refused('"a b"'))
    expect(() => new Harness({} as HarnessOptions)).toThrow(refused('"model"'))
    rmSync(folder, { recursive: true, force: true })
  })

  it('B-SMALL-23: a new session of an agent that is not there is refused with the names of those that are', async () => {
    const harness = new Harness({
      model: scripted([]),
      store: memory(),
      subagents: { editor: { description: 'Edits.' } },
    })
    const refused = {
      code: 'invalid_config',
      message: expect.stringMatching(/no agent "nope".*: default, .*editor/) as string,
    }
    await expect(harness.run('x', { agent: 'nope' as 'default' })).rejects.toMatchObject(refused)
    await expect(harness.open({ agent: 'nope' as 'default' })).rejects.toMatchObject(refused)
    await harness.close()
  })
})
