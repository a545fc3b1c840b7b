// `--server URL` and `--token-file FILE`, which are for every command: taken out of the line before the command is read.
import { EXIT, Refusal } from './exit.ts'
import { type Far, nameServer } from './present/print.ts'
import { worksFar } from './table.ts'

const FLAGS = ['--server', '--token-file']

export function serverIn(line: readonly string[]): { readonly far: Far | null; readonly words: readonly string[] } {
  const end = line.indexOf('--')
  const [own, rest] = end < 0 ? [line, []] : [line.slice(0, end), line.slice(end)]
  const url = valueIn(own, '--server')
  const tokenFile = valueIn(own, '--token-file')
  if (url === undefined && tokenFile === undefined) return { far: null, words: line }
  if (url === undefined) throw new Refusal(EXIT.usage, '--token-file goes with --server: terret --server URL COMMAND')
  return { far: { url, tokenFile }, words: [...own.filter((_, i) => !isTaken(own, i)), ...rest] }
}

/** Null: no longer. */
export async function useServer(far: Far | null, command = 'help'): Promise<void> {
  if (far && !worksFar(command))
    throw new Refusal(EXIT.usage, `\`terret ${command}\` works on this machine only: leave out --server.`)
  const { setFar } = await import('./state/far.ts')
  setFar(far)
  nameServer(far)
}

function isTaken(line: readonly string[], i: number): boolean {
  const word = line[i] ?? ''
  return FLAGS.some((flag) => word === flag || word.startsWith(`${flag}=`) || line[i - 1] === flag)
}

function valueIn(line: readonly string[], flag: string): string | undefined {
  const at = line.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  if (at < 0) return undefined
  const value = line[at] === flag ? line[at + 1] : line[at]?.slice(flag.length + 1)
  if (value === undefined || value === '') throw new Refusal(EXIT.usage, `${flag} needs a value.`)
  return value
}
