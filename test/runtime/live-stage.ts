// A stage for live deltas over real sockets: a driver, its followers, and a folder that must be empty at the end.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { LiveDelta } from '../../src/live/local-live.ts'
import { SharedLive } from '../../src/live/shared-live.ts'
import { socketTransport } from '../../src/live/socket-transport.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { Directory } from './live-directory.ts'

export const session = 's'

export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'live-'))
  readonly directory = new Directory()
  readonly #opened: { close(): unknown }[] = []

  /** One process of several, as far as live deltas can tell. */
  open(folder = this.folder, clock = runtimeClock): SharedLive {
    const live = new SharedLive({ store: this.directory, clock, openTransport: async () => socketTransport(folder) })
    this.#opened.push(live)
    return live
  }

  async drivenBy(worker: string): Promise<SharedLive> {
    const live = this.open()
    await live.serve(worker, 1_000)
    this.directory.owner = worker
    return live
  }

  pathOf(worker: string): string {
    return (this.directory.addresses.get(worker) ?? '').slice('unix:'.length)
  }

  /** A socket of the test's own. Returns its address. */
  async listen(accept: (socket: Socket) => void): Promise<string> {
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      accept(socket)
    })
    const path = join(this.folder, `test-${this.#opened.length}`)
    await new Promise<void>((done) => server.listen(path, done))
    const close = () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((done) => server.close(done))
    }
    this.#opened.push({ close })
    return `unix:${path}`
  }

  async close(): Promise<void> {
    for (const one of this.#opened) await one.close()
    expect(readdirSync(this.folder)).toEqual([])
    rmSync(this.folder, { recursive: true })
  }
}

export function follow(live: SharedLive): { readonly deltas: LiveDelta[]; readonly leave: () => void } {
  const deltas: LiveDelta[] = []
  return { deltas, leave: live.subscribe(session, (delta) => void deltas.push(delta)) }
}

export function say(live: SharedLive, seq: number, pieces: readonly string[], part = 0): void {
  for (const text of pieces) live.publish(session, seq, { kind: 'text', part, text })
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}
