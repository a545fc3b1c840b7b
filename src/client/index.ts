// The public entry `terret/client`: the library's verbs over HTTP. The server drives the sessions, not the client.
// It uses nothing of Node, so it runs in a browser too.
import { Client } from './client.ts'
import { type ClientOptions, ServerConnection } from './server-connection.ts'

/** Sends nothing until a method is called. */
export function connect(options: ClientOptions): Client {
  return new Client(new ServerConnection(options))
}

export type { Client } from './client.ts'
export type { ClientSession } from './client-session.ts'
export type { ServerInfo } from './server-info.ts'
export { type ClientOptions, ServerRefusal } from './server-connection.ts'
export type * from '../server/wire.ts'
export type { Labels, Metadata } from '../kernel/index.ts'
