// The public names of `terret/testing`: a local server that answers like three providers, with the errors and damage that
// a script asks for.
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
