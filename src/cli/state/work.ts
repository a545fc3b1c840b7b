// Opens and closes what a command needs to drive sessions: the setup of a folder, the agent, and a harness on the store.
import type { Harness, RunStream, SessionHandle } from '../../index.ts'
import type { Store } from '../../kernel/index.ts'
import type { BashLine, McpServer } from '../../tools/index.ts'
import { agentFor } from './agent.ts'
import { definitionNamed, definitionsOf, equipped } from './agents.ts'
import { type Call, person } from '../args.ts'
import { clean, oneLine, safeJson } from '../../view/clean.ts'
import { type TerminalRun, drive } from '../present/terminal-run.ts'
import { waitingBelow } from './children.ts'
import { tell, tellChildren, tellFlow, tellReport } from '../present/ending.ts'
import { flowOf } from './flows.ts'
import { holdsOf } from './holds.ts'
import { remembering } from './memory.ts'
import { patienceMsOf } from '../present/outage.ts'
import type { Place } from './place.ts'
import { PROGRAM } from './program.ts'
import { quoted } from '../present/preview.ts'
import { seatOf, typed, warn } from '../present/print.ts'
import { type Setup, setupFor, type Wishes } from './setup.ts'
import { trustFolder } from './trust.ts'
import { progressOn } from '../present/progress.ts'
import { isPlanned, workflowOf } from './workflows.ts'

/** The setup flags of the command line. */
export function wishesOf(call: Call): Wishes {
  const patience = call.text('patience')
  const patienceMs = patience === undefined ? undefined : patienceMsOf(patience)
  return { mode: call.text('mode'), onAsk: call.text('on-ask'), environment: call.text('environment'), patienceMs }
}

/** The setup of a folder with the flags of the command line. Prints its notes. */
export async function setupOf(place: Place, folder: string, call: Call, agent?: string): Promise<Setup> {
  if (call.is('trust')) trustFolder(place.home, folder)
  const setup = await setupFor(place.home, folder, wishesOf(call))
  // The offline workflow reads neither instructions nor keys, so notes about them do not matter.
  const silent = call.is('quiet') || workflowOf(agent) === 'report'
  if (!silent) for (const note of setup.notes) warn(clean(note))
  return setup
}

/** The agent that `--agent` names, which must be there. */
export async function agentWanted(setup: Setup, call: Call): Promise<string | undefined> {
  const id = call.text('agent')
  return id === undefined ? undefined : definitionNamed((await definitionsOf(setup)).definitions, id).id
}

/** The longest wait before a killed session can be resumed. */
export const LEASE_MS = 10_000

/** Receives the output of running commands, once there is a view to show it, and notes, which are shown at the end until then. */
export type Ear = { hear: (line: BashLine) => void; note: (text: string) => void }

/** A harness that drives sessions. `agent`: the agent of the session, see agent.ts. */
export async function withHarness<T>(
  place: Place,
  setup: Setup,
  call: Call,
  act: (harness: Harness, ear: Ear) => Promise<T>,
  agent?: string,
): Promise<T> {
  const onRequest = call.is('verbose') ? shownRequest : undefined
  const notes: string[] = []
  const ear: Ear = { hear: () => {}, note: (text) => void notes.push(text) }
  const onLine = (line: BashLine): void => ear.hear(line)
  const own = await agentFor(setup, { models: call.texts('model'), onRequest, onLine, agent })
  const holds = holdsOf(call.texts('hold'))
  const parts = await equipped(own, setup, agent, place.store)
  if (!call.is('json')) for (const line of parts.troubles) warn(clean(line))
  const { options, close } = await remembering(parts.options, setup, place.store)
  const { Harness } = await import('../../index.ts')
  // Missing tools are reported at the end, with what to do.
  const onError = (where: string, error: unknown): void => {
    if (where === 'context' && error instanceof Error) ear.note(clean(error.message))
    else if (where !== 'tools') warn(noteOf(where, error))
  }
  const hooks = [...(options.hooks ?? []), ...holds]
  const { store } = place
  const worker = { leaseMs: LEASE_MS }
  const harness = new Harness({ ...options, program: PROGRAM, hooks, store, onError, worker })
  try {
    const done = await act(harness, ear)
    if (!call.is('json')) for (const line of troublesOf(parts.servers)) warn(line)
    if (!call.is('json') && !call.is('quiet')) for (const line of notes) warn(line)
    return done
  } finally {
    await harness.close()
    await close()
  }
}

/** Warns about a server that was not reached or has changed, and is left out. */
function troublesOf(servers: readonly McpServer[]): readonly string[] {
  return servers.flatMap((server) => {
    const changed = server.changes().length > 0
    const hint = changed ? ` See what changed, and allow it, with: ${typed`mcp approve ${oneLine(server.name)}`}` : ''
    const troubles = server.status().troubles.map((text) => `MCP server ${oneLine(server.name)}: ${oneLine(text, 300)}`)
    return changed && troubles.length === 0
      ? [`MCP server ${oneLine(server.name)} changed.${hint}`]
      : troubles.map((text) => text + hint)
  })
}

function shownRequest(text: string): void {
  const { room } = seatOf(process.stderr, true)
  const rows = quoted(text, room).rows.flatMap(({ texts }) => texts)
  process.stderr.write(`--- request\n${rows.join('\n')}\n---\n`)
}

function noteOf(where: string, error: unknown): string {
  return clean(`${where}: ${error instanceof Error ? error.message : safeJson(error)}`)
}

export type Driven = {
  readonly store: Store
  readonly harness: Harness
  readonly setup: Setup
  readonly session: SessionHandle
  readonly ear?: Ear
  /** The agent of the session. */
  readonly agent?: string
  /** The last event before this command. */
  readonly after?: number
  /** Calls that are already open. */
  readonly open?: readonly { readonly key: string; readonly proposal: { readonly tool: string } }[]
}

/** Drives and shows one session, prints how it ended, and returns the exit code. */
export async function work(
  call: Call,
  { store, harness, setup, session, ear, agent, open = [], after = 0 }: Driven,
  begin: (live: boolean) => RunStream,
): Promise<number> {
  const quiet = call.is('quiet')
  const json = call.is('json')
  const planned = agent !== undefined && isPlanned(agent)
  const tools = new Map(open.map(({ key, proposal }) => [`${session.id} ${key}`, proposal.tool]))
  const isReport = planned && flowOf(agent) === null
  const found = isReport ? { found: (await import('../../graphs/index.ts')).reportFound } : {}
  const view = progressOn(process.stderr, { tools, ...found }, quiet || json)
  if (ear) ear.hear = (line) => view.hear(line)
  // A workflow asks about its result, so all of it is shown before the decision.
  const deck: TerminalRun = {
    store,
    harness,
    session,
    setup,
    kept: [],
    view,
    asks: !json,
    by: person(call),
    whole: planned,
    after,
  }
  const { result, stopped } = await drive(deck, () => begin(view.live))
  const teller = !planned ? tell : isReport ? tellReport : tellFlow
  const { folder } = setup
  const waiting = result.status === 'completed' ? await waitingBelow(store, session.id) : []
  const exit = await teller(result, { json, quiet, told: view.told, folder, below: waiting })
  return tellChildren(store, session.id, { exit, json, stopped, folder, waiting })
}
