// Removes the socket folders that killed processes left behind: each process that opens a socket removes some of them.
// It removes only folders that no process can be using, and reports no failure.
import { lstat, readdir, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** The names that `mkdtemp` creates, and the one entry in such a folder. */
const NAME = /^terret-[A-Za-z0-9]{6}$/
export const SOCKET = 'live'
/** A new folder may be about to listen. */
const YOUNG_MS = 60_000
const LOOKS_MAX = 64

/** Looks at the folders beside the own one. Never rejects. */
export async function sweepBeside(own: string, now: number): Promise<void> {
  const folder = dirname(own)
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name)).sort()
  // Starts after its own name, which is random, so that every folder is looked at by some process.
  const from = Math.max(0, names.indexOf(basename(own)))
  const next = [...names.slice(from + 1), ...names.slice(0, from)].slice(0, LOOKS_MAX)
  // A failure there comes from another process, for example one that sweeps too.
  for (const name of next) await sweepFolder(join(folder, name), now).catch(() => {})
}

async function sweepFolder(home: string, now: number): Promise<void> {
  const found = await lstat(home)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || now - found.mtimeMs < YOUNG_MS) return
  if ((await readdir(home)).join('/') !== SOCKET) return
  const path = join(home, SOCKET)
  if (!(await lstat(path)).isSocket() || !(await refusesConnections(path))) return
  await unlink(path)
  await rmdir(home)
}

/** No process listens there, and none will: only the process that made a socket listens to it, and only once. */
function refusesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = process.getBuiltinModule('node:net').connect(path)
    socket.unref()
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })
}
