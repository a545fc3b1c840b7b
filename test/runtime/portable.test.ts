// One session as a file: what it brings, where it goes on, and everything that is refused before anything is written.
import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, Harness, memory, type Script, scripted, type CompleteStore } from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import type { Blob } from '../../src/ports/store.ts'
import { exportSession, importSession, type Portable } from '../../src/archive/portable.ts'
import { redecide } from '../../src/archive/replay-decide.ts'
import { refoldSession } from '../../src/archive/replay-refold.ts'
import { readLog } from '../../src/view/session-log.ts'
import { makeFile, open as openStore } from '../stores/folder.ts'
import { forgeFile, openFile, redigest, type OpenedFile } from '../../sim/forge-file.ts'
import { ASKS, desk as makeDesk, type Desk, exported, payTool } from './portable-stage.ts'
import { storeWith } from '../../sim/store-with.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function desk(script: Script, options: Parameters<typeof makeDesk>[1] = {}): Desk {
  const made = makeDesk(script, options)
  open.push(made.harness)
  return made
}

/** Exported while it waits for an approval. */
async function paused(): Promise<Portable> {
  const { harness, store } = desk(ASKS)
  const session = await harness.open({ id: 'buyer' })
  await session.run('Pay 5.')
  return exportSession(store, 'buyer')
}

/** The sentence it was refused with; nothing is in the store. */
async function refusalOf(value: unknown): Promise<string> {
  const store = memory()
  const error: unknown = await importSession(store, value).catch((thrown: unknown) => thrown)
  if (!(error instanceof Fault)) throw new Error(`imported: ${JSON.stringify(value).slice(0, 3000)}`)
  expect(error).toMatchObject({ code: 'invalid_input' })
  expect(await store.list({ limit: 10 })).toEqual([])
  return error.message
}

type Loose = { [key: string]: unknown }
/** The events of a file themselves, to be changed where they are. */
function recordsIn(file: Portable): { readonly events: readonly Event[] } {
  return { events: file.flatMap((record) => (record.type === 'event' ? [record.event] : [])) }
}
/** With the digests of the change, where it can have any. */
function signed(file: Portable, change: (file: Portable) => void): Portable {
  change(file)
  try {
    return redigest(file)
  } catch {
    return file
  }
}
/** The event of this type, to be changed. */
function eventIn(copy: { readonly events: readonly Event[] }, type: Event['type']): Loose {
  return copy.events.find((event) => event.type === type) as unknown as Loose
}
function callIn(copy: { readonly events: readonly Event[] }): Loose {
  return (eventIn(copy, 'agent.message')['calls'] as Loose[])[0] as Loose
}

