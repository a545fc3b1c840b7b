// The public names of `terret/chaos`: a local server that answers like three providers, and as badly as a script wants it to.
export type { Issued, IssuedItem, IssuedResponse } from './issued.ts'
export type { Asked, ProviderRule } from './rule.ts'
export { providerRules } from './rules.ts'
export {
  type ChaosCall,
  type ChaosReasoning,
  type ChaosReply,
  type ChaosRequest,
  type ChaosSaid,
  type ChaosScript,
  type ChaosTrouble,
  type Dialect,
  type Mischief,
  overflow,
  overloaded,
  quota,
  rateLimited,
  serverError,
  type TroubleName,
  unauthorized,
} from './script.ts'
export { type Chaos, type ChaosOptions, startChaos } from './server.ts'
export type { Refusal } from './voice.ts'
