// Transports live deltas between processes of one machine: a unix socket in the process that drives (live-server.ts),
// and one connection for each subscriber. Without unix sockets (Windows) there is no transport.
import { tmpdir } from 'node:os'
import { LiveServer, UNIX } from './live-server.ts'
import type { DeltaHandlers, DeltaTransport } from './delta-transport.ts'

/** `folder` is where the socket's own folder is created. A path too long for a unix socket is replaced by `/tmp`. */
export function socketTransport(folder = tmpdir()): DeltaTransport {
  return {
    open: (local, clock) => LiveServer.open(local, clock, folder).catch(() => null),
    follow: followSocket,
    close: () => {},
  }
}

function followSocket(address: string, session: string, ends: DeltaHandlers): (() => void) | null {
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
      const heard = ends.read(parseLine(line))
      // After a gap a new connection starts with a catch-up.
      if (heard === 'gap' || heard === 'nonsense') socket.destroy()
    }
  })
  socket.write(`${JSON.stringify({ session })}\n`)
  return () => void socket.destroy()
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
