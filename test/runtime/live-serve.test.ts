// Serving a worker's live deltas: which clients are accepted, which are refused, and which files are left behind.
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { joined } from './live-directory.ts'
import { follow, pause, say, Stage } from './live-stage.ts'
import { until } from '../until.ts'

let stage: Stage
beforeEach(() => void (stage = new Stage()))
afterEach(() => stage.close())

describe('the driving process', () => {
  it('B-LIVE-9: lets only its own user in, and takes its folder away when closed', async () => {
    const driver = await stage.drivenBy('w1')
    await driver.serve('w2', 1_000)
    const path = stage.pathOf('w1')
    expect(stage.directory.addresses.get('w2')).toBe(stage.directory.addresses.get('w1'))
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(Buffer.byteLength(path)).toBeLessThan(100)
    await driver.close()
    expect(existsSync(dirname(path))).toBe(false)
    await driver.serve('w3', 1_000)
    expect(stage.directory.addresses.has('w3')).toBe(false)
  })

  it('B-LIVE-9: goes to a shorter folder when the path would be too long for a socket', async () => {
    const driver = stage.open(join(stage.folder, 'x'.repeat(80)))
    await driver.serve('w1', 1_000)
    expect(stage.pathOf('w1')).toMatch(/^\/tmp\/terret-\w{6}\/live$/)
    await driver.close()
    expect(existsSync(dirname(stage.pathOf('w1')))).toBe(false)
  })

  it('B-LIVE-15: takes folders away that killed processes left, and nothing that may still be needed', async () => {
    const old = new Date(Date.now() - 120_000)
    const folderOf = (name: string) => join(stage.folder, `terret-${name}`)
    /** A socket whose server is gone. */
    const dead = async (name: string, when = old) => {
      mkdirSync(folderOf(name))
      const server = createServer().listen(join(folderOf(name), 'moving'))
      await once(server, 'listening')
      renameSync(join(folderOf(name), 'moving'), join(folderOf(name), 'live'))
      server.close()
      utimesSync(folderOf(name), when, when)
    }
    await dead('dead01')
    await dead('dead02')
    await dead('young1', new Date())
    await dead('shared')
    writeFileSync(join(folderOf('shared'), 'mine.txt'), 'mine')
    utimesSync(folderOf('shared'), old, old)
    mkdirSync(folderOf('empty1'))
    utimesSync(folderOf('empty1'), old, old)
    await dead('not-of-that-name')
    symlinkSync(folderOf('shared'), folderOf('linked'))
    await stage.drivenBy('w1')
    const living = dirname(stage.pathOf('w1'))
    utimesSync(living, old, old)
    await stage.drivenBy('w2')
    await until(() => expect([existsSync(folderOf('dead01')), existsSync(folderOf('dead02'))]).toEqual([false, false]))
    await pause(100)
    const kept = ['empty1', 'linked', 'not-of-that-name', 'shared', 'young1']
    expect(kept.filter((name) => !existsSync(folderOf(name)))).toEqual([])
    expect(existsSync(stage.pathOf('w1'))).toBe(true)
    expect(existsSync(join(folderOf('shared'), 'mine.txt'))).toBe(true)
    for (const name of kept) rmSync(folderOf(name), { recursive: true })
  })

  it('B-LIVE-10: goes on alone when it can have no socket, or cannot announce it', async () => {
    const driver = stage.open(join(stage.folder, 'missing'))
    await driver.serve('w1', 1_000)
    expect(stage.directory.addresses.size).toBe(0)
    const { deltas } = follow(driver)
    say(driver, 1, ['heard'])
    expect(joined(deltas).get('1.0')).toBe('heard')
    vi.spyOn(stage.directory, 'announce').mockRejectedValue(new Error('the store is closed'))
    await expect(stage.open().serve('w1', 1_000)).resolves.toBeUndefined()
  })

  it('B-LIVE-10: announces itself once, and again after hours in which the store may have forgotten it', async () => {
    let now = 1_000_000
    const driver = stage.open(stage.folder, { now: () => now, timer: () => () => {} })
    vi.spyOn(stage.directory, 'announce').mockRejectedValueOnce(new Error('the store is busy'))
    await driver.serve('w1', 1_000)
    expect(stage.directory.announcements).toBe(0)
    for (let claim = 0; claim < 3; claim++) await driver.serve('w1', 1_000)
    expect(stage.directory.announcements).toBe(1)
    now += 24 * 60 * 60 * 1000
    await driver.serve('w1', 1_000)
    expect(stage.directory.announcements).toBe(2)
  })

  it.each([
    ['no JSON', 'hello\n'],
    ['no session', '{}\n'],
    ['null', 'null\n'],
    ['a session that is no text', '{"session":1}\n'],
    ['two requests', '{"session":"s"}\n{"session":"s"}\n'],
    ['a line without an end', 'x'.repeat(4_097)],
    ['a line too long', `{"session":"${'x'.repeat(4_096)}"}\n`],
  ])('B-LIVE-11: closes a connection that asks with %s, and only that one', async (_name, request) => {
    const driver = await stage.drivenBy('w1')
    const { deltas } = follow(stage.open())
    say(driver, 2, ['a'])
    await until(() => expect(deltas).toHaveLength(1))
    const socket = connect(stage.pathOf('w1')).on('error', () => {})
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.write(request)
    await new Promise((done) => socket.once('close', done))
    expect(answer).toBe('')
    say(driver, 2, ['b'])
    await until(() => expect(joined(deltas).get('2.0')).toBe('ab'))
    expect(stage.directory.looks).toBe(1)
  })

  it('B-LIVE-11: closes a connection that goes on talking after its request', async () => {
    await stage.drivenBy('w1')
    const socket = connect(stage.pathOf('w1')).on('error', () => {})
    socket.resume().write('{"session":"s"}\n')
    await pause(20)
    expect(socket.closed).toBe(false)
    socket.write('more')
    await new Promise((done) => socket.once('close', done))
  })

  it('B-LIVE-13: does not drop a reader for the length of its catch-up', async () => {
    const driver = await stage.drivenBy('w1')
    const long = 'x'.repeat(8 * 1024 * 1024)
    say(driver, 2, [long])
    const { deltas } = follow(stage.open())
    let said = ''
    while (deltas.length < 5) {
      say(driver, 2, ['more '])
      said += 'more '
      await new Promise((done) => setImmediate(done))
    }
    await until(() => expect(joined(deltas).get('2.0') === long + said).toBe(true))
    expect(stage.directory.looks).toBe(1)
  })

  it('B-LIVE-12: disconnects all clients when it closes, and may be closed twice or while it opens', async () => {
    const driver = await stage.drivenBy('w1')
    const reader = stage.open()
    const { deltas } = follow(reader)
    say(driver, 2, ['a'])
    await until(() => expect(deltas).toHaveLength(1))
    await Promise.all([driver.close(), driver.close(), reader.close()])
    expect(stage.directory.watched).toBe(0)
    follow(reader).leave()
    const hasty = stage.open()
    await Promise.all([hasty.serve('w9', 1_000), hasty.close()])
    expect(stage.directory.addresses.has('w9')).toBe(false)
  })
})
