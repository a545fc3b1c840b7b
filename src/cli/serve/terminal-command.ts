// `terret acp --in-terminal FOLDER`: the program in an editor's terminal. It takes one order out of the folder, runs it
// with its sandbox and limits, shows its output, and writes the result to the folder. When it is told to stop, or is
// killed, the whole command ends.
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processStartTime, type ChildOrder, runChild } from '../../tools/shell/child-process.ts'
import { EXIT, CliError } from '../exit.ts'
import { systemClock } from '../../stores/plan/system-clock.ts'

export const ORDER_FILE = 'order.json'
export const END_FILE = 'end.json'

/**
 * A stored order: without the parts that exist only in the ordering process, and with the id of that process, which it
 * must not outlive.
 */
export type StoredOrder = Omit<ChildOrder, 'signal' | 'onChunk' | 'filter'> & {
  readonly filter: string | null
  readonly owner: { readonly pid: number; readonly born: string | null }
}

const OWNER_MS = 250

export async function runInTerminal(folder: string): Promise<number> {
  const file = join(folder, ORDER_FILE)
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null)
    throw new CliError(EXIT.usage, `No command waits in ${folder}. The flag --in-terminal is for Terret itself.`)
  const { filter, owner, ...order } = JSON.parse(text) as StoredOrder
  await rm(file)
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort())
  const watch = setInterval(() => !isAlive(owner) && stop.abort(), OWNER_MS)
  const end = await runChild(
    {
      ...order,
      filter: filter === null ? null : Buffer.from(filter, 'base64'),
      signal: stop.signal,
      onChunk: (stream, chunk) => void process[stream].write(chunk),
    },
    systemClock,
  )
  clearInterval(watch)
  const written = join(folder, `${END_FILE}.tmp`)
  // The session that gave the order may have been removed, together with its folder.
  await writeFile(written, JSON.stringify(end)).then(
    () => rename(written, join(folder, END_FILE)),
    () => {},
  )
  return end.how.type === 'exited' ? end.how.code : 1
}

/** If the system does not report start times, the process id alone decides. */
function isAlive({ pid, born }: StoredOrder['owner']): boolean {
  if (born !== null) return processStartTime(pid) === born
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
