// The contract of `Sessions` and `Session`, as one suite for a harness and for the client of a server. What a server's
// routes do not carry is named in one table: there the client refuses with `unsupported`.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Followed,
  type HarnessOptions,
  output,
  type Script,
  type Session,
  type Sessions,
  type StreamEvent,
} from '../../src/index.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'

export type MakeSessions = (script: Script, options?: Omit<HarnessOptions, 'model' | 'store'>) => Promise<Sessions>

const publish = tool('publish', { approval: 'ask', effect: 'once' })
const ask = defineTool({ name: 'ask', description: 'ask', input: z.object({ n: z.number() }) })
const PUBLISH = { calls: [{ tool: 'publish', args: { n: 1 } }] }

export function describeSessions(name: string, make: MakeSessions, carriesAll: boolean): void {
  describe(`${name} as sessions`, () => {
    describeRuns(make)
    describeStreams(make)
    describePeople(make)
    describeSteering(make)
    describeSchedules(make)
    describeTitles(make)
    describePursuits(make)
    describeLooks(make)
    describeEnds(make)
    describeUnsupported(make, carriesAll)
  })
}

function describeRuns(make: MakeSessions): void {
  it('B-VERBS-1: opens, sends and runs, and the result is the same whether it is waited for or read', async () => {
    const sessions = await make(['One.', 'Two.', 'Three.'])
    const session = await sessions.open({ id: 'trip', labels: { tenant: 'acme' }, metadata: { n: 1 } })
    expect(session.id).toBe('trip')
    expect(await session.result()).toBeNull()
    expect(await session.run('First.')).toMatchObject({ sessionId: 'trip', status: 'completed', text: 'One.' })
    const receipt = await session.send('Second.', { id: 'mine', metadata: { n: 2 } })
    expect(receipt).toMatchObject({ duplicate: false, queued: false })
    expect(await session.send('Second.', { id: 'mine', metadata: { n: 2 } })).toMatchObject({
      seq: receipt.seq,
      duplicate: true,
    })
    const result = await session.run()
    expect(result).toMatchObject({ text: 'Two.', metadata: { n: 2 }, stopReason: 'end_turn' })
    expect(await session.result({ waitMs: 1_000 })).toEqual(result)
    expect((await session.messages()).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(await sessions.run('Third.', { labels: { tenant: 'other' }, require: 'complete' })).toMatchObject({
      text: 'Three.',
    })
  })

  it('B-VERBS-1: an id is taken once with the same options, `reuse` takes what is there, and another use is refused', async () => {
    const sessions = await make([])
    await sessions.open({ id: 'one', metadata: { n: 1 } })
    expect((await sessions.open({ id: 'one', metadata: { n: 1 } })).id).toBe('one')
    await expect(sessions.open({ id: 'one', metadata: { n: 2 } })).rejects.toMatchObject({ code: 'id_reused' })
    expect((await sessions.open({ id: 'one', metadata: { n: 2 }, reuse: true })).id).toBe('one')
    await expect(sessions.session('nobody').run('Hi.')).rejects.toMatchObject({ code: 'session_missing' })
    await expect(sessions.session('one').send('')).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('B-VERBS-1: `run` gives the result of its own input, also when a later one is settled first', async () => {
    const sessions = await make(['One.', 'Two.', 'Three.'])
    const session = await sessions.open()
    await session.send('First.')
    const [second, third] = await Promise.all([
      session.run('Second.', { instructions: 'Be brief.' }),
      session.run('Third.', { instructions: 'Be kind.' }),
    ])
    expect([second.text, third.text].sort()).toEqual(['Three.', 'Two.'])
  })

  it('B-VERBS-1: bytes are sent with a message, and read back by their hash', async () => {
    const sessions = await make(['Seen.'])
    const session = await sessions.open()
    const data = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 255])
    await session.run([
      { type: 'text', text: 'Look.' },
      { type: 'image', media: 'image/png', data },
    ])
    const [message] = await session.messages()
    const part = message?.role === 'user' ? message.parts.find(({ type }) => type === 'blob') : undefined
    if (part?.type !== 'blob') throw new Error('no picture')
    expect(await session.blob(part)).toMatchObject({ hash: part.hash, media: 'image/png' })
    expect([...((await session.blob(part.hash))?.data ?? [])]).toEqual([...data])
    expect(await session.blob('0'.repeat(64))).toBeNull()
    await expect(session.blob('no hash')).rejects.toMatchObject({ code: 'invalid_input' })
  })
}

async function eventsOf(stream: AsyncIterable<StreamEvent>): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

function describeStreams(make: MakeSessions): void {
  it('B-VERBS-2: a stream has every event once, numbered, with live text, and its result', async () => {
    const sessions = await make([{ deltas: ['Hel', 'lo.'] }, 'Again.'])
    const stream = sessions.stream('Hi.', { deltas: true })
    const events = await eventsOf(stream)
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
    const logged = events.filter(({ type }) => type !== 'delta').map(({ seq }) => seq)
    expect(logged).toEqual([...new Set(logged)].sort((a, b) => a - b))
    expect(events.at(-1)).toMatchObject({ type: 'run.settled', source: { agent: 'default', parent: null } })
    const result = await stream.orThrow()
    expect(result).toMatchObject({ status: 'completed', text: 'Hello.' })
    const session = sessions.session(result.sessionId)
    let text = ''
    for await (const piece of session.stream('More.').text) text += piece
    expect(text).toBe('Again.')
    const seen = events.at(-1)?.seq ?? 0
    const rest = await eventsOf(session.stream(undefined, { after: seen }))
    expect(rest[0]).toMatchObject({ type: 'user.message', seq: seen + 1 })
    expect(rest.at(-1)?.type).toBe('run.settled')
  })

  it('B-VERBS-2: a stream has the events of children and their calls, and leaving it interrupts its run', async () => {
    const sessions = await make(
      (request) => {
        const last = request.messages.at(-1)
        const said = last?.role === 'user' && last.parts[0]?.type === 'text' ? last.parts[0].text : ''
        if (said === 'Wait.') return { deltas: ['never'], stall: true }
        if (said === 'Part.') return 'A part.'
        return last?.role === 'tool' ? 'Whole.' : { calls: [{ tool: 'subagent', args: { task: 'Part.' } }] }
      },
      { subagents: true },
    )
    const stream = sessions.stream('Go.')
    const events = await eventsOf(stream)
    const { sessionId } = await stream.result
    const child = events.find((event) => event.session !== sessionId)
    expect(child).toMatchObject({ source: { parent: { session: sessionId } } })
    expect(events.find(({ type }) => type === 'agent.tool_result')).toMatchObject({ tool: 'subagent' })
    const { cards } = await sessions.list({ parent: sessionId, order: 'made' })
    expect(cards.map((card) => card.session)).toEqual([child?.session])
    const session = await sessions.open()
    for await (const event of session.stream('Wait.')) if (event.type === 'model.started') break
    await until(async () => expect((await session.status()).outcome?.type).toBe('interrupted'))
  })

  it('B-VERBS-2: a session is followed from any event, until its signal or until it is removed', async () => {
    const sessions = await make(['One.', 'Two.'])
    const session = await sessions.open()
    await session.run('First.')
    const over = new AbortController()
    const seqs: number[] = []
    const follow = async (items: AsyncIterable<Followed>): Promise<void> => {
      for await (const item of items) if (item.type === 'event') seqs.push(item.event.seq)
    }
    const following = follow(session.follow({ after: 2, signal: over.signal }))
    await session.run('Second.')
    const { events } = await session.events({ after: 2 })
    await until(() => expect(seqs).toEqual(events.map(({ seq }) => seq)))
    over.abort()
    await following
    await expect(follow(session.follow({ after: 1_000 }))).rejects.toMatchObject({ code: 'cursor_stale' })
    const gone = follow(session.follow()).catch((error: unknown) => error)
    await until(async () => void (await sessions.remove(session.id)))
    expect(await gone).toMatchObject({ code: 'session_missing' })
  })
}

function describePeople(make: MakeSessions): void {
  it('B-VERBS-3: what waits for people is listed, shown in results and decided once', async () => {
    const sessions = await make([PUBLISH, 'Done.'], { tools: [publish] })
    const session = await sessions.open()
    const waits = await session.run('Go.')
    expect(waits).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
    const [call] = (await session.status()).pending
    if (!call) throw new Error('nothing waits')
    expect(call).toMatchObject({ tool: 'publish', args: { n: 1 }, sessionId: session.id, agent: 'default' })
    expect(await sessions.pending()).toMatchObject([{ callId: call.callId }])
    expect(await sessions.pending({ after: session.id })).toEqual([])
    expect(await session.status()).toMatchObject({ status: 'requires_action', phase: 'waiting', waitsFor: 'approval' })
    await expect(session.decide({ ...call, digest: 'x', allow: true, by: 'ana' })).rejects.toMatchObject({
      code: 'decision_stale',
    })
    await session.decide({ ...call, allow: true, by: 'ana', why: 'fine' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.', calls: [{ status: 'ok' }] })
    expect(await sessions.pending()).toEqual([])
  })

  it('B-VERBS-3: a call that is answered from outside is answered', async () => {
    const sessions = await make([{ calls: [{ tool: 'ask', args: { n: 1 } }] }, 'Thanks.'], { tools: [ask] })
    const session = await sessions.open()
    const { pending } = await session.run('Go.')
    expect(pending).toMatchObject([{ needs: 'answer' }])
    await session.answer({ callId: pending[0]?.callId ?? '', content: 'Blue.' })
    expect(await session.run()).toMatchObject({ text: 'Thanks.' })
    await expect(session.answer({ callId: '9.0', content: 'No.' })).rejects.toMatchObject({ code: 'decision_stale' })
  })
}

function describeSteering(make: MakeSessions): void {
  it('B-VERBS-4: commands steer a session, and a batch with an invalid one does nothing', async () => {
    const sessions = await make([{ deltas: ['never'], stall: true }, 'Redirected.'])
    const session = await sessions.open()
    await session.send('Go.')
    await until(async () => expect((await session.status()).phase).toBe('model'))
    const seq = async (): Promise<number> => (await session.status()).seq
    const before = await seq()
    await expect(session.send([{ type: 'redirect', text: '' }])).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await seq()).toBe(before)
    await session.send([{ type: 'redirect', text: 'Do this.' }])
    expect(await session.run()).toMatchObject({ text: 'Redirected.' })
  })

  it('B-VERBS-4: an interrupt stops the run, a pause holds it, and `resume` lets it go on', async () => {
    const sessions = await make([{ deltas: ['never'], stall: true }, 'On.'])
    const session = await sessions.open()
    await session.send('Go.')
    await until(async () => expect((await session.status()).phase).toBe('model'))
    await session.interrupt()
    expect(await session.run()).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    await session.send([
      { type: 'message', input: 'More.', when: 'after' },
      { type: 'pause', reason: 'lunch' },
    ])
    expect(await session.run()).toMatchObject({ status: 'requires_action', stopReason: 'paused', reason: 'lunch' })
    await session.send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ text: 'On.' })
  })

  it('B-VERBS-4: a signal interrupts the run that waits', async () => {
    const sessions = await make([{ deltas: ['never'], stall: true }])
    const over = new AbortController()
    const run = sessions.run('Go.', { signal: over.signal })
    setTimeout(() => over.abort(), 100)
    expect(await run).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
  })
}

