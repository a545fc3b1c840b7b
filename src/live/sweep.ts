// Folders of live sockets that a killed process left behind: each process that opens a socket removes some of them. It only removes what
// no process can be using, and says nothing when it cannot.
import { lstat, readdir, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** As `mkdtemp` makes them, and what is in one. */
const NAME = /^terret-[A-Za-z0-9]{6}$/
export const SOCKET = 'live'
/** A folder that was just made may be about to listen. */
const YOUNG_MS = 60_000
const LOOKS_MAX = 64

/** Beside this folder of one's own. Never rejects. */
export async function sweepBeside(own: string, now: number): Promise<void> {
  const folder = dirname(own)
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name)).sort()
  // From its own name on, which is random: so that each is looked at by some process, however many there are.
  const from = Math.max(0, names.indexOf(basename(own)))
  const next = [...names.slice(from + 1), ...names.slice(0, from)].slice(0, LOOKS_MAX)
  // A failure there comes from another process, such as one that sweeps too.
  for (const name of next) await sweep(join(folder, name), now).catch(() => {})
}

async function sweep(home: string, now: number): Promise<void> {
  const found = await lstat(home)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || now - found.mtimeMs < YOUNG_MS) return
  if ((await readdir(home)).join('/') !== SOCKET) return
  const path = join(home, SOCKET)
  if (!(await lstat(path)).isSocket() || !(await refuses(path))) return
  await unlink(path)
  await rmdir(home)
}

/** No process listens there, and none will: a socket is listened to once, by the process that made it. */
function refuses(path: string): Promise<boolean> {
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
