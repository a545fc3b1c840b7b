// Following a session from another process, over real sockets with both ends in this process. The driving end is in
// live-serve.test.ts, processes that really die are in live-process.long.test.ts.
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import { joined } from './live-directory.ts'
import { follow, pause, say, session, Stage } from './live-stage.ts'
import { until } from '../until.ts'

let stage: Stage
beforeEach(() => void (stage = new Stage()))
afterEach(() => stage.close())

describe('a subscriber in another process', () => {
  it('B-LIVE-5: gets one catch-up a part, then live, also when characters are split between deltas', async () => {
    const driver = await stage.drivenBy('w1')
    say(driver, 3, ['Grüße ', '\ud83d'])
    say(driver, 3, ['{"a":'], 1)
    const { deltas } = follow(stage.open())
    await until(() => expect(deltas).toHaveLength(2))
    say(driver, 3, ['\ude80', ' fertig\n'])
    say(driver, 3, ['1}'], 1)
    const whole = new Map([
      ['3.0', 'Grüße 🚀 fertig\n'],
      ['3.1', '{"a":1}'],
    ])
    await until(() => expect(joined(deltas)).toEqual(whole))
    expect(deltas.slice(0, 2).map(({ part, offset }) => [part, offset])).toEqual([
      [0, 0],
      [1, 0],
    ])
    // The next call comes over the same connection.
    driver.finish(session, 3)
    say(driver, 7, ['next'])
    await until(() => expect(joined(deltas).get('7.0')).toBe('next'))
    expect(stage.directory.looks).toBe(1)
  })

  it('B-LIVE-5: hears all of it once, wherever it was split, joined in and cut off', async () => {
    const move = fc.oneof(
      { weight: 6, arbitrary: fc.record({ type: fc.constant('say' as const), part: fc.nat(1), text: fc.string() }) },
      { weight: 2, arbitrary: fc.constantFrom({ type: 'subscribe' as const }, { type: 'tick' as const }) },
      { weight: 2, arbitrary: fc.constantFrom({ type: 'meet' as const }, { type: 'cut' as const }) },
    )
    const driver = await stage.drivenBy('w1')
    const relay = await relayTo(stage.directory.addresses.get('w1') ?? '')
    stage.directory.addresses.set('w1', relay.address)
    const reader = stage.open()
    let seq = 0
    const check = async (script: readonly (typeof move extends fc.Arbitrary<infer T> ? T : never)[]) => {
      seq += 1
      const said = new Map<string, string>()
      const readers: ReturnType<typeof follow>[] = []
      const meet = () =>
        until(() => {
          stage.directory.grow()
          for (const { deltas } of readers) expect(joined(deltas)).toEqual(said)
        })
      for (const step of script) {
        if (step.type === 'subscribe') readers.push(follow(reader))
        if (step.type === 'tick') await new Promise((done) => setImmediate(done))
        if (step.type === 'meet') await meet()
        if (step.type === 'cut') relay.cut()
        if (step.type !== 'say') continue
        say(driver, seq, [step.text], step.part)
        said.set(`${seq}.${step.part}`, (said.get(`${seq}.${step.part}`) ?? '') + step.text)
      }
      await meet()
      driver.finish(session, seq)
      for (const { leave } of readers) leave()
    }
    await fc.assert(fc.asyncProperty(fc.array(move, { maxLength: 40 }), check), { numRuns: 60 })
  })

  it('B-LIVE-6: asks for the owner when it starts and when the session grows, and never otherwise', async () => {
    const { deltas, leave } = follow(stage.open())
    await pause(50)
    expect(stage.directory.looks).toBe(1)
    stage.directory.grow([{ type: 'user.interrupt', id: 'i', mode: 'stop', seq: 1, at: 1, epoch: 0 }])
    expect(stage.directory.looks).toBe(1)
    const driver = await stage.drivenBy('w1')
    say(driver, 2, ['hello'])
    stage.directory.grow([modelStarted])
    await until(() => expect(joined(deltas).get('2.0')).toBe('hello'))
    expect(stage.directory.looks).toBe(2)
    leave()
    expect(stage.directory.watched).toBe(0)
    stage.directory.grow()
    expect(stage.directory.looks).toBe(2)
  })

  it('B-LIVE-7: goes over to the new owner, and hears nothing more of the old one', async () => {
    const first = await stage.drivenBy('w1')
    const own = stage.open()
    const { deltas } = follow(own)
    say(first, 2, ['lost '])
    await until(() => expect(deltas).toHaveLength(1))
    const second = await stage.drivenBy('w2')
    say(second, 5, ['again'])
    stage.directory.grow()
    await until(() => expect(joined(deltas).get('5.0')).toBe('again'))
    say(first, 2, ['ghost'])
    // The subscriber's own process takes over: its deltas come directly.
    await own.serve('w3', 1_000)
    stage.directory.owner = 'w3'
    say(own, 9, ['local'])
    say(second, 5, ['ghost'])
    expect(deltas.at(-1)).toMatchObject({ seq: 9, text: 'local' })
    await pause(20)
    stage.directory.grow()
    await pause(20)
    expect(joined(deltas)).toEqual(new Map(Object.entries({ '2.0': 'lost ', '5.0': 'again', '9.0': 'local' })))
  })

  it('B-LIVE-7: stays with the last owner while there is none', async () => {
    const driver = await stage.drivenBy('w1')
    const { deltas } = follow(stage.open())
    say(driver, 2, ['before '])
    await until(() => expect(deltas).toHaveLength(1))
    stage.directory.owner = null
    stage.directory.grow()
    await pause(20)
    say(driver, 2, ['after'])
    await until(() => expect(joined(deltas).get('2.0')).toBe('before after'))
  })

  it('B-LIVE-8: cuts what overlaps, and after a gap connects again for a catch-up', async () => {
    const connections = await scripted([
      [line(0, 'abc'), line(2, 'cde'), line(9, 'never')],
      [line(0, 'abcdefgh'), line(3, 'def'), line(8, 'i')],
    ])
    const { deltas } = follow(stage.open())
    await until(() => expect(deltas.map(({ text }) => text)).toEqual(['abc', 'de', 'fgh', 'i']))
    expect(joined(deltas).get('2.0')).toBe('abcdefghi')
    expect(connections()).toBe(2)
  })

  it.each([
    ['nonsense', ['{"seq":2']],
    ['a delta that is none', ['{"kind":"text","part":0,"text":1,"seq":2,"offset":0}']],
    ['an owner that closes at once', []],
    ['an owner that starts in the middle', [line(5, 'never')]],
  ])('B-LIVE-8: stays quiet on %s, and tries again only when the session grows', async (_name, lines) => {
    const connections = await scripted([lines, [line(0, 'good')]], true)
    const { deltas } = follow(stage.open())
    await until(() => expect(connections()).toBe(1))
    await pause(30)
    expect(connections()).toBe(1)
    expect(deltas).toEqual([])
    stage.directory.grow()
    await until(() => expect(joined(deltas).get('2.0')).toBe('good'))
  })

  it.each(['unix:/nowhere/live', 'unix:', 'tcp://127.0.0.1:1', 'unix:\0'])(
    'B-LIVE-8: stays quiet when the owner is at %j',
    async (address) => {
      stage.directory.addresses.set('w1', address)
      stage.directory.owner = 'w1'
      const live = stage.open()
      const { deltas } = follow(live)
      await pause(20)
      say(live, 1, ['local'])
      expect(joined(deltas).get('1.0')).toBe('local')
    },
  )
})