describe('a session in a file', () => {
  it('B-PORT-5: an open question round trips through JSON into a new process, is decided there and finishes there (AC-38)', async () => {
    const file = fileURLToPath(new URL('../../.build/test/runtime/child-portable.js', import.meta.url))
    const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] })
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      said += data.toString()
    })
    const value = await paused()
    child.stdin.end(JSON.stringify(value))
    await once(child, 'exit')
    const call = openFile(value).events.flatMap((e) => (e.type === 'agent.message' ? e.calls : []))[0]
    expect(JSON.parse(said)).toEqual({
      status: 'requires_action',
      pending: [expect.objectContaining({ tool: 'pay', args: { amount: 5 }, digest: call?.digest })],
      paid: [5],
      seen: ['user', 'assistant', 'tool'],
      ended: 'completed',
      text: 'Paid, over here.',
    })
  })

  it.each(['memory', 'sqlite'])(
    'B-PORT-6: imported into %s it is the same log, and then the event that it was imported (S0-54)',
    async (kind) => {
      const store: CompleteStore = kind === 'sqlite' ? openStore(makeFile()) : memory()
      const value = await paused()
      const card = await importSession(store, value)
      expect(card).toEqual(await store.card('buyer'))
      const { session: _session, ...before } = openFile(value)
      const seq = before.events.length + 1
      expect(card).toMatchObject({ session: 'buyer', status: 'requires_action', seq, held: true })
      const arrived = { seq, type: 'session.imported', from: 'buyer' }
      expect(await readLog(store, 'buyer')).toEqual([...before.events, expect.objectContaining(arrived)])
      const again = await exported(store, 'buyer')
      expect({ ...again, events: again.events.slice(0, -1) }).toMatchObject(before)
      expect((await refoldSession(store, 'buyer')).difference).toBeNull()
      const { harness, paid } = desk(['Done.'], { store })
      await harness.session('buyer').send([{ type: 'resume' }])
      const [pending] = (await harness.session('buyer').run()).pending
      await harness.session('buyer').decide({ callId: pending?.callId ?? '', allow: true, by: 'ann' })
      expect((await harness.session('buyer').run()).text).toBe('Done.')
      expect(paid).toEqual([5])
      expect(redecide(await readLog(store, 'buyer'))).toEqual([])
    },
  )

  it('B-PORT-7: what is exported and what is imported are copies: changing either changes no session (AC-42, S0-55)', async () => {
    const { harness, store } = desk(['One.'])
    const session = await harness.open({ id: 's' })
    await session.run('Hello.')
    const value = await exportSession(store, 's')
    const before = JSON.stringify(value)
    eventIn(recordsIn(value), 'agent.message')['parts'] = []
    ;(value as unknown[]).length = 2
    expect(JSON.stringify(await exportSession(store, 's'))).toBe(before)
    const mine = JSON.parse(before) as Portable
    const other = memory()
    await importSession(other, mine)
    eventIn(recordsIn(mine), 'user.message')['parts'] = [{ type: 'text', text: 'Changed.' }]
    for (const record of mine) if (record.type === 'blob') (record as Loose)['data'] = ''
    expect((await exported(other, 's')).events.slice(0, -1)).toEqual(openFile(JSON.parse(before) as Portable).events)
  })

  it('B-PORT-8: one state has as many follow-ups as one likes, by import under another id and by fork (AC-43, S0-58)', async () => {
    const { harness, store } = desk(['Noted.'])
    const session = await harness.open({ id: 's' })
    await session.run('My name is Ann.')
    const value = await exportSession(store, 's')
    const said: Script = (request) =>
      request.messages
        .flatMap((m) => (m.role === 'user' ? m.parts.map((p) => (p.type === 'text' ? p.text : '')) : []))
        .join(' ')
    const there = desk(said)
    await importSession(there.store, value, { id: 'a' })
    await importSession(there.store, value, { id: 'b' })
    const fork = await there.harness.session('a').fork()
    const texts = [
      (await there.harness.session('a').run('To a.')).text,
      (await there.harness.session('b').run('To b.')).text,
      (await fork.run('To the fork.')).text,
    ]
    expect(texts).toEqual(['My name is Ann. To a.', 'My name is Ann. To b.', 'My name is Ann. To the fork.'])
    expect(await exportSession(store, 's')).toEqual(value)
  })

  it('B-PORT-9: a file that was changed is refused before anything happens (AC-33, S0-48)', async () => {
    const value = await paused()
    const changes: readonly ((copy: { readonly events: readonly Event[]; readonly file: Portable }) => void)[] = [
      (copy) => (callIn(copy)['args'] = { amount: 5_000 }),
      (copy) => (callIn(copy)['digest'] = 'f'.repeat(64)),
      (copy) => delete callIn(copy)['gate'],
      (copy) => (eventIn(copy, 'user.message')['parts'] = [{ type: 'text', text: 'Pay 5000.' }]),
      (copy) => (eventIn(copy, 'run.started')['policy'] = 'f'.repeat(64)),
      ({ file }) => ((file[1] as unknown as Loose)['session'] = 'another'),
    ]
    for (const change of changes) {
      const file = structuredClone(value)
      change({ ...recordsIn(file), file })
      expect(await refusalOf(file)).toContain('checksum')
    }
  })

  it('B-PORT-10: also with a new checksum: a call that its digest does not fit, bytes that are not their hash, an impossible event (AC-33)', async () => {
    const value = await paused()
    const { events } = openFile(value)
    const last = events.at(-1)
    const after = (body: object) => ({ seq: (last?.seq ?? 0) + 1, at: last?.at ?? 0, epoch: 1, ...body }) as Event
    const key = `${events.find((e) => e.type === 'agent.message')?.seq}.0`
    const cases: readonly (readonly [string, (copy: OpenedFile) => void])[] = [
      ['digest', (copy) => (callIn(copy)['args'] = { amount: 5_000 })],
      ['digest', (copy) => (callIn(copy)['digest'] = 'f'.repeat(64))],
      ['digest', (copy) => delete callIn(copy)['digest']],
      ['digest', (copy) => (callIn(copy)['tool'] = 'give')],
      ['hash', (copy) => ((Object.values(copy.blobs)[0] as unknown as Loose)['data'] = 'AAAA')],
      ['base64', (copy) => ((Object.values(copy.blobs)[0] as unknown as Loose)['data'] = '%')],
      // The call was never approved.
      ['started from asked', (copy) => copy.events.push(after({ type: 'agent.tool_use', call: key }))],
      ['not open', (copy) => copy.events.push(after({ type: 'agent.tool_use', call: '99.0' }))],
      ['over an open call', (copy) => copy.events.push(after({ type: 'run.settled', outcome: { type: 'completed' } }))],
      ['inside a run', (copy) => copy.events.push(after({ ...eventIn({ events }, 'run.started'), ...after({}) }))],
    ]
    for (const [why, change] of cases) expect(await refusalOf(forgeFile(value, change))).toContain(why)
  })

  it('B-PORT-11: a file of another shape is refused with the place that is wrong (AC-41, S0-46)', async () => {
    const value = await paused()
    const at = (type: string) => value.findIndex((record) => record.type === 'event' && record.event.type === type)
    const said = `records[${at('user.message')}].event`
    const cases: readonly (readonly [string, (copy: OpenedFile) => void])[] = [
      [`${said}.when is missing`, (copy) => delete eventIn(copy, 'user.message')['when']],
      [`${said}.id must be`, (copy) => (eventIn(copy, 'user.message')['id'] = '')],
      [`${said}.more is not known`, (copy) => (eventIn(copy, 'user.message')['more'] = 1)],
      [
        `${said}.parts[0].text must be a text`,
        (copy) => (eventIn(copy, 'user.message')['parts'] = [{ type: 'text', text: 1 }]),
      ],
      ['does not know', (copy) => (eventIn(copy, 'user.message')['type'] = 'user.wish')],
      ['limits.parallel must be', (copy) => ((eventIn(copy, 'run.started')['limits'] as Loose)['parallel'] = '16')],
      ['calls[0].effect must be one of', (copy) => (callIn(copy)['effect'] = 'twice')],
      ['calls[0].gate.n is missing', (copy) => delete (callIn(copy)['gate'] as Loose)['n']],
      ['does not follow', (copy) => copy.events.splice(1, 1)],
      ['does not follow', (copy) => (eventIn(copy, 'user.message')['seq'] = 7)],
      ['older', (copy) => (eventIn(copy, 'run.started')['at'] = 0)],
      ['has an epoch', (copy) => (eventIn(copy, 'user.message')['epoch'] = 1)],
      ['older epoch', (copy) => (eventIn(copy, 'model.started')['epoch'] = 0)],
      ['does not begin', (copy) => copy.events.splice(0, 1)],
      ['does not begin', (copy) => (copy.events = [])],
      ['is missing', (copy) => (copy.blobs = {})],
      ['no event refers', (copy) => (copy.blobs[hash('sha256', 'stray')] = { media: 'x', data: btoa('stray') })],
      ['was forked', (copy) => (copy.parents = [{ session: 'p', events: copy.events }])],
      ['is missing', (copy) => (eventIn(copy, 'session.created')['fork'] = { session: 'p', seq: 3 })],
    ]
    for (const [why, change] of cases) expect(await refusalOf(forgeFile(value, change))).toContain(why)
    const circle: Loose = { ...value[0] }
    circle['events'] = [circle]
    for (const nothing of [null, undefined, 3, 'text', [], {}, circle, 10n, () => value]) await refusalOf(nothing)
  })

  it('B-PORT-30: what is not an export at all is refused with a sentence that says how to make one', async () => {
    const [, ...headless] = await paused()
    for (const value of [null, 3, [], {}, { name: 'package' }, headless])
      expect(await refusalOf(value)).toContain('terret export SESSION --format json')
  })

  it('B-PORT-12: an id that is taken is refused, and the session that has it stays as it is', async () => {
    const value = await paused()
    const { harness, store } = desk(['Mine.'])
    await (await harness.open({ id: 'buyer' })).run('Hello.')
    const before = await exportSession(store, 'buyer')
    await expect(importSession(store, value)).rejects.toMatchObject({ code: 'session_exists' })
    expect(await exportSession(store, 'buyer')).toEqual(before)
    await expect(importSession(store, value, { id: '' })).rejects.toMatchObject({ code: 'invalid_input' })
    await importSession(store, value, { id: 'second-buyer' })
    expect((await store.list({ limit: 10 })).map((card) => card.session)).toEqual(['buyer', 'second-buyer'])
  })

  it('B-PORT-13: a call that ran when the session was exported is a lost call there: it is not run again', async () => {
    let begun = 0
    let go = (): void => {}
    const held = new Promise<void>((resolve) => {
      go = resolve
    })
    const slow = defineTool({
      name: 'slow',
      description: 'takes its time',
      input: z.object({}),
      execute: async () => {
        begun += 1
        await held
        return 'done'
      },
    })
    const script: Script = [{ calls: [{ tool: 'slow' }] }, 'Over.']
    const { harness, store } = desk(script, { tools: [slow] })
    const session = await harness.open({ id: 's' })
    const running = session.run('Go.')
    while (begun === 0) await new Promise((resolve) => setImmediate(resolve))
    const value = await exportSession(store, 's')
    const there = desk(['Then I must look first.'], { tools: [slow] })
    await importSession(there.store, value)
    await there.harness.session('s').send([{ type: 'resume' }])
    expect((await there.harness.session('s').run()).text).toBe('Then I must look first.')
    const results = (await readLog(there.store, 's')).filter((event) => event.type === 'agent.tool_result')
    expect(results).toMatchObject([{ status: 'unknown' }])
    go()
    expect((await running).text).toBe('Over.')
    expect(begun).toBe(1)
  })

  it('B-PORT-14: what is asked after an import is the tool as it is defined here, and a decision for what the file asked is stale (S0-47, S0-48)', async () => {
    const value = await paused()
    const store = memory()
    await importSession(store, value)
    const paid: number[] = []
    const { harness } = desk(['I see.'], { store, tools: [payTool(paid, 'pays an amount to somebody else')] })
    const session = harness.session('buyer')
    await session.send([{ type: 'resume' }])
    const [pending] = (await session.run()).pending
    const asked = String(callIn(openFile(value))['digest'])
    expect(pending).toMatchObject({ args: { amount: 5 }, digest: expect.not.stringMatching(asked) as unknown })
    const decision = { callId: pending?.callId ?? '', allow: true, by: 'ann' }
    await expect(session.decide({ ...decision, digest: asked })).rejects.toMatchObject({ code: 'decision_stale' })
    expect(paid).toEqual([])
    await session.decide({ ...decision, digest: pending?.digest ?? '' })
    expect((await session.run()).text).toBe('I see.')
    expect(paid).toEqual([5])
  })

  it('B-PORT-15: a part of a tree of sessions is not imported without the rest', async () => {
    const value = await paused()
    const parent = { session: 'p', call: '3.0', root: 'p', depth: 1 }
    const child = forgeFile(value, (copy) => (eventIn(copy, 'session.created')['parent'] = parent))
    expect(await refusalOf(child)).toContain('is a child of session p')
    const waits = forgeFile(value, (copy) => {
      const { seq = 0, at = 0 } = copy.events.at(-1) ?? {}
      delete callIn(copy)['digest']
      callIn(copy)['gate'] = { type: 'outside', child: 'helper' }
      copy.events.push({ seq: seq + 1, at, epoch: 1, type: 'agent.custom_tool_use', call: `${seq}.0` })
    })
    expect(await refusalOf(waits)).toContain('waits for a child')
  })

  it('B-PORT-22: what could not be imported is not exported: a child, and a session that waits for one', async () => {
    const store = memory()
    const ask = { calls: [{ tool: 'ask_user', args: { question: 'Which?' } }] }
    const model = scripted((request) =>
      request.session.includes('~') ? ask : { calls: [{ tool: 'subagent', args: { task: 'Find it.' } }] },
    )
    const harness = new Harness({
      model,
      store,
      subagents: true,
      tools: [payTool([])],
      secrets: {},
      limits: { modelRequests: 1 },
    })
    open.push(harness)
    const session = await harness.open({ id: 'top' })
    const tried: unknown[] = []
    store.watch('top', (news) => {
      if (news?.some(({ type }) => type === 'agent.custom_tool_use'))
        tried.push(exportSession(store, 'top').catch((error: unknown) => error))
    })
    await session.run('Go.')
    expect(await tried[0]).toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('waits for a child') as unknown,
    })
    const child = (await store.list({ limit: 10 })).map((card) => card.session).find((id) => id.includes('~')) ?? ''
    await expect(exportSession(store, child)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('child of session top') as string,
    })
    expect(openFile(await exportSession(store, child, { partial: true })).session).toBe(child)
    expect((await exported(store, 'top')).session).toBe('top')
  })

  it('B-PORT-23: a file from far in the future, and a name that children have, are refused', async () => {
    const value = await paused()
    const late = forgeFile(value, (copy) => {
      for (const event of copy.events as unknown as Loose[]) event['at'] = Number(event['at']) + 2 * 86_400_000
    })
    expect(await refusalOf(late)).toContain('far after the present')
    const store = memory()
    await expect(importSession(store, value, { id: 'a~3.0' })).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await store.list({ limit: 10 })).toEqual([])
  })

  it('B-PORT-16: long results, files and kept texts come along; what is missing in the store is said when it is exported', async () => {
    const tool = defineTool({
      name: 'long',
      description: 'says much',
      input: z.object({}),
      execute: (_args, context) => `${context.keep('kept beside').hash} ${'x'.repeat(100_000)}`,
    })
    const { harness, store } = desk([{ calls: [{ tool: 'long' }] }, 'Long.'], { tools: [tool] })
    const session = await harness.open({ id: 's' })
    await session.run([
      { type: 'text', text: 'Read this.' },
      { type: 'file', media: 'text/plain', data: Buffer.from('a file'), name: 'a.txt' },
    ])
    const value = await exportSession(store, 's')
    const { blobs } = openFile(value)
    const texts = Object.values(blobs).map(({ data }) => Buffer.from(data, 'base64').toString())
    expect(texts).toContain('a file')
    expect(texts).toContain('kept beside')
    expect(texts.some((text) => text.endsWith('x'.repeat(100_000)))).toBe(true)
    const there = memory()
    const bytes = (blob: Blob | null) => Buffer.from(blob?.data ?? []).toString()
    await importSession(there, value)
    for (const hash of Object.keys(blobs)) expect(bytes(await there.blob(hash))).toBe(bytes(await store.blob(hash)))
    const gone = storeWith(store, { blob: async () => null })
    await expect(exportSession(gone, 's')).rejects.toMatchObject({ code: 'store_damaged' })
    await expect(exportSession(store, 'nobody')).rejects.toMatchObject({ code: 'session_missing' })
  })
})

