// Hints between the processes of a Postgres store, against a real server: what is heard, what is passed over, and what a dead
// listener costs. What a store does when it looks is not here.
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConnectOptions } from '../../src/stores/postgres/connect-options.ts'
import { steadyClock } from '../../src/stores/plan/system-clock.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { NotificationListener } from '../../src/stores/postgres/notification-listener.ts'
import { HINT_BYTES_MAX, CommitHints } from '../../src/stores/postgres/commit-hints.ts'
import { until } from '../until.ts'
import { noPostgres } from './server.ts'
import { type Database, database, proxyTo } from './stage.ts'

const channel = 'terret_test'

type Heard = { readonly sessions: ReadonlyMap<string, number> | null; readonly due: boolean }

/** Its look of each second never comes: a hint that comes in the same moment is a part of the look, and could not be told from it. */
const LOOKLESS = { ...steadyClock, timer: () => () => {} }

/** One process of several, as far as hints can tell. `heard` is without the looks, which are counted. */
async function open(options: ConnectOptions, clock = steadyClock) {
  const connections = new PostgresConnections(options)
  const ear = connections.ear && new NotificationListener(connections.ear, steadyClock)
  const heard: Heard[] = []
  const state = { looks: 0 }
  const hear = (sessions: Heard['sessions'], due: boolean): void => {
    if (sessions === null) state.looks += 1
    else heard.push({ sessions, due })
  }
  const news = new CommitHints({ connections, ear, clock, channel, heard: hear })
  onTestFinished(async () => {
    await news.close()
    await connections.close()
  })
  await connections.open()
  await news.start()
  return { connections, news, heard, state }
}

function notify({ server, name }: Database, text: string): Promise<unknown> {
  return server.query(`select pg_notify('${channel}', '${text.replaceAll("'", "''")}')`, name)
}

const at = (...entries: readonly (readonly [string, number])[]) => new Map(entries)

