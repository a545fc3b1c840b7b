// A chat with a session of a server: the chat's own code, with the sessions of the client in place of a harness. The
// server drives, and its setup counts.
import type { Sessions } from '../../index.ts'
import type { Client } from '../../client/index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import type { CommandContext } from '../state/command-context.ts'
import { CLI_AGENT } from '../state/folder-memory.ts'
import type { OutputListener } from '../state/drive-session.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { eventIdOfKey, keyIdOf } from '../../server/idempotency-keys.ts'
import type { PatientFetch } from './patient-fetch.ts'
import { checkFlags } from './remote-run.ts'

/** The setup of this terminal alone: no policy, no rules and no files of this machine decide about the server. */
export function remoteSetup(place: CommandContext, call: CommandArgs, folder: string): FolderSetup {
  checkFlags(call)
  if (call.texts('model').length > 0)
    throw new CliError(EXIT.usage, 'The agent of a server has its model. Leave out --model, or give it to `serve`.')
  return {
    home: place.home,
    folder,
    start: folder,
    trusted: false,
    settings: {},
    mode: 'ask',
    policy: { rules: [] },
    kept: [],
    hooks: [],
    obeyed: [],
    guidance: '',
    env: process.env,
    notes: [],
  }
}

/** What the chat shows of a server: the name that its token has there, and the model of the agent. */
export async function readServerFacts(client: Client, agent: string = CLI_AGENT): Promise<ServerFacts> {
  const [{ name: by }, agents] = await Promise.all([client.server.me(), client.agents()])
  const eventIdOf = (id: string): string => eventIdOfKey(keyIdOf(by, id))
  return { by, model: agents.find(({ name }) => name === agent)?.model ?? '', eventIdOf }
}

export type ServerFacts = {
  readonly by: string
  readonly model: string
  /** The id of the event of a message that was sent with this id. */
  readonly eventIdOf: (id: string) => string
}

/** In place of `withHarness`: an outage is one line, and another one when it is over. */
export function withServer(client: Client, patience: PatientFetch): WithSessions {
  return async (_place, _setup, _call, act) => {
    const ear: OutputListener = { hear: () => {}, runs: () => {}, note: () => {} }
    patience.listen({
      away: () => ear.note('The server is away. What you enter is kept, and goes on when it is back.'),
      back: () => ear.note('The server is back.'),
    })
    const sessions = chatSessions(client, patience, (text) => ear.note(text))
    try {
      return await act(sessions, ear)
    } finally {
      await sessions.close()
    }
  }
}

/** How a chat gets its sessions: of a harness, or of a server. */
export type WithSessions = <T>(
  place: CommandContext,
  setup: FolderSetup,
  call: CommandArgs,
  act: (sessions: Sessions, ear: OutputListener) => Promise<T>,
  agent?: string,
) => Promise<T>

/**
 * The sessions of a server for one chat. A folder that the server does not work in is left out with a note: the session
 * then works in the folder of the server. Closing ends what this chat asks; the server goes on.
 */
function chatSessions(client: Client, patience: PatientFetch, note: (text: string) => void): Sessions {
  const open: Sessions['open'] = async (options = {}) => {
    const { folder, ...others } = options
    try {
      return await client.open(options)
    } catch (error) {
      if (folder === undefined || !isFolderRefused(error)) throw error
      const session = await client.open(others)
      note(`The server does not work in ${clean(folder)}: this session is in the server's own folder.`)
      return session
    }
  }
  const close = async (): Promise<void> => {
    patience.hurry()
    await client.close()
  }
  return new Proxy<Sessions>(client, {
    get: (target, name) => {
      if (name === 'open') return open
      if (name === 'close') return close
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

function isFolderRefused(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'Fault') return false
  return /^There is no folder |is not a folder that this server works in/.test(error.message)
}
