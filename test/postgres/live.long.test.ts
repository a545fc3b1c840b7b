// Live deltas between machines, by the post of a real server: late readers, no gap and no double, also when texts are lost. The same
// promise over sockets is test/runtime/live-*.test.ts.
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { LiveDelta } from '../../src/live/local-live.ts'
import { ChannelTransport } from '../../src/live/channel-transport.ts'
import { SharedLive } from '../../src/live/shared-live.ts'
import { steadyClock as clock } from '../../src/stores/plan/system-clock.ts'
import { buildNetwork } from '../../src/stores/postgres/network.ts'
import { Directory, joined } from '../runtime/live-directory.ts'
import { until } from '../until.ts'
import { noPostgres } from './server.ts'
import { type Database, database, proxyTo } from './stage.ts'

const session = 's'
/** One process of several, as far as live deltas can tell. `ear` is where it listens. */
function open({ url }: Database, directory: Directory, ear?: string): SharedLive {
  const { connections, post } = buildNetwork({ url, ...(ear === undefined ? {} : { direct: ear }) }, 'test')
  const live = new SharedLive({
    store: directory,
    clock,
    openTransport: async () => new ChannelTransport(post(), clock),
  })
  onTestFinished(async () => {
    await live.close()
    await connections.close()
  })
  return live
}

async function drivenBy(worker: string, place: Database, directory: Directory): Promise<SharedLive> {
  const live = open(place, directory)
  await live.serve(worker, 1_000)
  directory.owner = worker
  return live
}

function follow(live: SharedLive, of = session): { readonly deltas: LiveDelta[]; readonly leave: () => void } {
  const deltas: LiveDelta[] = []
  return { deltas, leave: live.subscribe(of, (delta) => void deltas.push(delta)) }
}

function say(live: SharedLive, seq: number, text: string, part = 0): void {
  live.publish(session, seq, { kind: 'text', part, text })
}

