// The planted faults of contexts that are cut.
export const CONTEXT_FAULTS = [
  {
    name: 'a pin is cut away',
    seed: 24,
    file: 'src/kernel/transcript.ts',
    find: "else if (seen.role === 'user' && seen.pin) front.push(seen)",
    replace: "else if (seen.role === 'user' && seen.pin && seen.seq < 0) front.push(seen)",
  },
  {
    name: 'results are cleared that were cleared before',
    file: 'src/context/window.ts',
    find: '    this.#clearable = 0\n    if (cut === undefined) return\n',
    replace: '    if (cut === undefined) return\n',
  },
  {
    name: 'a context is cut again without a reply between',
    seed: 32,
    file: 'src/effects/compact.ts',
    find: 'if (fill.cut || fill.failures >= FAILURES_MAX) return null',
    replace: 'if (fill.failures >= FAILURES_MAX) return null',
  },
  {
    name: 'a context is compacted whatever failed before',
    seed: 64,
    file: 'src/effects/compact.ts',
    find: 'if (fill.cut || fill.failures >= FAILURES_MAX) return null',
    replace: 'if (fill.cut) return null',
  },
] as const
