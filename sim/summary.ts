// What a run of the simulator saw, in a few lines: enough to tell a hard run from an easy one.
import type { Report } from './simulate.ts'

export function summary(reports: readonly Report[], trace: string, seconds: number): string {
  const n = Math.max(1, reports.length)
  const sum = (of: (report: Report) => number): number => reports.reduce((total, report) => total + of(report), 0)
  const mean = (of: (report: Report) => number): string => (sum(of) / n).toFixed(1)
  const faults = (r: Report): number => r.tally.crashes + r.tally.stalls + r.tally.diskFull + r.restarts
  const share = sum((r) => (r.betweenIntentAndResult ? 1 : 0)) / n
  const every = sum((r) => (r.seen.read > 0 && r.seen.idempotent > 0 && r.seen.once > 0 ? 1 : 0)) / n
  const violations = sum((r) => r.violations.length)
  return [
    `${reports.length} seeds, ${violations} violations, ${seconds.toFixed(1)} s`,
    `  per seed: ${mean((r) => r.sessions)} sessions, ${mean((r) => r.workers)} workers, ${mean(faults)} injected faults, ${mean((r) => r.seen.events)} events, ${mean((r) => r.seen.settled)} runs`,
    `  intents per seed: ${mean((r) => r.seen.read)} read, ${mean((r) => r.seen.idempotent)} idempotent, ${mean((r) => r.seen.once)} once; every class in ${(every * 100).toFixed(1)} % of the seeds`,
    `  crashes ${sum((r) => r.tally.crashes)}, stalls ${sum((r) => r.tally.stalls)}, clean restarts ${sum((r) => r.restarts)}, sessions left alone ${sum((r) => r.cared)}, disk full ${sum((r) => r.tally.diskFull)}, clocks set ${sum((r) => r.tally.clocksSet)}, leases ended of dead processes ${sum((r) => r.tally.buried)}, of living ones ${sum((r) => r.tally.misjudged)}`,
    `  in ${sum((r) => (r.world.networked ? 1 : 0))} seeds over a network: lost answers ${sum((r) => r.tally.lostAnswers)}, processes in the dark ${sum((r) => r.tally.darkened)}, late packets ${sum((r) => r.tally.latePackets)}, listeners that died ${sum((r) => r.tally.deafened)}; in ${sum((r) => (r.world.takes ? 1 : 0))} what is due is taken in one step`,
    `  fenced writes ${sum((r) => r.tally.fenced)}, conflicts ${sum((r) => r.tally.conflicts)}, over budget ${sum((r) => r.tally.overBudget)}`,
    `  unknown results ${sum((r) => r.seen.unknown)}, lost model calls ${sum((r) => r.seen.lostCalls)}, acknowledged events ${sum((r) => r.acked)}`,
    `  children ${sum((r) => r.seen.children)}, deepest ${Math.max(0, ...reports.map((r) => r.seen.deepest))}, answers to their questions ${sum((r) => r.seen.questions)}, crashes right after a commit between sessions ${sum((r) => r.tally.familyCrashes)}, pauses ${sum((r) => r.seen.pauses)}, runs with options ${sum((r) => r.seen.choices)}`,
    `  detached children ${sum((r) => r.seen.detached)}, reports ${sum((r) => r.seen.reports)}, waits ${sum((r) => r.seen.waits)}, sessions of graphs ${sum((r) => r.flows.graphs)}, calls of their nodes ${sum((r) => r.flows.nodes)}, stopped ${sum((r) => r.flows.stopped)}, undone ${sum((r) => r.flows.undone)}`,
    `  hooks asked ${sum((r) => r.hooks.asked)}, again after a crash or a pause ${sum((r) => r.hooks.again)}, calls held back ${sum((r) => r.hooks.cancelled)}, strict failures ${sum((r) => r.hooks.failed)}, results seen ${sum((r) => r.hooks.rewritten)}`,
    `  imports ${sum((r) => r.elsewhere.imports)}, forged ${sum((r) => r.elsewhere.forged)}, let go on or stopped ${sum((r) => r.elsewhere.let)}, forks with open calls ${sum((r) => r.elsewhere.forks)}`,
    `  claims on shared boards ${sum((r) => r.members?.claims ?? 0)}, members that died ${sum((r) => r.members?.deaths ?? 0)}`,
    `  times of cron jobs that began a run ${sum((r) => r.jobs?.begun ?? 0)}, left out ${sum((r) => r.jobs?.leftOut ?? 0)}; events from outside ${sum((r) => r.deliveries?.accepted ?? 0)}, duplicates ${sum((r) => r.deliveries?.duplicates ?? 0)}, without an answer ${sum((r) => r.deliveries?.unanswered ?? 0)}, refused for now ${sum((r) => r.deliveries?.failed ?? 0)}\n` +
      `  rounds of outcomes ${sum((r) => r.pursuits?.rounds ?? 0)}, graded ${sum((r) => r.pursuits?.gradings ?? 0)}, stopped ${sum((r) => r.pursuits?.stopped ?? 0)}\n` +
      `  runs out of money ${sum((r) => r.seen.broke)}, notices ${sum((r) => r.seen.notices)}, nudges ${sum((r) => r.seen.nudges)}, halted ${sum((r) => r.seen.halts)}`,
    `  forks of forks ${sum((r) => r.keepers?.forks ?? 0)}, compactions by hand ${sum((r) => r.keepers?.compacted ?? 0)}, sessions closed ${sum((r) => r.keepers?.closed ?? 0)}, removed ${sum((r) => r.keepers?.removed ?? 0)}, kept for a fork ${sum((r) => r.keepers?.kept ?? 0)}, ids used again ${sum((r) => r.keepers?.again ?? 0)}; budgets raised ${sum((r) => r.spenders?.raised ?? 0)}, not raised ${sum((r) => r.spenders?.denied ?? 0)}`,
    `  answers that fit their schema ${sum((r) => r.forms?.right ?? 0)}, that do not ${sum((r) => r.forms?.wrong ?? 0)}; runs of another program ${sum((r) => r.strange ?? 0)}; seeds with a secret ${sum((r) => (r.secret ? 1 : 0))}`,
    `  looks that a host scheduled ${sum((r) => r.seen.scheduled)}, dropped ${sum((r) => r.seen.unscheduled)}, messages for later ${sum((r) => r.seen.later)}`,
    `  contexts cut ${sum((r) => r.seen.cuts)}, results cleared ${sum((r) => r.seen.cleared)}`,
    `  refused by a provider that was down ${sum((r) => r.refused)}, tools away ${sum((r) => r.absent)}, stopped answers ${sum((r) => r.seen.stopped)}, cut answers ${sum((r) => r.seen.cut)}`,
    `  calls of cells ${sum((r) => r.cells?.calls ?? 0)}, cells that ended ${sum((r) => r.cells?.ended ?? 0)}, that went another way ${sum((r) => r.cells?.diverged ?? 0)}`,
    `  runs that ended with a sweep of worktrees ${sum((r) => r.trees.ends)}, sweeps ${sum((r) => r.trees.sweeps)}`,
    `  seeds that crashed between intent and result: ${(share * 100).toFixed(1)} %`,
    `  trace ${trace.slice(0, 32)}`,
  ].join('\n')
}
