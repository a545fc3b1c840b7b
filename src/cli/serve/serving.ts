// The server over an opened data folder, as `terret serve` and the demo run it: which harness a session belongs to is said here, what is
// answered is src/server.
import { hash } from 'node:crypto'
import type { Harness } from '../../index.ts'
import { Fault, type Store } from '../../kernel/index.ts'
import type { Begun, Host, Wish } from '../../server/host.ts'
import { type Call, person } from '../args.ts'
import { endOf, EXIT, Refusal } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { warn } from '../present/print.ts'
import { definitionNamed, definitionsOf, isDefined } from '../state/agents.ts'
import { Crews, WIDTH } from '../state/crews.ts'
import { realFolder } from '../state/home.ts'
import { sweep } from '../state/leftovers.ts'
import { AGENT } from '../state/memory.ts'
import type { Place } from '../state/place.ts'
import { drivenElsewhere, PROGRAM } from '../state/program.ts'
import { alone } from '../../stores/sqlite/alone.ts'
import { forgetServer, rememberServer, tokenFile } from '../state/served.ts'
import { setupFor } from '../state/setup.ts'
import { accessLog } from './access-log.ts'
import { isTrusted } from '../state/trust.ts'

/** A session whose server was killed goes on elsewhere after this, or at once where its process is seen to be gone. */
const LEASE_MS = 5_000
export const PORT = 4747

export type Listening = { readonly port: number; readonly address?: string; readonly names?: readonly string[] }

export type Serving = {
  readonly url: string
  readonly token: string
  /** With the token behind the `#`, which is sent to no server. */
  readonly page: string
  /** Drives what becomes due, from now on. */
  drive(width?: number): void
  close(): Promise<void>
}

/** `failed` is told what the store refused to the sessions that are driven here. */
export async function openServer(
  place: Place,
  call: Call,
  listening: Listening,
  failed: (error: unknown) => void = () => {},
): Promise<Serving> {
  const [{ serve: start }, { pagesIn }, { Tokens }, { DueLoop, Harness, offline, VERSION }] = await Promise.all([
    import('../../server/server.ts'),
    import('../../server/pages.ts'),
    import('../../server/tokens.ts'),
    import('../../index.ts'),
  ])
  const { store, home } = place
  const crews = new Crews(place, call, { leaseMs: LEASE_MS, says: false, drives: !call.is('no-drive'), failed })
  const reader = new Harness({ program: PROGRAM, model: offline(), store, drives: false })
  const report = (where: string, error: unknown): void => warn(clean(`${where}: ${endOf(error).text}`))
  const tokens = new Tokens(tokenFile(home), person(call), alone)
  let due: InstanceType<typeof DueLoop> | null = null
  const host = await hostOf({ place, crews, reader, version: VERSION, drives: () => due !== null })
  const onAccess = accessLog(home)
  const server = await start({ host, tokens, pages: pagesIn(), report, onAccess, ...listening }).catch(
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
      // It ends by itself when the store was replaced, which `report` was told.
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

type Parts = {
  readonly place: Place
  readonly crews: Crews
  readonly reader: Harness
  readonly version: string
  readonly drives: () => boolean
}

async function hostOf({ place, crews, reader, version, drives }: Parts): Promise<Host> {
  const storeId = await storeIdOf(place)
  return {
    version,
    store: place.store,
    storeId,
    harness: reader,
    harnessOf: (card) => said(crews.harnessOf(card)),
    begin: (wish) => said(begin(place, crews, wish)),
    agents: () => said(crews.harnessIn(place.folder, AGENT).then((harness) => harness.agents())),
    elsewhere: (card) => drivenElsewhere(place, card),
    program: PROGRAM,
    removed: (removed) => sweep(place.home, removed),
    get drives() {
      return drives()
    },
    driving: () => crews.busy,
  }
}

/** Tells clients this store from another one behind the same address. One that gives itself no id is known by its place. */
async function storeIdOf({ store, at }: Place): Promise<string> {
  if (isMarked(store)) return (await store.mark()).store
  return hash('sha256', at?.shown ?? '').slice(0, 32)
}

function isMarked(store: Store): store is Store & { mark(): Promise<{ readonly store: string }> } {
  return 'mark' in store && typeof store.mark === 'function'
}

/** A mistake in a folder, its configuration or an agent goes into the answer to the request. */
async function said<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const code =
      error.exit === EXIT.config
        ? 'invalid_config'
        : error.exit === EXIT.conflict
          ? 'session_elsewhere'
          : 'invalid_input'
    throw new Fault(code, error.message)
  }
}

/** Who is no admin works where the server was started, or in a folder that its user trusts. */
async function begin({ home, folder: here }: Place, crews: Crews, { agent, folder: wanted, by }: Wish): Promise<Begun> {
  const folder = wanted === undefined ? here : realFolder(wanted)
  if (by.role !== 'admin' && folder !== here && !isTrusted(home, folder))
    throw new Refusal(EXIT.config, `${folder} is not a folder that this server works in. Leave it out.`)
  const setup = await setupFor(home, folder)
  if (isDefined(agent)) definitionNamed((await definitionsOf(setup)).definitions, agent)
  const harness = await crews.harnessIn(folder, agent ?? AGENT)
  return { harness, folder, ...(agent === undefined ? {} : { agent }) }
}
