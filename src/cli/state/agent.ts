// The agent of a folder, made from its setup: a model with a key, tools, a policy and instructions. `--mode` sets what each tool asks
// for; rules of the policy may still allow or deny.
import type {
  Approval,
  Endpoint,
  HarnessOptions,
  Hint,
  Json,
  Model,
  Routes,
  Secrets,
  Tool,
  Workload,
} from '../../index.ts'
import type { BashLine, BuiltInName } from '../../tools/index.ts'
import { type EndpointEntry, MODEL_SETTINGS, type ModelSettings, type Settings } from './config.ts'
import { EXIT, Refusal } from '../exit.ts'
import type { Environment } from './home.ts'
import type { EditorTools } from '../serve/editor-tools.ts'
import { type Servers, serversFor } from './servers.ts'
import { type Setup, toolNames } from './setup.ts'
import { type Flow, flowOf } from './flows.ts'
import { partsOf, type Workflow, workflowOf } from './workflows.ts'
import type { TracingPlace } from '../../tracing/index.ts'
import { typed } from '../present/print.ts'

export type AgentWishes = {
  /** Replaces the models of the configuration. */
  readonly models?: readonly string[]
  /** Receives each request as it is sent. */
  readonly onRequest?: ((text: string) => void) | undefined
  /** Receives each line a command prints, without known secrets. */
  readonly onLine?: ((line: BashLine) => void) | undefined
  /** The agent of the session to drive. Workflow agents need other options, and the offline one no model. */
  readonly agent?: string | undefined
  /** Files as an editor has them, and its terminals. */
  readonly editor?: EditorTools | undefined
  /** The models are only checked, so no key is needed. */
  readonly keyless?: boolean
}

/** `options` has the servers among its tools; `servers` is for asking their status. */
type AgentParts = Servers & { readonly options: Omit<HarnessOptions, 'store'> }

export async function agentFor(setup: Setup, wishes: AgentWishes = {}): Promise<AgentParts> {
  const workflow = workflowOf(wishes.agent)
  const flow = workflow !== null && flowOf(workflow) !== null
  if (workflow !== null && !flow)
    return { options: await workflowOptions(workflow, setup, wishes), servers: [], troubles: [] }
  const { workspaceInstructions, environmentSecrets } = await import('../../index.ts')
  const { settings, policy, env, guidance } = setup
  // An object also offers the tool that reads what a compaction cleared or cut.
  const { limits, budget, environment, prefix, compression, compaction = {}, instructions = '' } = settings
  const models = await modelsFor(setup, wishes)
  const said = [workspaceInstructions, instructions, guidance].filter((text) => text !== '').join('\n\n')
  const [model] = models
  const { servers, troubles } = await serversFor(setup)
  const routed = await routing(setup, models, wishes)
  const options = {
    model: models.length === 1 && model ? model : await chained(models),
    tools: [...(await toolsFor(setup, routed.routes ? 'hint:burst' : model, wishes)), ...servers],
    plan: setup.mode === 'plan',
    instructions: said,
    policy,
    secrets: environmentSecrets(env),
    ...routed,
    ...(environment ? { environment } : {}),
    ...(prefix ? { prefix } : {}),
    ...(compression ? { compression } : {}),
    compaction,
    ...(limits ? { limits } : {}),
    ...(budget ? { budget } : {}),
    // Agents of a workflow from a file work with the tools of the folder.
    ...(flow ? await partsOf(workflow, setup.folder, (name, of) => flowModel(setup, wishes, name, of)) : {}),
    ...(await tracingFor(setup)),
  }
  return { options, servers, troubles }
}

