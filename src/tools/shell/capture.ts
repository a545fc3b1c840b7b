// Keeps the head and the tail of a byte stream of any size in constant memory, as valid UTF-8. Pure: no process, no
// file, no clock. The result does not depend on how the stream is cut into chunks.
import { isAscii } from 'node:buffer'

export type CaptureLimits = {
  /** The limit of bytes in head and tail together. */
  readonly previewBytesMax: number
  /** The first bytes, kept whole for later reading; later bytes are only counted. */
  readonly wholeBytesMax: number
}

export type CapturedStream = {
  /** Both are valid UTF-8, cut between characters. If nothing is left out, `head` is the whole and `tail` is empty. */
  readonly head: string
  readonly tail: string
  /** The length of the stream in UTF-8; each invalid byte counts as its replacement character. */
  readonly bytes: number
  /** The bytes between head and tail. */
  readonly omittedBytes: number
  /** The stream from its start, up to `wholeBytesMax`. Null if nothing was left out of the preview. */
  readonly whole: string | null
  /** The bytes that are not even in `whole`. */
  readonly lostBytes: number
}

/** The share of the preview for the more important side: the start, or the end if an error stands there. */
const LARGE_SHARE = 0.7
const MARKER_WINDOW_BYTES = 2_048
const ERROR_MARKER = /\b(error|exception|traceback|panic(ked)?|fatal|failed|failure|abort(ed)?|segmentation fault)\b/i

export class StreamCapture {
  readonly #limits: CaptureLimits
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #encoder = new TextEncoder()
  /** True while the decoder holds the start of an incomplete character. */
  #open = false
  readonly #start: HeadBytes
  readonly #end: TailBytes
  #bytes = 0

  constructor(limits: CaptureLimits) {
    this.#limits = limits
    const preview = largeShare(limits.previewBytesMax)
    this.#start = new HeadBytes(Math.max(limits.wholeBytesMax, preview))
    // The size leaves room for a marker, and for one character that is cut in two.
    this.#end = new TailBytes(Math.max(preview, MARKER_WINDOW_BYTES) + 3)
  }

  push(chunk: Uint8Array): void {
    // Most output is plain ASCII and needs no repair: this keeps a gigabyte of it cheap.
    if (!this.#open && isAscii(chunk)) return this.#take(chunk)
    const last = chunk[chunk.length - 1]
    if (last === undefined) return
    this.#take(this.#encoder.encode(this.#decoder.decode(chunk, { stream: true })))
    // After an ASCII byte no character is open. After any other, only the decoder knows, and it cannot be asked.
    this.#open = last >= 0x80
  }

  finish(): CapturedStream {
    this.#take(this.#encoder.encode(this.#decoder.decode()))
    const { previewBytesMax, wholeBytesMax } = this.#limits
    const bytes = this.#bytes
    if (bytes <= previewBytesMax) {
      return { head: utf8Text(this.#all()), tail: '', bytes, omittedBytes: 0, whole: null, lostBytes: 0 }
    }
    const end = this.#end.bytes()
    const failing = ERROR_MARKER.test(utf8Text(end.subarray(-MARKER_WINDOW_BYTES)))
    const large = largeShare(previewBytesMax)
    const small = previewBytesMax - large
    const start = this.#start.bytes()
    const head = start.subarray(0, boundaryBefore(start, failing ? small : large))
    const tail = end.subarray(boundaryAfter(end, end.length - (failing ? large : small)))
    const whole = start.subarray(0, boundaryBefore(start, wholeBytesMax))
    return {
      head: utf8Text(head),
      tail: utf8Text(tail),
      bytes,
      omittedBytes: bytes - head.length - tail.length,
      whole: utf8Text(whole),
      lostBytes: bytes - whole.length,
    }
  }

  #take(valid: Uint8Array): void {
    this.#bytes += valid.length
    this.#start.push(valid)
    this.#end.push(valid)
  }

  /** Start and end overlap or touch if the whole fits into the preview. */
  #all(): Uint8Array {
    const start = this.#start.bytes()
    const missing = this.#bytes - start.length
    return missing === 0 ? start : Buffer.concat([start, this.#end.bytes().subarray(-missing)])
  }
}

/** The first bytes of a stream, up to a limit. The buffer grows with the stream, so a small output costs little. */
class HeadBytes {
  readonly #max: number
  #buffer = Buffer.alloc(0)
  #length = 0

  constructor(max: number) {
    this.#max = max
  }

  push(bytes: Uint8Array): void {
    const taken = Math.min(bytes.length, this.#max - this.#length)
    if (taken <= 0) return
    const length = this.#length + taken
    if (length > this.#buffer.length) {
      const grown = Buffer.alloc(Math.min(this.#max, Math.max(length, this.#buffer.length * 2)))
      this.#buffer.copy(grown, 0, 0, this.#length)
      this.#buffer = grown
    }
    this.#buffer.set(bytes.subarray(0, taken), this.#length)
    this.#length = length
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }
}

/** The last bytes of a stream. */
class TailBytes {
  readonly #max: number
  readonly #pieces: Uint8Array[] = []
  #length = 0

  constructor(max: number) {
    this.#max = max
  }

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    // Copy: the reader may reuse its buffer, and a small view must not keep a large one alive.
    this.#pieces.push(bytes.slice(-this.#max))
    this.#length += Math.min(bytes.length, this.#max)
    // Merging rarely keeps a stream of single bytes linear.
    if (this.#length > this.#max * 2 || this.#pieces.length > 1_024) this.#merge()
  }

  bytes(): Uint8Array {
    return this.#merge()
  }

  #merge(): Uint8Array {
    const merged = new Uint8Array(Buffer.concat(this.#pieces).subarray(-this.#max))
    this.#pieces.splice(0, this.#pieces.length, merged)
    this.#length = merged.length
    return merged
  }
}

function largeShare(bytes: number): number {
  return Math.ceil(bytes * LARGE_SHARE)
}

/** The last position at or before `at` where no character is cut. */
function boundaryBefore(bytes: Uint8Array, at: number): number {
  if (at >= bytes.length) return endOfLastCharacter(bytes)
  let place = Math.max(0, at)
  while (place > 0 && isContinuation(bytes[place])) place--
  return place
}

/** The first position at or after `at` where no character is cut. */
function boundaryAfter(bytes: Uint8Array, at: number): number {
  let place = Math.max(0, at)
  while (place < bytes.length && isContinuation(bytes[place])) place++
  return place
}

/** The end of the last complete character: a full buffer may end within one. */
function endOfLastCharacter(bytes: Uint8Array): number {
  let place = bytes.length
  while (place > 0 && isContinuation(bytes[place - 1])) place--
  const lead = bytes[place - 1]
  if (lead === undefined) return 0
  const wide = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  return place - 1 + wide <= bytes.length ? place - 1 + wide : place - 1
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

function utf8Text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
