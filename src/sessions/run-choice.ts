// What a caller chooses for one run, where it is said: refused early as far as it is known here, and parsed by the caller's own schema
// at the end. What becomes of it in between is effects/run-options.ts. Loaded by the first caller that chooses.
import { Fault } from '../kernel/failure.ts'
import { missingTools, parsedBy } from '../effects/run-options.ts'
import type { Services } from '../engine/wiring.ts'
import { FINAL_RESULT } from '../models/output.ts'
import { anyJsonSchema, type JsonSchema, type StandardSchema } from '../tools/core/json-schema.ts'
import { shapeOf } from './agent.ts'
import type { RunChoices } from './command.ts'
import type { Result } from './result.ts'

/** Throws for what this harness knows to be wrong. What only a worker can know is said by the run. */
export function checkChoice(
  services: Services,
  name: string,
  { model, instructions, output, tools }: RunChoices,
): void {
  if (model !== undefined) services.model(model)
  const agent = services.agent(name)
  if (agent.planner !== null && [model, instructions, output, tools].some((choice) => choice !== undefined))
    throw new Fault(
      'invalid_config',
      `Agent "${name}" is a workflow: its runs have limits and metadata of their own, and nothing else.`,
    )
  if (output !== undefined) anyJsonSchema(shapeOf(output.schema) as JsonSchema, FINAL_RESULT)
  const seen = agent.tools.sources.length === 0 ? agent.tools.seen : null
  const missing = seen === null ? [] : (tools ?? []).filter((tool) => !seen.has(tool))
  if (missing.length > 0) throw missingTools(missing, [...(seen?.keys() ?? [])])
}

/** The answer as the caller's own schema makes it. If the schema refuses it, the run has failed. */
export async function parsedResult(result: Result, schema: StandardSchema): Promise<Result> {
  if (result.status !== 'completed') return result
  const parsed = await parsedBy(schema, result.output)
  if ('value' in parsed) return { ...result, output: parsed.value as typeof result.output }
  const { status: _status, stopReason: _stop, output: _output, ...rest } = result
  const message = `The answer fits the JSON Schema that was asked for, but not the schema of the caller.\n${parsed.problem}`
  const failure = { kind: 'InvalidInput', message, classified: null } as const
  return { ...rest, status: 'failed', stopReason: 'output_validation_failed', failure }
}
