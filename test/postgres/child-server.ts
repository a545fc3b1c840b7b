// A process that starts a server, says where it is, and waits to be killed, or until the process that forked it is gone. Run by
// server.long.test.ts, and by the simulator.
import { Server } from './server.ts'

const server = await Server.start()
process.stdout.write(`${server.data} ${server.port} ${server.url()}\n`)
process.once('disconnect', () => process.exit())
setInterval(() => {}, 60_000)
