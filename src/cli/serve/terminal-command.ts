// `terret acp --in-terminal FOLDER`: what a terminal of an editor runs. It takes one order out of the folder, runs it inside its walls and
// limits, shows what it prints, and leaves there how it ended. When it is told to stop, or is killed, nothing of the command lives on.
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bornAt, type ChildOrder, runChild } from '../../tools/shell/spawn.ts'
import { EXIT, Refusal } from '../exit.ts'
import { systemClock } from '../../stores/plan/clock.ts'

export const ORDER_FILE = 'order.json'
export const END_FILE = 'end.json'

/** An order as it is written down: without what only the process that gave it has, and with that process, which it must not outlive. */
export type StoredOrder = Omit<ChildOrder, 'signal' | 'onChunk' | 'filter'> & {
  readonly filter: string | null
  readonly owner: { readonly pid: number; readonly born: string | null }
}

const OWNER_MS = 250

export async function runInTerminal(folder: string): Promise<number> {
  const file = join(folder, ORDER_FILE)
  const text = await readFile(file, 'utf8').catch(() => null)
  if (text === null)
    throw new Refusal(EXIT.usage, `No command waits in ${folder}. The flag --in-terminal is for Terret itself.`)
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
  // The session that gave the order may be removed by now, together with its folder.
  await writeFile(written, JSON.stringify(end)).then(
    () => rename(written, join(folder, END_FILE)),
    () => {},
  )
  return end.how.type === 'exited' ? end.how.code : 1
}

/** Where the system does not say when a process was started, its number must do. */
function isAlive({ pid, born }: StoredOrder['owner']): boolean {
  if (born !== null) return bornAt(pid) === born
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
