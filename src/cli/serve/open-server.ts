// The server over an opened data folder, as `terret serve` and the demo run it. It chooses the harness of each session;
// src/server answers the requests.
import { hash } from 'node:crypto'
import type { Harness } from '../../index.ts'
import { Fault, type CompleteStore } from '../../kernel/index.ts'
import type { RunMetrics } from '../../server/metrics.ts'
import type { NewSessionSetup, ServerHost, NewSessionWish } from '../../server/server-host.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { exitForError, EXIT, CliError } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { findDefinition, loadDefinitions, isDefinedAgent } from '../state/defined-agents.ts'
import { DueDriver, WIDTH } from '../state/due-driver.ts'
import { realFolder } from '../state/cli-home.ts'
import { sweepFiles } from '../state/leftovers.ts'
import { CLI_AGENT } from '../state/folder-memory.ts'
import type { CommandContext } from '../state/command-context.ts'
import { drivenElsewhere, PROGRAM } from '../state/own-program.ts'
import { withFileLock } from '../../stores/sqlite/file-lock.ts'
import { forgetServer, rememberServer, tokenFile } from '../state/running-servers.ts'
import { readSetup } from '../state/folder-setup.ts'
import { checkFolderNotify, readFolderEndpoints } from '../state/folder-triggers.ts'
import type { WebhookDesk } from '../../server/webhook-endpoints.ts'
import { openAccessLog } from './access-log.ts'
import { isTrusted } from '../state/trusted-folders.ts'

/**
 * A session whose server was killed continues elsewhere after this time, or at once if its process is known to be gone.
 */
const LEASE_MS = 5_000
export const PORT = 4747

export type ListenAddress = { readonly port: number; readonly address?: string; readonly names?: readonly string[] }

export type OpenServer = {
  readonly url: string
  readonly token: string
  /** The token stands behind the `#`, which browsers send to no server. */
  readonly page: string
  /** Drives due sessions from now on. */
  drive(width?: number): void
  close(): Promise<void>
}

/** `failed` receives errors of the store for sessions that are driven here. */
export async function openServer(
  place: CommandContext,
  call: CommandArgs,
  listening: ListenAddress,
  failed: (error: unknown) => void = () => {},
): Promise<OpenServer> {
  const [
    { startHttpServer: start },
    { findInspectorFolder },
    { TokenRegistry },
    { DueLoop },
    { RunMetrics },
    { Harness, offline, VERSION },
  ] = await Promise.all([
    import('../../server/http-server.ts'),
    import('../../server/inspector-files.ts'),
    import('../../server/token-registry.ts'),
    import('../../worker.ts'),
    import('../../server/metrics.ts'),
    import('../../index.ts'),
  ])
  const { store, home } = place
  const metrics = new RunMetrics(store)
  const opened = (harness: Harness): void => void metrics.listenTo(harness)
  const drives = !call.is('no-drive')
  const crews = new DueDriver(place, call, { leaseMs: LEASE_MS, says: false, drives, failed, opened })
  const reader = new Harness({ program: PROGRAM, model: offline(), store, worker: { drives: false } })
  const report = (where: string, error: unknown): void => warn(clean(`${where}: ${exitForError(error).text}`))
  const tokens = new TokenRegistry(tokenFile(home), actorName(call), withFileLock)
  let due: InstanceType<typeof DueLoop> | null = null
  const host = await createHost({ place, crews, reader, metrics, version: VERSION, drives: () => due !== null })
  const onAccess = openAccessLog(home)
  const server = await start({ host, tokens, pages: findInspectorFolder(), report, onAccess, ...listening }).catch(
    async (error: unknown) => {
      await reader.close()
      throw error
    },
  )
  rememberServer(home, server.url)
  const { url } = server
  return {
    url,
    token: tokens.own,
    page: `${url}/#token=${tokens.own}`,
    drive: (width = WIDTH) => {
      due ??= new DueLoop({
        store,
        width,
        idleMs: Number.POSITIVE_INFINITY,
        driving: () => crews.busy,
        ...crews.looks,
        report: (error) => {
          report('due', error)
          failed(error)
        },
      })
      // The loop ends by itself when the store was replaced. `report` has received that error.
      due.done.catch(() => {})
    },
    close: async () => {
      due?.stop()
      await Promise.all([server.close(), crews.close(), due?.done.catch(() => {})])
      await reader.close()
      forgetServer(home)
    },
  }
}

