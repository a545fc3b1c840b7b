// The limits of a run as a host sets them: checked, and completed by the defaults. What they mean is kernel/limits.ts.
import type { Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { DEFAULT_LIMITS } from '../kernel/limits.ts'

/** The least that each may be: with less, nothing could ever happen. */
const LEAST: Readonly<Record<keyof Limits, number>> = {
  modelRequests: 0,
  modelAttempts: 1,
  modelMs: 1,
  activeMs: 1,
  lossesMax: 1,
  hold: 0,
  toolCalls: 0,
  toolRetries: 0,
  outputRetries: 0,
  parallel: 1,
  tokens: 0,
  depth: 0,
  emptyRetries: 0,
  patienceMs: 0,
}

/** Null: there is no such limit. */
const NULLABLE: ReadonlySet<string> = new Set(['toolCalls', 'tokens', 'modelAttempts'])

/** A limit that is no number would never be reached, so it is refused. */
export function limitsOf(given: Partial<Limits> = {}): Limits {
  const limits: Record<string, number | null> = { ...DEFAULT_LIMITS }
  for (const [name, value] of Object.entries(given) as readonly (readonly [string, number | null | undefined])[]) {
    if (value === undefined) continue
    if (!Object.hasOwn(LEAST, name)) throw new Fault('invalid_config', `There is no limit "${name}".`)
    const least = LEAST[name as keyof Limits]
    const none = value === null && NULLABLE.has(name)
    if (!none && !(Number.isSafeInteger(value) && Number(value) >= least))
      throw new Fault(
        'invalid_config',
        `The limit "${name}" must be a whole number from ${least}, not ${String(value)}.`,
      )
    limits[name] = value
  }
  return limits as unknown as Limits
}