const modelStarted: Event = { type: 'model.started', shows: [], allow: 'all', held: 0, seq: 2, at: 1, epoch: 1 }

function line(offset: number, text: string): string {
  return JSON.stringify({ kind: 'text', part: 0, text, seq: 2, offset })
}

/** An owner that sends these lines to its first, second… connection. Returns how many there were. */
async function scripted(answers: readonly (readonly string[])[], hangUp = false): Promise<() => number> {
  let count = 0
  stage.directory.addresses.set(
    'w1',
    await stage.listen((socket) => {
      const lines = answers[count++] ?? []
      socket.once('data', () => {
        socket.write(lines.map((text) => `${text}\n`).join(''))
        if (hangUp && count < answers.length) socket.end()
      })
    }),
  )
  stage.directory.owner = 'w1'
  return () => count
}

/** Stands between reader and driver, and can cut every connection in the middle of what it carries. */
async function relayTo(address: string): Promise<{ readonly address: string; readonly cut: () => void }> {
  const sockets = new Set<Socket>()
  const relayed = await stage.listen((socket) => {
    const onward = connect(address.slice('unix:'.length)).on('error', () => {})
    sockets.add(socket)
    socket.pipe(onward)
    onward.pipe(socket)
    socket.on('close', () => onward.destroy())
    onward.on('close', () => socket.destroy())
  })
  return { address: relayed, cut: () => sockets.forEach((socket) => socket.destroy()) }
}
