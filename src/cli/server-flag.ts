// `--server [URL]` and `--token-file FILE`, which all commands take. They are removed from the command line before the
// command is read.
import { isMessage } from './args.ts'
import { EXIT, CliError } from './exit.ts'
import { type RemoteServer, setPrintedServer } from './present/print.ts'
import { TABLE, worksRemotely } from './table.ts'

/** `url` null: the server of this data folder that was started last. */
type ServerChoice = Omit<RemoteServer, 'url'> & { readonly url: string | null }

export function parseServerFlags(line: readonly string[]): {
  readonly far: ServerChoice | null
  readonly words: readonly string[]
} {
  const end = line.indexOf('--')
  const [own, rest] = end < 0 ? [line, []] : [line.slice(0, end), line.slice(end)]
  const server = takeFlag(own, '--server', isAddress)
  const file = takeFlag(server.others, '--token-file', () => true)
  if (!server.isGiven && !file.isGiven) return { far: null, words: line }
  if (!server.isGiven) throw new CliError(EXIT.usage, '--token-file goes with --server: terret --server URL COMMAND')
  if (server.value === '' || (file.isGiven && !file.value))
    throw new CliError(EXIT.usage, `${server.value === '' ? '--server' : '--token-file'} needs a value.`)
  return { far: { url: server.value ?? null, tokenFile: file.value }, words: [...file.others, ...rest] }
}

/** Null resets it. */
export async function useServer(wanted: ServerChoice | null, command = 'help'): Promise<void> {
  if (wanted && !worksRemotely(command))
    throw new CliError(EXIT.usage, `\`terret ${command}\` works on this machine only: leave out --server.`)
  const { setRemoteServer } = await import('./state/remote-server.ts')
  const far = wanted && { ...wanted, url: wanted.url ?? (await newestServerUrl()) }
  setRemoteServer(far)
  setPrintedServer(far)
}

async function newestServerUrl(): Promise<string> {
  const [{ otherServers }, { findHome }] = await Promise.all([
    import('./state/running-servers.ts'),
    import('./state/cli-home.ts'),
  ])
  const [newest] = otherServers(findHome())
  if (newest) return newest.url
  const text =
    'No server of this data folder runs. Start one, or give the address of another: terret --server URL COMMAND'
  throw new CliError(EXIT.config, text)
}

/** After `--server` without an address comes the command, a flag, a message for the chat, or nothing. */
function isAddress(word: string): boolean {
  return !word.startsWith('-') && !Object.hasOwn(TABLE, word) && !isMessage(word)
}

type FlagMatch = { readonly isGiven: boolean; readonly value: string | undefined; readonly others: readonly string[] }

/** The first value of this flag, and the line without the flag and its value. */
function takeFlag(line: readonly string[], flag: string, isValue: (word: string) => boolean): FlagMatch {
  const at = line.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  const word = line[at]
  if (word === undefined) return { isGiven: false, value: undefined, others: line }
  const next = line[at + 1]
  const isNext = word === flag && next !== undefined && isValue(next)
  const value = word === flag ? (isNext ? next : undefined) : word.slice(flag.length + 1)
  const { others } = takeFlag(line.slice(at + (isNext ? 2 : 1)), flag, isValue)
  return { isGiven: true, value, others: [...line.slice(0, at), ...others] }
}
