// The blobs of the store in memory, and which sessions refer to them.
import type { Blob } from '../../ports/store.ts'
import type { MemoryLog } from './memory-log.ts'

export class MemoryBlobs {
  readonly #kept = new Map<string, Blob>()

  get bytes(): number {
    return [...this.#kept.values()].reduce((sum, { data }) => sum + data.length, 0)
  }

  /** Returns a copy, because the reader may change it. */
  get(hash: string): Blob | null {
    const blob = this.#kept.get(hash)
    return blob ? { ...blob, data: blob.data.slice() } : null
  }

  add(blob: Blob, log: MemoryLog | undefined): void {
    if (!this.#kept.has(blob.hash)) this.#kept.set(blob.hash, { ...blob, data: blob.data.slice() })
    this.refer(blob.hash, log)
  }

  refer(hash: string, log: MemoryLog | undefined): void {
    if (log) log.blobs = (log.blobs ?? new Set()).add(hash)
  }

  /** Drops the blobs of a removed session, unless another session refers to them. Returns how many bytes were freed. */
  drop({ blobs }: MemoryLog, others: readonly MemoryLog[]): number {
    let bytes = 0
    for (const hash of blobs ?? []) {
      if (others.some((each) => each.blobs?.has(hash))) continue
      bytes += this.#kept.get(hash)?.data.length ?? 0
      this.#kept.delete(hash)
    }
    return bytes
  }
}

/** Also true if another session of the same tree refers to it. */
export function refersToBlob(log: MemoryLog, hash: string, all: readonly MemoryLog[]): boolean {
  return log.blobs?.has(hash) || all.some(({ card, blobs }) => card.root === log.card.root && blobs?.has(hash))
}
