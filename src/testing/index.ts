// The public names of `terret/testing`: a local server that answers like three providers, with the errors and damage that
// a script asks for; and a test that crashes an agent of yours at every point.
import type { CrashTestOptions, CrashWorld } from './crash-test/crash-options.ts'
import type { CrashReport } from './crash-test/crash-report.ts'
export type { Issued, IssuedItem, IssuedResponse } from './issued.ts'
export type { RuleRequest, ProviderRule } from './provider-rule.ts'
export { providerRules } from './provider-rules.ts'
export {
  type ChaosCall,
  type ChaosReasoning,
  type ChaosReply,
  type ChaosRequest,
  type ChaosModelReply,
  type ChaosScript,
  type ChaosTrouble,
  type Dialect,
  type ChaosDamage,
  overflowError,
  overloadedError,
  quotaError,
  rateLimitError,
  serverError,
  type TroubleName,
  unauthorizedError,
} from './chaos-script.ts'
export { type Chaos, type ChaosOptions, startChaos } from './chaos-server.ts'
export type { ProviderRefusal } from './answer-encoder.ts'
export type {
  CrashAgent,
  CrashPlace,
  CrashTestOptions,
  CrashWorld,
  PersonAnswer,
} from './crash-test/crash-options.ts'
export type { CrashFinding, CrashReport, CrashVerdict } from './crash-test/crash-report.ts'
export type { CrashRuleName } from './crash-test/crash-rules.ts'
export type { CrashPoint } from './crash-test/points.ts'

/**
 * Runs an agent without a crash, and then once for each point with a crash there: before and after each commit, on
 * entering and leaving each handler, when a model is asked and when it has answered. Says which rules held.
 */
export async function crashTest<World extends CrashWorld>(test: CrashTestOptions<World>): Promise<CrashReport> {
  return (await import('./crash-test/run-crash-test.ts')).runCrashTest(test)
}
