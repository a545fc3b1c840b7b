// Opening what a command needs to drive sessions: the setup of a folder, the agent, a harness on the store. Closed at the end.
import { userInfo } from 'node:os'
import type { Harness, RunStream, SessionHandle } from '../index.ts'
import type { McpServer } from '../tools/index.ts'
import { agentFor } from './agent.ts'
import type { Call } from './args.ts'
import { clean, oneLine, safeJson } from './clean.ts'
import { type Deck, drive } from './deck.ts'
import { tell } from './ending.ts'
import type { Place } from './place.ts'
import { warn } from './print.ts'
import { type Setup, setupFor } from './setup.ts'
import { trustFolder } from './trust.ts'
import { blind, lines, spinner, type View } from './view.ts'

/** Who decides here, as the log will name them. */
export function person(call: Call): string {
  const given = call.text('by')?.trim()
  if (given) return given
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}

/** The setup of a folder, with what the command line says about it, and its notes said. */
export async function setupOf(place: Place, folder: string, call: Call): Promise<Setup> {
  if (call.is('trust')) trustFolder(place.home, folder)
  const setup = await setupFor(place.home, folder, { mode: call.text('mode'), onAsk: call.text('on-ask') })
  if (!call.is('quiet')) for (const note of setup.notes) warn(clean(note))
  return setup
}

/** Whoever resumes what was killed waits this long at most. */
export const LEASE_MS = 10_000

/** A harness that drives. */
export async function withHarness<T>(
  place: Place,
  setup: Setup,
  call: Call,
  act: (harness: Harness) => Promise<T>,
): Promise<T> {
  const onRequest = call.is('verbose') ? shownRequest : undefined
  const { options, servers } = await agentFor(setup, { models: call.texts('model'), onRequest })
  const { Harness } = await import('../index.ts')
  const onError = (where: string, error: unknown): void => warn(noteOf(where, error))
  const harness = new Harness({ ...options, store: place.store, onError, worker: { leaseMs: LEASE_MS } })
  try {
    const done = await act(harness)
    if (!call.is('json')) for (const line of troublesOf(servers)) warn(line)
    return done
  } finally {
    await harness.close()
  }
}

/** A server that is not reached, or says something else than it did, is left out. That is worth a line. */
function troublesOf(servers: readonly McpServer[]): readonly string[] {
  return servers.flatMap((server) => {
    const changed = server.changes().length > 0
    const hint = changed ? ` See what changed, and allow it, with: terret mcp approve ${oneLine(server.name)}` : ''
    const troubles = server.status().troubles.map((text) => `MCP server ${oneLine(server.name)}: ${oneLine(text, 300)}`)
    return changed && troubles.length === 0
      ? [`MCP server ${oneLine(server.name)} changed.${hint}`]
      : troubles.map((text) => text + hint)
  })
}

function shownRequest(text: string): void {
  warn(`--- request\n${clean(text)}\n---`)
}

function noteOf(where: string, error: unknown): string {
  return clean(`${where}: ${error instanceof Error ? error.message : safeJson(error)}`)
}

/** Drives one session, shows it, says how it ended, and gives the exit code. */
export async function work(
  call: Call,
  { harness, setup, session }: { readonly harness: Harness; readonly setup: Setup; readonly session: SessionHandle },
  begin: (live: boolean) => RunStream,
): Promise<number> {
  const quiet = call.is('quiet')
  const json = call.is('json')
  const view = viewOf(quiet || json)
  const deck: Deck = { harness, session, policy: setup.policy, view, asks: !json, by: person(call) }
  return tell(await drive(deck, () => begin(view.live)), { json, quiet })
}

function viewOf(silent: boolean): View {
  if (silent) return blind
  return process.stderr.isTTY ? spinner(process.stderr) : lines(process.stderr)
}
