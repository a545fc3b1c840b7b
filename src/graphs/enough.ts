// Items of a map that are not needed any more: when so many of a quorum succeeded here, the others are let go, so that none that hangs
// holds the node. Only a hint in one process: what counts is what the planner counts.
type Wave = { left: number; active: number; readonly over: AbortController; readonly open: Set<() => void> }

/** How many that were met are remembered: what has not begun by then is not needed either. */
const REMEMBERED = 16

export class Enough {
  readonly #waves = new Map<string, Wave>()

  /** Runs one item of a wave that needs so many more. Fails at once when they are there. */
  async run<T>(key: string, need: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const wave = this.#wave(key, need)
    const { over, open } = wave
    let leave = (): void => {}
    const gone = new Promise<never>((_, reject) => {
      leave = () => reject(notNeeded())
    })
    wave.active += 1
    open.add(leave)
    try {
      if (over.signal.aborted) throw notNeeded()
      const value = await Promise.race([work(over.signal), gone])
      wave.left -= 1
      if (wave.left === 0) {
        over.abort(notNeeded())
        for (const each of open) each()
      }
      return value
    } finally {
      open.delete(leave)
      wave.active -= 1
      if (wave.active === 0 && wave.left > 0) this.#waves.delete(key)
    }
  }

  #wave(key: string, need: number): Wave {
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

function notNeeded(): Error {
  return Object.assign(new Error('So many others succeeded that this item is not needed.'), { name: 'NotNeeded' })
}
