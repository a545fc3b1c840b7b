// The agent of a folder, made from its setup: a model with a key, tools, a policy and instructions. `--mode` sets
// whether tools ask; rules of the policy may still allow or deny.
import { hash } from 'node:crypto'
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
import type { BashLine, BuiltInName, RunningCommand } from '../../tools/index.ts'
import { type EndpointEntry, MODEL_SETTINGS, type ModelSettings, type CliSettings } from './config.ts'
import { EXIT, CliError } from '../exit.ts'
import type { Environment } from './cli-home.ts'
import type { EditorTools } from '../serve/editor-tools.ts'
import { type McpServers, makeServers } from './mcp-servers.ts'
import { type FolderSetup, toolNames } from './folder-setup.ts'
import { configHooks, refuseUnseenHooks } from './config-hooks.ts'
import { projectNoteHook } from './project-note.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import { type Flow, flowOf } from './workflow-files.ts'
import { workflowParts, type WorkflowName, workflowOfAgent } from './workflow-agents.ts'
import type { TracerContext } from '../../tracing/index.ts'
import { terretCommand } from '../present/print.ts'

export type FolderAgentOptions = {
  /** Replaces the models of the configuration. */
  readonly models?: readonly string[]
  /** Receives each request as it is sent. */
  readonly onRequest?: ((text: string) => void) | undefined
  /** Receives each line a command prints, without known secrets. */
  readonly onLine?: ((line: BashLine) => void) | undefined
  /** Receives each command that starts. */
  readonly onRunning?: ((running: RunningCommand) => void) | undefined
  /** The agent of the session to drive. Workflow agents need other options, and the offline one needs no model. */
  readonly agent?: string | undefined
  /** The files and terminals of an editor. */
  readonly editor?: EditorTools | undefined
  /** The models are only checked, so no key is needed. */
  readonly keyless?: boolean
}

/** `options` has the servers among its tools; `servers` is for reading their status. */
type FolderAgent = McpServers & { readonly options: Omit<HarnessOptions, 'store'> }

export async function makeFolderAgent(setup: FolderSetup, wishes: FolderAgentOptions = {}): Promise<FolderAgent> {
  const workflow = workflowOfAgent(wishes.agent)
  const flow = workflow !== null && flowOf(workflow) !== null
  if (workflow !== null && !flow)
    return { options: await workflowOptions(workflow, setup, wishes), servers: [], troubles: [] }
  const { workspaceInstructions, environmentSecrets } = await import('../../index.ts')
  const { settings, policy, env, guidance } = setup
  if (!wishes.keyless) refuseUnseenHooks(setup.home, setup.hooks)
  // `compaction` as an object also offers the tool that reads the texts that a compaction removed.
  const { limits, budget, approvals, results, context, instructions = '' } = settings
  const models = await modelsFor(setup, wishes)
  const said = [workspaceInstructions, instructions, guidance].filter((text) => text !== '').join('\n\n')
  const [model] = models
  const { servers, troubles } = await makeServers(setup)
  const routed = await routeOptions(setup, models, wishes)
  const options = {
    model: models.length === 1 && model ? model : await chainModels(models),
    tools: [...(await toolsFor(setup, routed.models ? 'hint:burst' : model, wishes)), ...servers],
    plan: setup.mode === 'plan',
    instructions: said,
    approvals: { ...approvals, policy },
    secrets: environmentSecrets(env),
    hooks: [...(flow || wishes.agent === SCRIPT ? [] : [projectNoteHook(setup, wishes.agent)]), ...configHooks(setup)],
    ...routed,
    ...(await titlesOf(setup, routed)),
    ...(results ? { results } : {}),
    context: { compaction: {}, ...context },
    ...(limits ? { limits } : {}),
    ...(budget ? { budget } : {}),
    // Agents of a workflow from a file use the tools of the folder.
    ...(flow ? await workflowParts(workflow, setup.folder, (name, of) => flowModel(setup, wishes, name, of)) : {}),
    ...(await tracingFor(setup)),
  }
  return { options, servers, troubles }
}