function describeSchedules(make: MakeSessions): void {
  const FAR_MS = 3_600_000

  it('B-SCHED-1, B-SCHED-2, B-SCHED-3: a look is scheduled once under its key, cancelled by it, and its run begins', async () => {
    const sessions = await make(['Looked.'])
    const session = await sessions.open()
    const at = new Date(Date.now() + FAR_MS)
    const first = await session.schedule({ at, reason: 'Look.', key: 'a/b' })
    expect(first).toMatchObject({ key: 'a/b', due: at.getTime(), duplicate: false })
    expect(await session.schedule({ inMs: 1, key: 'a/b' })).toEqual({ ...first, duplicate: true })
    await until(async () => expect((await session.status()).status).toBe('rescheduling'))
    expect([await session.unschedule('a/b'), await session.unschedule('a/b')]).toEqual([true, false])
    const now = await session.schedule({ inMs: 0, reason: 'Is it green?', id: 'mine' })
    await until(async () => expect(await session.result()).toMatchObject({ text: 'Looked.' }))
    expect(await session.schedule({ inMs: 0, reason: 'Is it green?', id: 'mine' })).toEqual({ ...now, duplicate: true })
    const { events } = await session.events()
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(1)
  })

  it('B-SCHED-7, B-SCHED-12: a message for later waits for its time, and the session is rescheduled', async () => {
    const sessions = await make(['Now.', 'Later.'])
    const session = await sessions.open()
    const at = Date.now() + FAR_MS
    const sent = await session.send('Far away.', { at: new Date(at), id: 'mine' })
    expect(await session.send('Far away.', { at, id: 'mine' })).toMatchObject({ seq: sent.seq, duplicate: true })
    await until(async () => expect(await session.status()).toMatchObject({ status: 'rescheduling' }))
    expect(await session.run('Now?')).toMatchObject({ text: 'Now.' })
    await session.send('Late.', { at: 1_000 })
    await until(async () => expect(await session.result()).toMatchObject({ text: 'Later.' }))
    expect(JSON.stringify(await session.messages())).not.toContain('Far away.')
  })

  it('B-SCHED-9: bad times, keys and reasons are refused, and so is a closed session', async () => {
    const session = await (await make([])).open()
    const far = Date.now() + 3_651 * 24 * FAR_MS
    const bad = [{}, { at: 1, inMs: 1 }, { at: Number.NaN }, { at: -1 }, { at: far }, { inMs: -1 }, { inMs: far }]
    for (const options of [...bad, { inMs: 1, key: '' }, { inMs: 1, reason: '' }, { inMs: 1, key: 'x'.repeat(513) }])
      await expect(session.schedule(options)).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(session.unschedule('')).rejects.toMatchObject({ code: 'invalid_input' })
    for (const options of [
      { at: -1 },
      { at: far },
      { at: 5, when: 'now' as const },
      { at: 5, signal: new AbortController().signal },
    ])
      await expect(session.send('Hi.', options)).rejects.toMatchObject({ code: 'invalid_input' })
    await session.close()
    await expect(session.schedule({ inMs: 1 })).rejects.toMatchObject({ code: 'session_closed' })
    await expect(session.unschedule('a')).rejects.toMatchObject({ code: 'session_closed' })
  })
}

