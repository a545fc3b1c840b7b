// What a run of the simulator saw, in a few lines: enough to tell a hard run from an easy one. Reports are summed as they arrive, however
// many there are.
import { createHash } from 'node:crypto'
import type { Report } from './simulate.ts'

/** The same with a number in each place: of what is true, or in a list, how often. */
type Sums<T> = T extends number | boolean | readonly unknown[]
  ? number
  : T extends object
    ? { [K in keyof T]: Sums<NonNullable<T[K]>> | (null extends T[K] ? undefined : never) }
    : never
type Numbers = { [name: string]: number | Numbers }

export class Summary {
  seeds = 0
  /** The first violations, by seed. */
  readonly broken = new Map<number, readonly string[]>()
  readonly #all: Numbers = {}
  readonly #hashes = new Map<number, string>()
  #every = 0
  #deepest = 0

  add(report: Report): void {
    const { seed, seen, violations, hash } = report
    this.seeds += 1
    if (violations.length > 0) this.broken.set(seed, violations)
    if (seen.read > 0 && seen.idempotent > 0 && seen.once > 0) this.#every += 1
    this.#deepest = Math.max(this.#deepest, seen.deepest)
    this.#hashes.set(seed, hash)
    addTo(this.#all, report)
  }

  text(seconds: number): string {
    const n = Math.max(1, this.seeds)
    const all = this.#all as Sums<Report>
    if (this.seeds === 0) return `0 seeds, ${seconds.toFixed(1)} s`
    const mean = (sum: number): string => (sum / n).toFixed(1)
    const faults = all.tally.crashes + all.tally.stalls + all.tally.diskFull + all.restarts
    return [
      `${this.seeds} seeds, ${all.violations} violations, ${seconds.toFixed(1)} s`,
      `  per seed: ${mean(all.sessions)} sessions, ${mean(all.workers)} workers, ${mean(faults)} injected faults, ${mean(all.seen.events)} events, ${mean(all.seen.settled)} runs`,
      `  intents per seed: ${mean(all.seen.read)} read, ${mean(all.seen.idempotent)} idempotent, ${mean(all.seen.once)} once; every class in ${((this.#every / n) * 100).toFixed(1)} % of the seeds`,
      `  crashes ${all.tally.crashes}, stalls ${all.tally.stalls}, clean restarts ${all.restarts}, sessions left alone ${all.cared}, disk full ${all.tally.diskFull}, clocks set ${all.tally.clocksSet}, leases ended of dead processes ${all.tally.buried}, of living ones ${all.tally.misjudged}`,
      `  in ${all.world.networked} seeds over a network: lost answers ${all.tally.lostAnswers}, processes in the dark ${all.tally.darkened}, late packets ${all.tally.latePackets}, listeners that died ${all.tally.deafened}; in ${all.world.takes} what is due is taken in one step`,
      `  fenced writes ${all.tally.fenced}, conflicts ${all.tally.conflicts}, over budget ${all.tally.overBudget}`,
      `  unknown results ${all.seen.unknown}, lost model calls ${all.seen.lostCalls}, acknowledged events ${all.acked}`,
      `  children ${all.seen.children}, deepest ${this.#deepest}, answers to their questions ${all.seen.questions}, crashes right after a commit between sessions ${all.tally.familyCrashes}, pauses ${all.seen.pauses}, runs with options ${all.seen.choices}`,
      `  detached children ${all.seen.detached}, reports ${all.seen.reports}, waits ${all.seen.waits}, sessions of graphs ${all.flows.graphs}, calls of their nodes ${all.flows.nodes}, stopped ${all.flows.stopped}, undone ${all.flows.undone}`,
      `  hooks asked ${all.hooks.asked}, again after a crash or a pause ${all.hooks.again}, calls held back ${all.hooks.cancelled}, strict failures ${all.hooks.failed}, results seen ${all.hooks.rewritten}`,
      `  imports ${all.elsewhere.imports}, forged ${all.elsewhere.forged}, let go on or stopped ${all.elsewhere.let}, forks with open calls ${all.elsewhere.forks}`,
      `  claims on shared boards ${all.members?.claims ?? 0}, members that died ${all.members?.deaths ?? 0}`,
      `  times of cron jobs that began a run ${all.jobs?.begun ?? 0}, left out ${all.jobs?.leftOut ?? 0}; events from outside ${all.deliveries?.accepted ?? 0}, duplicates ${all.deliveries?.duplicates ?? 0}, without an answer ${all.deliveries?.unanswered ?? 0}, refused for now ${all.deliveries?.failed ?? 0}\n` +
        `  rounds of outcomes ${all.pursuits?.rounds ?? 0}, graded ${all.pursuits?.gradings ?? 0}, stopped ${all.pursuits?.stopped ?? 0}\n` +
        `  runs out of money ${all.seen.broke}, notices ${all.seen.notices}, nudges ${all.seen.nudges}, halted ${all.seen.halts}`,
      `  forks of forks ${all.keepers?.forks ?? 0}, compactions by hand ${all.keepers?.compacted ?? 0}, sessions closed ${all.keepers?.closed ?? 0}, removed ${all.keepers?.removed ?? 0}, kept for a fork ${all.keepers?.kept ?? 0}, ids used again ${all.keepers?.again ?? 0}; budgets raised ${all.spenders?.raised ?? 0}, not raised ${all.spenders?.denied ?? 0}`,
      `  answers that fit their schema ${all.forms?.right ?? 0}, that do not ${all.forms?.wrong ?? 0}; runs of another program ${all.strange ?? 0}; seeds with a secret ${all.secret}`,
      `  looks that a host scheduled ${all.seen.scheduled}, dropped ${all.seen.unscheduled}, messages for later ${all.seen.later}`,
      `  contexts cut ${all.seen.cuts}, results cleared ${all.seen.cleared}`,
      `  refused by a provider that was down ${all.refused}, tools away ${all.absent}, stopped answers ${all.seen.stopped}, cut answers ${all.seen.cut}`,
      `  calls of cells ${all.cells?.calls ?? 0}, cells that ended ${all.cells?.ended ?? 0}, that went another way ${all.cells?.diverged ?? 0}`,
      `  runs that ended with a sweep of worktrees ${all.trees.ends}, sweeps ${all.trees.sweeps}`,
      `  seeds that crashed between intent and result: ${((all.betweenIntentAndResult / n) * 100).toFixed(1)} %`,
      `  trace ${this.#trace()}`,
    ].join('\n')
  }

  /** Of the traces of all seeds, in the order of the seeds. */
  #trace(): string {
    const lines = [...this.#hashes].sort(([a], [b]) => a - b).map(([seed, hash]) => `${seed} ${hash}`)
    return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 32)
  }
}

function addTo(sums: Numbers, report: object): void {
  for (const [name, value] of Object.entries(report) as readonly (readonly [string, unknown])[]) {
    const known = sums[name]
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      const below = typeof known === 'object' ? known : {}
      sums[name] = below
      addTo(below, value)
    } else if (typeof known !== 'object')
      sums[name] =
        (known ?? 0) +
        (Array.isArray(value) ? value.length : typeof value === 'number' ? value : value === true ? 1 : 0)
  }
}
