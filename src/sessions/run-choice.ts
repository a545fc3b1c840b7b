// What a caller chooses for one run, where it is said: refused early as far as it is known here, and parsed by the caller's own schema
// at the end. What becomes of it in between is effects/run-options.ts. Loaded by the first caller that chooses.
import type { Failure, Part } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { missingTools, parsedBy, toolsBelow } from '../effects/run-options.ts'
import { type Agent, modelNamed, type Services } from '../engine/wiring.ts'
import type { AnswerSettings } from '../ports/model.ts'
import { outputTokensOf } from '../models/http/hosted.ts'
import { FINAL_RESULT } from '../models/output.ts'
import { CHECK_LATE, checkedInTime } from '../tools/core/check-time.ts'
import { anyJsonSchema, type JsonSchema, type StandardSchema } from '../tools/core/json-schema.ts'
import { shapeOf } from './agent.ts'
import type { RunChoices } from './command.ts'
import type { Result } from './result.ts'

/** Throws for what this harness knows to be wrong. What only a worker can know is said by the run. */
export function checkChoice(
  services: Services,
  name: string,
  { model, instructions, output, tools, settings }: RunChoices,
  parts: readonly Part[],
): void {
  const agent = services.agent(name)
  const own = model === VISION && parts.some(isPicture) ? null : agent.model
  const asked = model === undefined ? agent.model : modelNamed(services, model, own)
  if (settings !== undefined && agent.planner === null) outputTokensOf(asked, settings)
  if (agent.planner !== null && [model, instructions, output, tools, settings].some((choice) => choice !== undefined))
    throw new Fault(
      'invalid_config',
      `Agent "${name}" is a workflow: its runs have limits and metadata of their own, and nothing else.`,
    )
  if (output !== undefined) anyJsonSchema(shapeOf(output.schema) as JsonSchema, FINAL_RESULT)
  const seen = agent.tools.sources.length === 0 ? agent.tools.seen : null
  const below = tools === undefined || seen === null ? null : toolsBelow(services, agent)
  const missing = below === null ? [] : (tools ?? []).filter((tool) => !seen?.has(tool) && !below.has(tool))
  if (missing.length > 0) throw missingTools(missing, [...(seen?.keys() ?? [])])
  if (seen !== null)
    checkToolChoice(
      settings?.toolChoice,
      tools ?? [...seen.keys()],
      output === undefined ? agent : { ...agent, answers: true },
    )
}

type Offering = Pick<Agent, 'output' | 'retrieve'> & { readonly answers?: true }

/** A tool that must be called and that the run does not have would fail it with its first request. */
function checkToolChoice(
  choice: AnswerSettings['toolChoice'],
  tools: readonly string[],
  { output, retrieve, answers }: Offering,
): void {
  if (typeof choice !== 'object') return
  const answer = answers || output !== null ? [FINAL_RESULT] : []
  if ([...tools, ...answer, retrieve?.name].includes(choice.tool)) return
  const has = tools.length === 0 ? 'It has none' : `It has: ${tools.join(', ')}`
  const message = `The setting toolChoice names the tool "${choice.tool}", which this run does not have. ${has}.`
  throw new Fault('invalid_config', message)
}

const VISION = 'hint:vision'

/** No other route takes its place: a model that sees nothing must not answer about a picture. */
function isPicture(part: Part): boolean {
  return 'media' in part && part.media?.startsWith('image/') === true
}

const LATE = {
  kind: 'Timeout',
  message: `The answer is in the session, but the schema of the caller did not read it: ${CHECK_LATE}.`,
} as const

function unfit(problem: string): Failure {
  const message = `The answer fits the JSON Schema that was asked for, but not the schema of the caller.\n${problem}`
  return { kind: 'InvalidInput', message }
}

/** The answer as the caller's own schema makes it. If the schema refuses it, the run has failed. */
export async function parsedResult({ clock }: Services, result: Result, schema: StandardSchema): Promise<Result> {
  if (result.status !== 'completed') return result
  const parsed = await checkedInTime(clock, parsedBy(schema, result.output), () => null)
  if (parsed !== null && 'value' in parsed) return { ...result, output: parsed.value as typeof result.output }
  const { status: _status, stopReason: _stop, output: _output, ...rest } = result
  const failure = { ...(parsed === null ? LATE : unfit(parsed.problem)), classified: null }
  return { ...rest, status: 'failed', stopReason: 'output_validation_failed', failure }
}