function describeTitles(make: MakeSessions): void {
  it('B-TITLE-10: a title is given under its id once, lists and searches have it, and what is no title is refused', async () => {
    const sessions = await make(['Looked.'])
    const session = await sessions.open({ id: 'dig' })
    await session.run('First words.')
    const given = await session.rename('  A long\n dig ', { id: 'mine' })
    expect(given).toEqual({ title: 'A long dig', seq: expect.any(Number) as number, duplicate: false })
    expect(await session.rename('A long dig', { id: 'mine' })).toEqual({ ...given, duplicate: true })
    await expect(session.rename('Another', { id: 'mine' })).rejects.toMatchObject({ code: 'id_reused' })
    const { cards } = await sessions.list({ q: 'long DIG' })
    expect(cards.map((card) => [card.session, card.title])).toEqual([['dig', 'A long dig']])
    for (const bad of ['', ' ', '\u200b'])
      await expect(session.rename(bad)).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(sessions.session('nobody').rename('A title')).rejects.toMatchObject({ code: 'session_missing' })
    expect(await session.result()).toMatchObject({ text: 'Looked.' })
    await session.close()
    await expect(session.rename('Too late')).rejects.toMatchObject({ code: 'session_closed' })
  })
}

function describePursuits(make: MakeSessions): void {
  it('B-OUTCOME-23: an outcome is pursued round after round, and its state is a part of the status', async () => {
    const sessions = await make((request) => {
      if (!request.instructions.startsWith('You grade a result')) return 'A poem.'
      const isSecond = JSON.stringify(request.messages).includes('Round 2') || request.session.endsWith('.2')
      const criteria = [{ criterion: 'It rhymes', met: isSecond ? 'yes' : 'no', why: 'read aloud' }]
      return { calls: [{ tool: 'final_result', args: { criteria, summary: 'Done.' } }] }
    })
    const session = await sessions.open({ id: 'trip' })
    const task = { description: 'Write a poem.', rubric: '- It rhymes.', usd: 5, id: 'mine' }
    await expect(session.pursue({ ...task, roundsMax: 0 })).rejects.toThrow(/roundsMax/)
    await expect(session.pursue({ ...task, rubric: '' })).rejects.toThrow(/rubric/)
    expect((await session.status({ include: ['pursuit'] })).pursuit).toEqual({ state: 'missing_outcome' })
    const receipt = await session.pursue(task)
    expect(receipt).toMatchObject({ duplicate: false, seq: 2, eventId: 'trip:2' })
    expect(await session.pursue(task)).toEqual({ ...receipt, duplicate: true })
    const pursuit = await until(async () => {
      const found = (await session.status({ include: ['pursuit', 'card'] })).pursuit
      expect(found).toMatchObject({ end: 'satisfied' })
      return found
    })
    expect(pursuit).toMatchObject({
      state: 'pass',
      fingerprint: receipt.fingerprint,
      round: 2,
      roundsMax: 3,
      usd: 5,
      trend: 'improving',
      history: [
        { round: 1, state: 'fail', met: 0, of: 1 },
        { round: 2, state: 'pass', met: 1, of: 1, summary: 'Done.' },
      ],
    })
    await expect(sessions.session('nobody').pursue(task)).rejects.toMatchObject({ code: 'session_missing' })
    expect((await session.run('Thanks.')).text).toBe('A poem.')
  })
}

