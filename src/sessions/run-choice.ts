// A caller's options for one run, on the caller's side: what can be checked here is checked early, and at the end the
// caller's own schema parses the answer. run-options.ts applies them in between. Loaded by the first caller that
// chooses.
import type { Failure, Part } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { missingToolsFault, parseWithSchema, descendantTools } from '../runtime/turn/run-options.ts'
import { modelByName, type Services } from '../runtime/state/runtime-ports.ts'
import type { Agent } from '../runtime/state/agent.ts'
import type { AnswerSettings } from '../ports/model.ts'
import { outputTokensOf } from '../models/http/hosted-model.ts'
import { FINAL_RESULT } from '../models/structured-output.ts'
import { CHECK_LATE, checkInTime } from '../tools/core/check-time.ts'
import { fromAnyJsonSchema, type JsonSchema, type StandardSchema } from '../tools/core/json-schema.ts'
import { schemaOfAnswer } from '../runtime/state/agent-output.ts'
import type { RunChoices } from './command.ts'
import type { Result } from '../runtime/state/run-result.ts'

/** Throws for options that this harness knows to be wrong. If only a worker can know, the run reports it. */
export function checkRunChoice(
  services: Services,
  name: string,
  { model, instructions, output, tools, settings }: RunChoices,
  parts: readonly Part[],
): void {
  const agent = services.agent(name)
  const own = model === VISION && parts.some(isPicture) ? null : agent.model
  const asked = model === undefined ? agent.model : modelByName(services, model, own)
  if (settings !== undefined && agent.planner === null) outputTokensOf(asked, settings)
  if (agent.planner !== null && [model, instructions, output, tools, settings].some((choice) => choice !== undefined))
    throw new Fault(
      'invalid_config',
      `Agent "${name}" is a workflow: its runs have limits and metadata of their own, and nothing else.`,
    )
  if (output !== undefined) fromAnyJsonSchema(schemaOfAnswer(output.schema) as JsonSchema, FINAL_RESULT)
  const seen = agent.tools.sources.length === 0 ? agent.tools.seen : null
  const below = tools === undefined || seen === null ? null : descendantTools(services, agent)
  const missing = below === null ? [] : (tools ?? []).filter((tool) => !seen?.has(tool) && !below.has(tool))
  if (missing.length > 0) throw missingToolsFault(missing, [...(seen?.keys() ?? [])])
  if (seen !== null)
    checkToolChoice(
      settings?.toolChoice,
      tools ?? [...seen.keys()],
      output === undefined ? agent : { ...agent, answers: true },
    )
}

type ToolOffer = Pick<Agent, 'output' | 'retrieve'> & { readonly answers?: true }

/** A required tool that the run does not have would fail its first request. */
function checkToolChoice(
  choice: AnswerSettings['toolChoice'],
  tools: readonly string[],
  { output, retrieve, answers }: ToolOffer,
): void {
  if (typeof choice !== 'object') return
  const answer = answers || output !== null ? [FINAL_RESULT] : []
  if ([...tools, ...answer, retrieve?.name].includes(choice.tool)) return
  const has = tools.length === 0 ? 'It has none' : `It has: ${tools.join(', ')}`
  const message = `The setting toolChoice names the tool "${choice.tool}", which this run does not have. ${has}.`
  throw new Fault('invalid_config', message)
}

const VISION = 'hint:vision'

/** Pictures have no fallback to another route: a model that cannot see must not answer about a picture. */
function isPicture(part: Part): boolean {
  return 'media' in part && part.media?.startsWith('image/') === true
}

const LATE = {
  kind: 'Timeout',
  message: `The answer is in the session, but the schema of the caller did not read it: ${CHECK_LATE}.`,
} as const

function unfitFailure(problem: string): Failure {
  const message = `The answer fits the JSON Schema that was asked for, but not the schema of the caller.\n${problem}`
  return { kind: 'InvalidInput', message }
}

/** Parses the answer with the caller's own schema. If the schema refuses it, the run has failed. */
export async function parseResult({ clock }: Services, result: Result, schema: StandardSchema): Promise<Result> {
  if (result.status !== 'completed') return result
  const parsed = await checkInTime(clock, parseWithSchema(schema, result.output), () => null)
  if (parsed !== null && 'value' in parsed) return { ...result, output: parsed.value as typeof result.output }
  const { status: _status, stopReason: _stop, output: _output, ...rest } = result
  const failure = { ...(parsed === null ? LATE : unfitFailure(parsed.problem)), classified: null }
  return { ...rest, status: 'failed', stopReason: 'output_validation_failed', failure }
}
