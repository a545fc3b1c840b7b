// The log against the oracle: what the log says of each call, and what the tools themselves noted outside of the store. Pure.
import type { OracleLine } from './evidence.ts'
import type { CallFact } from './log-check.ts'

export type EffectReport = {
  readonly wrong: readonly string[]
  readonly onceTwice: number
  /** Effects that ran again with the same key, as `read` and `idempotent` may. */
  readonly repeated: number
  readonly unknown: number
  /** Of the calls with an unknown outcome: those whose effect had really finished. */
  readonly unknownDone: number
  readonly ran: Readonly<Record<OracleLine['effect'], number>>
}

type Runs = { starts: number; ends: number }

export function checkEffects(calls: readonly CallFact[], oracle: readonly OracleLine[]): EffectReport {
  const runs = runsOf(oracle)
  const wrong: string[] = []
  let onceTwice = 0
  let repeated = 0
  let unknown = 0
  let unknownDone = 0
  for (const call of calls) {
    const { starts, ends } = runs.get(call.key) ?? { starts: 0, ends: 0 }
    if (call.effect === 'once' && starts > 1) onceTwice += 1
    else if (starts > 1) repeated += 1
    if (call.results[0]?.status === 'unknown') {
      unknown += 1
      if (ends > 0) unknownDone += 1
    }
    for (const text of [...checkCall(call, { starts, ends }), ...checkLoss(call), ...checkDecision(call)])
      wrong.push(`${call.key}: ${text}`)
    runs.delete(call.key)
  }
  for (const key of runs.keys()) wrong.push(`${key}: an effect ran that no log knows of`)
  const ran = { read: 0, idempotent: 0, once: 0 }
  for (const { effect, phase } of oracle) if (phase === 'start') ran[effect] += 1
  return { wrong, onceTwice, repeated, unknown, unknownDone, ran }
}

function checkCall({ effect, gate, intents, results }: CallFact, { starts, ends }: Runs): readonly string[] {
  const wrong: string[] = []
  const result = results[0]
  if (results.length !== 1) wrong.push(`it has ${results.length} results`)
  if (effect === 'once' && starts > 1) wrong.push(`a once effect ran ${starts} times`)
  if (starts > intents.length) wrong.push(`it ran ${starts} times on ${intents.length} intents`)
  if (effect === 'once' && intents.length > 1) wrong.push(`a once call was intended ${intents.length} times`)
  if (result?.status === 'unknown' && effect !== 'once') wrong.push(`a ${effect} call ended as unknown`)
  if (result?.status === 'ok' && gate !== 'outside' && ends === 0) wrong.push('its result is ok and it never ran')
  if (result?.status === 'denied' && starts > 0) wrong.push('it was denied and ran')
  const says = typeof result?.content === 'string' ? result.content : ''
  if (says.includes('did not run') && starts > 0) wrong.push(`it ran and its result says: ${says}`)
  return wrong
}

/** A once call whose worker was lost after the intent is unknown, unless the tool itself could tell. */
function checkLoss({ effect, reconciles, intents, results }: CallFact): readonly string[] {
  const [intent] = intents
  const [result] = results
  if (effect !== 'once' || !intent || !result || result.epoch === intent.epoch) return []
  if (result.status === 'unknown' || (reconciles && result.status === 'ok')) return []
  return [`its worker was lost, and its result is ${result.status}`]
}

/** Only what was allowed ran, and the first decision stands. */
function checkDecision({ gate, intents, results, decision }: CallFact): readonly string[] {
  if (gate !== 'ask') return []
  const first = intents[0]
  if (first && !(decision?.allow && decision.seq < first.seq)) return ['it was started without being allowed']
  if (results[0]?.status === 'denied' && decision?.allow !== false) return ['it was denied by nobody']
  return []
}

function runsOf(oracle: readonly OracleLine[]): Map<string, Runs> {
  const runs = new Map<string, Runs>()
  for (const { key, phase } of oracle) {
    const run = runs.get(key) ?? { starts: 0, ends: 0 }
    if (phase === 'start') run.starts += 1
    else run.ends += 1
    runs.set(key, run)
  }
  return runs
}
