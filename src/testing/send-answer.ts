// Sends the bytes of one answer: stalled, split, cut, corrupted or endless, as the script says. It knows nothing of
// dialects. Waits use the given clock and end when the client or the server is gone.
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Clock } from '../ports/system.ts'
import type { ChaosDamage } from './chaos-script.ts'

export type ResponseHead = { readonly status: number; readonly headers: Readonly<Record<string, string>> }

/** Resolves when nothing more will be sent. */
export async function sendAnswer(
  out: ServerResponse,
  head: ResponseHead,
  chunks: Iterable<string> | AsyncIterable<string>,
  { mischief, clock }: { readonly mischief: ChaosDamage; readonly clock: Clock },
): Promise<void> {
  const line = new DamagedWriter(out, mischief, clock)
  const coding = mischief.gzip ? { 'content-encoding': 'gzip' } : {}
  // The headers are sent with the first byte of the body.
  out.writeHead(head.status, { ...head.headers, ...coding })
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk)
    if (!(await line.pour(mischief.gzip ? gzipSync(bytes) : bytes))) return
  }
  await line.end()
}

/** Resolves after that time, or as soon as the client is gone. */
export function pauseUnlessClosed(out: ServerResponse, clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel()
      out.off('close', done)
      resolve()
    }
    const cancel = clock.timer(out.destroyed ? 0 : ms, done)
    out.on('close', done)
  })
}

class DamagedWriter {
  readonly #out: ServerResponse
  readonly #clock: Clock
  readonly #mischief: ChaosDamage
  #sent = 0
  #stalled = false

  constructor(out: ServerResponse, mischief: ChaosDamage, clock: Clock) {
    this.#out = out
    this.#clock = clock
    this.#mischief = mischief
  }

  /** False once nothing more can be sent. */
  async pour(bytes: Buffer): Promise<boolean> {
    const { corruptAt = -1, dripMs, splitBytes } = this.#mischief
    const flipped = corruptAt - this.#sent
    const byte = bytes[flipped]
    if (byte !== undefined) bytes[flipped] = byte ^ 0xff
    for (let at = 0; at < bytes.length; ) {
      if (!(await this.#hold())) return false
      const piece = bytes.subarray(at, at + this.#step())
      await this.#write(piece)
      at += piece.length
      this.#sent += piece.length
      if (dripMs !== undefined) await pauseUnlessClosed(this.#out, this.#clock, dripMs)
      // The next write must not join this one.
      else if (splitBytes !== undefined) await new Promise((resolve) => setImmediate(resolve))
      if (this.#out.destroyed) return false
    }
    return true
  }

  async end(): Promise<void> {
    if (!(await this.#hold())) return
    await new Promise<void>((resolve) => {
      this.#out.on('close', resolve)
      this.#out.end(resolve)
    })
  }

  /** Stalls or cuts when that position is reached. */
  async #hold(): Promise<boolean> {
    const { stallAfterBytes, stallMs, cutAfterBytes } = this.#mischief
    if (stallAfterBytes === this.#sent && !this.#stalled) {
      this.#stalled = true
      await (stallMs === undefined ? untilClosed(this.#out) : pauseUnlessClosed(this.#out, this.#clock, stallMs))
    }
    if (cutAfterBytes === this.#sent) this.#out.destroy()
    return !this.#out.destroyed
  }

  #step(): number {
    const { stallAfterBytes = 0, cutAfterBytes = 0, dripMs } = this.#mischief
    const { splitBytes = dripMs === undefined ? Infinity : 1 } = this.#mischief
    const marks = [stallAfterBytes, cutAfterBytes].map((mark) => mark - this.#sent).filter((left) => left > 0)
    return Math.min(Math.max(1, splitBytes), ...marks)
  }

  /** Resolves when the bytes have left this process, so that a later cut does not lose them. */
  #write(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#out.off('close', done)
        resolve()
      }
      this.#out.on('close', done)
      this.#out.write(bytes, done)
    })
  }
}

function untilClosed(out: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (out.destroyed) resolve()
    else out.on('close', () => resolve())
  })
}
