// The options with which one run replaces those of its agent. They come with the message that opens the run, are frozen
// as a blob beside the rest of its setup, and are read back by each attempt that continues the run.
import type { Json, Limits, Metadata, RunChoice, Narrowing } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Session, Wake } from '../../kernel/session.ts'
import type { AnswerSettings, Model } from '../../ports/model.ts'
import type { Blob } from '../../ports/store.ts'
import { FINAL_RESULT, type OutputPlan, problemOf } from '../../models/structured-output.ts'
import { planAnswer } from '../state/agent-output.ts'
import type { JsonSchema, StandardSchema } from '../../tools/core/json-schema.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { modelByName, schemaKey, type Services } from '../state/runtime-ports.ts'
import { type Agent, agentOfSession, type RunVariant } from '../state/agent.ts'
import { readTextBlob, textBlob } from '../state/content-blobs.ts'
import { completeLimits } from '../state/limits.ts'
import { boundsOfChoice, limitsWithin, intersectBounds } from './narrowing.ts'
import type { Tools } from '../state/toolbox.ts'

/**
 * `message` is the id of the message with the options: a caller in this process may have given a schema with it.
 * `within` are the bounds set from above, which go wherever the run goes.
 */
type FrozenChoice = RunChoice & { readonly message: string; readonly within?: Narrowing }

export type ChosenOptions = {
  readonly agent: Agent
  readonly options: Blob | null
  /** The names of the agent's tools that the run has; null for all. */
  readonly tools: readonly string[] | null
  /** Bounds from above: only the tools and limits within them. */
  readonly within?: Narrowing | undefined
  /** The run chose its model, instructions, tools or output, so its prefix is not the session's own. */
  readonly own: boolean
  readonly metadata: Metadata | undefined
}

/**
 * Collects the choices of the messages that open a run, over the session's own `model`, if it has one. An imported
 * message chooses nothing.
 */
export async function chooseRunOptions(
  services: Services,
  cache: SessionCache,
  { inputs, wakes }: RunOpening,
  model: string | null,
): Promise<ChosenOptions> {
  const { session } = cache
  let metadata = session.metadata
  const within = await boundsOfOpening(services, cache, { inputs, wakes })
  const own = { ...(model === null ? {} : { model }), ...(within ? { within } : {}) }
  let frozen: FrozenChoice | null = model === null && within === undefined ? null : { ...own, message: '' }
  for (const { seq, chooses } of session.inputs) {
    if (!chooses || !inputs.includes(seq) || seq <= (session.imported ?? 0)) continue
    const [event] = (await services.store.read(cache.id, seq - 1, 1)).events
    if (event?.type !== 'user.message') continue
    if (event.metadata !== undefined) metadata = { ...metadata, ...event.metadata }
    if (event.options !== undefined) frozen = { ...own, ...event.options, message: event.id }
  }
  const agent = agentOfSession(services, session)
  if (frozen === null) return { agent, options: null, tools: null, own: false, metadata }
  return { ...applyChoice(services, cache, frozen), metadata }
}

/** What opens a run: messages by their seqs, and wakes. */
type RunOpening = { readonly inputs: readonly number[]; readonly wakes: readonly Wake[] }

/**
 * The bounds of the run that these inputs open. A run that only reports of children and wakes open continues work of an
 * earlier run, so it may do no more than that run.
 */
async function boundsOfOpening(
  services: Services,
  { session }: SessionCache,
  { inputs, wakes }: RunOpening,
): Promise<Narrowing | undefined> {
  let bounds = session.within
  const opening = session.inputs.filter(({ seq }) => inputs.includes(seq))
  if (opening.some(({ report }) => report === undefined)) return bounds
  for (const { report } of opening) {
    const child = report?.by.replace(/^session:/, '') ?? ''
    const [created] = (await services.store.read(child, 0, 1)).events
    if (created?.type === 'session.created') bounds = intersectBounds(bounds, created.within)
  }
  for (const { options } of wakes) {
    if (options === undefined) continue
    const frozen = await readFrozenChoice(services, options)
    bounds = intersectBounds(bounds, childBounds(frozen, agentOfSession(services, session)))
  }
  return bounds
}

/** The bounds for children of a run with these options. */
function childBounds(frozen: FrozenChoice, agent: Agent): Narrowing | undefined {
  return intersectBounds(frozen.within, boundsOfChoice(frozen, agent.limits))
}

/** The bounds for children that this session starts now, even if no worker of this process drives its open run. */
export async function currentChildBounds(services: Services, session: Session): Promise<Narrowing | undefined> {
  const { run, within } = session
  if (run?.options === undefined) return within
  return childBounds(await readFrozenChoice(services, run.options), agentOfSession(services, session))
}

/**
 * The options that an open run froze elsewhere. A fork keeps all of them. Of an imported session only the bounds count,
 * since they can only take away.
 */
export async function reviewOptions(services: Services, cache: SessionCache): Promise<ChosenOptions> {
  const { metadata, run, imported } = cache.session
  const agent = agentOfSession(services, cache.session)
  const none = { agent, options: null, tools: null, own: false, metadata }
  if (run?.options === undefined) return none
  const { message, within, ...choice } = await readFrozenChoice(services, run.options)
  if (imported !== undefined && within === undefined) return none
  const bounds = within === undefined ? {} : { within }
  const kept = imported === undefined ? { ...choice, ...bounds } : bounds
  return { ...applyChoice(services, cache, { ...kept, message }), metadata }
}

