// `terret acp`: an agent for editors, by the Agent Client Protocol on standard input and output. The agent, its model and its limits are
// those of `terret run` in the folder that the editor names.
import { isUtf8 } from 'node:buffer'
import { ndJsonStream } from '@agentclientprotocol/sdk'
import { acpAgent } from '../../acp/agent.ts'
import type { Desk, Listed, Mode, NamedServer, Wanted } from '../../acp/desk.ts'
import type { Harness, PendingCall } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { guard, locate } from '../../tools/files/paths.ts'
import { look } from '../../tools/files/disk.ts'
import { previewOf } from '../../tools/files/preview.ts'
import { shortened, textOf } from '../../view/text.ts'
import { VERSION } from '../../version.ts'
import { type Call, person } from '../args.ts'
import { EXIT } from '../exit.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { definitionNamed, definitionsOf } from '../state/agents.ts'
import { isSoon, waitingBelow, workingBelow } from '../state/children.ts'
import { MODES } from '../state/config.ts'
import { cardsIn, folderOf, startIn } from '../state/folders.ts'
import { type Crew, type CrewOptions, Harnesses } from '../state/harnesses.ts'
import { realFolder } from '../state/home.ts'
import { inPlace, type Place } from '../state/place.ts'
import { type Setup, setupFor } from '../state/setup.ts'
import { wishesOf } from '../state/work.ts'
import { editorTools } from './editor-tools.ts'
import { ownStreams, webStreams } from './streams.ts'

export async function acp(call: Call): Promise<number> {
  const order = call.text('in-terminal')
  if (order !== undefined) return (await import('./terminal-command.ts')).runInTerminal(order)
  return inPlace(async (place) => {
    const streams = ownStreams()
    const note = (text: string): void => warn(clean(text))
    const onError = (where: string, error: unknown): void => note(`${where}: ${textFrom(error)}`)
    const harnesses = new Harnesses(place, call, { note, onError })
    const served = acpAgent(deskOf(place, call, harnesses))
    const { input, output } = webStreams(streams)
    const connection = served.app.connect(ndJsonStream(output, input))
    const stop = (): void => connection.close()
    process.on('SIGINT', stop).on('SIGTERM', stop)
    try {
      await connection.closed
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
      served.close()
      // What runs is stopped, with its log complete up to here: the next prompt goes on with it.
      await harnesses.close()
      streams.close()
    }
    return EXIT.ok
  })
}

