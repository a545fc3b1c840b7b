// How long after a commit another process hears of it: what a store measures of its news. The times are the store's.

/** No news is as old: what says so is no measure. */
const LAG_MS_MAX = 3_600_000

export class NewsLag {
  readonly now: () => number
  readonly counts = { heard: 0, missed: 0, lagMs: 0, lagMsMax: 0 }

  constructor(now: () => number) {
    this.now = now
  }

  /** Of something only now. Hints can be forged, and clocks differ by a little. */
  heard(committedAt: number): void {
    const lagMs = Math.max(0, this.now() - committedAt)
    if (!(lagMs <= LAG_MS_MAX)) return
    this.counts.heard += 1
    this.counts.lagMs += lagMs
    this.counts.lagMsMax = Math.max(this.counts.lagMsMax, lagMs)
  }

  /** No hint had come. Null: it was removed, and nobody knows when. */
  missed(at: number | null): void {
    this.counts.missed += 1
    if (at !== null) this.heard(at)
  }
}
