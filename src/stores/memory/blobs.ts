// The files of the store in memory, and which sessions refer to them.
import type { Blob } from '../../ports/store.ts'
import type { Log } from './log.ts'

export class Blobs {
  readonly #kept = new Map<string, Blob>()

  get bytes(): number {
    return [...this.#kept.values()].reduce((sum, { data }) => sum + data.length, 0)
  }

  /** A copy: its reader may do with it what it likes. */
  get(hash: string): Blob | null {
    const blob = this.#kept.get(hash)
    return blob ? { ...blob, data: blob.data.slice() } : null
  }

  add(blob: Blob, log: Log | undefined): void {
    if (!this.#kept.has(blob.hash)) this.#kept.set(blob.hash, { ...blob, data: blob.data.slice() })
    this.refer(blob.hash, log)
  }

  refer(hash: string, log: Log | undefined): void {
    if (log) log.blobs = (log.blobs ?? new Set()).add(hash)
  }

  /** Those of a session that was removed, unless one of the others refers to them too. Returns how many bytes went. */
  drop({ blobs }: Log, others: readonly Log[]): number {
    let bytes = 0
    for (const hash of blobs ?? []) {
      if (others.some((each) => each.blobs?.has(hash))) continue
      bytes += this.#kept.get(hash)?.data.length ?? 0
      this.#kept.delete(hash)
    }
    return bytes
  }
}

/** Also if another session of the same tree does. */
export function refers(log: Log, hash: string, all: readonly Log[]): boolean {
  return log.blobs?.has(hash) || all.some(({ card, blobs }) => card.root === log.card.root && blobs?.has(hash))
}
