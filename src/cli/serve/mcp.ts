// `terret mcp serve`: the sessions of this folder as tools for other agents, by MCP on standard input and output. The agent, its model
// and its limits are those of `terret run` here. Its client is often a model, so it may decide nothing unless you say so.
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import type { Session } from '../../index.ts'
import { type Caller, ROLES } from '../../mcp/caller.ts'
import { type Desk, deskOf } from '../../mcp/desk.ts'
import { serverFor } from '../../mcp/server.ts'
import { type Call, person } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { definitionNamed, definitionsOf } from '../state/agents.ts'
import { cardsIn, folderOf, startIn } from '../state/folders.ts'
import { type Crew, Harnesses } from '../state/harnesses.ts'
import { inPlace, type Place } from '../state/place.ts'
import { nearest } from '../../options.ts'
import { ownStreams } from './streams.ts'

export function serveMcp(call: Call): Promise<number> {
  const caller = callerOf(call)
  return inPlace(async (place) => {
    const note = (text: string): void => warn(clean(text))
    const onError = (where: string, error: unknown): void => note(`${where}: ${textFrom(error)}`)
    const harnesses = new Harnesses(place, call, { note, onError })
    const streams = ownStreams()
    try {
      const desk = await folderDesk(place, call, harnesses)
      const transport = new StdioServerTransport(streams.input, streams.output, { maxBufferSize: MESSAGE_BYTES_MAX })
      const server = serveStdio(() => serverFor({ desk }, caller), {
        transport,
        onerror: (error) => note(`mcp: ${error.message}`),
      })
      await untilLeft(streams.input)
      await server.close()
    } finally {
      // What runs is stopped, with its log complete up to here: it goes on when it is next looked at.
      await harnesses.close()
      streams.close()
    }
    return EXIT.ok
  })
}

const MESSAGE_BYTES_MAX = 4 * 1024 * 1024

function textFrom(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function callerOf(call: Call): Caller {
  const wanted = call.text('role') ?? 'operator'
  const role = ROLES.find((each) => each === wanted)
  if (role) return { name: `${person(call)} (mcp)`, role, reach: 'all' }
  const near = nearest(wanted, ROLES)
  const hint = near === null ? `Choose one of: ${ROLES.join(', ')}.` : `Did you mean ${near}?`
  throw new Refusal(EXIT.usage, `There is no role "${wanted}". ${hint}`)
}

/** The client closed its end, or the process is told to end. */
function untilLeft(input: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      process.off('SIGINT', end).off('SIGTERM', end)
      resolve()
    }
    input.once('end', end).once('close', end)
    process.on('SIGINT', end).on('SIGTERM', end)
  })
}

/** Sessions of this folder, and no others: what is elsewhere has its own setup. */
async function folderDesk(place: Place, call: Call, harnesses: Harnesses): Promise<Desk> {
  const { folder, store } = place
  const crewFor = (agent: string | undefined): Promise<Crew> => harnesses.of({ folder, agent })
  const { setup, harness } = await crewFor(undefined)
  const { definitions } = await definitionsOf(setup)
  const named = (agent: string | undefined) =>
    agent === undefined ? undefined : definitionNamed(definitions, agent).id
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
      return startIn(place, folder, (where) => driver.open({ ...where, ...as }), id)
    },
    pending: async (caller) => {
      const waiting = await all.pending(caller)
      const here = await Promise.all(waiting.map(({ sessionId }) => isHere(sessionId)))
      return waiting.filter((_, i) => here[i])
    },
    list: (limit) => cardsIn(place, { limit }),
  }
}
