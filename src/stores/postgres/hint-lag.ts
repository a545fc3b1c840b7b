// Counts how long after the commits of other processes this one heard of them, for the health of the store. It notifies
// no listener.

/** A larger delay cannot be real and is not counted. */
const LAG_MS_MAX = 3_600_000

export class HintLag {
  heard = 0
  missed = 0
  lagMs = 0
  lagMsMax = 0
  /** The store's clock. */
  readonly now: () => number

  constructor(now: () => number) {
    this.now = now
  }

  get counts(): Pick<HintLag, 'heard' | 'missed' | 'lagMs' | 'lagMsMax'> {
    const { heard, missed, lagMs, lagMsMax } = this
    return { heard, missed, lagMs, lagMsMax }
  }

  /** The commit is heard of only now. Hints can be forged, and clocks differ a little. */
  hear(committedAt: number): void {
    const lagMs = Math.max(0, this.now() - committedAt)
    if (!(lagMs <= LAG_MS_MAX)) return
    this.heard += 1
    this.lagMs += lagMs
    this.lagMsMax = Math.max(this.lagMsMax, lagMs)
  }

  /** No hint came. Null: the session was removed, at an unknown time. */
  miss(committedAt: number | null): void {
    this.missed += 1
    if (committedAt !== null) this.hear(committedAt)
  }
}
