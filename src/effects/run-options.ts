// What one run has instead of what its agent has. It comes with the message that opens the run, is frozen as a blob beside the rest of
// the run's setup, and is read back by each attempt that goes on with the run. Loaded by the first run that has any.
import type { Json, Metadata, RunChoice, Within } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { AnswerSettings, Model } from '../ports/model.ts'
import type { Blob } from '../ports/store.ts'
import { FINAL_RESULT, type OutputPlan, problemOf } from '../models/output.ts'
import { outputOf } from '../sessions/agent.ts'
import type { JsonSchema, StandardSchema } from '../tools/core/json-schema.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import {
  type Agent,
  agentIn,
  findText,
  modelNamed,
  schemaKey,
  type Services,
  textBlob,
  type Varied,
} from '../engine/wiring.ts'
import { limitsOf } from './limits.ts'
import { boundsOfChoice, limitsWithin, narrowBoth } from './narrowing.ts'
import type { Tools } from './toolbox.ts'

/**
 * `message` is the id of the message that it came with: a caller in this process may have given a schema with it. `within` are the
 * bounds from above, so that they go wherever the run goes.
 */
type Frozen = RunChoice & { readonly message: string; readonly within?: Within }

export type Chosen = {
  readonly agent: Agent
  readonly options: Blob | null
  /** Of the agent's tools, only these; null for all. */
  readonly tools: readonly string[] | null
  /** Only what these leave: bounds from above. */
  readonly within?: Within | undefined
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
  { inputs, wakes }: Opening,
  model: string | null,
): Promise<Chosen> {
  const { session } = cache
  let metadata = session.metadata
  const within = await boundsFor(services, cache, { inputs, wakes })
  const own = { ...(model === null ? {} : { model }), ...(within ? { within } : {}) }
  let frozen: Frozen | null = model === null && within === undefined ? null : { ...own, message: '' }
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

/** What opens a run: the messages by their seqs, and the wakes by their keys. */
type Opening = { readonly inputs: readonly number[]; readonly wakes: readonly string[] }

/**
 * The bounds of the run that these open. One that only reports of children and wakes open goes on with what a run before it began, so
 * it may do no more than that run.
 */
async function boundsFor(
  services: Services,
  { session }: SessionCache,
  { inputs, wakes }: Opening,
): Promise<Within | undefined> {
  let bounds = session.within
  const opening = session.inputs.filter(({ seq }) => inputs.includes(seq))
  if (opening.some(({ report }) => report === undefined)) return bounds
  for (const { report } of opening) {
    const child = report?.by.replace(/^session:/, '') ?? ''
    const [created] = (await services.store.read(child, 0, 1)).events
    if (created?.type === 'session.created') bounds = narrowBoth(bounds, created.within)
  }
  for (const { key, options } of session.wakes) {
    if (options === undefined || !wakes.includes(key)) continue
    const frozen = await frozenAs(services, options)
    bounds = narrowBoth(bounds, belowOf(frozen, agentIn(services, session)))
  }
  return bounds
}

/** The bounds of what a run with these options starts. */
function belowOf(frozen: Frozen, agent: Agent): Within | undefined {
  return narrowBoth(frozen.within, boundsOfChoice(frozen, agent.limits))
}

/** The bounds of what is started in this session now, also where no worker of this process drives its open run. */
export async function boundsNow(services: Services, session: Session): Promise<Within | undefined> {
  const { run, within } = session
  if (run?.options === undefined) return within
  return belowOf(await frozenAs(services, run.options), agentIn(services, session))
}

/**
 * The options that an open run froze elsewhere: a fork keeps all of them. Of an imported session none counts; only its bounds hold, since
 * they can only take away.
 */
export async function reviewedOptions(services: Services, cache: SessionCache): Promise<Chosen> {
  const { metadata, run, imported } = cache.session
  const agent = agentIn(services, cache.session)
  const none = { agent, options: null, tools: null, own: false, metadata }
  if (run?.options === undefined) return none
  const { message, within, ...choice } = await frozenAs(services, run.options)
  if (imported !== undefined && within === undefined) return none
  const bounds = within === undefined ? {} : { within }
  const kept = imported === undefined ? { ...choice, ...bounds } : bounds
  return { ...varied(services, cache, { ...kept, message }), metadata }
}

/** For an attempt that goes on with a run that chose: what it chose is known from here on. */
export async function recallOptions(services: Services, cache: SessionCache): Promise<void> {
  const { run, stop } = cache.session
  if (run?.options === undefined || run.foreign || cache.varied?.options === run.options) return
  const { model, ...frozen } = await frozenAs(services, run.options)
  // No model is asked any more in a run that is being stopped: that can be done also where its model is not known.
  const chosen = model === undefined || stop > 0 ? frozen : { ...frozen, model }
  cache.varied = variedBy(services, cache, run.options, chosen)
}

/** The model of a run that had these options, by hash. */
export async function modelChosen(services: Services, agent: string, options: string): Promise<Model> {
  const { model } = await frozenAs(services, options)
  return model === undefined ? services.agent(agent).model : services.model(model)
}

/** Of all tools, those that were chosen. */
export function chosenTools(tools: Tools, names: readonly string[], below: ReadonlySet<string> | null): Tools {
  const missing = below === null ? [] : names.filter((name) => !tools.has(name) && !below.has(name))
  if (missing.length > 0) throw missingTools(missing, [...tools.keys()])
  return new Map([...tools].filter(([name, tool]) => tool.always || names.includes(name)))
}

/** The tools of all agents that this one may start, at any depth; null if sources must be asked for some of them. */
export function toolsBelow(services: Pick<Services, 'agent'>, { children }: Agent): ReadonlySet<string> | null {
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

export function missingTools(missing: readonly string[], known: readonly string[]): Fault {
  const has = known.length === 0 ? 'It has none' : `It has: ${known.join(', ')}`
  return new Fault('invalid_config', `The agent has no tool "${missing.join('", "')}" for this run. ${has}.`)
}

function varied(services: Services, cache: SessionCache, frozen: Frozen): Omit<Chosen, 'metadata'> {
  const options = textBlob(JSON.stringify(frozen), 'application/json')
  cache.varied = variedBy(services, cache, options.hash, frozen)
  const { agent } = cache.varied
  const { model, instructions, tools, output, within } = frozen
  const chose = (model ?? instructions ?? tools ?? output) !== undefined
  // The bounds of a child are the same in all its runs, so what it shows is its own prefix.
  const isOwn = chose || within !== cache.session.within
  return { agent, options, tools: tools ?? null, within, own: isOwn }
}

function variedBy(services: Services, cache: SessionCache, options: string, frozen: Frozen): Varied {
  const below = belowOf(frozen, agentIn(services, cache.session))
  return { options, agent: agentWith(services, cache, frozen), ...(below ? { below } : {}) }
}

async function frozenAs({ store }: Services, hashed: string): Promise<Frozen> {
  const text = await findText(store, hashed)
  if (text !== null) return JSON.parse(text) as Frozen
  throw new Fault('store_damaged', `The options of this run are missing (${hashed}). Restore a backup to go on.`)
}

function agentWith(services: Services, { id, session }: SessionCache, { message, within, ...choice }: Frozen): Agent {
  const agent = agentIn(services, session)
  const { instructions = agent.instructions } = choice
  const model = choice.model === undefined ? agent.model : modelNamed(services, choice.model, agent.model)
  const own = choice.limits ? limitsOf({ ...agent.limits, ...choice.limits }) : agent.limits
  const limits = within ? limitsWithin(own, within, agent.planner !== null) : own
  const asked = choice.output
  const output = asked
    ? checkedBy(services.schemas.get(schemaKey(id, message)), outputOf(asked as Output, model))
    : model === agent.model
      ? agent.output
      : (agent.outputFor?.(model) ?? null)
  if (output && agent.tools.seen?.has(FINAL_RESULT))
    throw new Fault('invalid_config', `"${FINAL_RESULT}" is the name of the answer itself. Rename the tool.`)
  const settings = choice.settings as AnswerSettings | undefined
  return { ...agent, model, limits, instructions, output, ...(settings === undefined ? {} : { settings }) }
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
