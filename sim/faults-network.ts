// The planted faults of stores on another machine: answers that were lost, clocks that differ, listeners, and taking what is due.
export const NETWORK_PLANTED = [
  {
    name: 'a write whose answer was lost is taken for that of another',
    seed: 14,
    file: 'src/stores/plan/plan-writes.ts',
    find: 'if (known !== null && isAlreadyWritten(known, view, write))',
    replace: 'if (known !== null && write.epoch < 0 && isAlreadyWritten(known, view, write))',
  },
  {
    name: 'a commit whose answer was lost is decided anew',
    seed: 2,
    file: 'src/runtime/commit/write-commit.ts',
    find: "if (code === 'conflict' || (code",
    replace: "if (code === 'conflict' || code === 'store_busy' || (code",
  },
  {
    name: 'an attempt waits by the clock of its process for times of the store',
    seed: 2,
    file: 'src/runtime/loop/drive.ts',
    find: 'await bell.wait(next - cache.aheadMs)',
    replace: 'await bell.wait(next)',
  },
  {
    name: 'events are dated by the clock of the process',
    seed: 2,
    file: 'src/runtime/commit/plan-commit.ts',
    find: 'const here = { now: at + cache.aheadMs, epoch }',
    replace: 'const here = { now: at, epoch }',
  },
  {
    name: 'a worker does not hear what becomes due',
    seed: 10,
    file: 'src/runtime/loop/due-loop.ts',
    find: 'around.store.watchDue(this.#bell.ring)',
    replace: 'around.store.watchDue(() => {})',
  },
  {
    name: 'what failed before is taken and not looked at',
    file: 'src/runtime/loop/due-loop.ts',
    find: 'else this.#look(session, claim.failed > 0, claim)',
    replace: 'else if (claim.failed === 0) this.#look(session, false, claim)',
  },
] as const