describe.skipIf(noPostgres)('a subscriber on another machine', () => {
  it('B-PGNET-18: gets one catch-up a part, then live, also when characters are split between deltas', async () => {
    const place = await database()
    const directory = new Directory()
    const driver = await drivenBy('w1', place, directory)
    expect(directory.addresses.get('w1')).toMatch(/^pg:terret_live_[0-9a-f]{32}_1$/)
    say(driver, 3, 'Grüße \ud83d')
    say(driver, 3, '{"a":', 1)
    const reader = open(place, directory)
    const { deltas } = follow(reader)
    await until(() => expect(deltas).toHaveLength(2))
    say(driver, 3, '\ude80 fertig\n')
    const late = follow(reader)
    say(driver, 3, '1}', 1)
    const whole = new Map([
      ['3.0', 'Grüße 🚀 fertig\n'],
      ['3.1', '{"a":1}'],
    ])
    for (const heard of [deltas, late.deltas]) await until(() => expect(joined(heard)).toEqual(whole))
    driver.finish(session, 3)
    say(driver, 7, 'next')
    for (const heard of [deltas, late.deltas]) await until(() => expect(joined(heard).get('7.0')).toBe('next'))
    late.leave()
    say(driver, 7, ' one')
    await until(() => expect(joined(deltas).get('7.0')).toBe('next one'))
    expect(joined(late.deltas).get('7.0')).toBe('next')
  })

  it('B-PGNET-18: gets texts that are longer than one notification, and every character', async () => {
    const place = await database()
    const directory = new Directory()
    const driver = await drivenBy('w1', place, directory)
    const long = `${'\u0001"\\'.repeat(3_000)}${'ü🚀'.repeat(20_000)}${'x'.repeat(100_000)}`
    say(driver, 2, long)
    const { deltas } = follow(open(place, directory))
    await until(() => expect(joined(deltas).get('2.0')?.length).toBe(long.length))
    say(driver, 2, long)
    await until(() => expect(joined(deltas).get('2.0') === long + long).toBe(true))
  })

  it('B-PGNET-19: hears all of it once, wherever it was split, joined in and lost', async () => {
    const place = await database()
    const directory = new Directory()
    const proxy = await proxyTo(place.server)
    const driver = await drivenBy('w1', place, directory)
    const reader = open(place, directory, place.server.url(place.name, undefined, proxy.port))
    const move = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ type: fc.constant('say' as const), part: fc.nat(1), text: fc.string({ minLength: 1 }) }),
      },
      { weight: 2, arbitrary: fc.constantFrom({ type: 'subscribe' as const }, { type: 'meet' as const }) },
      { weight: 1, arbitrary: fc.constant({ type: 'cut' as const }) },
    )
    let seq = 0
    const check = async (script: readonly (typeof move extends fc.Arbitrary<infer T> ? T : never)[]) => {
      seq += 1
      const said = ['', '']
      const readers = [follow(reader)]
      const more = (part: number, text: string) => {
        say(driver, seq, text, part)
        said[part] += text
      }
      /** What was said last may be lost: that is seen with the next that is said. */
      const meet = async () => {
        const lengths = said.map((text) => text.length)
        await until(() => {
          for (const part of [0, 1]) more(part, '.')
          for (const { deltas } of readers) {
            const heard = [0, 1].map((part) => joined(deltas).get(`${seq}.${part}`) ?? '')
            for (const [part, text] of heard.entries()) expect(said[part]?.startsWith(text)).toBe(true)
            for (const [part, text] of heard.entries()) expect(text.length).toBeGreaterThan(lengths[part] ?? 0)
          }
        })
      }
      for (const step of script) {
        if (step.type === 'subscribe') readers.push(follow(reader))
        if (step.type === 'meet') await meet()
        if (step.type === 'cut') proxy.cut()
        if (step.type === 'say') more(step.part, step.text)
      }
      await meet()
      driver.finish(session, seq)
      for (const { leave } of readers) leave()
    }
    await fc.assert(fc.asyncProperty(fc.array(move, { maxLength: 15 }), check), { numRuns: 8 })
  })

  it('B-PGNET-19: follows the next owner, and hears nothing more of the old one', async () => {
    const place = await database()
    const directory = new Directory()
    const first = await drivenBy('w1', place, directory)
    const { deltas } = follow(open(place, directory))
    say(first, 2, 'half an ans')
    await until(() => expect(deltas).toHaveLength(1))
    const second = await drivenBy('w2', place, directory)
    say(second, 5, 'whole')
    directory.grow()
    await until(() => expect(joined(deltas).get('5.0')).toBe('whole'))
    say(first, 9, 'late')
    say(second, 5, ' answer')
    await until(() => expect(joined(deltas).get('5.0')).toBe('whole answer'))
    expect(joined(deltas).has('9.0')).toBe(false)
  })

  it('B-PGNET-20: is not hurt by texts that are none, and neither is the owner', async () => {
    const place = await database()
    const directory = new Directory()
    const driver = await drivenBy('w1', place, directory)
    const channel = directory.addresses.get('w1')?.slice('pg:'.length)
    const reader = open(place, directory)
    await reader.serve('w2', 1_000)
    const readerChannel = directory.addresses.get('w2')?.slice('pg:'.length)
    const { deltas } = follow(reader)
    say(driver, 2, 'a')
    await until(() => expect(deltas).toHaveLength(1))
    const none = [
      'x',
      'null',
      '{}',
      '{"ask":1,"n":1,"to":"pg:x"}',
      '{"ask":"s","n":"1","to":"pg:x"}',
      '{"n":[1],"said":[null]}',
    ]
    const strange = [
      '{"ask":"s","n":1,"to":"unix:/etc/passwd"}',
      '{"ask":"s","n":1,"to":"pg:drop table t"}',
      '{"leave":"z","n":1,"to":"y"}',
    ]
    for (const text of [...none, ...strange])
      await place.server.query(`select pg_notify('${channel}', '${text}')`, place.name)
    for (const text of none) await place.server.query(`select pg_notify('${readerChannel}', '${text}')`, place.name)
    directory.grow()
    say(driver, 2, 'b')
    await until(() => expect(joined(deltas).get('2.0')).toBe('ab'))
  })

  it('B-PGNET-20: leaves no reader behind at the owner when it goes', async () => {
    const place = await database()
    const directory = new Directory()
    const proxy = await proxyTo(place.server)
    const driver = open({ ...place, url: place.server.url(place.name, undefined, proxy.port) }, directory)
    await driver.serve('w1', 1_000)
    directory.owner = 'w1'
    const reader = open(place, directory)
    const { deltas, leave } = follow(reader)
    say(driver, 2, 'a')
    await until(() => expect(deltas).toHaveLength(1))
    leave()
    const posts = () => proxy.asked.filter((text) => text.includes('said')).length
    const other = follow(reader, 'other')
    driver.publish('other', 3, { kind: 'text', part: 0, text: 'x' })
    await until(() => expect(other.deltas).toHaveLength(1))
    const before = posts()
    say(driver, 2, 'b')
    driver.finish(session, 2)
    driver.publish('other', 3, { kind: 'text', part: 0, text: 'y' })
    await until(() => expect(joined(other.deltas).get('3.0')).toBe('xy'))
    expect(posts()).toBe(before + 1)
  })
})
