// What one run has instead of what its agent has. It comes with the message that opens the run, is frozen as a blob beside the rest of
// the run's setup, and is read back by each attempt that goes on with the run. Loaded by the first run that has any.
import type { Json, Metadata, RunChoice } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import type { Blob } from '../ports/store.ts'
import { FINAL_RESULT, type OutputPlan, problemOf } from '../models/output.ts'
import { outputOf } from '../sessions/agent.ts'
import type { JsonSchema, StandardSchema } from '../tools/core/json-schema.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { type Agent, agentIn, findText, modelNamed, schemaKey, type Services, textBlob } from '../engine/wiring.ts'
import { limitsOf } from './limits.ts'
import type { Tools } from './toolbox.ts'

/** `message` is the id of the message that it came with: a caller in this process may have given a schema with it. */
type Frozen = RunChoice & { readonly message: string }

export type Chosen = {
  readonly agent: Agent
  readonly options: Blob | null
  /** Of the agent's tools, only these; null for all. */
  readonly tools: readonly string[] | null
  /** It chose what its model is told, or its model: that is no part of the session's own prefix. */
  readonly own: boolean
  readonly metadata: Metadata | undefined
}

/**
 * What the messages that open a run chose for it, over the `model` that its session goes on with, if it has one. A message that came
 * out of a file chooses nothing.
 */
export async function chosenBy(
  services: Services,
  cache: SessionCache,
  inputs: readonly number[],
  model: string | null,
): Promise<Chosen> {
  const { session } = cache
  let metadata = session.metadata
  const own = model === null ? {} : { model }
  let frozen: Frozen | null = model === null ? null : { ...own, message: '' }
  for (const { seq, chooses } of session.inputs) {
    if (!chooses || !inputs.includes(seq) || seq <= (session.imported ?? 0)) continue
    const [event] = (await services.store.read(cache.id, seq - 1, 1)).events
    if (event?.type !== 'user.message') continue
    if (event.metadata !== undefined) metadata = { ...metadata, ...event.metadata }
    if (event.options !== undefined) frozen = { ...own, ...event.options, message: event.id }
  }
  const agent = agentIn(services, session)
  if (frozen === null) return { agent, options: null, tools: null, own: false, metadata }
  return { ...varied(services, cache, frozen), metadata }
}

/** The options that an open run froze elsewhere: a fork keeps all of them, an imported session none. */
export async function reviewedOptions(services: Services, cache: SessionCache): Promise<Chosen> {
  const { metadata, run, imported } = cache.session
  const agent = agentIn(services, cache.session)
  if (run?.options === undefined || imported !== undefined)
    return { agent, options: null, tools: null, own: false, metadata }
  return { ...varied(services, cache, await frozenAs(services, run.options)), metadata }
}

/** For an attempt that goes on with a run that chose: what it chose is known from here on. */
export async function recallOptions(services: Services, cache: SessionCache): Promise<void> {
  const { run, stop } = cache.session
  if (run?.options === undefined || run.foreign || cache.varied?.options === run.options) return
  const { model, ...frozen } = await frozenAs(services, run.options)
  // No model is asked any more in a run that is being stopped: that can be done also where its model is not known.
  const chosen = model === undefined || stop > 0 ? frozen : { ...frozen, model }
  cache.varied = { options: run.options, agent: agentWith(services, cache, chosen) }
}

/** The model of a run that had these options, by hash. */
export async function modelChosen(services: Services, agent: string, options: string): Promise<Model> {
  const { model } = await frozenAs(services, options)
  return model === undefined ? services.agent(agent).model : services.model(model)
}

/** Of all tools, those that were chosen. */
export function chosenTools(tools: Tools, names: readonly string[]): Tools {
  const missing = names.filter((name) => !tools.has(name))
  if (missing.length > 0) throw missingTools(missing, [...tools.keys()])
  return new Map([...tools].filter(([name, tool]) => tool.always || names.includes(name)))
}

export function missingTools(missing: readonly string[], known: readonly string[]): Fault {
  const has = known.length === 0 ? 'It has none' : `It has: ${known.join(', ')}`
  return new Fault('invalid_config', `The agent has no tool "${missing.join('", "')}" for this run. ${has}.`)
}

function varied(services: Services, cache: SessionCache, frozen: Frozen): Omit<Chosen, 'metadata'> {
  const options = textBlob(JSON.stringify(frozen), 'application/json')
  const own = agentWith(services, cache, frozen)
  cache.varied = { options: options.hash, agent: own }
  const { model, instructions, tools, output } = frozen
  return { agent: own, options, tools: tools ?? null, own: (model ?? instructions ?? tools ?? output) !== undefined }
}

async function frozenAs({ store }: Services, hashed: string): Promise<Frozen> {
  const text = await findText(store, hashed)
  if (text !== null) return JSON.parse(text) as Frozen
  throw new Fault('store_damaged', `The options of this run are missing (${hashed}). Restore a backup to go on.`)
}

function agentWith(services: Services, { id, session }: SessionCache, { message, ...choice }: Frozen): Agent {
  const agent = agentIn(services, session)
  const { instructions = agent.instructions } = choice
  const model = choice.model === undefined ? agent.model : modelNamed(services, choice.model, agent.model)
  const limits = choice.limits ? limitsOf({ ...agent.limits, ...choice.limits }) : agent.limits
  const asked = choice.output
  const output = asked
    ? checkedBy(services.schemas.get(schemaKey(id, message)), outputOf(asked as Output, model))
    : model === agent.model
      ? agent.output
      : (agent.outputFor?.(model) ?? null)
  if (output && agent.tools.seen?.has(FINAL_RESULT))
    throw new Fault('invalid_config', `"${FINAL_RESULT}" is the name of the answer itself. Rename the tool.`)
  return { ...agent, model, limits, instructions, output }
}

type Output = { readonly schema: JsonSchema; readonly mode?: OutputPlan['mode'] }

/** With the caller's own schema, what it refuses is corrected too. The log has the value as the model gave it: any process can parse it. */
function checkedBy(schema: StandardSchema | undefined, plan: OutputPlan | null): OutputPlan | null {
  if (plan === null || schema === undefined) return plan
  const check: OutputPlan['check'] = async (value) => {
    const checked = await plan.check(value)
    if ('problem' in checked) return checked
    const parsed = await parsedBy(schema, checked.output)
    return 'problem' in parsed ? parsed : checked
  }
  return { ...plan, check }
}

/** What a caller's own schema makes of the answer. */
export async function parsedBy(
  schema: StandardSchema,
  value: Json,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  try {
    const parsed = await schema['~standard'].validate(value)
    if (!parsed.issues) return { value: parsed.value }
    return { problem: problemOf(parsed.issues) }
  } catch (error) {
    return { problem: `- the check failed: ${String(error instanceof Error ? error.message : error).slice(0, 200)}` }
  }
}
