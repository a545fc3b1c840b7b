// Planted faults of the cells of scripts.
export const CELL_FAULTS = [
  {
    name: 'a call of a cell runs twice',
    seed: 3,
    file: 'src/scripts/script-planner.ts',
    find: 'const from = isOpen ? last.calls.length : 0',
    replace: 'const from = 0',
  },
  {
    name: 'a divergence of a cell is not seen',
    seed: 11,
    file: 'src/scripts/live-cells.ts',
    find: 'const wrong = known ? findDivergence(log, script, known, outcome) : null',
    replace: 'const wrong = null',
  },
] as const