function describeLooks(make: MakeSessions): void {
  it('B-VERBS-5: a session is looked at, listed, found by words and paged through', async () => {
    const sessions = await make(['One.', 'Two.', 'Three.'])
    const first = await sessions.open({ id: 'a' })
    await first.run('Apples.')
    await (await sessions.open({ id: 'b' })).run('Pears.')
    await (await sessions.open({ id: 'c' })).run('Plums.')
    expect(await first.status()).toMatchObject({
      sessionId: 'a',
      agent: 'default',
      status: 'idle',
      phase: 'idle',
      outcome: { type: 'completed' },
      text: 'One.',
      inputs: 0,
      pending: [],
    })
    const { seq, usage } = await first.status()
    expect(usage.modelRequests).toBe(1)
    expect(await first.status({ at: 2 })).toMatchObject({ seq: 2, session: { run: null } })
    expect((await first.status({ at: seq })).session.last).toEqual({ type: 'completed' })
    await expect(sessions.session('nobody').status()).rejects.toMatchObject({ code: 'session_missing' })
    expect((await first.status({ include: ['card'] })).card).toMatchObject({
      session: 'a',
      phase: 'resting',
    })
    expect((await sessions.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)).toEqual([
      'a',
      'b',
      'c',
    ])
    const page = await sessions.list({ order: 'made', limit: 2 })
    expect(page.cards.map(({ session }) => session)).toEqual(['c', 'b'])
    const rest = await sessions.list({ order: 'made', limit: 2, cursor: page.next ?? '' })
    expect([rest.cards.map(({ session }) => session), rest.next]).toEqual([['a'], null])
    expect((await sessions.list({ q: 'pears' })).cards.map(({ session }) => session)).toEqual(['b'])
    expect((await sessions.list({ outcome: ['failed'] })).cards).toEqual([])
  })

  it('B-VERBS-5: the log is read in pages, whole or of one run', async () => {
    const sessions = await make(['One.', 'Two.'])
    const session = await sessions.open()
    await session.run('First.')
    await session.run('Second.')
    const { events } = await session.events()
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    const found: number[] = []
    for (let after = 0; ; ) {
      const page = await sessions.session(session.id, { stored: true }).events({ after, limit: 3 })
      found.push(...page.events.map(({ seq }) => seq))
      if (page.next === null) break
      after = page.next
    }
    expect(found).toEqual(events.map(({ seq }) => seq))
    const run = events.findLast(({ type }) => type === 'run.started')?.seq ?? 0
    const last = await sessions.session(session.id, { stored: true }).events({ run })
    expect([last.events[0]?.seq, last.events.at(-1)?.type]).toEqual([run, 'run.settled'])
    expect(await sessions.session('nobody', { stored: true }).events()).toEqual({ events: [], next: null })
  })

  it('B-VERBS-5: cards are watched as they change, until the signal', async () => {
    const sessions = await make(() => 'One.')
    const over = new AbortController()
    const seen: string[] = []
    const watching = (async () => {
      for await (const change of sessions.watch({ signal: over.signal }))
        if (change.type === 'card') seen.push(`${change.card.session} ${change.card.status}`)
    })()
    let n = 0
    await until(async () => {
      n += 1
      await (await sessions.open({ id: `w${n}` })).send('Hi.')
      expect(seen.some((each) => each.endsWith(' idle'))).toBe(true)
    })
    over.abort()
    await watching
  })

  it('B-VERBS-5: agents and health are described', async () => {
    const sessions = await make([], { tools: [publish] })
    expect(await sessions.agents()).toMatchObject([{ name: 'default', tools: [{ name: 'publish', effect: 'once' }] }])
    expect(await sessions.health()).toMatchObject({ ok: true, trouble: null, drives: true })
  })
}

