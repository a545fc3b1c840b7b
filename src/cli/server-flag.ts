// `--server [URL]` and `--token-file FILE`, which are for every command: taken out of the line before the command is read.
import { EXIT, Refusal } from './exit.ts'
import { type Far, nameServer } from './present/print.ts'
import { TABLE, worksFar } from './table.ts'

/** `url` null: the server of this data folder that was started last. */
type Wanted = Omit<Far, 'url'> & { readonly url: string | null }

export function serverIn(line: readonly string[]): { readonly far: Wanted | null; readonly words: readonly string[] } {
  const end = line.indexOf('--')
  const [own, rest] = end < 0 ? [line, []] : [line.slice(0, end), line.slice(end)]
  const server = valueIn(own, '--server', isAddress)
  const file = valueIn(server.others, '--token-file', () => true)
  if (!server.isGiven && !file.isGiven) return { far: null, words: line }
  if (!server.isGiven) throw new Refusal(EXIT.usage, '--token-file goes with --server: terret --server URL COMMAND')
  if (server.value === '' || (file.isGiven && !file.value))
    throw new Refusal(EXIT.usage, `${server.value === '' ? '--server' : '--token-file'} needs a value.`)
  return { far: { url: server.value ?? null, tokenFile: file.value }, words: [...file.others, ...rest] }
}

/** Null: no longer. */
export async function useServer(wanted: Wanted | null, command = 'help'): Promise<void> {
  if (wanted && !worksFar(command))
    throw new Refusal(EXIT.usage, `\`terret ${command}\` works on this machine only: leave out --server.`)
  const { setFar } = await import('./state/far.ts')
  const far = wanted && { ...wanted, url: wanted.url ?? (await newestServer()) }
  setFar(far)
  nameServer(far)
}

async function newestServer(): Promise<string> {
  const [{ otherServers }, { homeOf }] = await Promise.all([import('./state/served.ts'), import('./state/home.ts')])
  const [newest] = otherServers(homeOf())
  if (newest) return newest.url
  const text =
    'No server of this data folder runs. Start one, or give the address of another: terret --server URL COMMAND'
  throw new Refusal(EXIT.config, text)
}

/** Behind `--server` without an address comes the command, a flag, or nothing. */
function isAddress(word: string): boolean {
  return !word.startsWith('-') && !Object.hasOwn(TABLE, word)
}

type Given = { readonly isGiven: boolean; readonly value: string | undefined; readonly others: readonly string[] }

/** The first value of this flag, and the line without the flag and what is its value. */
function valueIn(line: readonly string[], flag: string, isValue: (word: string) => boolean): Given {
  const at = line.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  const word = line[at]
  if (word === undefined) return { isGiven: false, value: undefined, others: line }
  const next = line[at + 1]
  const isNext = word === flag && next !== undefined && isValue(next)
  const value = word === flag ? (isNext ? next : undefined) : word.slice(flag.length + 1)
  const { others } = valueIn(line.slice(at + (isNext ? 2 : 1)), flag, isValue)
  return { isGiven: true, value, others: [...line.slice(0, at), ...others] }
}