/** A file of the folder may only name models that the user has chosen. */
async function flowModel(setup: Setup, wishes: AgentWishes, name: string, { file, of }: Flow): Promise<Model> {
  const { model = [], routes = {} } = setup.settings
  const chosen = [...model, ...Object.values(routes), ...(wishes.models ?? [])]
  if (of === 'folder' && !name.startsWith(HINT) && !chosen.includes(name))
    throw new Refusal(
      EXIT.config,
      `${file} names the model ${name}, which your configuration does not. Add it there, or use one that is there.`,
    )
  const [made] = await modelsFor(setup, { ...wishes, models: [name] })
  if (made) return made
  throw new Refusal(EXIT.config, `There is no model ${name}.`)
}

/** The nodes of a workflow are its tools; it gets no tools of the folder. */
async function workflowOptions(
  workflow: Workflow,
  setup: Setup,
  wishes: AgentWishes,
): Promise<Omit<HarnessOptions, 'store'>> {
  const { environmentSecrets, offline } = await import('../../index.ts')
  const { settings, policy, env, folder } = setup
  const { limits, budget, environment } = settings
  const models = workflow === 'report' ? [offline()] : await modelsFor(setup, wishes)
  const [model] = models
  return {
    model: models.length === 1 && model ? model : await chained(models),
    policy,
    secrets: environmentSecrets(env),
    ...(await routing(setup, models, wishes)),
    ...(environment ? { environment } : {}),
    ...(limits ? { limits } : {}),
    ...(budget ? { budget } : {}),
    ...(await partsOf(workflow, folder)),
    ...(await tracingFor(setup)),
  }
}

async function chained(models: readonly Model[]): Promise<Model> {
  const { fallback } = await import('../../index.ts')
  return fallback(...models)
}

/** Each model with its key. A missing key is an error before anything begins. */
export async function modelsFor(setup: Setup, { models, onRequest, keyless }: AgentWishes): Promise<readonly Model[]> {
  const { settings, env } = setup
  const set = MODEL_SETTINGS.filter((name) => settings[name] !== undefined)
  const wishes: ModelSettings = Object.fromEntries(set.map((name) => [name, settings[name]]))
  const names = models && models.length > 0 ? models : (settings.model ?? [])
  if (names.length === 0) throw new Refusal(EXIT.config, `No model is chosen. ${waysToChoose()}`)
  const { endpoints: table, model, route } = await import('../../index.ts')
  const own = await endpointsOf(settings)
  const routes = names.some((name) => name.startsWith(HINT)) ? await routesFor(setup, { onRequest }) : {}
  return names.map((name) => {
    // A name that is no workload is refused there.
    if (name.startsWith(HINT)) return route(routes, name.slice(HINT.length) as Workload)
    const provider = name.split(':')[0] ?? ''
    const { keys = [] } = own.find((each) => each.name === provider) ?? table[provider] ?? {}
    if (!keyless && keys.length > 0 && !keys.some((key) => env[key]))
      throw new Refusal(EXIT.config, keyText(setup, provider, keys))
    return model(name, { endpoints: own, env, ...wishes, ...(onRequest ? { fetch: told(onRequest, env) } : {}) })
  })
}

const HINT = 'hint:'

/** The routes of the configuration, each model with its key. Those that name another route stay names. */
export async function routesFor(
  setup: Setup,
  wishes: Pick<AgentWishes, 'onRequest' | 'keyless'> = {},
): Promise<Routes> {
  const set = Object.entries(setup.settings.routes ?? {})
  const models = await Promise.all(
    set.map(async ([workload, name]) => {
      if (name.startsWith(HINT)) return [workload, name] as const
      const [model = name] = await modelsFor(setup, { ...wishes, models: [name] })
      return [workload, model] as const
    }),
  )
  return Object.fromEntries(models)
}

/** A run without a network has no routes either. What is wrong with them is said all the same. */
async function routing(setup: Setup, models: readonly Model[], wishes: AgentWishes): Promise<{ routes?: Routes }> {
  const { routes } = setup.settings
  if (routes === undefined) return {}
  if (models.some(({ name }) => name !== 'offline')) return { routes: await routesFor(setup, wishes) }
  const { routeProfiles } = await import('../../index.ts')
  await routeProfiles(await routesFor(setup, { keyless: true }))
  return {}
}