/** A file of the folder may only name models that the user has chosen. */
async function flowModel(
  setup: FolderSetup,
  wishes: FolderAgentOptions,
  name: string,
  { file, of }: Flow,
): Promise<Model> {
  const { model = [], models: { routes = {} } = {} } = setup.settings
  const chosen = [...model, ...Object.values(routes), ...(wishes.models ?? [])]
  if (of === 'folder' && !name.startsWith(HINT) && !chosen.includes(name))
    throw new CliError(
      EXIT.config,
      `${file} names the model ${name}, which your configuration does not. Add it there, or use one that is there.`,
    )
  const [made] = await modelsFor(setup, { ...wishes, models: [name] })
  if (made) return made
  throw new CliError(EXIT.config, `There is no model ${name}.`)
}

/** The nodes of a workflow are its tools. It gets no tools of the folder. */
async function workflowOptions(
  workflow: WorkflowName,
  setup: FolderSetup,
  wishes: FolderAgentOptions,
): Promise<Omit<HarnessOptions, 'store'>> {
  const { environmentSecrets, offline } = await import('../../index.ts')
  const { settings, policy, env, folder } = setup
  const { limits, budget, approvals } = settings
  const models = workflow === 'report' ? [offline()] : await modelsFor(setup, wishes)
  const [model] = models
  return {
    model: models.length === 1 && model ? model : await chainModels(models),
    approvals: { ...approvals, policy },
    secrets: environmentSecrets(env),
    ...(await routeOptions(setup, models, wishes)),
    ...(limits ? { limits } : {}),
    ...(budget ? { budget } : {}),
    ...(await workflowParts(workflow, folder)),
    ...(await tracingFor(setup)),
  }
}

async function chainModels(models: readonly Model[]): Promise<Model> {
  const { fallback } = await import('../../index.ts')
  return fallback(...models)
}

/** Each model with its key. A missing key is an error before anything begins. */
export async function modelsFor(
  setup: FolderSetup,
  { models, onRequest, keyless }: FolderAgentOptions,
): Promise<readonly Model[]> {
  const { settings, env } = setup
  const set = MODEL_SETTINGS.filter((name) => settings[name] !== undefined)
  const wishes: ModelSettings = Object.fromEntries(set.map((name) => [name, settings[name]]))
  const names = models && models.length > 0 ? models : (settings.model ?? [])
  if (names.length === 0) throw new CliError(EXIT.config, `No model is chosen. ${waysToChoose()}`)
  const { endpoints: table, model, route, textTools } = await import('../../index.ts')
  const dialects = new Map(Object.entries(settings.models?.dialects ?? {}))
  const own = await endpointsOf(settings)
  const routes = names.some((name) => name.startsWith(HINT)) ? await routesFor(setup, { onRequest }) : {}
  return names.map((name) => {
    // `route` refuses a name that is not a workload.
    if (name.startsWith(HINT)) return route(routes, name.slice(HINT.length) as Workload)
    const provider = name.split(':')[0] ?? ''
    const { keys = [] } = own.find((each) => each.name === provider) ?? table[provider] ?? {}
    if (!keyless && keys.length > 0 && !keys.some((key) => env[key]))
      throw new CliError(EXIT.config, missingKeyText(setup, provider, keys))
    const made = model(name, {
      endpoints: own,
      env,
      ...wishes,
      ...(onRequest ? { fetch: reportRequests(onRequest, env) } : {}),
    })
    const dialect = dialects.get(name)
    return dialect === undefined ? made : textTools(made, { dialect })
  })
}

const HINT = 'hint:'

/** The routes of the configuration, each model with its key. A route that names another route stays a name. */
export async function routesFor(
  setup: FolderSetup,
  wishes: Pick<FolderAgentOptions, 'onRequest' | 'keyless'> = {},
): Promise<Routes> {
  const set = Object.entries(setup.settings.models?.routes ?? {})
  const models = await Promise.all(
    set.map(async ([workload, name]) => {
      if (name.startsWith(HINT)) return [workload, name] as const
      const [model = name] = await modelsFor(setup, { ...wishes, models: [name] })
      return [workload, model] as const
    }),
  )
  return Object.fromEntries(models)
}

