// terret/restate with a real Restate server, real worker processes and real kills. What needs no server is restate.test.ts.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { repository } from '../tidy/source.ts'
import { until } from '../until.ts'
import { noRestate, RestateServer } from './server.ts'
import { Balancer, Program, Stage } from './stage.ts'

describe.skipIf(noRestate)('with a Restate server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'terret-restate-server-'))
  let server: RestateServer
  beforeAll(async () => {
    server = await RestateServer.start(folder)
  })
  afterAll(async () => {
    await server.kill()
    rmSync(folder, { recursive: true })
  })

  it('B-RESTATE-1: a message that another process wrote is driven by a worker that Restate wakes', async () => {
    const stage = new Stage(server, 'told')
    await stage.registered()
    const ids = await stage.sessions(3, 'count 2')
    await stage.settled(ids)
    expect(stage.calls()).toHaveLength(6)
    // The next message of a session that rests again wakes it again.
    await stage.harness.session('s0').send('more')
    await until(async () => expect((await stage.store.card('s0'))?.seq).toBeGreaterThan(15))
    await stage.settled(ids)
  })

  it('B-RESTATE-14: Restate keeps no answer of a wake, tries it without a maximum, and gives it a day', async () => {
    const stage = new Stage(server, 'policy')
    await stage.registered()
    expect(await server.described('policy')).toMatchObject({
      ty: 'VirtualObject',
      handlers: [
        {
          name: 'wake',
          ty: 'Exclusive',
          idempotency_retention: '0s',
          journal_retention: '0s',
          inactivity_timeout: '1d',
          abort_timeout: '1d',
          retry_policy: { max_attempts: 2 ** 31, max_interval: '10s' },
        },
      ],
    })
  })

  it('B-RESTATE-2: when a worker is killed another goes on, nothing is lost and no call that may run once runs twice', async () => {
    const stage = new Stage(server, 'killed')
    const first = await stage.worker()
    const second = await stage.worker()
    await stage.register(await Balancer.before(first.url, second.url))
    const ids = await stage.sessions(20, 'count 10')
    await until(() => expect(stage.calls().length).toBeGreaterThan(40))
    // The one that drives: a connection of Restate leads to one of them.
    const pid = Number(stage.calls().at(-1)?.[2])
    const [dead, other] = first.worker.process.pid === pid ? [first, second] : [second, first]
    await dead.worker.kill()
    await stage.settled(ids)
    const calls = stage.calls()
    expect(new Set(calls.map(([session, n]) => `${session} ${n}`)).size).toBe(calls.length)
    expect(calls.at(-1)?.[2]).toBe(String(other.worker.process.pid))
    // A call that the kill met has no answer, and is in the log as unknown: every other was counted.
    for (const id of ids) {
      const { events } = await stage.harness.session(id, { stored: true }).events({ limit: 500 })
      const results = events.filter(({ type }) => type === 'agent.tool_result')
      expect(results.length).toBe(10)
    }
  })

  it('B-RESTATE-19: a worker that is frozen past its lease is passed over, and writes nothing when it thaws', async () => {
    const stage = new Stage(server, 'frozen')
    const first = await stage.worker({ leaseMs: 1_000 })
    const second = await stage.worker({ leaseMs: 1_000 })
    await stage.register(await Balancer.before(first.url, second.url))
    const ids = await stage.sessions(5, 'hang')
    await until(() => expect(stage.hangs()).toHaveLength(5))
    const pid = Number(stage.hangs()[0]?.[2])
    const [frozen, other] = first.worker.process.pid === pid ? [first, second] : [second, first]
    const heldBy = (each: typeof first): readonly (string | undefined)[] =>
      stage
        .hangs()
        .filter(([, , by]) => by === String(each.worker.process.pid))
        .map(([session]) => session)
    frozen.worker.process.kill('SIGSTOP')
    await until(() => expect(new Set(heldBy(other))).toEqual(new Set(ids)))
    writeFileSync(stage.go, '')
    await stage.settled(ids)
    frozen.worker.process.kill('SIGCONT')
    // It still answers: the next message may be driven by either.
    for (const id of ids) await stage.harness.session(id).send('more')
    await until(async () => {
      for (const id of ids) {
        const { events } = await stage.harness.session(id, { stored: true }).events({ limit: 100 })
        expect(events.filter(({ type }) => type === 'run.settled')).toHaveLength(2)
        expect(events.filter(({ type }) => type === 'agent.tool_result')).toHaveLength(2)
      }
    })
  })

  it('B-RESTATE-3: when Restate is killed, what runs goes on, and what is sent meanwhile is driven when it is back', async () => {
    const stage = new Stage(server, 'restarted')
    const worker = await stage.registered()
    await (await stage.harness.open({ id: 'running' })).send('hang')
    for (const id of ['c0', 'c1', 'c2']) await (await stage.harness.open({ id })).send('count 40')
    await until(() => expect(stage.hangs()).toHaveLength(1))
    await until(() => expect(stage.calls().length).toBeGreaterThan(20))
    await server.kill()
    // Two messages while it is away: they are in the store, and an outage is said once.
    const ids = await stage.sessions(2, 'count 1')
    await worker.heard('relay: Restate cannot be reached at ')
    writeFileSync(stage.go, '')
    await stage.settled(['running'])
    await server.start()
    await stage.settled([...ids, 'c0', 'c1', 'c2'])
    // Nothing was driven twice: every call ran once, in one attempt, and none is unknown.
    expect(stage.calls()).toHaveLength(2 + 2 + 3 * 40)
    for (const id of ['running', 'c0', 'c1', 'c2']) {
      const { events } = await stage.harness.session(id, { stored: true }).events({ limit: 500 })
      expect(new Set(events.map(({ epoch }) => epoch))).toEqual(new Set([0, 1]))
      expect(JSON.stringify(events)).not.toContain('"unknown"')
    }
    expect(worker.said.match(/relay: /g)).toHaveLength(1)
  })

  it('B-RESTATE-4: a session that sleeps for three seconds is woken by Restate alone', async () => {
    const stage = new Stage(server, 'timer')
    await stage.registered({ relay: false })
    await (await stage.harness.open({ id: 'sleeper' })).send('remind')
    await server.wake('timer', 'sleeper')
    const card = await stage.store.card('sleeper')
    expect(card).toMatchObject({ wakes: 1, outcome: 'completed' })
    expect((await server.invocations('timer')).map(({ status }) => status)).toEqual(['scheduled'])
    // Looked at again before its time, it is still the one timer.
    await server.wake('timer', 'sleeper')
    expect(await server.invocations('timer')).toHaveLength(1)
    await until(async () => expect((await stage.store.card('sleeper'))?.wakes).toBe(0))
    await stage.settled(['sleeper'])
    const { events } = await stage.harness.session('sleeper', { stored: true }).events({ limit: 100 })
    const starts = events.filter(({ type }) => type === 'run.started')
    expect(starts).toHaveLength(2)
    expect(starts[1]?.at).toBeGreaterThanOrEqual(card?.due ?? Number.POSITIVE_INFINITY)
    await until(async () => expect(await server.invocations('timer')).toEqual([]))
  })

  it('B-RESTATE-5: a thousand sessions that wait for an answer are nothing to Restate, and an answer wakes one of them', async () => {
    const stage = new Stage(server, 'parked')
    await stage.registered()
    const ids = await stage.sessions(1_000, 'ask')
    for (const id of ids) await until(async () => expect((await stage.store.card(id))?.status).toBe('requires_action'))
    await until(async () => expect(await server.invocations('parked')).toEqual([]))
    expect((await stage.store.due(0)).next).toBeNull()
    const [call] = (await stage.harness.session('s77').status()).pending
    await stage.harness.session('s77').answer({ callId: call?.callId ?? '', content: 'yes' })
    await stage.settled(['s77'])
    await until(async () => expect(await server.invocations('parked')).toEqual([]))
  })

  it('B-RESTATE-6: a hundred wakes of one session drive it once, and take its lease once', async () => {
    const stage = new Stage(server, 'twice')
    await stage.registered({ relay: false })
    await (await stage.harness.open({ id: 'one' })).send('count 3')
    const answers = await Promise.all(Array.from({ length: 100 }, () => server.wake('twice', 'one')))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    await stage.settled(['one'])
    expect(stage.calls().map(([, n]) => n)).toEqual(['0', '1', '2'])
    expect((await stage.store.claim('one', 'test', 1_000))?.epoch).toBe(2)
  })

  it('B-RESTATE-8: a wake for a session that is not there, or for no id, is answered with 404 or 400 and not tried again', async () => {
    const stage = new Stage(server, 'missing')
    await stage.registered()
    expect((await server.wake('missing', 'nobody')).status).toBe(404)
    expect((await server.wake('missing', '')).status).toBe(400)
    expect((await server.wake('missing', 'x'.repeat(513))).status).toBe(400)
    await until(async () => expect(await server.invocations('missing')).toEqual([]))
  })

  it('B-RESTATE-17: a session is woken whatever its id is', async () => {
    const stage = new Stage(server, 'names')
    await stage.registered()
    const ids = ['...', '-x', 'a:b', 'a~b', '~x', '100.0_x', 'x'.repeat(128)]
    for (const id of ids) await (await stage.harness.open({ id })).send('hello')
    await stage.settled(ids)
  })

  it('B-RESTATE-10: where the clocks are an hour apart nothing is driven, and the worker says why', async () => {
    for (const shiftMs of [3_600_000, -3_600_000]) {
      const stage = new Stage(server, shiftMs > 0 ? 'ahead' : 'behind')
      const { worker, url } = await stage.worker({ shiftMs })
      expect((await server.register(url)).text).toContain('401 Unauthorized')
      await worker.heard(
        'restate: A signed request of Restate was refused: its clock and the clock of this machine differ',
      )
    }
  })

  it.each([30_000, -30_000])(
    'B-RESTATE-10: clocks that are half a minute apart (%i ms) neither delay a wake nor make a session spin',
    async (shiftMs) => {
      const stage = new Stage(server, shiftMs > 0 ? 'early' : 'late')
      // The store and its processes agree; Restate does not.
      const { now } = Date
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + shiftMs)
      onTestFinished(() => clock.mockRestore())
      await stage.registered({ relay: false, shiftMs })
      await (await stage.harness.open({ id: 'sleeper' })).send('remind')
      await server.wake(stage.name, 'sleeper')
      const due = (await stage.store.card('sleeper'))?.due ?? Number.POSITIVE_INFINITY
      await until(async () => expect((await stage.store.card('sleeper'))?.wakes).toBe(0))
      await stage.settled(['sleeper'])
      const { events } = await stage.harness.session('sleeper', { stored: true }).events({ limit: 100 })
      expect(events.findLast(({ type }) => type === 'run.started')?.at).toBeGreaterThanOrEqual(due)
      expect((await stage.store.claim('sleeper', 'test', 1_000))?.epoch).toBe(3)
    },
  )

  it('B-RESTATE-11: a worker that closes hands its sessions back, and another goes on with them at once', async () => {
    const stage = new Stage(server, 'closing')
    // By waiting for a lease nobody would get them for ten minutes.
    const first = await stage.worker({ leaseMs: 600_000 })
    const second = await stage.worker({ leaseMs: 600_000 })
    await stage.register(await Balancer.before(first.url, second.url))
    const ids = await stage.sessions(5, 'hang')
    await until(() => expect(stage.hangs()).toHaveLength(5))
    const pid = Number(stage.hangs()[0]?.[2])
    const [leaving, other] = first.worker.process.pid === pid ? [first, second] : [second, first]
    const held = stage.hangs().flatMap(([session = '', , by]) => (by === String(pid) ? [session] : []))
    leaving.worker.process.kill('SIGTERM')
    expect(await leaving.worker.gone).toBe(0)
    expect(leaving.worker.said).toContain('closed\n')
    // What it stopped is in the log, and the other takes the next turn.
    await stage.settled(held)
    for (const id of held) {
      const { events } = await stage.harness.session(id, { stored: true }).events({ limit: 100 })
      expect(events.map(({ type, epoch }) => `${type} ${epoch}`).slice(-4)).toEqual([
        'agent.tool_result 1',
        'model.started 2',
        'agent.message 2',
        'run.settled 2',
      ])
    }
    writeFileSync(stage.go, '')
    await stage.settled(ids)
    expect(other.worker.process.exitCode).toBeNull()
  })

  it('B-RESTATE-12: a session of an agent that the worker lacks is kept for one that has it, and is nobody’s trouble', async () => {
    const stage = new Stage(server, 'agents', ['baker'])
    const lacking = await stage.registered()
    await (await stage.harness.open({ id: 'bread', agent: 'baker' })).send('count 1')
    await lacking.heard('look bread: This session belongs to agent "baker"')
    await lacking.heard('wake of "bread": ')
    await lacking.kill()
    await stage.registered({ agent: 'baker' })
    await stage.settled(['bread'])
    expect((await stage.store.card('bread'))?.trouble).toBeUndefined()
    expect(stage.calls()).toHaveLength(1)
  })

  it('B-RESTATE-13: a session that kills every worker is left alone after five, however often Restate asks', async () => {
    const stage = new Stage(server, 'poison')
    let { worker, url } = await stage.worker()
    const { port } = new URL(url)
    await stage.register(url)
    await (await stage.harness.open({ id: 'bad' })).send('die')
    await (await stage.harness.open({ id: 'good' })).send('count 2')
    for (let deaths = 1; deaths <= 5; deaths++) {
      await worker.gone
      ;({ worker, url } = await stage.worker({ port: Number(port) }))
    }
    await until(async () => expect((await stage.store.card('bad'))?.trouble?.until).toBeNull())
    await stage.settled(['good'])
    await until(async () => expect(await server.invocations('poison')).toEqual([]))
    expect((await server.wake('poison', 'bad')).status).toBe(200)
    expect(worker.process.exitCode).toBeNull()
    expect(new Set(stage.calls().map(([, , pid]) => pid)).size).toBeGreaterThanOrEqual(5)
  })

  it('B-RESTATE-15: a wake that takes longer than `abortMs` is sent again, and the session is driven on, once', async () => {
    const stage = new Stage(server, 'aborted')
    const worker = await stage.registered({ abortMs: 300 })
    await (await stage.harness.open({ id: 'long' })).send('hang')
    await until(async () => expect((await server.invocations('aborted'))[0]?.retry_count).toBeGreaterThan(1))
    writeFileSync(stage.go, '')
    await stage.settled(['long'])
    expect(stage.hangs()).toHaveLength(1)
    expect(worker.process.exitCode).toBeNull()
  })

  it('B-RESTATE-20: the programs of the guide run as written', async () => {
    const place = mkdtempSync(join(tmpdir(), 'terret-restate-guide-'))
    const page = readFileSync(join(repository, 'docs/guide/restate.md'), 'utf8')
    const programs = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
    writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
    mkdirSync(join(place, 'node_modules'))
    symlinkSync(repository, join(place, 'node_modules', 'terret'))
    const [worker, send] = programs.map((code, n) => {
      const file = join(place, `${n}.mjs`)
      writeFileSync(file, code)
      const env = { ...process.env, RESTATE_KEY: server.key, RESTATE_INGRESS: server.ingress, PORT: '0' }
      return () =>
        new Program(spawn(process.execPath, [file], { cwd: place, env, stdio: ['ignore', 'pipe', 'inherit'] }))
    })
    const working = worker?.()
    onTestFinished(async () => {
      await working?.kill()
      rmSync(place, { recursive: true })
    })
    await server.register((await working?.heard('http:'))?.replace(/^/, 'http:') ?? '')
    const sending = send?.()
    expect(await sending?.gone).toBe(0)
    expect(sending?.said).toBe('Hello from a worker.\n')
    working?.process.kill('SIGTERM')
    expect(await working?.gone).toBe(0)
  })
})
