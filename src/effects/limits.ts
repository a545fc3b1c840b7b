// The limits of a run as a host sets them: checked, and completed by the defaults. What they mean is kernel/limits.ts.
import type { Limits } from '../kernel/content.ts'
import { DEFAULT_LIMITS } from '../kernel/limits.ts'
import { type Checks, count, given, optionsOf, orNull } from '../options.ts'

/** The least that each may be: with less, nothing could ever happen. A limit that is no number would never be reached. */
export const LIMITS: Checks<Partial<Limits>> = {
  modelRequests: count(),
  modelAttempts: orNull(count(1)),
  modelMs: count(1),
  activeMs: count(1),
  lossesMax: count(1),
  hold: count(),
  toolCalls: orNull(count()),
  toolRetries: count(),
  outputRetries: count(),
  parallel: count(1),
  tokens: orNull(count()),
  depth: count(),
  children: count(),
  wakes: count(),
  emptyRetries: count(),
  patienceMs: count(),
  outageMs: count(),
}

const checkLimits = optionsOf<Partial<Limits>>('limits', LIMITS)

export function limitsOf(limits: Partial<Limits> = {}): Limits {
  checkLimits(limits)
  return { ...DEFAULT_LIMITS, ...given(limits) }
}
