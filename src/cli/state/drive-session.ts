// Opens and closes everything that a command needs to drive sessions: the setup of a folder, the agent, and a harness
// on the store.
import type { Harness, PursueOptions, SessionHandle } from '../../index.ts'
import type { Proposal } from '../../kernel/index.ts'
import type { BashLine, McpServer, RunningCommand } from '../../tools/index.ts'
import { makeFolderAgent } from './folder-agent.ts'
import { findDefinition, loadDefinitions, addAgentsAndBoard } from './defined-agents.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { clean, oneLine, safeJson } from '../../view/clean.ts'
import { type DriveEnd, driveAtTerminal } from '../present/terminal-run.ts'
import { pendingBelow } from './children-wait.ts'
import {
  printResult,
  printChildren,
  printFlowResult,
  printReportResult,
  printScriptResult,
} from '../present/result-output.ts'
import { flowOf } from './workflow-files.ts'
import { holdHooks } from './hold-hooks.ts'
import { rememberHooks, showHooks, unseenHookLines } from './config-hooks.ts'
import { addMemory } from './folder-memory.ts'
import { parsePatienceMs } from '../present/outage.ts'
import { isEventStream, printEventsDuring } from '../present/output-format.ts'
import type { CommandContext } from './command-context.ts'
import { PROGRAM } from './own-program.ts'
import { quoteText } from '../present/call-preview.ts'
import { outputStyle, terretCommand, warn } from '../present/print.ts'
import { type FolderSetup, readSetup, type SetupFlags } from './folder-setup.ts'
import { trustFolder } from './trusted-folders.ts'
import { startFolder } from './workspace.ts'
import { openProgress } from '../present/run-progress.ts'
import { isWorkflowAgent, workflowOfAgent } from './workflow-agents.ts'

/** The setup flags of the command line. */
export function setupFlagsOf(call: CommandArgs): SetupFlags {
  const patience = call.text('patience')
  const patienceMs = patience === undefined ? undefined : parsePatienceMs(patience)
  return { mode: call.text('mode'), onAsk: call.text('on-ask'), environment: call.text('environment'), patienceMs }
}

/** Reads the setup of a folder with the flags of the command line. Prints its notes. `hooks`: those that a person allowed. */
export async function readCommandSetup(
  place: CommandContext,
  folder: string,
  call: CommandArgs,
  { agent, hooks }: { readonly agent?: string | undefined; readonly hooks?: FolderSetup['hooks'] } = {},
): Promise<FolderSetup> {
  if (call.is('trust')) trustFolder(place.home, folder)
  const setup = await readSetup(place.home, folder, { ...setupFlagsOf(call), start: startFolder(folder) })
  // The offline workflow reads neither instructions nor keys, so notes about them do not matter.
  const silent = call.is('quiet') || workflowOfAgent(agent) === 'report'
  if (!silent) for (const note of setup.notes) warn(clean(note))
  if (hooks) return { ...setup, hooks }
  if (call.is('trust')) showHooks(place.home, setup.hooks)
  return askAboutHooks(place, setup, call)
}

/** At a terminal a person is shown new hooks, and asked. Elsewhere the agent refuses them. */
async function askAboutHooks({ home }: CommandContext, setup: FolderSetup, call: CommandArgs): Promise<FolderSetup> {
  const lines = unseenHookLines(home, setup.hooks)
  if (lines.length === 0 || call.is('json')) return setup
  const { canPick, pickOnce } = await import('../chat/pick-once.ts')
  if (!canPick()) return setup
  for (const line of lines) warn(line)
  const items = [
    { value: 'yes', label: 'Yes, from now on' },
    { value: 'no', label: 'No, go on without them' },
  ]
  if ((await pickOnce({ title: 'May they run?', items })) !== 'yes') return { ...setup, hooks: [] }
  rememberHooks(home, setup.hooks)
  return setup
}

/** The agent that `--agent` names. An unknown one is refused. */
export async function chosenAgent(setup: FolderSetup, call: CommandArgs): Promise<string | undefined> {
  const id = call.text('agent')
  return id === undefined ? undefined : findDefinition((await loadDefinitions(setup)).definitions, id).id
}

/** The longest wait before a killed session can be resumed. */
export const LEASE_MS = 10_000

/**
 * Receives the output of running commands once a view shows it, each command that starts, and notes, which are printed at
 * the end until then.
 */
export type OutputListener = {
  hear: (line: BashLine) => void
  runs: (running: RunningCommand) => void
  note: (text: string) => void
}