const waysToChoose = (): string =>
  `Run \`${typed`init --model PROVIDER:MODEL`}\`, or say --model PROVIDER:MODEL. To try it without a key: --model offline:any.`

function keyText({ home, trusted }: Setup, provider: string, keys: readonly string[]): string {
  const key = keys[0] ?? ''
  const workspace = trusted ? ', or the same line into .env of this folder' : ''
  return `There is no key for ${provider}. Set ${keys.join(' or ')}, or put ${key}=… into ${home.config}/.env${workspace}. To try it without a key: --model offline:any.`
}

/** The hosts of the configuration. */
export async function endpointsOf({ endpoints = {} }: Settings): Promise<readonly Endpoint[]> {
  const { endpoints: table } = await import('../../index.ts')
  return Object.entries(endpoints).map(([name, entry]) => endpointOf(name, entry, table[name]))
}

function endpointOf(name: string, entry: EndpointEntry, known: Endpoint | undefined): Endpoint {
  const plain = { protocol: 'chat', keys: [], keyHeader: 'authorization', quirks: {}, headers: {} } as const
  const { baseUrl, protocol, keys } = entry
  return { ...plain, ...known, name, baseUrl, ...(protocol ? { protocol } : {}), ...(keys ? { keys } : {}) }
}

/** Prints the address and body of each request. Not the headers: one of them is the key. */
function told(onRequest: (text: string) => void, env: Environment): typeof fetch {
  return async (url, init) => {
    const { environmentSecrets } = await import('../../index.ts')
    const body = typeof init?.body === 'string' ? init.body : '(no text)'
    const address = url instanceof Request ? url.url : String(url)
    onRequest(withoutSecrets(`${init?.method ?? 'GET'} ${address}\n${body}`, environmentSecrets(env)))
    return fetch(url, init)
  }
}

function withoutSecrets(text: string, secrets: Secrets): string {
  return Object.entries(secrets).reduce((said, [name, value]) => said.replaceAll(value, `⟦secret:${name}⟧`), text)
}

/** Tools for which one yes can cover all calls of a run: they change workspace files, and can be undone. */
export const WRITERS: ReadonlySet<string> = new Set(['write', 'edit'])
const ASKED: ReadonlySet<string> = new Set([...WRITERS, 'bash', 'web_fetch', 'skill_run'])

/** The tools that mode `ask` asks about. Parallel prompts change nothing unless their answers go to a file. */
function isAsked(tool: string, args: Json): boolean {
  if (tool === 'parallel_llm') return (args as { readonly output_file?: Json }).output_file !== undefined
  return ASKED.has(tool)
}

async function toolsFor(
  setup: Setup,
  model: Model | Hint | undefined,
  { onLine, editor = {} }: Pick<AgentWishes, 'onLine' | 'editor'> = {},
): Promise<readonly Tool[]> {
  const { launch, ...files } = editor
  const { settings, folder, mode, policy, obeyed } = setup
  const { bashTool, builtInTools } = await import('../../tools/index.ts')
  // A question waits for a person unless --on-ask deny is set.
  const attended = policy.onAsk !== 'deny'
  const launched = launch ? { launch } : {}
  const made = await builtInTools({
    root: folder,
    obeyed,
    ...files,
    // builtInTools refuses unknown names and lists the known ones.
    names: toolNames(settings) as readonly BuiltInName[],
    ...(settings.skills ? { skills: { folders: settings.skills, attended, obeyed, ...launched } } : {}),
    ...(model ? { parallel: { model } } : {}),
  })
  const heard = onLine ? { onLine: await hushed(onLine, setup.env) } : {}
  const bash = settings.bash
    ? [bashTool({ workspace: folder, obeyed, attended, risk: settings.bash.risk, ...heard, ...launched })]
    : []
  const tools = [...made, ...bash]
  return mode === 'ask' ? tools.map(asking) : tools
}

