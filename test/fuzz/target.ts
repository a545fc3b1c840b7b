// What a fuzz target is: a property over random cases, a thing it is about, and broken copies of that thing that it must find.
// The command line is main.ts; the targets are their own files.
import fc from 'fast-check'

export type Property = {
  /** Throws when the case shows a fault. */
  readonly property: fc.IRawProperty<[unknown], boolean>
  /** Removes what the property had put on the disk. */
  readonly close: () => void
}

/** Cases that are a list and not drawn at random. `path` then names one of them. */
export type Walk = { readonly walk: (order: Order) => Promise<Outcome> }

export type Target = {
  readonly name: string
  /** Where a case costs more: among all targets it gets one case for so many of the others. */
  readonly every?: number
  readonly open: () => Property | Walk
  /** The same property about something that is broken on purpose: it must fail. */
  readonly planted: readonly { readonly name: string; readonly open: () => Property | Walk }[]
}

type Parts<Subject, Case> = {
  readonly name: string
  readonly real: Subject
  readonly cases: fc.Arbitrary<Case>
  readonly planted: Readonly<Record<string, Subject>>
  /** Looks at one case; throws when something is wrong. */
  readonly check: (subject: Subject, one: Case) => void | Promise<void>
}

/** A target without a world of its own: all of it is in the case. */
export function target<Subject, Case>({ name, real, cases, planted, check }: Parts<Subject, Case>): Target {
  const open = (subject: Subject) => (): Property => ({
    property: fc.asyncProperty(cases, async (one) => check(subject, one)),
    close: nothing,
  })
  return {
    name,
    open: open(real),
    planted: Object.entries(planted).map(([fault, subject]) => ({ name: fault, open: open(subject) })),
  }
}

/** Cheaper than an assertion library: it stands in every case. */
export function hold(condition: boolean, what: () => string): void {
  if (!condition) throw new Error(what())
}

export type Found = {
  readonly seed: number
  readonly path: string
  readonly counterexample: string
  readonly error: string
}
export type Outcome = { readonly cases: number; readonly found: Found | null }
export type Order = {
  readonly runs: number
  readonly seed: number
  /** Begin at this very case: a replay. */
  readonly path?: string
  /** Stop at the first finding instead of looking for a smaller one. */
  readonly first?: boolean
}

export async function run(opened: Property | Walk, order: Order): Promise<Outcome> {
  if ('walk' in opened) return opened.walk(order)
  const { runs, seed, path, first = path !== undefined } = order
  try {
    const details = await fc.check(opened.property, {
      numRuns: runs,
      seed,
      endOnFailure: first,
      ...(path === undefined ? {} : { path }),
    })
    if (!details.failed) return { cases: details.numRuns, found: null }
    const error = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance)
    const counterexample = fc.stringify(details.counterexample?.[0])
    const found = { seed: details.seed, path: details.counterexamplePath ?? '', counterexample, error }
    return { cases: details.numRuns, found }
  } finally {
    opened.close()
  }
}

function nothing(): void {}
