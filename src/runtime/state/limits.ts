// The limits of a run as a host sets them: checked, and completed by the defaults. kernel/limits.ts defines their
// meaning.
import type { Limits } from '../../kernel/content.ts'
import { DEFAULT_LIMITS } from '../../kernel/limits.ts'
import { type Checks, countCheck, withoutUndefined, optionsChecker, orNull } from '../../options.ts'

/**
 * The least value of each limit: with less, nothing could ever happen. A limit that is not a number would never be
 * reached.
 */
export const LIMITS: Checks<Partial<Limits>> = {
  modelRequests: countCheck(),
  modelAttempts: orNull(countCheck(1)),
  modelMs: countCheck(1),
  activeMs: countCheck(1),
  lossesMax: countCheck(1),
  hold: countCheck(),
  toolCalls: orNull(countCheck()),
  toolRetries: countCheck(),
  outputRetries: countCheck(),
  parallel: countCheck(1),
  tokens: orNull(countCheck()),
  depth: countCheck(),
  children: countCheck(),
  wakes: countCheck(),
  emptyRetries: countCheck(),
  patienceMs: countCheck(),
  outageMs: countCheck(),
}

const checkLimits = optionsChecker<Partial<Limits>>('limits', LIMITS)

export function completeLimits(limits: Partial<Limits> = {}): Limits {
  checkLimits(limits)
  return { ...DEFAULT_LIMITS, ...withoutUndefined(limits) }
}
