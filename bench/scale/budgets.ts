// What one step of the load came to, as text, and which budgets it kept.
import type { Moment } from './figures.ts'

export type Step = {
  /** Turns a second that are asked for. */
  readonly pace: number
  readonly from: Moment
  readonly to: Moment
  /** In order. */
  readonly takenMs: readonly number[]
  /** Sessions that somebody waited for at the end. */
  readonly waiting: number
  readonly processes: number
}

type Budget = {
  readonly name: string
  readonly limit: string
  readonly value: (step: Step) => number
  readonly kept: (value: number) => boolean
}

const rate = ({ from, to }: Step, of: keyof Moment): number => ((to[of] - from[of]) * 1_000) / (to.ms - from.ms)
const share = ({ from, to }: Step, part: keyof Moment, whole: keyof Moment): number =>
  (to[part] - from[part]) / Math.max(1, to[whole] - from[whole])
const place = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN

export const KEPT_UP = 'turns done of those asked for'

const BUDGETS: readonly Budget[] = [
  {
    name: KEPT_UP,
    limit: '≥ 0.95',
    value: (step) => rate(step, 'turns') / step.pace,
    kept: (value) => value >= 0.95,
  },
  {
    name: 'due → taken, p99, ms',
    limit: '≤ 1,000',
    value: ({ takenMs }) => place(takenMs, 0.99),
    kept: (value) => value <= 1_000,
  },
  {
    name: 'vain claims of all',
    limit: '< 0.01',
    value: (step) => share(step, 'vain', 'claims'),
    kept: (value) => value < 0.01,
  },
  { name: 'HOT share', limit: '≥ 0.9', value: (step) => share(step, 'hot', 'updated'), kept: (value) => value >= 0.9 },
  {
    name: 'dead rows to live ones',
    limit: '≤ 0.25',
    value: ({ to }) => to.dead / Math.max(1, to.live),
    kept: (value) => value <= 0.25,
  },
  {
    name: 'WAL to body bytes',
    limit: '≤ 3.5',
    value: (step) => share(step, 'wal', 'bodies'),
    kept: (value) => value <= 3.5,
  },
  {
    name: 'connections of a process',
    limit: '≤ 3',
    value: ({ to, processes }) => to.connections / processes,
    kept: (value) => value <= 3,
  },
]

/** One line a figure, in this order; a step is a column. */
export const FIGURES: readonly (readonly [name: string, value: (step: Step) => number])[] = [
  ['turns asked for, a second', ({ pace }) => pace],
  ['turns done, a second', (step) => rate(step, 'turns')],
  ['runs done, a second', (step) => rate(step, 'settled')],
  ['commits a second', (step) => rate(step, 'commits') + rate(step, 'sent')],
  ['transactions a second', (step) => rate(step, 'transactions')],
  ['rows a second', (step) => rate(step, 'rows')],
  ['WAL, KB a second', (step) => rate(step, 'wal') / 1_024],
  ['full pages in it, a second', (step) => rate(step, 'fullPages')],
  ['WAL to body bytes', (step) => share(step, 'wal', 'bodies')],
  ['bodies, bytes a turn', (step) => share(step, 'bodies', 'turns')],
  ['HOT share', (step) => share(step, 'hot', 'updated')],
  ['dead rows', ({ to }) => to.dead],
  ['due → taken, p50, ms', ({ takenMs }) => place(takenMs, 0.5)],
  ['due → taken, p99, ms', ({ takenMs }) => place(takenMs, 0.99)],
  ['claims a second', (step) => rate(step, 'claims')],
  ['vain claims of all', (step) => share(step, 'vain', 'claims')],
  ['questions that found nothing', (step) => share(step, 'empty', 'takes')],
  ['connections', ({ to }) => to.connections],
  ['CPU of the database, cores', (step) => rate(step, 'databaseCpuMs') / 1_000],
  ['CPU of the workers, cores', (step) => rate(step, 'workersCpuMs') / 1_000],
  ['CPU of the people, cores', (step) => rate(step, 'peopleCpuMs') / 1_000],
  ['memory of the workers, MB', ({ to }) => to.workersMb],
  ['sessions waited for at the end', ({ waiting }) => waiting],
]

export function broken(step: Step): readonly string[] {
  return BUDGETS.filter(({ kept, value }) => !kept(value(step))).map(({ name }) => name)
}

/** Of each budget: the most that kept it, and the load that broke it first. */
export function verdicts(steps: readonly Step[]): readonly string[] {
  return BUDGETS.map(({ name, limit, kept, value }) => {
    const first = steps.find((step) => !kept(value(step)))
    const worst = steps.map((step) => shown(value(step))).join(', ')
    const verdict = first
      ? `breaks at ${first.pace} turns a second`
      : `holds up to ${steps.at(-1)?.pace ?? 0} turns a second`
    return `${name.padEnd(32)} ${limit.padEnd(8)} ${verdict} (${worst})`
  })
}

export function shown(value: number): string {
  if (!Number.isFinite(value)) return '–'
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))
}
