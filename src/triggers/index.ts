// The public names of terret/triggers: events from outside that a triage without tools decides about.
export { createTriggers } from './create-triggers.ts'
export {
  type SendNotice,
  type SourceCaps,
  type SourceOptions,
  triggerAgent,
  type TriggerNotice,
  type TriggersOptions,
} from './source-options.ts'
export { deadTriggers, type DeadTrigger, type DeadTriggers } from './dead-triggers.ts'
export type { TriagePath } from './evaluate-trigger.ts'
export type { TriageAction, TriageDecision, TriageTargets } from './triage-decision.ts'
export type { TriggerEnvelope, TriggerReceipt } from '../sessions/trigger-envelope.ts'
export type { Triggers } from './trigger-definition.ts'
export type { TriggerEvaluated } from './trigger-graph.ts'