type ServerParts = {
  readonly place: CommandContext
  readonly crews: DueDriver
  readonly reader: Harness
  readonly metrics: RunMetrics
  readonly version: string
  readonly drives: () => boolean
}

async function createHost({ place, crews, reader, metrics, version, drives }: ServerParts): Promise<ServerHost> {
  const storeId = await storeIdOf(place)
  const webhooks = await openFolderWebhooks(place, crews)
  return {
    ...(webhooks ? { webhooks } : {}),
    metrics,
    version,
    store: place.store,
    storeId,
    harness: reader,
    harnessOf: (card) => withFaults(crews.harnessOf(card)),
    begin: (wish) => withFaults(beginSession(place, crews, wish)),
    agents: () => withFaults(crews.harnessIn(place.folder, CLI_AGENT).then((harness) => harness.agents())),
    elsewhere: (card) => drivenElsewhere(place, card),
    program: PROGRAM,
    onRemoved: (removed) => sweepFiles(place.home, removed),
    get drives() {
      return drives()
    },
    driving: () => crews.busy,
  }
}

/** The endpoints of the user's configuration, for sources in the folder of the server. Null: there are none. */
async function openFolderWebhooks({ home, folder }: CommandContext, crews: DueDriver): Promise<WebhookDesk | null> {
  const setup = await readSetup(home, folder)
  await checkFolderNotify(setup)
  const endpoints = await readFolderEndpoints(setup)
  if (endpoints.size === 0) return null
  const { triggerAgent } = await import('../../triggers/index.ts')
  return {
    endpoints,
    trigger: (envelope) =>
      withFaults(crews.harnessIn(folder, triggerAgent(envelope.source)).then((one) => one.trigger(envelope))),
    counts: { accepted: 0, duplicates: 0, refused: 0 },
  }
}

/**
 * Lets clients tell this store from another one behind the same address. A store without an id is known by its
 * location.
 */
async function storeIdOf({ store, at }: CommandContext): Promise<string> {
  if (hasMark(store)) return (await store.mark()).store
  return hash('sha256', at?.shown ?? '').slice(0, 32)
}

function hasMark(store: CompleteStore): store is CompleteStore & { mark(): Promise<{ readonly store: string }> } {
  return 'mark' in store && typeof store.mark === 'function'
}

/**
 * Turns an error in a folder, its configuration or an agent into a Fault, which goes into the answer to the request.
 */
async function withFaults<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const code =
      error.exit === EXIT.config
        ? 'invalid_config'
        : error.exit === EXIT.conflict
          ? 'session_elsewhere'
          : 'invalid_input'
    throw new Fault(code, error.message)
  }
}

/** A caller who is not an admin works in the server's folder, or in a folder that its user trusts. */
async function beginSession(
  { home, folder: here }: CommandContext,
  crews: DueDriver,
  { agent, folder: wanted, by }: NewSessionWish,
): Promise<NewSessionSetup> {
  const folder = wanted === undefined ? here : realFolder(wanted)
  if (by.role !== 'admin' && folder !== here && !isTrusted(home, folder))
    throw new CliError(EXIT.config, `${folder} is not a folder that this server works in. Leave it out.`)
  const setup = await readSetup(home, folder)
  if (isDefinedAgent(agent)) findDefinition((await loadDefinitions(setup)).definitions, agent)
  const harness = await crews.harnessIn(folder, agent ?? CLI_AGENT)
  return { harness, folder, ...(agent === undefined ? {} : { agent }) }
}