/** An offline run has no routes. Errors in them are still reported. */
async function routeOptions(
  setup: FolderSetup,
  models: readonly Model[],
  wishes: FolderAgentOptions,
): Promise<{ models?: { routes: Routes } }> {
  const { routes } = setup.settings.models ?? {}
  if (routes === undefined) return {}
  if (models.some(({ name }) => name !== 'offline')) return { models: { routes: await routesFor(setup, wishes) } }
  const { routeProfiles } = await import('../../index.ts')
  await routeProfiles(await routesFor(setup, { keyless: true }))
  return {}
}

/**
 * New sessions are named by the model of the route `burst`, if the configuration sets it. Each folder has a consumer of
 * its own, so that what is said in one goes to no model of another.
 */
async function titlesOf(
  { folder, settings }: FolderSetup,
  { models }: { readonly models?: { readonly routes: Routes } },
): Promise<Pick<HarnessOptions, 'plugins'>> {
  if (models?.routes.burst === undefined || settings.titles === false) return {}
  const { sessionTitles } = await import('../../consumers/index.ts')
  const name = `titles-${hash('sha256', folder).slice(0, 16)}`
  return { plugins: [{ name: 'titles', consumers: [sessionTitles({ model: 'hint:burst', name })] }] }
}

const waysToChoose = (): string =>
  `Run \`${terretCommand`init --model PROVIDER:MODEL`}\`, or say --model PROVIDER:MODEL. To try it without a key: --model offline:any.`

function missingKeyText({ home, trusted }: FolderSetup, provider: string, keys: readonly string[]): string {
  const key = keys[0] ?? ''
  const workspace = trusted ? ', or the same line into .env of this folder' : ''
  return `There is no key for ${provider}. Set ${keys.join(' or ')}, or put ${key}=… into ${home.config}/.env${workspace}. To try it without a key: --model offline:any.`
}

/** The hosts of the configuration. */
export async function endpointsOf({ endpoints = {} }: CliSettings): Promise<readonly Endpoint[]> {
  const { endpoints: table } = await import('../../index.ts')
  return Object.entries(endpoints).map(([name, entry]) => endpointOf(name, entry, table[name]))
}

function endpointOf(name: string, entry: EndpointEntry, known: Endpoint | undefined): Endpoint {
  const plain = { protocol: 'chat', keys: [], keyHeader: 'authorization', quirks: {}, headers: {} } as const
  const { baseUrl, protocol, keys } = entry
  return { ...plain, ...known, name, baseUrl, ...(protocol ? { protocol } : {}), ...(keys ? { keys } : {}) }
}

