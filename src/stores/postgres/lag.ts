// How long after a commit of another process this one heard of it: counted, for whoever asks how a store stands. It tells nobody.

/** No news is as old: what says so is no measure. */
const LAG_MS_MAX = 3_600_000

export class Lag {
  heard = 0
  missed = 0
  lagMs = 0
  lagMsMax = 0
  /** The store's clock. */
  readonly now: () => number

  constructor(now: () => number) {
    this.now = now
  }

  get counts(): Pick<Lag, 'heard' | 'missed' | 'lagMs' | 'lagMsMax'> {
    const { heard, missed, lagMs, lagMsMax } = this
    return { heard, missed, lagMs, lagMsMax }
  }

  /** Told of something only now. Hints can be forged, and clocks differ by a little. */
  hear(committedAt: number): void {
    const lagMs = Math.max(0, this.now() - committedAt)
    if (!(lagMs <= LAG_MS_MAX)) return
    this.heard += 1
    this.lagMs += lagMs
    this.lagMsMax = Math.max(this.lagMsMax, lagMs)
  }

  /** No hint had come. Null: it was removed, and nobody knows when. */
  miss(committedAt: number | null): void {
    this.missed += 1
    if (committedAt !== null) this.hear(committedAt)
  }
}
