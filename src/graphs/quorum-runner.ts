// Cancels the items of a map that are no longer needed. Once enough of a quorum have succeeded in this process, the
// others are aborted, so that a hanging item does not hold up the node. This is only a hint: the planner's own count
// decides.
type QuorumGroup = { left: number; active: number; readonly over: AbortController; readonly open: Set<() => void> }

/** The number of completed groups that are remembered. Their items that have not begun yet are not needed either. */
const REMEMBERED = 16

export class QuorumRunner {
  readonly #waves = new Map<string, QuorumGroup>()

  /** Runs one item of a group that needs `need` more successes. Fails at once when the group has them. */
  async run<T>(key: string, need: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const wave = this.#wave(key, need)
    const { over, open } = wave
    let leave = (): void => {}
    const gone = new Promise<never>((_, reject) => {
      leave = () => reject(notNeededError())
    })
    wave.active += 1
    open.add(leave)
    try {
      if (over.signal.aborted) throw notNeededError()
      const value = await Promise.race([work(over.signal), gone])
      wave.left -= 1
      if (wave.left === 0) {
        over.abort(notNeededError())
        for (const each of open) each()
      }
      return value
    } finally {
      open.delete(leave)
      wave.active -= 1
      if (wave.active === 0 && wave.left > 0) this.#waves.delete(key)
    }
  }

  #wave(key: string, need: number): QuorumGroup {
    const known = this.#waves.get(key)
    if (known) return known
    for (const [old, { active }] of this.#waves) {
      if (this.#waves.size < REMEMBERED) break
      if (active === 0) this.#waves.delete(old)
    }
    const wave = { left: need, active: 0, over: new AbortController(), open: new Set<() => void>() }
    this.#waves.set(key, wave)
    return wave
  }
}

function notNeededError(): Error {
  return Object.assign(new Error('So many others succeeded that this item is not needed.'), { name: 'NotNeeded' })
}
