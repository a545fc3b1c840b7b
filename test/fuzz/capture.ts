// The bound of a byte stream against one that has the whole in hand: same head, same tail, same counts, whatever the chunks.
import { StreamCapture, type CapturedStream, type CaptureLimits } from '../../src/tools/shell/capture.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = new (limits: CaptureLimits) => Pick<StreamCapture, 'push' | 'finish'>
type Case = { readonly chunks: readonly Uint8Array[]; readonly limits: CaptureLimits }

const PIECES = ['a', 'é', '€', '😀', '\uFEFF', '\0', 'error: ', '\n', 'failed', 'xfatal', ' '].map((text) =>
  Buffer.from(text),
)
/** What no text holds: a continuation alone, starts of characters, bytes that are never UTF-8, a surrogate. */
const NOISE = ['80', 'c3', 'e2', 'e282', 'f0', 'f09f', 'f09f98', 'ff', 'c0', 'eda080', 'f4908080'].map((hex) =>
  Buffer.from(hex, 'hex'),
)

function cut(tape: Tape): Case {
  const pieces = tape.list(30, () => tape.pick(tape.chance(3) ? NOISE : PIECES))
  // Long enough for the window in which an error is looked for, now and then.
  const stretch = tape.chance(12)
    ? Buffer.from(tape.pick(['x', 'é', 'word ']))
        .toString()
        .repeat(2_000 + tape.below(200))
    : ''
  const at = tape.below(pieces.length + 1)
  const all = Buffer.concat([...pieces.slice(0, at), Buffer.from(stretch), ...pieces.slice(at)])
  const chunks: Uint8Array[] = []
  for (let start = 0; start < all.length; ) {
    const length = tape.chance(8) ? 0 : 1 + tape.below(6) * (all.length > 300 ? 97 : 1)
    chunks.push(all.subarray(start, start + length))
    start += length
  }
  return { chunks, limits: { previewBytesMax: tape.below(120), wholeBytesMax: tape.below(200) } }
}

const MARKER = /\b(error|exception|traceback|panic|panicked|fatal|failed|failure|abort|aborted|segmentation fault)\b/i

/** The same result from a simple reading that sees the whole text, a character at a time. */
function expected({ chunks, limits: { previewBytesMax, wholeBytesMax } }: Case): CapturedStream {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(chunks))
  const characters = Array.from(text)
  const bytes = Buffer.byteLength(text)
  if (bytes <= previewBytesMax) return { head: text, tail: '', bytes, omittedBytes: 0, whole: null, lostBytes: 0 }
  const large = Math.ceil(previewBytesMax * 0.7)
  const failing = MARKER.test(Buffer.from(text).subarray(-2_048).toString())
  const headMax = failing ? previewBytesMax - large : large
  const head = fitting(characters, headMax).join('')
  const tail = fitting(characters.toReversed(), previewBytesMax - headMax)
    .toReversed()
    .join('')
  const whole = fitting(characters, wholeBytesMax).join('')
  const [first, last] = [Buffer.byteLength(head), Buffer.byteLength(tail)]
  return { head, tail, bytes, omittedBytes: bytes - first - last, whole, lostBytes: bytes - Buffer.byteLength(whole) }
}

function fitting(characters: readonly string[], bytesMax: number): readonly string[] {
  let bytes = 0
  const end = characters.findIndex((character) => {
    bytes += Buffer.byteLength(character)
    return bytes > bytesMax
  })
  return end < 0 ? characters : characters.slice(0, end)
}

type Break = {
  readonly limits?: (limits: CaptureLimits) => CaptureLimits
  readonly push?: (chunk: Uint8Array) => Uint8Array
  readonly finish?: (captured: CapturedStream) => CapturedStream
}

/** The real one with one thing broken about it. */
function broken({ limits = same, push = same, finish = same }: Break): Subject {
  return class {
    readonly #real: StreamCapture
    constructor(given: CaptureLimits) {
      this.#real = new StreamCapture(limits(given))
    }
    push(chunk: Uint8Array): void {
      this.#real.push(push(chunk))
    }
    finish(): CapturedStream {
      return finish(this.#real.finish())
    }
  }
}

function same<T>(value: T): T {
  return value
}

export const captures = target<Subject, Case>({
  name: 'capture',
  real: StreamCapture,
  cases: drawn(cut, 80),
  planted: {
    'the bound is one byte too large': broken({
      limits: (limits) => ({ ...limits, previewBytesMax: limits.previewBytesMax + 1 }),
    }),
    'the count of what was left out is off by one': broken({
      finish: (one) => ({ ...one, omittedBytes: Math.max(0, one.omittedBytes - 1) }),
    }),
    'each chunk is decoded by itself': broken({ push: (chunk) => Buffer.from(Buffer.from(chunk).toString()) }),
    'a character is cut in two': broken({
      finish: (one) => ({ ...one, tail: Buffer.from(one.tail).subarray(1).toString() }),
    }),
  },
  check: (Subject, one) => {
    const capture = new Subject(one.limits)
    for (const chunk of one.chunks) capture.push(chunk)
    const [got, wanted] = [capture.finish(), expected(one)]
    const kept = Buffer.byteLength(got.head) + Buffer.byteLength(got.tail)
    hold(kept <= one.limits.previewBytesMax, () => `${kept} bytes were kept, more than ${one.limits.previewBytesMax}`)
    hold(
      kept + got.omittedBytes === got.bytes,
      () => `${kept} kept and ${got.omittedBytes} left out are not ${got.bytes}`,
    )
    for (const key of ['head', 'tail', 'bytes', 'omittedBytes', 'whole', 'lostBytes'] as const) {
      hold(
        got[key] === wanted[key],
        () => `${key}: ${JSON.stringify(got[key])} instead of ${JSON.stringify(wanted[key])}`,
      )
    }
  },
})
