// A process that starts a server, says where it is, and waits to be killed. Run by server.test.ts.
import { Server } from './server.ts'

const server = await Server.start()
process.stdout.write(`${server.data} ${server.port}\n`)
setInterval(() => {}, 60_000)
