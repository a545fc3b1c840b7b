// The planted faults of clocks: what lasts, what is due, and what a clock wrote that was wrong.
export const CLOCK_FAULTS = [
  {
    name: 'a lease is believed that lies years ahead',
    seed: 5,
    file: 'src/stores/plan/plan-writes.ts',
    find: 'return until > now && !isAhead(until - ttlMs, now)',
    replace: 'return until > now && ttlMs > 0',
  },
  {
    name: 'a due time is believed that a clock wrote which was ahead',
    seed: 5,
    file: 'src/stores/memory/memory-store.ts',
    find: 'if (!isAhead(this.#latest, now)) return',
    replace: 'if (now > 0) return',
  },
  {
    name: 'a wake is believed that a clock asked for which was ahead',
    seed: 6,
    file: 'src/kernel/clock.ts',
    find: 'return askedAt > now + AHEAD_MS_MAX',
    replace: 'return askedAt < 0 * now',
  },
  {
    name: "deadlines go by the machine's clock",
    file: 'src/runtime/commit/plan-commit.ts',
    find: 'const here = { now: at + cache.aheadMs, epoch }',
    replace: 'const here = { now: job.store.now(), epoch }',
  },
  {
    name: 'active time is counted by the order of the log instead of the clock',
    seed: 5,
    file: 'src/kernel/clock.ts',
    find: 'return wall ?? at',
    replace: 'return wall === 0 ? wall : at',
  },
] as const