/** Opens a harness that drives sessions. `agent`: the agent of the session, see folder-agent.ts. */
export async function withHarness<T>(
  place: CommandContext,
  setup: FolderSetup,
  call: CommandArgs,
  act: (harness: Harness, ear: OutputListener) => Promise<T>,
  agent?: string,
): Promise<T> {
  const onRequest = call.is('verbose') ? printRequest : undefined
  const notes: string[] = []
  const ear: OutputListener = { hear: () => {}, runs: () => {}, note: (text) => void notes.push(text) }
  const onLine = (line: BashLine): void => ear.hear(line)
  const onRunning = (running: RunningCommand): void => ear.runs(running)
  const own = await makeFolderAgent(setup, { models: call.texts('model'), onRequest, onLine, onRunning, agent })
  const holds = holdHooks(call.texts('hold'))
  const parts = await addAgentsAndBoard(own, setup, agent, place.store)
  if (!call.is('json')) for (const line of parts.troubles) warn(clean(line))
  const { options, close } = await addMemory(parts.options, setup, place.store)
  const { Harness } = await import('../../index.ts')
  // Missing tools are reported at the end, with a hint.
  const onError = (where: string, error: unknown): void => {
    if (where === 'context' && error instanceof Error) ear.note(clean(error.message))
    else if (where !== 'tools') warn(errorNote(where, error))
  }
  const hooks = [...(options.hooks ?? []), ...holds]
  const { store } = place
  const worker = { leaseMs: LEASE_MS }
  const harness = new Harness({ ...options, program: PROGRAM, hooks, store, onError, worker })
  try {
    const done = await act(harness, ear)
    if (!call.is('json')) for (const line of serverTroubles(parts.servers)) warn(line)
    if (!call.is('json') && !call.is('quiet')) for (const line of notes) warn(line)
    return done
  } finally {
    await harness.close()
    await close()
  }
}

/** Warnings about servers that were not reached or have changed, and are left out. */
function serverTroubles(servers: readonly McpServer[]): readonly string[] {
  return servers.flatMap((server) => {
    const changed = server.changes().length > 0
    const hint = changed
      ? ` See what changed, and allow it, with: ${terretCommand`mcp approve ${oneLine(server.name)}`}`
      : ''
    const troubles = server.status().troubles.map((text) => `MCP server ${oneLine(server.name)}: ${oneLine(text, 300)}`)
    return changed && troubles.length === 0
      ? [`MCP server ${oneLine(server.name)} changed.${hint}`]
      : troubles.map((text) => text + hint)
  })
}

function printRequest(text: string): void {
  const { room } = outputStyle(process.stderr, true)
  const rows = quoteText(text, room).rows.flatMap(({ texts }) => texts)
  process.stderr.write(`--- request\n${rows.join('\n')}\n---\n`)
}

function errorNote(where: string, error: unknown): string {
  return clean(`${where}: ${error instanceof Error ? error.message : safeJson(error)}`)
}

/** The session that a command drives, and how it begins. */
export type DrivenSession = {
  readonly setup: FolderSetup
  /** The agent of the session. Absent: the default agent of the folder. */
  readonly agent?: string | undefined
  /** Opens the session in this harness. */
  readonly open: (harness: Harness) => Promise<SessionHandle> | SessionHandle
  /** The message that begins the run. Absent: the last run goes on. */
  readonly input?: string | undefined
  /** The input is pursued in rounds, by this rubric. */
  readonly outcome?: Omit<PursueOptions, 'description'> | null
  /** The number of the last event before this command. */
  readonly after?: number
  /** Calls that are already open. */
  readonly calls?: readonly { readonly key: string; readonly proposal: Pick<Proposal, 'tool' | 'args'> }[]
}

/** Opens a harness and the session, drives and shows it, prints how it ended, and returns the exit code. */
export function driveAndReport(place: CommandContext, call: CommandArgs, driven: DrivenSession): Promise<number> {
  const { store } = place
  const { setup, agent, open, input, outcome = null, after = 0, calls = [] } = driven
  const { folder } = setup
  const drive = async (harness: Harness, ear: OutputListener): Promise<number> => {
    const session = await open(harness)
    const quiet = call.is('quiet')
    const json = call.is('json')
    const isScript = agent === SCRIPT
    const planned = agent !== undefined && (isScript || isWorkflowAgent(agent))
    const isReport = planned && !isScript && flowOf(agent) === null
    const opened = new Map(calls.map(({ key, proposal }) => [`${session.id} ${key}`, proposal]))
    const found = isReport ? { found: (await import('../demo/report/report-graph.ts')).reportNodeText } : {}
    const view = openProgress(process.stderr, { calls: opened, ...found }, quiet || json)
    await view.load()
    ear.hear = (line) => view.hear(line)
    // A workflow asks about its result, so all of it is shown before the decision.
    const shown = { view, whole: planned, after, input, asks: !json, by: actorName(call), kept: [] }
    const run = { store, harness, session, setup, ...shown }
    const report = async ({ result, stopped }: DriveEnd): Promise<number> => {
      const printPlanned = isScript ? printScriptResult : isReport ? printReportResult : printFlowResult
      const print = planned ? printPlanned : printResult
      const waiting = result.status === 'completed' ? await pendingBelow(store, session.id) : []
      const showing = { json, stream: isEventStream(call), quiet, told: view.told, folder, below: waiting }
      const exit = await print(result, showing)
      return printChildren(store, session.id, { exit, json, stopped, folder, waiting })
    }
    const printed = { store, session, after }
    if (outcome === null) return report(await printEventsDuring(call, printed, () => driveAtTerminal(run)))
    const { printPursuit, pursueInRounds } = await import('../present/pursuit-run.ts')
    const driveRound = (from: number) => driveAtTerminal({ ...run, input: undefined, after: from })
    const task = { description: input ?? '', ...outcome }
    const { last, pursuit } = await pursueInRounds(session, call, task, driveRound)
    return printPursuit(call, session.id, pursuit, await report(last))
  }
  return withHarness(place, setup, call, drive, agent)
}