function describeEnds(make: MakeSessions): void {
  it('B-VERBS-6: a fork goes on from an event, and pins hold, by number and by name', async () => {
    const sessions = await make(['One.', 'Forked.'])
    const session = await sessions.open()
    await session.run('First.')
    const { seq } = await session.pin('Only UTC.')
    expect((await session.status({ include: ['pins'] })).pins).toEqual([{ seq, text: 'Only UTC.' }])
    const fork: Session = await session.fork({ id: 'fork', labels: { copy: 'yes' } })
    expect(fork.id).toBe('fork')
    expect(await fork.run('On.')).toMatchObject({ text: 'Forked.' })
    expect((await fork.status({ include: ['pins'] })).pins).toMatchObject([{ inherited: true, name: `^${seq}` }])
    await session.pin(seq, { off: true })
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    await expect(session.pin(seq, { off: true })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(sessions.remove(session.id)).rejects.toMatchObject({ code: 'conflict' })
  })

  it('B-VERBS-6: what the calls of a run changed is taken back', async () => {
    const box = { text: 'old' }
    const write = tool('write', {
      effect: 'idempotent',
      execute: () => {
        box.text = 'new'
        return output({ content: 'written', metadata: { was: 'old' } })
      },
      undo: async ({ was }) => {
        box.text = was as string
        return [{ what: 'the box', result: 'restored' }]
      },
    })
    const sessions = await make([{ calls: [{ tool: 'write', args: {} }] }, 'Done.'], { tools: [write] })
    const session = await sessions.open()
    await session.run('Go.')
    expect(box.text).toBe('new')
    expect(await session.undo()).toMatchObject([{ what: 'the box', result: 'restored' }])
    expect(box.text).toBe('old')
    await expect(session.undo(1)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('B-VERBS-6: a closed session accepts nothing, a removed one is gone, and after `close` every verb is refused', async () => {
    const sessions = await make(['One.'])
    const session = await sessions.open({ id: 'done' })
    await session.run('First.')
    await session.close()
    expect(await session.status()).toMatchObject({ phase: 'closed', status: 'terminated' })
    await expect(session.send('More.')).rejects.toMatchObject({ code: 'session_closed' })
    expect(await sessions.remove('done')).toMatchObject([{ session: 'done' }])
    await expect(session.status()).rejects.toMatchObject({ code: 'session_missing' })
    const following = (async () => {
      for await (const _ of sessions.watch()) continue
    })()
    await sessions.close()
    await following
    await expect((async () => sessions.list())()).rejects.toMatchObject({ code: 'harness_closed' })
  })
}

type Act = (sessions: Sessions, session: Session) => Promise<unknown>
/** What the routes of a server do not carry. */
const NOT_CARRIED: Readonly<Record<string, Act>> = {
  compact: (_, session) => session.compact(),
  spawn: (_, session) => session.spawn('default', 'Go.').catch(onlyUnsupported),
  'status, contextReport': (_, session) => session.status({ include: ['contextReport'] }),
  'status, children': (_, session) => session.status({ include: ['children'] }),
  'work without a session': (sessions) => sessions.work({ idleMs: 0 }),
  'open, environment': (sessions) => sessions.open({ environment: 'production' }),
  'send, traceparent': (_, session) =>
    session.send('Hi.', { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }),
  'run, raw': (_, session) => session.run('Hi.', { raw: true }),
  'send, output': (_, session) => session.send('Hi.', { output: { schema: { type: 'object' } } }),
  'list, active': (sessions) => sessions.list({ active: true }),
  'list, context': (sessions) => sessions.list({ context: true }),
  'list, runs': (sessions) => sessions.list({ runs: true }),
  'list, waiting': (sessions) => sessions.list({ waiting: true }),
  'list, owner': (sessions) => sessions.list({ owner: 'ana' }),
  'list, where': (sessions) => sessions.list({ where: { tenant: 'acme' } }),
  'watch, where': async (sessions) => void (await sessions.watch({ where: { tenant: 'acme' } }).return?.()),
  'pending, where': (sessions) => sessions.pending({ where: { tenant: 'acme' } }),
}

/** A harness may refuse for a reason of its own. */
function onlyUnsupported(error: unknown): void {
  if ((error as { readonly code?: string }).code === 'unsupported') throw error
}

function describeUnsupported(make: MakeSessions, carriesAll: boolean): void {
  it('B-VERBS-7: what no route carries is refused with `unsupported`, and never left out in silence', async () => {
    const sessions = await make(['One.', 'Two.', 'Three.'])
    const session = await sessions.open()
    await session.run('First.')
    for (const [what, act] of Object.entries(NOT_CARRIED)) {
      const code = await act(sessions, session).then(
        () => null,
        (error: unknown) => (error as { readonly code?: string }).code ?? String(error),
      )
      expect([what, code]).toEqual([what, carriesAll ? null : 'unsupported'])
    }
  })
}
