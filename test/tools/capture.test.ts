// The bounder of byte streams: for any bytes in any chunks it equals the bound of the whole. No process is started here.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StreamCapture, type CapturedStream } from '../../src/tools/shell/capture.ts'
import { runs } from '../runs.ts'

const replaced = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes of every kind: text, characters of all widths, noise, and characters torn in two. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  fc.string({ unit: 'binary', maxLength: 200 }).map((text) => new Uint8Array(Buffer.from(text, 'utf8'))),
  fc
    .array(fc.constantFrom('a', 'é', '€', '😀', '\uFEFF', '\0', 'error: ', '\n'), { maxLength: 120 })
    .map((list) => new Uint8Array(Buffer.from(list.join('')))),
)
const limits = fc.record({
  previewBytesMax: fc.integer({ min: 0, max: 120 }),
  wholeBytesMax: fc.integer({ min: 0, max: 200 }),
})

describe('the capture of a stream', () => {
  it('B-BASH-8: does not depend on how the stream was cut into chunks', () => {
    fc.assert(
      fc.property(bytes, limits, fc.array(fc.nat(400), { maxLength: 30 }), (all, limit, cuts) => {
        const places = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length]
        const chunks = places.slice(1).map((end, i) => all.subarray(places[i] ?? 0, end))
        expect(captured(chunks, limit)).toEqual(captured([all], limit))
        expect(
          captured(
            [...all].map((byte) => Uint8Array.of(byte)),
            limit,
          ),
        ).toEqual(captured([all], limit))
      }),
      { numRuns: runs(2_000) },
    )
  })

  it('B-BASH-8: keeps a true head and a true tail within the bound, as valid UTF-8, and counts the rest', () => {
    fc.assert(
      fc.property(bytes, limits, (all, limit) => {
        const { head, tail, bytes: total, omittedBytes, whole, lostBytes } = captured([all], limit)
        const text = replaced.decode(all)
        const size = Buffer.byteLength(text)
        expect(total).toBe(size)
        expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(limit.previewBytesMax)
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true)
        expect(omittedBytes).toBe(size - Buffer.byteLength(head) - Buffer.byteLength(tail))
        expect([head, tail, whole ?? ''].every((piece) => Buffer.from(piece).toString() === piece)).toBe(true)
        if (size <= limit.previewBytesMax) expect({ head, tail, whole }).toEqual({ head: text, tail: '', whole: null })
        else {
          expect(text.startsWith(whole ?? '?')).toBe(true)
          expect(Buffer.byteLength(whole ?? '')).toBeLessThanOrEqual(limit.wholeBytesMax)
          expect(lostBytes).toBe(size - Buffer.byteLength(whole ?? ''))
        }
      }),
      { numRuns: runs(3_000) },
    )
  })

  it('B-BASH-8: loses less than one character on each side', () => {
    fc.assert(
      fc.property(bytes, fc.integer({ min: 0, max: 120 }), (all, previewBytesMax) => {
        const { head, tail, omittedBytes } = captured([all], { previewBytesMax, wholeBytesMax: 0 })
        const used = Buffer.byteLength(head) + Buffer.byteLength(tail)
        if (omittedBytes > 0) expect(used).toBeGreaterThanOrEqual(previewBytesMax - 6)
      }),
    )
  })

  it('B-BASH-8: keeps more of the start, and more of the end when an error stands there', () => {
    const limit = { previewBytesMax: 50_000, wholeBytesMax: 1_000_000 }
    const plain = captured([Buffer.from('x'.repeat(100_000))], limit)
    expect([plain.head.length, plain.tail.length]).toEqual([35_000, 15_000])
    const failing = captured([Buffer.from(`${'x'.repeat(100_000)}\nError: no such module\n`)], limit)
    expect([failing.head.length, failing.tail.length]).toEqual([15_000, 35_000])
    const early = captured([Buffer.from(`Error: at the start\n${'x'.repeat(100_000)}`)], limit)
    expect([early.head.length, early.tail.length]).toEqual([35_000, 15_000])
    const before = captured([Buffer.from(`${'x'.repeat(100_000)} error ${' '.repeat(2_048)}`)], limit)
    expect(before.head.length).toBe(35_000)
  })

  it('B-BASH-8: holds one line of 200 MB in memory that does not grow with it', () => {
    const capture = new StreamCapture({ previewBytesMax: 50_000, wholeBytesMax: 1_000_000 })
    const chunk = Buffer.alloc(65_536, 'x')
    for (let i = 0; i < 160; i++) capture.push(chunk)
    const before = heldBytes()
    for (let i = 0; i < 3_040; i++) capture.push(chunk)
    expect(heldBytes() - before).toBeLessThan(32_000_000)
    expect(capture.finish()).toMatchObject({ bytes: 3_200 * 65_536, lostBytes: 3_200 * 65_536 - 1_000_000 })
  })
})

/** What is held, and not what waits to be collected. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Twice: the first collection frees its finds in parallel, and the second waits for that.
  collect()
  collect()
  return process.memoryUsage().arrayBuffers
}

function captured(
  chunks: readonly Uint8Array[],
  limit: { previewBytesMax: number; wholeBytesMax: number },
): CapturedStream {
  const capture = new StreamCapture(limit)
  for (const chunk of chunks) capture.push(chunk)
  return capture.finish()
}
