// Live deltas between processes that really run, stall, die and end. The scripts they run are child-live*.ts.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SharedLive } from '../../src/live/shared-live.ts'
import { socketTransport } from '../../src/live/socket-transport.ts'
import { runtimeClock as clock } from '../../src/runtime/state/machine.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import type { Answer, Order } from './child-live.ts'
import { Directory, joined } from './live-directory.ts'
import { follow } from './live-stage.ts'
import { until } from '../until.ts'

let folder = ''
let directory = new Directory()
let reader: SharedLive
const children: ChildProcessWithoutNullStreams[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'live-'))
  directory = new Directory()
  directory.owner = 'w'
  reader = new SharedLive({ store: directory, clock, openTransport: async () => socketTransport(folder) })
})

afterEach(async () => {
  await reader.close()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

describe('live deltas of another process', () => {
  it('B-LIVE-5: are put together exactly by a subscriber who comes late', async () => {
    const driver = await drive()
    const pieces = Array.from({ length: 20_000 }, (_, i) => `${i} ü🚀`)
    driver.tell({ type: 'say', seq: 2, pieces: pieces.slice(0, 5_000) })
    const early = follow(reader)
    for (let at = 5_000; at < pieces.length; at += 500) {
      driver.tell({ type: 'say', seq: 2, pieces: pieces.slice(at, at + 500) })
      // From here on it hears them as they are said.
      if (at === 12_000) await until(() => expect(early.deltas.length).toBeGreaterThan(0))
    }
    const late = follow(reader)
    const whole = pieces.join('')
    await until(() => expect(joined(early.deltas).get('2.0')).toBe(whole))
    await until(() => expect(joined(late.deltas).get('2.0')).toBe(whole))
    expect(late.deltas.length).toBeLessThan(early.deltas.length)
  })

  it('B-LIVE-7: stop when it is killed, quietly, and go on with the next owner', async () => {
    const first = await drive()
    const { deltas } = follow(reader)
    first.tell({ type: 'say', seq: 2, pieces: ['half an ans'] })
    await until(() => expect(deltas).toHaveLength(1))
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    const looks = directory.looks
    // The dead worker's lease has not ended yet, so the store still names it as the owner.
    directory.grow()
    await until(() => expect(directory.looks).toBeGreaterThan(looks))
    const second = await drive()
    second.tell({ type: 'say', seq: 6, pieces: ['a whole ', 'answer'] })
    directory.grow()
    await until(() => expect(joined(deltas).get('6.0')).toBe('a whole answer'))
    expect(joined(deltas).get('2.0')).toBe('half an ans')
  })

  it('B-LIVE-13: are cut off from a reader that does not read, and the memory of the driver stays bounded', async () => {
    const driver = await drive()
    const stalled = await stall(driver)
    driver.tell({ type: 'flood', calls: 2_048 })
    const { grewBytes } = await driver.answer('flooded')
    // 128 MiB were said. A call's own text, 1 MiB for the reader, and some room for what is not yet collected.
    expect(grewBytes).toBeLessThan(16 * 1024 * 1024)
    let received = 0
    stalled.on('data', (chunk) => (received += chunk.length))
    await once(stalled, 'close')
    expect(received).toBeLessThan(4 * 1024 * 1024)
  })

  it('B-LIVE-13: reach a reader that was cut off again, with a catch-up', async () => {
    const driver = await drive()
    const { deltas } = follow(reader)
    driver.tell({ type: 'say', seq: 2, pieces: ['first '] })
    await until(() => expect(deltas).toHaveLength(1))
    // Published in one go: more than the socket's buffer takes, however fast the reader is.
    const burst = Array.from({ length: 2_000 }, () => 'x'.repeat(4_096))
    driver.tell({ type: 'say', seq: 2, pieces: burst })
    const whole = `first ${burst.join('')}`
    await until(() => expect(joined(deltas).get('2.0') === whole).toBe(true))
    expect(directory.looks).toBeGreaterThan(1)
    driver.tell({ type: 'say', seq: 2, pieces: ['last'] })
    await until(() => expect(deltas.at(-1)).toMatchObject({ text: 'last', offset: whole.length }))
  })
})

describe('live deltas of workers that share an SQLite file', () => {
  it('B-LIVE-14: are found through the store, and followed from a killed worker to the next', async () => {
    const file = join(folder, 'store.db')
    const store = sqlite(file)
    const live = new SharedLive({ store, clock, openTransport: async () => socketTransport(folder) })
    const { deltas } = follow(live)
    for (const [index, worker] of ['w1', 'w2'].entries()) {
      const child = spawn(process.execPath, [childOf('child-live-sqlite'), file, folder, worker])
      children.push(child)
      child.stderr.pipe(process.stderr)
      await once(child.stdout, 'data')
      const whole = Array.from({ length: 300 }, (_, i) => `${worker} ${i}, `).join('')
      await until(() => expect([...joined(deltas).values()][index]).toBe(whole))
      child.kill('SIGKILL')
    }
    expect(joined(deltas).size).toBe(2)
    // Not one catch-up at the end, but as it was said.
    expect(deltas.length).toBeGreaterThan(20)
    await live.close()
    await store.close()
  })
})

describe('a process that serves and follows', () => {
  it.each([[[]], [[{ type: 'close' } as const]]])(
    'B-LIVE-12: ends when it has nothing else to do, after %j',
    async (last) => {
      const [driver, other] = [await drive(), await drive()]
      const { deltas } = follow(reader)
      driver.tell({ type: 'follow', address: other.address })
      other.tell({ type: 'say', seq: 3, pieces: ['hello'] })
      expect(await driver.answer('heard')).toMatchObject({ text: 'hello' })
      directory.addresses.set('w', driver.address)
      directory.grow()
      driver.tell({ type: 'say', seq: 3, pieces: ['hello', ' there'] })
      await until(() => expect(joined(deltas).get('3.0')).toBe('hello there'))
      for (const order of last) driver.tell(order)
      expect(await end(driver)).toBe(0)
      expect(existsSync(dirname(driver.address.slice('unix:'.length)))).toBe(false)
      await end(other)
      expect(readdirSync(folder)).toEqual([])
    },
  )

  it('B-LIVE-12: ends although a reader never reads what waits for it', async () => {
    const driver = await drive()
    const stalled = await stall(driver)
    driver.tell({ type: 'say', seq: 2, pieces: Array.from({ length: 200 }, () => 'x'.repeat(4_096)) })
    driver.tell({ type: 'finish', seq: 2 })
    const begun = performance.now()
    expect(await end(driver)).toBe(0)
    // It waited for the reader a while, as it must, and no longer.
    expect(performance.now() - begun).toBeGreaterThan(500)
    stalled.destroy()
  })
})

function childOf(name: string): string {
  return fileURLToPath(new URL(`../../.build/test/runtime/${name}.js`, import.meta.url))
}

type Driver = {
  readonly child: ChildProcessWithoutNullStreams
  readonly address: string
  readonly tell: (order: Order) => void
  readonly answer: <T extends Answer['type']>(type: T) => Promise<Extract<Answer, { type: T }>>
}

/** Starts a process, and names it as the owner. */
async function drive(): Promise<Driver> {
  const child = spawn(process.execPath, ['--expose-gc', childOf('child-live'), folder])
  children.push(child)
  child.stderr.pipe(process.stderr)
  const lines: Interface = createInterface({ input: child.stdout })
  const answers: Answer[] = []
  lines.on('line', (line) => void answers.push(JSON.parse(line) as Answer))
  const answer: Driver['answer'] = async (type) => {
    const isIt = (one: Answer): one is Extract<Answer, { type: typeof type }> => one.type === type
    for (;;) {
      const found = answers.find(isIt)
      if (found) return found
      await once(lines, 'line')
    }
  }
  const { address } = await answer('address')
  directory.addresses.set('w', address)
  return { child, address, answer, tell: (order) => void child.stdin.write(`${JSON.stringify(order)}\n`) }
}

async function end(driver: Driver): Promise<number | null> {
  driver.child.stdin.end()
  if (driver.child.exitCode === null) await once(driver.child, 'exit')
  return driver.child.exitCode
}

/** A reader that asks, gets its catch-up, and never reads. */
async function stall(driver: Driver): Promise<Socket> {
  driver.tell({ type: 'say', seq: 1, pieces: ['hello'] })
  const socket = connect(driver.address.slice('unix:'.length)).on('error', () => {})
  socket.write('{"session":"s"}\n')
  await once(socket, 'readable')
  return socket
}
