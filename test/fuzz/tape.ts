// Random cases from a tape of bytes: a generator reads its choices off the tape, and a tape that is over says zero. Shorter
// tapes with smaller bytes are smaller cases, so fast-check shrinks any structure without being told how. Not a random source.
import fc from 'fast-check'

export class Tape {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** From 0 up to, but not including, `n`; `n` is at most 256. */
  below(n: number): number {
    const byte = this.#bytes[this.#at] ?? 0
    this.#at += 1
    return byte % n
  }

  pick<T>(items: readonly T[]): T {
    // Sound: `below` stays within the list, which is never empty.
    return items[this.below(items.length)] as T
  }

  /** One time in `n`; never when the tape is over. */
  chance(n: number): boolean {
    return this.below(n) === n - 1
  }

  list<T>(max: number, make: () => T, min = 0): readonly T[] {
    const length = min + this.below(max - min + 1)
    return Array.from({ length }, make)
  }
}

export function drawn<T>(make: (tape: Tape) => T, bytesMax = 64): fc.Arbitrary<T> {
  return fc.uint8Array({ maxLength: bytesMax, size: 'max' }).map((bytes) => make(new Tape(bytes)))
}
