// `terret acp`: an agent for editors, by the Agent Client Protocol on standard input and output. The agent, its model and its limits are
// those of `terret run` in the folder that the editor names.
import { isUtf8 } from 'node:buffer'
import { ndJsonStream } from '@agentclientprotocol/sdk'
import { acpAgent } from '../../acp/acp-agent.ts'
import type { SessionHost, ListedSession, SessionMode, NamedServer, RunSetup } from '../../acp/session-host.ts'
import type { Harness, PendingCall } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { createPathGuard, locatePath } from '../../tools/files/path-guard.ts'
import { readBeforeWrite } from '../../tools/files/guarded-disk.ts'
import { previewOf } from '../../tools/files/preview-call.ts'
import { shortenText, textOf } from '../../view/shown-text.ts'
import { VERSION } from '../../version.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, describeError } from '../exit.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { findDefinition, loadDefinitions } from '../state/defined-agents.ts'
import { isDueSoon, pendingBelow, workingBelow } from '../state/children-wait.ts'
import { MODES } from '../state/config.ts'
import { cardsInFolder, folderOf, startSessionIn } from '../state/session-folders.ts'
import { type FolderHarness, type FolderHarnessOptions, Harnesses } from '../state/harnesses.ts'
import { realFolder } from '../state/cli-home.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { type FolderSetup, readSetup } from '../state/folder-setup.ts'
import { setupFlagsOf } from '../state/drive-session.ts'
import { editorTools } from './editor-tools.ts'
import { takeStandardStreams, webStreams } from './protocol-streams.ts'
import { lookAt } from '../../worker.ts'

export async function acpCommand(call: CommandArgs): Promise<number> {
  const order = call.text('in-terminal')
  if (order !== undefined) return (await import('./terminal-command.ts')).runInTerminal(order)
  return withStore(async (place) => {
    const streams = takeStandardStreams()
    const note = (text: string): void => warn(clean(text))
    const onError = (where: string, error: unknown): void => note(`${where}: ${describeError(error)}`)
    const harnesses = new Harnesses(place, call, { note, onError })
    const served = acpAgent(createSessionHost(place, call, harnesses))
    const { input, output } = webStreams(streams)
    const connection = served.app.connect(ndJsonStream(output, input))
    const stop = (): void => connection.close()
    process.on('SIGINT', stop).on('SIGTERM', stop)
    try {
      await connection.closed
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
      served.close()
      // Running work is stopped, with its log complete up to this point. The next prompt continues it.
      await harnesses.close()
      streams.close()
    }
    return EXIT.ok
  })
}

function createSessionHost(place: CommandContext, call: CommandArgs, harnesses: Harnesses): SessionHost {
  const wishes = setupFlagsOf(call)
  const crewFor = (wanted: RunSetup, agent: string | undefined): Promise<FolderHarness> => {
    const { folder, mode, servers, doors } = wanted
    return harnesses.of({ folder, mode, agent, more: extraTools(servers), editor: editorTools(doors) })
  }
  /** The agent of new sessions. An unknown one is refused. */
  const newAgent = async (folder: string): Promise<string | undefined> => {
    const id = call.text('agent')
    if (id === undefined) return undefined
    return findDefinition((await loadDefinitions(await readSetup(place.home, folder, wishes))).definitions, id).id
  }
  const agentOf = async (id: string): Promise<string | undefined> => (await place.store.card(id))?.agent
  return {
    by: actorName(call),
    version: VERSION,
    folder: (path) => Promise.resolve(realFolder(path)),
    modes: async (folder) => {
      const modeFor = async (mode?: SessionMode): Promise<SessionMode> =>
        (await readSetup(place.home, folder, mode === undefined ? wishes : { ...wishes, mode })).mode
      const available: SessionMode[] = []
      // A folder may only narrow the configuration, so a mode may become a stricter one there.
      for (const mode of MODES) if ((await modeFor(mode)) === mode) available.push(mode)
      return { current: await modeFor(), available }
    },
    check: async (wanted) => void (await crewFor(wanted, await newAgent(wanted.folder))),
    open: async (id, wanted) => {
      const agent = await newAgent(wanted.folder)
      const { harness } = await crewFor(wanted, agent)
      const as = agent === undefined ? {} : { agent }
      return startSessionIn(place, wanted.folder, (where) => harness.open({ ...where, ...as }), id)
    },
    session: async (id, wanted) => {
      const card = await place.store.card(id)
      return (await crewFor(wanted, card?.agent)).harness.session(id, { stored: card !== null })
    },
    waitingBelow: async (id, wanted) =>
      childCallsWaiting(place, (await crewFor(wanted, await agentOf(id))).harness, id),
    children: async (id, seq, wanted, signal) =>
      waitForChildren(place, (await crewFor(wanted, await agentOf(id))).harness, { id, seq, signal }),
    folderOf: async (id) => {
      const card = await place.store.card(id)
      return card === null || card.root !== id ? null : folderOf(place, id)
    },
    list: (folder, from, limit) => listSessions(place, folder, from, limit),
    textOf: readFileText,
    preview: async ({ folder, doors }, pending) => {
      const { buffers } = editorTools(doors)
      const own = (await place.store.card(pending.sessionId))?.folder ?? folder
      return buffers && own === folder ? previewOf(folder, pending, buffers) : pending.preview
    },
    note: (text) => warn(clean(text)),
  }
}

