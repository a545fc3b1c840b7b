// The way of live deltas between processes of one machine: a unix socket of the process that drives, whose other end is server.ts, and
// one connection for each subscriber. Where there are no unix sockets (Windows) there is no way.
import { tmpdir } from 'node:os'
import { LiveServer, UNIX } from './server.ts'
import type { Ends, Way } from './way.ts'

/** `folder` is where the socket's own folder is made. Too long a path for a unix socket is replaced by `/tmp`. */
export function sockets(folder = tmpdir()): Way {
  return {
    open: (local, clock) => LiveServer.open(local, clock, folder).catch(() => null),
    follow,
    close: () => {},
  }
}

function follow(address: string, session: string, ends: Ends): (() => void) | null {
  if (!address.startsWith(UNIX)) return null
  const socket = process.getBuiltinModule('node:net').connect(address.slice(UNIX.length))
  let rest = ''
  socket.unref()
  socket.setEncoding('utf8')
  socket.on('error', () => {})
  socket.on('close', ends.ended)
  socket.on('data', (chunk: string) => {
    const end = chunk.lastIndexOf('\n')
    if (end === -1) {
      rest += chunk
      return
    }
    const lines = (rest + chunk.slice(0, end)).split('\n')
    rest = chunk.slice(end + 1)
    for (const line of lines) {
      if (socket.destroyed) return
      const heard = ends.read(parsed(line))
      // After a gap a fresh connection starts with a catch-up.
      if (heard === 'gap' || heard === 'nonsense') socket.destroy()
    }
  })
  socket.write(`${JSON.stringify({ session })}\n`)
  return () => void socket.destroy()
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
