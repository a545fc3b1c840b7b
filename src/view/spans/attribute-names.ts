// The names of attributes, in one place: those of OpenTelemetry's GenAI conventions, as of version 1.41 of the other
// conventions, and our own. Names only; span-draft.ts sets the values.

/** The attributes of OpenTelemetry for requests to models, as far as they are used here. */
export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  /** Only where a reply was cut or refused: the log does not record the others. */
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  /** Not in the conventions, but read by many trace viewers. */
  totalTokens: 'gen_ai.usage.total_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCallId: 'gen_ai.tool.call.id',
} as const

/** Attributes with content. None is written unless a sink asked for it. */
export const CONTENT = {
  instructions: 'gen_ai.system_instructions',
  toolDefinitions: 'gen_ai.tool.definitions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
} as const

/** The attribute with the class of an error, as OpenTelemetry names it. */
export const ERROR_TYPE = 'error.type'

/** The attributes that only Terret has. */
export const TERRET = {
  run: 'terret.run',
  outcome: 'terret.outcome',
  /**
   * How many attempts (holds of the lease) the run took: more than one after a crash, or after waiting for a person.
   */
  attempts: 'terret.attempts',
  modelRequests: 'terret.model_requests',
  costUsd: 'terret.cost_usd',
  /** The answer was cached from an earlier call: no provider was asked. */
  cached: 'terret.cached',
  code: 'terret.code',
  /** The host's data about the run and its session, as JSON. */
  metadata: 'terret.metadata',
  instructionsHash: 'terret.instructions.hash',
  toolsetHash: 'terret.toolset.hash',
  forkSession: 'terret.fork.session',
  forkSeq: 'terret.fork.seq',
  /** Why a model call ended without an answer and without a failure: superseded or interrupted. */
  stopped: 'terret.stopped',
  call: 'terret.call',
  callStatus: 'terret.call.status',
  callEffect: 'terret.call.effect',
  /** How often the call was started: 0 if it never ran, more than 1 after a crash. */
  callStarts: 'terret.call.starts',
  childSession: 'terret.child.session',
  resultHash: 'terret.result.hash',
  /** One line without content: `read: ok (120 chars)` or `read: failed (NotFound)`. */
  summary: 'terret.summary',
} as const

/** The names that the conventions use for some hosts. All other hosts have the same name there. */
export const PROVIDERS: Readonly<Record<string, string>> = {
  mistral: 'mistral_ai',
  xai: 'x_ai',
  moonshot: 'moonshot_ai',
  gemini: 'gcp.gemini',
}