/** The pending calls of children, each with the preview of the child's own state. */
async function childCallsWaiting(
  { store }: CommandContext,
  harness: Harness,
  id: string,
): Promise<readonly PendingCall[]> {
  const asking = new Set((await pendingBelow(store, id)).map(({ sessionId }) => sessionId))
  const states = await Promise.all([...asking].map((child) => harness.session(child, { stored: true }).status()))
  return states.flatMap(({ sessionId, pending }) => pending.filter((each) => each.sessionId === sessionId))
}

type ChildrenQuery = { readonly id: string; readonly seq: number; readonly signal: AbortSignal }

async function waitForChildren(
  { store }: CommandContext,
  harness: Harness,
  { id, seq, signal }: ChildrenQuery,
): Promise<'news' | 'asks' | 'done'> {
  const looked = new Set<string>()
  while (!signal.aborted) {
    const card = await store.card(id)
    if (card === null) return 'done'
    if (card.seq > seq) return 'news'
    if ((await pendingBelow(store, id)).length > 0) return 'asks'
    const working = await workingBelow(store, id)
    if (working.length === 0 && !isDueSoon(card, store.now())) return 'done'
    for (const { session } of working) {
      // Children that this process started are driven already.
      if (!looked.has(session)) lookAt(harness, session, false).catch(() => {})
      looked.add(session)
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  return 'done'
}

const LOOK_MS = 200

async function listSessions(
  place: CommandContext,
  folder: string | null,
  from: number,
  limit: number,
): Promise<readonly ListedSession[]> {
  const most = from + limit
  const cards =
    folder === null
      ? (await place.store.page({ order: 'newest', limit: most })).cards
      : await cardsInFolder({ ...place, folder }, { limit: most })
  const found = await Promise.all(
    cards.slice(from, most).map(async (card): Promise<readonly ListedSession[]> => {
      const where = folder ?? (await folderOf(place, card.session))
      return where === null
        ? []
        : [{ id: card.session, folder: where, title: await firstMessageTitle(place, card), at: card.at }]
    }),
  )
  return found.flat()
}

const TITLE_EVENTS = 20
const TITLE_CHARS = 80

/** The title of a session: the beginning of its first message. */
async function firstMessageTitle({ store }: CommandContext, { session, agent }: Card): Promise<string> {
  const { events } = await store.read(session, 0, TITLE_EVENTS)
  const first = events.find(({ type }) => type === 'user.message')
  const said = first?.type === 'user.message' ? oneLine(textOf(first.parts)).trim() : ''
  return said === '' ? agent : shortenText(said, TITLE_CHARS)
}

async function readFileText(
  { folder, doors }: Pick<RunSetup, 'folder' | 'doors'>,
  path: string,
): Promise<string | null> {
  try {
    const { buffers } = editorTools(doors)
    const guarded = createPathGuard({ root: folder, ...(buffers ? { buffers } : {}) })
    const seen = await readBeforeWrite(guarded, await locatePath(guarded, path, 'write'))
    return seen && isUtf8(seen.bytes) ? seen.bytes.toString() : null
  } catch {
    return null
  }
}

/**
 * The servers that a person has allowed. Their calls are asked about like those of the configuration's servers, whose
 * names cannot be taken over.
 */
function extraTools(servers: readonly NamedServer[]): FolderHarnessOptions['more'] {
  if (servers.length === 0) return undefined
  return { name: JSON.stringify(servers), make: (setup) => makeServerTools(setup, servers) }
}

async function makeServerTools(setup: FolderSetup, servers: readonly NamedServer[]) {
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
      warn(clean(`MCP server ${name}: ${describeError(error)} Its tools are left out.`))
    }
  }
  return { tools, secrets }
}