/** Restores the chosen options for an attempt that continues such a run. */
export async function recallOptions(services: Services, cache: SessionCache): Promise<void> {
  const { run, stop } = cache.session
  if (run?.options === undefined || run.foreign || cache.varied?.options === run.options) return
  const { model, ...frozen } = await readFrozenChoice(services, run.options)
  // A run that is being stopped asks no model any more, so it can end even where its model is not known.
  const chosen = model === undefined || stop > 0 ? frozen : { ...frozen, model }
  cache.varied = buildVaried(services, cache, run.options, chosen)
}

/** The model of a run with these options, given by hash. */
export async function modelOfOptions(services: Services, agent: string, options: string): Promise<Model> {
  const { model } = await readFrozenChoice(services, options)
  return model === undefined ? services.agent(agent).model : services.model(model)
}

/** The chosen tools out of all. */
export function pickTools(tools: Tools, names: readonly string[], below: ReadonlySet<string> | null): Tools {
  const missing = below === null ? [] : names.filter((name) => !tools.has(name) && !below.has(name))
  if (missing.length > 0) throw missingToolsFault(missing, [...tools.keys()])
  return new Map([...tools].filter(([name, tool]) => tool.always || names.includes(name)))
}

/**
 * The names of the tools of all agents that this one may start, at any depth; null if sources must be asked for some of
 * them.
 */
export function descendantTools(services: Pick<Services, 'agent'>, { children }: Agent): ReadonlySet<string> | null {
  const names = new Set<string>()
  const below = new Set(children)
  for (const name of below) {
    const { tools, children: more } = services.agent(name)
    if (tools.seen === null || tools.sources.length > 0) return null
    for (const tool of tools.seen.keys()) names.add(tool)
    for (const child of more) below.add(child)
  }
  return names
}

export function missingToolsFault(missing: readonly string[], known: readonly string[]): Fault {
  const has = known.length === 0 ? 'It has none' : `It has: ${known.join(', ')}`
  return new Fault('invalid_config', `The agent has no tool "${missing.join('", "')}" for this run. ${has}.`)
}

function applyChoice(services: Services, cache: SessionCache, frozen: FrozenChoice): Omit<ChosenOptions, 'metadata'> {
  const options = textBlob(JSON.stringify(frozen), 'application/json')
  cache.varied = buildVaried(services, cache, options.hash, frozen)
  const { agent } = cache.varied
  const { model, instructions, tools, output, within } = frozen
  const chose = (model ?? instructions ?? tools ?? output) !== undefined
  // The bounds of a child are the same in all its runs, so they belong to its own prefix.
  const isOwn = chose || within !== cache.session.within
  return { agent, options, tools: tools ?? null, within, own: isOwn }
}

function buildVaried(services: Services, cache: SessionCache, options: string, frozen: FrozenChoice): RunVariant {
  const below = childBounds(frozen, agentOfSession(services, cache.session))
  return { options, agent: agentWithChoice(services, cache, frozen), ...(below ? { below } : {}) }
}

async function readFrozenChoice({ store }: Services, hashed: string): Promise<FrozenChoice> {
  const text = await readTextBlob(store, hashed)
  if (text !== null) return JSON.parse(text) as FrozenChoice
  throw new Fault('store_damaged', `The options of this run are missing (${hashed}). Restore a backup to go on.`)
}

function agentWithChoice(
  services: Services,
  { id, session }: SessionCache,
  { message, within, ...choice }: FrozenChoice,
): Agent {
  const agent = agentOfSession(services, session)
  const { instructions = agent.instructions } = choice
  const model = choice.model === undefined ? agent.model : modelByName(services, choice.model, agent.model)
  const own = limitsOfChoice(agent, choice.limits)
  const limits = within ? limitsWithin(own, within, agent.planner) : own
  const asked = choice.output
  const output = asked
    ? withCallerSchema(services.schemas.get(schemaKey(id, message)), planAnswer(asked as ChosenOutput, model))
    : model === agent.model
      ? agent.output
      : (agent.outputFor?.(model) ?? null)
  if (output && agent.tools.seen?.has(FINAL_RESULT))
    throw new Fault('invalid_config', `"${FINAL_RESULT}" is the name of the answer itself. Rename the tool.`)
  const settings = choice.settings as AnswerSettings | undefined
  return { ...agent, model, limits, instructions, output, ...(settings === undefined ? {} : { settings }) }
}

/** What a model chooses for its script cannot make the agents of the script deeper than its host says. */
function limitsOfChoice({ limits, planner }: Agent, chosen: RunChoice['limits']): Limits {
  if (chosen === undefined) return limits
  const own = completeLimits({ ...limits, ...chosen })
  const { depth } = limits
  return planner?.bounded && depth !== undefined ? limitsWithin(own, { limits: { depth } }, planner) : own
}

type ChosenOutput = { readonly schema: JsonSchema; readonly mode?: OutputPlan['mode'] }

/**
 * Values that the caller's own schema refuses are corrected too. The log has the value as the model gave it, so that
 * any process can parse it.
 */
function withCallerSchema(schema: StandardSchema | undefined, plan: OutputPlan | null): OutputPlan | null {
  if (plan === null || schema === undefined) return plan
  const check: OutputPlan['check'] = async (value) => {
    const checked = await plan.check(value)
    if ('problem' in checked) return checked
    const parsed = await parseWithSchema(schema, checked.output)
    return 'problem' in parsed ? parsed : checked
  }
  return { ...plan, check }
}

/** Parses the answer with the caller's own schema. */
export async function parseWithSchema(
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