describe.skipIf(noPostgres)('hints', () => {
  it('B-PGNET-12: say which sessions stand where and whether somebody is due, to all others and not to oneself', async () => {
    const { url } = await database()
    const [one, two, three] = await Promise.all([
      open({ url }, LOOKLESS),
      open({ url }, LOOKLESS),
      open({ url }, LOOKLESS),
    ])
    one.news.tell(at(['s', 3]), false)
    one.news.tell(at(['t', 1], ['s', 4]), true)
    for (const { heard } of [two, three])
      await until(() => expect(heard).toEqual([{ sessions: at(['s', 4], ['t', 1]), due: true }]))
    two.news.tell(at(), true)
    await until(() => expect(three.heard.at(-1)).toEqual({ sessions: at(), due: true }))
    await until(() => expect(one.heard).toEqual([{ sessions: at(), due: true }]))
    expect(two.heard).toHaveLength(1)
  })

  it('B-PGNET-30: say that sessions only grew while somebody follows, and that somebody is due or a session gone always', async () => {
    const { url } = await database()
    const [one, two] = await Promise.all([open({ url }), open({ url })])
    const said = (): readonly string[] => two.heard.flatMap(({ sessions }) => [...(sessions?.keys() ?? [])])
    // Nobody has said anything so far.
    one.news.tell(at(['early', 1]), false)
    await until(() => expect(said()).toContain('early'))
    await new Promise((resolve) => setTimeout(resolve, 5_200))
    one.news.tell(at(['unheard', 1]), false)
    one.news.tell(at(['asked', 1]), true)
    await until(() => expect(said()).toContain('asked'))
    one.news.tell(at(['gone', 0]), false)
    await until(() => expect(said()).toContain('gone'))
    const leave = two.news.follow()
    for (let n = 1; !said().includes('followed'); n++) {
      one.news.tell(at(['followed', n]), false)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // It is said again and again, for as long as somebody follows.
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    one.news.tell(at(['later', 1]), false)
    await until(() => expect(said()).toContain('later'))
    leave()
    leave()
    await new Promise((resolve) => setTimeout(resolve, 7_500))
    one.news.tell(at(['after', 1]), false)
    one.news.tell(at(['last', 1]), true)
    await until(() => expect(said()).toContain('last'))
    expect(said()).not.toContain('unheard')
    expect(said()).not.toContain('after')
  })

  it('B-PGNET-12: that a commit of this process has overtaken are passed over, but not that a session is gone', async () => {
    const place = await database()
    const one = await open({ url: place.url }, LOOKLESS)
    one.news.tell(at(['s', 5]), false)
    await notify(place, '{"by":"x","at":[["s",5],["s",4],["u",1]]}')
    await until(() => expect(one.heard).toEqual([{ sessions: at(['u', 1]), due: false }]))
    await notify(place, '{"by":"x","at":[["s",0]]}')
    await until(() => expect(one.heard.at(-1)).toEqual({ sessions: at(['s', 0]), due: false }))
  })

  it('B-PGNET-13: hold ids of 2 KB, are never too long, and say "compare everything" when there is too much', async () => {
    const { url } = await database()
    const [one, two] = await Promise.all([open({ url }, LOOKLESS), open({ url }, LOOKLESS)])
    const long = at(...Array.from({ length: 9 }, (_, i) => [`${i}${'🚀'.repeat(511)}`, i + 1] as const))
    one.news.tell(long, false)
    await until(() => expect(new Map(two.heard.flatMap(({ sessions }) => [...(sessions ?? [])]))).toEqual(long))
    const worst = at([`"${'\u0001'.repeat(511)}`, 1])
    expect(Buffer.byteLength(JSON.stringify([...worst]))).toBeLessThan(HINT_BYTES_MAX)
    one.news.tell(worst, false)
    await until(() => expect(two.heard.at(-1)?.sessions).toEqual(worst))
    const before = two.heard.length
    const { looks } = two.state
    one.news.tell(at(...Array.from({ length: 20_000 }, (_, i) => [`session-${i}`, 1] as const)), false)
    await until(() => expect(two.state.looks).toBeGreaterThan(looks))
    // One that comes while everything is to be compared is a part of that.
    await until(() => {
      one.news.tell(at(['last', two.state.looks + 1]), false)
      expect(two.heard.length).toBeGreaterThan(before)
    })
    for (const { sessions } of two.heard.slice(before)) expect([...(sessions?.keys() ?? [])]).toEqual(['last'])
  })

  it('B-PGNET-14: that are none do nothing', async () => {
    const place = await database()
    const one = await open({ url: place.url }, LOOKLESS)
    const none = [
      'x',
      'null',
      '[]',
      '{"by":1,"at":[["s",1]]}',
      '{"by":"x"}',
      '{"by":"x","at":{"s":1}}',
      '{"by":"x","at":[["s",-1],["s",1.5],["s",1e300],["s","1"],["",1],[1,1],["s"],["s",1,1],null,"s"]}',
      `{"by":"x","at":[["${'y'.repeat(3000)}",1]]}`,
      '{"by":"x","at":[],"due":"yes"}',
    ]
    for (const text of none) await notify(place, text)
    await notify(place, '{"by":"x","at":[["after",1]]}')
    await until(() => expect(one.heard).toEqual([{ sessions: at(['after', 1]), due: false }]))
  })

  it('B-PGNET-14: that are forged cannot keep real ones from being heard, and a flood of them makes no queue', async () => {
    const place = await database()
    const [one, two] = await Promise.all([open({ url: place.url }, LOOKLESS), open({ url: place.url }, LOOKLESS)])
    await notify(place, '{"by":"x","at":[["s",9007199254740991]]}')
    await until(() => expect(two.heard).toHaveLength(1))
    one.news.tell(at(['s', 2]), false)
    await until(() => expect(two.heard.at(-1)?.sessions).toEqual(at(['s', 2])))
    const { looks } = two.state
    await place.server.query(
      `select pg_notify('${channel}', '{"by":"x","all":true,"n":' || n || '}') from generate_series(1, 5000) n`,
      place.name,
    )
    // One that comes while everything is to be compared is a part of that.
    let seq = 2
    await until(() => {
      one.news.tell(at(['s', ++seq]), false)
      expect(two.heard.at(-1)?.sessions?.get('s')).toBeGreaterThan(2)
    })
    expect(two.state.looks - looks).toBeLessThan(500)
  })

  it('B-PGNET-15: are heard again after the listening connection was killed, and everything is compared then', async () => {
    const place = await database()
    const [one, two] = await Promise.all([open({ url: place.url }), open({ url: place.url })])
    const { looks } = two.state
    const kill =
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'terret ear' and datname = "
    await place.server.query(`${kill}'${place.name}'`)
    await until(() => expect(two.state.looks).toBeGreaterThan(looks))
    await until(() => {
      one.news.tell(at(['s', 7]), false)
      expect(two.heard.at(-1)?.sessions).toEqual(at(['s', 7]))
    })
  })

  it('B-PGNET-15: are heard again after the listening connection died without a word', async () => {
    const { server, name, url } = await database()
    const proxy = await proxyTo(server)
    const one = await open({ url })
    const two = await open({ url, direct: server.url(name, undefined, proxy.port) })
    proxy.freeze()
    await until(() => {
      one.news.tell(at(['s', 7]), false)
      expect(two.heard.at(-1)?.sessions).toEqual(at(['s', 7]))
    })
    expect(proxy.open).toBe(2)
  })

  it('B-PGNET-16: can be off: nothing is sent or listened to, and a look each second finds everything', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const one = await open({ url: server.url(name, undefined, proxy.port), hints: false })
    const asked = proxy.asked.length
    one.news.tell(at(['s', 1]), true)
    const { looks } = one.state
    await until(() => expect(one.state.looks).toBeGreaterThan(looks + 1))
    expect(proxy.asked.slice(asked)).toEqual([])
    expect(one.connections.ear).toBeNull()
  })

  it('B-PGNET-17: cost an idle process one statement a second, and none when nobody watches', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const one = await open({ url: server.url(name, undefined, proxy.port) })
    const { looks } = one.state
    const asked = proxy.asked.length
    await until(() => expect(one.state.looks).toBeGreaterThan(looks + 2))
    // The look itself is the store's to ask: one for what is watched and one for what is due.
    expect(proxy.asked.length - asked).toBeLessThanOrEqual(one.state.looks - looks + 1)
    one.news.stop()
    // The lane stays.
    await until(() => expect(proxy.open).toBe(1))
  })
})