async function hushed(onLine: (line: BashLine) => void, env: Environment): Promise<(line: BashLine) => void> {
  const { environmentSecrets } = await import('../../index.ts')
  const secrets = environmentSecrets(env)
  return (event) => onLine({ ...event, line: withoutSecrets(event.line, secrets) })
}

/** Only the file tools of a folder, for undo. */
export async function fileToolsOf(folder: string): Promise<readonly Tool[]> {
  const { fileTools } = await import('../../tools/index.ts')
  return fileTools({ root: folder })
}

/** A tool of this folder by name, only for checking its calls: no model is called. Null: the folder's own tools do not have it. */
export async function toolIn(setup: Setup, name: string): Promise<Tool | null> {
  const { offline } = await import('../../index.ts')
  return (await toolsFor(setup, offline())).find((tool) => tool.name === name) ?? null
}

/** The approval the tool itself wants for these arguments. Invalid arguments are refused. */
export async function approvalOf(tool: Tool, args: Json): Promise<Approval> {
  const checked = await tool.validate(args)
  if (!checked.issues) return tool.approval(checked.value as Json)
  const why = checked.issues.map((issue) => issueText(issue)).join('; ')
  throw new Refusal(EXIT.usage, `Invalid arguments for ${tool.name}: ${why}.`)
}

type Issue = NonNullable<Awaited<ReturnType<Tool['validate']>>['issues']>[number]

function issueText({ message, path = [] }: Issue): string {
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}

/** Raises the approval to at least `ask` where the mode wants that. A stricter one stays. */
function asking(tool: Tool): Tool {
  const stricter = (said: Approval): Approval => (said === 'auto' ? 'ask' : said)
  return {
    ...tool,
    approval: (args) => {
      const said = tool.approval(args)
      if (!isAsked(tool.name, args)) return said
      return said instanceof Promise ? said.then(stricter) : stricter(said)
    },
  }
}

// Tracing: to files in the data folder unless turned off, and to a collector if the configuration names one. The file writer is loaded
// after the first run has settled, so that no start waits for it.

type Tracing = NonNullable<HarnessOptions['tracing']>

/** Per folder. Removed traces can be made again: `terret export --format folder`. */
const KEEP = { files: 200, bytes: 64 * 1024 * 1024 }

async function tracingFor(setup: Setup): Promise<Pick<HarnessOptions, 'tracing'>> {
  const { local = true, otlp: endpoint } = setup.settings.tracing ?? {}
  // An invalid address is an error before anything begins.
  if (endpoint !== undefined) return { tracing: await traced(setup) }
  return local ? { tracing: (place) => later(() => traced(setup), place) } : {}
}

async function traced({ settings, env, home, folder }: Setup): Promise<Tracing> {
  const { local = true, otlp: endpoint, content = false } = settings.tracing ?? {}
  const { localTraces, otlp, tracing } = await import('../../tracing/index.ts')
  const capture = content ? 'content' : 'none'
  const sinks = [
    ...(local ? [localTraces({ dir: `${home.folder}/traces`, name: folder, capture, keep: KEEP, env })] : []),
    ...(endpoint === undefined ? [] : [otlp({ endpoint, capture, env })]),
  ]
  return tracing({ sinks })
}

/** Runs in the background; closing waits for it. */
function later(make: () => Promise<Tracing>, place: TracingPlace): ReturnType<Tracing> {
  let tracer: Promise<ReturnType<Tracing> | null> | null = null
  const load = async (): Promise<ReturnType<Tracing> | null> => {
    try {
      return (await make())(place)
    } catch (error) {
      place.report(error)
      return null
    }
  }
  return {
    settled: (session, run) => {
      tracer ??= load()
      void tracer.then((ready) => ready?.settled(session, run))
    },
    close: async () => (await tracer)?.close(),
  }
}
