// The planted faults of contexts that are cut.
export const CONTEXT_FAULTS = [
  {
    name: 'a pin is cut away',
    seed: 2,
    file: 'src/kernel/transcript.ts',
    find: "else if (seen.role === 'user' && seen.pin) front.push(seen)",
    replace: "else if (seen.role === 'user' && seen.pin && seen.seq < 0) front.push(seen)",
  },
  {
    name: 'results are cleared that were cleared before',
    seed: 21,
    file: 'src/context/window-fill.ts',
    find: 'if (cleared !== undefined) this.#results = this.#results.filter(({ seq }) => seq >= cleared)',
    replace: '',
  },
  {
    name: 'a context is cut again without a reply between',
    seed: 13,
    file: 'src/runtime/turn/compact-context.ts',
    find: 'if (fill.cut) return null',
    replace: '',
  },
  {
    name: 'a summary is asked for whatever failed before',
    seed: 427,
    file: 'src/runtime/turn/compact-context.ts',
    find: 'const isOff = fill.failures >= FAILURES_MAX && !byHand',
    replace: 'const isOff = false',
  },
] as const