function textFrom(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function deskOf(place: Place, call: Call, harnesses: Harnesses): Desk {
  const wishes = wishesOf(call)
  const crewFor = (wanted: Wanted, agent: string | undefined): Promise<Crew> => {
    const { folder, mode, servers, doors } = wanted
    return harnesses.of({ folder, mode, agent, more: moreOf(servers), editor: editorTools(doors) })
  }
  /** The agent of new sessions, which must be there. */
  const newAgent = async (folder: string): Promise<string | undefined> => {
    const id = call.text('agent')
    if (id === undefined) return undefined
    return definitionNamed((await definitionsOf(await setupFor(place.home, folder, wishes))).definitions, id).id
  }
  const agentOf = async (id: string): Promise<string | undefined> => (await place.store.card(id))?.agent
  return {
    by: person(call),
    version: VERSION,
    folder: (path) => Promise.resolve(realFolder(path)),
    modes: async (folder) => {
      const modeFor = async (mode?: Mode): Promise<Mode> =>
        (await setupFor(place.home, folder, mode === undefined ? wishes : { ...wishes, mode })).mode
      const available: Mode[] = []
      // A folder may only narrow, so a mode may become a stricter one there.
      for (const mode of MODES) if ((await modeFor(mode)) === mode) available.push(mode)
      return { current: await modeFor(), available }
    },
    check: async (wanted) => void (await crewFor(wanted, await newAgent(wanted.folder))),
    open: async (id, wanted) => {
      const agent = await newAgent(wanted.folder)
      const { harness } = await crewFor(wanted, agent)
      const as = agent === undefined ? {} : { agent }
      return startIn(place, wanted.folder, (where) => harness.open({ ...where, ...as }), id)
    },
    session: async (id, wanted) => {
      const card = await place.store.card(id)
      return (await crewFor(wanted, card?.agent)).harness.session(id, { stored: card !== null })
    },
    waitingBelow: async (id, wanted) => waitingIn(place, (await crewFor(wanted, await agentOf(id))).harness, id),
    children: async (id, seq, wanted, signal) =>
      childrenOf(place, (await crewFor(wanted, await agentOf(id))).harness, { id, seq, signal }),
    folderOf: async (id) => {
      const card = await place.store.card(id)
      return card === null || card.root !== id ? null : folderOf(place, id)
    },
    list: (folder, from, limit) => listed(place, folder, from, limit),
    textOf: fileText,
    preview: async ({ folder, doors }, pending) => {
      const { buffers } = editorTools(doors)
      const own = (await place.store.card(pending.sessionId))?.folder ?? folder
      return buffers && own === folder ? previewOf(folder, pending, buffers) : pending.preview
    },
    note: (text) => warn(clean(text)),
  }
}

/** With what each would change, as the child itself says it. */
async function waitingIn({ store }: Place, harness: Harness, id: string): Promise<readonly PendingCall[]> {
  const asking = new Set((await waitingBelow(store, id)).map(({ sessionId }) => sessionId))
  const states = await Promise.all([...asking].map((child) => harness.session(child, { stored: true }).state()))
  return states.flatMap(({ sessionId, pending }) => pending.filter((each) => each.sessionId === sessionId))
}

type Watched = { readonly id: string; readonly seq: number; readonly signal: AbortSignal }

async function childrenOf(
  { store }: Place,
  harness: Harness,
  { id, seq, signal }: Watched,
): Promise<'news' | 'asks' | 'done'> {
  const looked = new Set<string>()
  while (!signal.aborted) {
    const card = await store.card(id)
    if (card === null) return 'done'
    if (card.seq > seq) return 'news'
    if ((await waitingBelow(store, id)).length > 0) return 'asks'
    const working = await workingBelow(store, id)
    if (working.length === 0 && !isSoon(card, store.now())) return 'done'
    for (const { session } of working) {
      // What this process started, it drives already.
      if (!looked.has(session)) harness.look(session, false).catch(() => {})
      looked.add(session)
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  return 'done'
}

const LOOK_MS = 200

async function listed(place: Place, folder: string | null, from: number, limit: number): Promise<readonly Listed[]> {
  const most = from + limit
  const cards =
    folder === null
      ? await place.store.list({ newest: true, limit: most })
      : await cardsIn({ ...place, folder }, { limit: most })
  const found = await Promise.all(
    cards.slice(from, most).map(async (card): Promise<readonly Listed[]> => {
      const where = folder ?? (await folderOf(place, card.session))
      return where === null ? [] : [{ id: card.session, folder: where, title: await titleOf(place, card), at: card.at }]
    }),
  )
  return found.flat()
}

const TITLE_EVENTS = 20
const TITLE_CHARS = 80

/** The beginning of its first message. */
async function titleOf({ store }: Place, { session, agent }: Card): Promise<string> {
  const { events } = await store.read(session, 0, TITLE_EVENTS)
  const first = events.find(({ type }) => type === 'user.message')
  const said = first?.type === 'user.message' ? oneLine(textOf(first.parts)).trim() : ''
  return said === '' ? agent : shortened(said, TITLE_CHARS)
}

async function fileText({ folder, doors }: Pick<Wanted, 'folder' | 'doors'>, path: string): Promise<string | null> {
  try {
    const { buffers } = editorTools(doors)
    const guarded = guard({ root: folder, ...(buffers ? { buffers } : {}) })
    const seen = await look(guarded, await locate(guarded, path, 'write'))
    return seen && isUtf8(seen.bytes) ? seen.bytes.toString() : null
  } catch {
    return null
  }
}

/** Servers that a person has allowed. They are asked about like those of the configuration, and a name of that is not taken over. */
function moreOf(servers: readonly NamedServer[]): CrewOptions['more'] {
  if (servers.length === 0) return undefined
  return { name: JSON.stringify(servers), make: (setup) => made(setup, servers) }
}

async function made(setup: Setup, servers: readonly NamedServer[]) {
  const { mcpServer } = await import('../../tools/index.ts')
  const { environmentSecrets } = await import('../../index.ts')
  const { settings, folder, mode } = setup
  const tools: ReturnType<typeof mcpServer>[] = []
  let secrets: Readonly<Record<string, string>> = {}
  for (const server of servers) {
    const { name } = server
    try {
      if (Object.hasOwn(settings.mcp ?? {}, name)) throw new Error('Your configuration has a server of this name.')
      const shared = { name, ...(mode === 'ask' ? ({ approval: 'ask' } as const) : {}) }
      if (server.type === 'stdio') {
        const { command, args, env } = server
        tools.push(mcpServer({ ...shared, command, args, env, cwd: folder }))
        secrets = { ...secrets, ...environmentSecrets(env) }
      } else {
        const { type, url, headers } = server
        tools.push(mcpServer({ ...shared, url, headers, transport: type }))
      }
    } catch (error) {
      warn(clean(`MCP server ${name}: ${textFrom(error)} Its tools are left out.`))
    }
  }
  return { tools, secrets }
}