describe.each(['memory', 'sqlite'] as const)('what a text only names, on %s', (kind) => {
  it('B-PORT-31: a hash in a text brings no blob of another session, and a fork brings those of its origin', async () => {
    const store = kind === 'memory' ? memory() : openStore(makeFile())
    const kept = defineTool({
      name: 'keep',
      description: 'keeps a text',
      input: z.object({}),
      execute: (_args, context) => context.keep('only theirs').hash,
    })
    const { harness } = desk([{ calls: [{ tool: 'keep' }] }, 'Kept.', 'No.', 'Yes.'], { tools: [kept], store })
    await (await harness.open({ id: 'theirs' })).run('Keep it.')
    const key = hash('sha256', 'only theirs')
    await (await harness.open({ id: 'mine' })).run(`What is blob:${key}?`)
    expect((await exported(store, 'mine')).blobs).not.toHaveProperty(key)
    const fork = await harness.session('theirs').fork({ id: 'fork' })
    await fork.run(`What is blob:${key}?`)
    for (const id of ['theirs', 'fork']) expect((await exported(store, id)).blobs).toHaveProperty(key)
  })
})

describe('a fork in a file', () => {
  const echo: Script = (request) =>
    request.messages
      .flatMap((m) => (m.role === 'user' ? m.parts.map((p) => (p.type === 'text' ? p.text : '')) : []))
      .join(' | ')

  async function forkOfFork(): Promise<{ readonly value: Portable; readonly store: CompleteStore }> {
    const { harness, store } = desk(echo)
    const first = await harness.open({ id: 'first' })
    await first.run('one')
    const second = await first.fork({ id: 'second' })
    await first.run('not for the fork')
    await second.run('two')
    const third = await second.fork({ id: 'third' })
    await third.run('three')
    return { value: await exportSession(store, 'third'), store }
  }

  it('B-PORT-17: it brings the logs it reads through, and stands alone in another store, where no worker continues those', async () => {
    const { value } = await forkOfFork()
    expect(openFile(value).parents.map((parent) => parent.session)).toEqual(['second', 'first'])
    const there = desk(echo)
    await importSession(there.store, value)
    expect((await there.harness.session('third').run('four')).text).toBe('one | two | three | four')
    for (const id of ['first', 'second']) {
      expect(await there.store.card(id)).toMatchObject({ status: 'terminated', due: null })
      await expect(there.harness.session(id).send('more')).rejects.toMatchObject({ code: 'session_closed' })
      expect((await refoldSession(there.store, id)).difference).toBeNull()
    }
    expect(JSON.stringify(await readLog(there.store, 'first'))).not.toContain('not for the fork')
  })

  it('B-PORT-18: a log it reads through that is there already is used, and another one under that id is refused', async () => {
    const { value, store } = await forkOfFork()
    await importSession(store, value, { id: 'fourth' })
    const { harness } = desk(echo, { store })
    expect((await harness.session('fourth').run('four')).text).toBe('one | two | three | four')
    expect((await store.card('first'))?.status).toBe('idle')
    const twice = memory()
    await importSession(twice, value, { id: 'a' })
    await importSession(twice, value, { id: 'b' })
    const other = desk(echo)
    await (await other.harness.open({ id: 'first' })).run('something else')
    await expect(importSession(other.store, value)).rejects.toMatchObject({ code: 'session_exists' })
    expect(await other.store.card('third')).toBeNull()
    const cut = forgeFile(value, (copy) => {
      copy.parents = copy.parents.slice(0, 1)
    })
    expect(await refusalOf(cut)).toContain('is missing')
  })
})

