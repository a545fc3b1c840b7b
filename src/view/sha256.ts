// SHA-256 in plain JavaScript: the same bytes in Node and in a browser, where the built-in one is asynchronous and
// needs a secure address. For short texts, such as the names from which span ids are made. Files are hashed by the
// built-in one.

/** The first 32 bits of the fractional parts of roots of the first primes, as defined by the standard. */
const [STATE, ROUND] = buildConstants()

/** In hexadecimal. */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const blocks = Math.ceil((bytes.length + 9) / 64)
  const padded = new DataView(new ArrayBuffer(blocks * 64))
  new Uint8Array(padded.buffer).set(bytes)
  padded.setUint8(bytes.length, 0x80)
  padded.setUint32(blocks * 64 - 8, Math.floor(bytes.length / 0x20000000))
  padded.setUint32(blocks * 64 - 4, bytes.length * 8)
  const state = STATE.slice()
  const words = new Int32Array(64)
  for (let at = 0; at < padded.byteLength; at += 64) mixBlock(state, words, padded, at)
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function mixBlock(state: Int32Array, words: Int32Array, data: DataView, at: number): void {
  const w = (i: number): number => words[i] as number
  for (let i = 0; i < 16; i++) words[i] = data.getInt32(at + i * 4)
  for (let i = 16; i < 64; i++) {
    const [a, b] = [w(i - 15), w(i - 2)]
    words[i] =
      w(i - 16) +
      (rotateRight(a, 7) ^ rotateRight(a, 18) ^ (a >>> 3)) +
      w(i - 7) +
      (rotateRight(b, 17) ^ rotateRight(b, 19) ^ (b >>> 10))
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const one =
      h +
      (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) +
      ((e & f) ^ (~e & g)) +
      (ROUND[i] as number) +
      w(i)
    const two = (rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0]
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] as number) + word
}

function rotateRight(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

function buildConstants(): readonly [Int32Array, Int32Array] {
  const primes: number[] = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  const fraction = (value: number): number => ((value % 1) * 0x100000000) | 0
  return [
    Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime))),
    Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
  ]
}
