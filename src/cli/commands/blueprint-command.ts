// `terret blueprint`: the whole setup of an agent of this folder, or what the last run of a session was given, as a
// document with a hash. It calls no model, and runs no tool.
import { hash } from 'node:crypto'
import type { AgentRow } from '../../index.ts'
import { type Card, type CompleteStore, type Event, type EventOf, Fault, type Json } from '../../kernel/index.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import { oneLine } from '../../view/clean.ts'
import { asString, parseJson } from '../../view/untrusted-json.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { type Blueprint, blueprintMarkdown, blueprintMermaid, type BlueprintTool } from '../present/blueprint-text.ts'
import { print, printJson, shortId, terretCommand, warn } from '../present/print.ts'
import { findSession, withStoreToRead } from '../state/command-context.ts'
import { agentRowsHere } from '../state/folder-tools.ts'
import { readSetupHere } from '../state/folder-setup.ts'
import { readEvents } from '../state/read-log.ts'

const FORMATS = ['md', 'json', 'mermaid'] as const

export async function blueprintCommand(call: CommandArgs): Promise<number> {
  const given = call.text('format') ?? (call.is('json') ? 'json' : 'md')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new CliError(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const [name = ''] = call.words
  const blueprint = (await findAgentBlueprint(call, name)) ?? (await readSessionBlueprint(name))
  if (format === 'json') printJson({ sha256: blueprint.hash, ...blueprint.source, ...blueprint.document })
  else print(...(format === 'md' ? blueprintMarkdown(blueprint) : blueprintMermaid(blueprint)))
  return EXIT.ok
}

function withHash({ title, source, document }: Omit<Blueprint, 'hash'>): Blueprint {
  return { title, source, hash: hash('sha256', canonicalJson(document)), document }
}

/** Null if this folder has no agent of that name. */
async function findAgentBlueprint(call: CommandArgs, name: string): Promise<Blueprint | null> {
  const { rows, troubles } = await agentRowsHere(await readSetupHere(), call.texts('model'), name)
  const row = rows?.find((each) => each.name === name)
  if (row === undefined) return null
  for (const text of troubles) warn(oneLine(text, 600))
  return withHash({ title: `Blueprint of the agent ${name}`, source: {}, document: agentDocument(row) })
}

/** The setup has all but how its tools are approved, and the drawing of a graph. */
function agentDocument({ name: agent, model, planner, tools: shown, children, graph, setup }: AgentRow) {
  const { instructions, tools, limits, policy, ...others } = setup as Readonly<Record<string, Json>>
  const approvals = new Map(shown.map(({ name, approval }) => [name, approval]))
  const known = (tools as unknown as readonly BlueprintTool[]).map((tool) => {
    return { ...tool, approval: approvals.get(tool.name) ?? null }
  })
  return {
    ...others,
    agent,
    model,
    planner,
    instructions: asString(instructions),
    tools: known,
    limits: limits ?? null,
    policy: policy ?? null,
    children,
    ...(graph ? { graph: graph.json } : {}),
  }
}

function readSessionBlueprint(name: string): Promise<Blueprint> {
  return withStoreToRead(async (place) => {
    const card = await findSession(place, name).catch((error: unknown) => {
      if (!(error instanceof CliError) || error.exit !== EXIT.missing) throw error
      const ways = `${terretCommand`agents`}\` and \`${terretCommand`list --all`}`
      throw new CliError(EXIT.missing, `There is no agent and no session "${oneLine(name, 80)}" here. See \`${ways}\`.`)
    })
    const given = await readLastRun(place.store, card)
    if (given === null)
      throw new CliError(
        EXIT.missing,
        `Session ${shortId(card.session)} has had no run yet, so it was given nothing. Name its agent instead: ${oneLine(card.agent, 80)}.`,
      )
    const source = { session: card.session, run: given.started.seq }
    const document = await runDocument(place.store, card, given)
    return withHash({ title: `Blueprint of what session ${card.session} was given`, source, document })
  })
}

/** `setup` is what holds: a run that came from elsewhere gets a new one when it goes on here. */
type LastRun = {
  readonly planner: string
  readonly started: EventOf<'run.started'>
  readonly setup: EventOf<'run.started'> | EventOf<'run.reviewed'>
  readonly replies: readonly EventOf<'agent.message'>[]
}

async function readLastRun(store: CompleteStore, { session }: Card): Promise<LastRun | null> {
  let planner = 'model'
  let found: LastRun | null = null
  for await (const event of readEvents(store, session)) {
    if (event.type === 'session.created') planner = event.planner
    found = withEvent(found, event, planner)
  }
  return found
}

function withEvent(run: LastRun | null, event: Event, planner: string): LastRun | null {
  if (event.type === 'run.started') return { planner, started: event, setup: event, replies: [] }
  if (run === null) return null
  if (event.type === 'run.reviewed') return { ...run, setup: event }
  return event.type === 'agent.message' ? { ...run, replies: [...run.replies, event] } : run
}

async function runDocument(store: CompleteStore, { agent }: Card, { planner, started, setup, replies }: LastRun) {
  const { toolset, instructions, policy, options, limits, code, warnings, metadata } = setup
  const calls = new Map(replies.flatMap((reply) => reply.calls.map((call) => [call.tool, call] as const)))
  const shown = JSON.parse(await blobText(store, toolset)) as readonly BlueprintTool[]
  const tools = shown.map((tool) => {
    const { effect = null, gate } = calls.get(tool.name) ?? {}
    const approval = effect === null ? null : gate?.type === 'ask' ? 'ask' : 'auto'
    return { ...tool, effect, approval }
  })
  return {
    agent,
    planner,
    model: replies.findLast(({ route }) => route !== undefined)?.route ?? started.model ?? null,
    instructions: await blobText(store, instructions),
    tools,
    limits: limits as Json,
    policy: policy === undefined ? null : (parseJson(await blobText(store, policy)) ?? null),
    children: null,
    ...(options === undefined ? {} : { options: parseJson(await blobText(store, options)) }),
    ...(code === undefined ? {} : { code }),
    ...(warnings === undefined ? {} : { warnings }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

async function blobText(store: CompleteStore, hashed: string): Promise<string> {
  const blob = await store.blob(hashed)
  if (blob) return new TextDecoder().decode(blob.data)
  throw new Fault('store_damaged', `A stored part of this run is missing (${hashed}). Restore a backup to go on.`)
}