describe('a file from anybody', () => {
  /** Pseudo-random numbers, so that a failure can be reproduced. */
  function* numbers(seed: number): Generator<number, never> {
    for (let state = seed; ; ) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      yield state / 2 ** 32
    }
  }

  it('B-PORT-19: whatever is changed in it, it is refused with a Fault and nothing is written, or it is a session that folds', async () => {
    const value = await paused()
    const odd = [null, -1, 1.5, 1e300, '', 'x', true, {}, [], [[]], { type: 'text' }, '9.9', 'f'.repeat(64)]
    const chance = numbers(7)
    const below = (n: number): number => Math.floor(chance.next().value * n)
    let refused = 0
    for (let round = 0; round < 600; round++) {
      const changed = signed(structuredClone(value), (copy) => {
        let at = copy as unknown as Loose
        for (;;) {
          const key = Object.keys(at)[below(Object.keys(at).length)] ?? ''
          const inner = at[key]
          if (inner !== null && typeof inner === 'object' && Object.keys(inner).length > 0 && below(8) > 0)
            at = inner as Loose
          else if (below(4) === 0) return void (Array.isArray(at) ? at.splice(Number(key), 1) : delete at[key])
          else return void (at[key] = odd[below(odd.length)])
        }
      })
      const store = memory()
      const error: unknown = await importSession(store, changed, { id: 'odd' }).catch((thrown: unknown) => thrown)
      if (error instanceof Fault) {
        refused += 1
        expect([error.code, await store.card('odd')]).toEqual(['invalid_input', null])
      } else expect((await refoldSession(store, 'odd')).difference).toBeNull()
    }
    expect(refused).toBeGreaterThan(300)
  })

  it('B-PORT-20: one that is nested too deeply is refused and not died of', async () => {
    const value = await paused()
    for (const depth of [3_000, 5_000, 100_000]) {
      const text = `${'['.repeat(depth)}${']'.repeat(depth)}`
      const copy = structuredClone(value)
      callIn(recordsIn(copy))['args'] = JSON.parse(text)
      await refusalOf(copy)
    }
  })
})
