// `terret mcp serve`: the sessions of this folder as tools for other agents, by MCP on standard input and output. The
// agent, its model and its limits are those of `terret run` here. The client is often a model, so by default it may
// decide nothing.
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import type { Session } from '../../index.ts'
import { type Caller, CALLER_ROLES } from '../../mcp/caller.ts'
import { type McpSessionHost, deskOf } from '../../mcp/mcp-session-host.ts'
import { createCallerServer } from '../../mcp/caller-server.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError, describeError } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { findDefinition, loadDefinitions } from '../state/defined-agents.ts'
import { cardsInFolder, folderOf, startSessionIn } from '../state/session-folders.ts'
import { type FolderHarness, Harnesses } from '../state/harnesses.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { nearest } from '../../options.ts'
import { takeStandardStreams } from './protocol-streams.ts'

export function serveMcp(call: CommandArgs): Promise<number> {
  const caller = callerFromFlags(call)
  return withStore(async (place) => {
    const note = (text: string): void => warn(clean(text))
    const onError = (where: string, error: unknown): void => note(`${where}: ${describeError(error)}`)
    const harnesses = new Harnesses(place, call, { note, onError })
    const streams = takeStandardStreams()
    try {
      const desk = await sessionsOfFolder(place, call, harnesses)
      const transport = new StdioServerTransport(streams.input, streams.output, { maxBufferSize: MESSAGE_BYTES_MAX })
      const server = serveStdio(() => createCallerServer({ desk }, caller), {
        transport,
        onerror: (error) => note(`mcp: ${error.message}`),
      })
      await waitForClientEnd(streams.input)
      await server.close()
    } finally {
      // Running work is stopped, with its log complete up to this point. It continues at the next look.
      await harnesses.close()
      streams.close()
    }
    return EXIT.ok
  })
}

const MESSAGE_BYTES_MAX = 4 * 1024 * 1024

function callerFromFlags(call: CommandArgs): Caller {
  const wanted = call.text('role') ?? 'operator'
  const role = CALLER_ROLES.find((each) => each === wanted)
  if (role) return { name: `${actorName(call)} (mcp)`, role, reach: 'all' }
  const near = nearest(wanted, CALLER_ROLES)
  const hint = near === null ? `Choose one of: ${CALLER_ROLES.join(', ')}.` : `Did you mean ${near}?`
  throw new CliError(EXIT.usage, `There is no role "${wanted}". ${hint}`)
}

/** Resolves when the client closes its end, or on SIGINT or SIGTERM. */
function waitForClientEnd(input: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      process.off('SIGINT', end).off('SIGTERM', end)
      resolve()
    }
    input.once('end', end).once('close', end)
    process.on('SIGINT', end).on('SIGTERM', end)
  })
}

/** Serves only sessions of this folder, because other folders have their own setup. */
async function sessionsOfFolder(
  place: CommandContext,
  call: CommandArgs,
  harnesses: Harnesses,
): Promise<McpSessionHost> {
  const { folder, store } = place
  const crewFor = (agent: string | undefined): Promise<FolderHarness> => harnesses.of({ folder, agent })
  const { setup, harness } = await crewFor(undefined)
  const { definitions } = await loadDefinitions(setup)
  const named = (agent: string | undefined) => (agent === undefined ? undefined : findDefinition(definitions, agent).id)
  const usual = named(call.text('agent'))
  const all = deskOf(harness)
  const isHere = async (id: string): Promise<boolean> => (await folderOf(place, id)) === folder
  const driven = async (id: string): Promise<Session | null> => {
    const card = await store.card(id)
    if (card === null || !(await isHere(id))) return null
    return (await crewFor((await store.card(card.root))?.agent)).harness.session(id, { stored: true })
  }
  return {
    session: driven,
    start: async ({ id, agent: wanted }) => {
      const found = id === undefined ? null : await driven(id)
      if (found) return found
      const agent = named(wanted) ?? usual
      const as = agent === undefined ? {} : { agent }
      const { harness: driver } = await crewFor(agent)
      return startSessionIn(place, folder, (where) => driver.open({ ...where, ...as }), id)
    },
    pending: async (caller) => {
      const waiting = await all.pending(caller)
      const here = await Promise.all(waiting.map(({ sessionId }) => isHere(sessionId)))
      return waiting.filter((_, i) => here[i])
    },
    list: (limit) => cardsInFolder(place, { limit }),
  }
}