/** Reports the address and body of each request. It omits the headers, because one of them is the key. */
function reportRequests(onRequest: (text: string) => void, env: Environment): typeof fetch {
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

/** Tools for which one yes can cover all calls of a run: they change files of the folder, and can be undone. */
export const WRITERS: ReadonlySet<string> = new Set(['write', 'edit'])
const ASKED: ReadonlySet<string> = new Set([...WRITERS, 'bash', 'web_fetch', 'skill_run'])

/** The tools that mode `ask` asks about. Parallel prompts change nothing unless their answers go to a file. */
function isAskedInMode(tool: string, args: Json): boolean {
  if (tool === 'parallel_llm') return (args as { readonly output_file?: Json }).output_file !== undefined
  return ASKED.has(tool)
}

/** A person watches a command and can stop it, and many are quiet for long: a compiler, a test. */
const QUIET_MS = 120_000

export type ToolWishes = Pick<FolderAgentOptions, 'onLine' | 'onRunning' | 'editor'>

async function toolsFor(
  setup: FolderSetup,
  model: Model | Hint | undefined,
  { onLine, onRunning, editor = {} }: ToolWishes = {},
): Promise<readonly Tool[]> {
  const { launch, ...files } = editor
  const { settings, folder, policy, obeyed } = setup
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
  const heard = onLine ? { onLine: await withoutSecretLines(onLine, setup.env) } : {}
  const bash = settings.bash
    ? [
        bashTool({
          workspace: folder,
          obeyed,
          attended,
          risk: settings.bash.risk,
          softTimeoutMs: QUIET_MS,
          ...heard,
          ...launched,
          ...(onRunning ? { onRunning } : {}),
        }),
      ]
    : []
  const tools = [...made, ...bash]
  return tools.map((tool) => approvedByMode(tool, setup))
}

async function withoutSecretLines(
  onLine: (line: BashLine) => void,
  env: Environment,
): Promise<(line: BashLine) => void> {
  const { environmentSecrets } = await import('../../index.ts')
  const secrets = environmentSecrets(env)
  return (event) => onLine({ ...event, line: withoutSecrets(event.line, secrets) })
}

/** Only the file tools of a folder, for undo. */
export async function fileToolsOf(folder: string): Promise<readonly Tool[]> {
  const { fileTools } = await import('../../tools/index.ts')
  return fileTools({ root: folder })
}

/**
 * A tool of this folder by name, only to check its calls: no model is called. Null: the folder's own tools do not
 * include it.
 */
export async function findFolderTool(setup: FolderSetup, name: string, wishes: ToolWishes = {}): Promise<Tool | null> {
  const { offline } = await import('../../index.ts')
  return (await toolsFor(setup, offline(), wishes)).find((tool) => tool.name === name) ?? null
}

/** The approval that the tool itself wants for these arguments. Invalid arguments are refused. */
export async function approvalForCall(tool: Tool, args: Json): Promise<Approval> {
  const checked = await tool.validate(args)
  if (!checked.issues) return tool.approval(checked.value as Json)
  const why = checked.issues.map((issue) => issueText(issue)).join('; ')
  throw new CliError(EXIT.usage, `Invalid arguments for ${tool.name}: ${why}.`)
}

type Issue = NonNullable<Awaited<ReturnType<Tool['validate']>>['issues']>[number]

function issueText({ message, path = [] }: Issue): string {
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}

/**
 * The approval by the mode at the time of the call, because a chat changes its mode also while a run works. Mode `ask`
 * raises the approval to at least `ask` for tools that it asks about. Mode `plan` refuses what is not only a look.
 */
function approvedByMode(tool: Tool, setup: FolderSetup): Tool {
  const stricter = (said: Approval): Approval => (said === 'auto' ? 'ask' : said)
  return {
    ...tool,
    approval: (args) => {
      const said = tool.approval(args)
      if (setup.mode === 'plan') return tool.effect === 'read' || tool.outside ? said : 'never'
      if (setup.mode !== 'ask' || !isAskedInMode(tool.name, args)) return said
      return said instanceof Promise ? said.then(stricter) : stricter(said)
    },
  }
}

// Tracing: to files in the data folder unless turned off, and to a collector if the configuration names one. The file writer is loaded
// after the first run has settled, so that no start waits for it.

type Tracing = NonNullable<HarnessOptions['tracing']>

/** The limit for each folder. Removed traces can be made again: `terret export --format folder`. */
const KEEP = { files: 200, bytes: 64 * 1024 * 1024 }

async function tracingFor(setup: FolderSetup): Promise<Pick<HarnessOptions, 'tracing'>> {
  const { local = true, otlp: endpoint } = setup.settings.tracing ?? {}
  // An invalid address is an error before anything begins.
  if (endpoint !== undefined) return { tracing: await makeTracing(setup) }
  return local ? { tracing: (place) => traceInBackground(() => makeTracing(setup), place) } : {}
}

async function makeTracing({ settings, env, home, folder }: FolderSetup): Promise<Tracing> {
  const { local = true, otlp: endpoint, content = false } = settings.tracing ?? {}
  const { localTraces, otlp, tracing } = await import('../../tracing/index.ts')
  const capture = content ? 'content' : 'none'
  const sinks = [
    ...(local ? [localTraces({ dir: `${home.folder}/traces`, name: folder, capture, keep: KEEP, env })] : []),
    ...(endpoint === undefined ? [] : [otlp({ endpoint, capture, env })]),
  ]
  return tracing({ sinks })
}

/** Loads the tracer in the background. Closing waits for it. */
function traceInBackground(make: () => Promise<Tracing>, place: TracerContext): ReturnType<Tracing> {
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
