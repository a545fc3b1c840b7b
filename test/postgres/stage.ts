// What a test takes of real Postgres servers: a fresh database of the one its process shares, or a server that it may hurt.
// All of it is gone after the test, also when it fails.
import { onTestFinished } from 'vitest'
import { Proxy } from './proxy.ts'
import { Server, type ServerOptions } from './server.ts'

let shared: Promise<Server> | null = null
let made = 0

/** The server that all quick tests of this process share. It ends with the process. */
export function sharedServer(): Promise<Server> {
  return (shared ??= Server.start())
}

export type Database = { readonly server: Server; readonly name: string; readonly url: string }

/** A fresh database of the shared server, dropped after the test. `as` follows CREATE DATABASE. */
export async function database(as = ''): Promise<Database> {
  const server = await sharedServer()
  made += 1
  const name = `test_${process.pid}_${made}`
  await server.query(`create database ${name} ${as}`)
  onTestFinished(async () => void (await server.query(`drop database if exists ${name} with (force)`)))
  return { server, name, url: server.url(name) }
}

/** A server that the test stops, kills or copies. Closed after the test. */
export async function ownServer(options: ServerOptions = {}): Promise<Server> {
  const server = await Server.start(options)
  onTestFinished(() => server.close())
  return server
}

/** Its copy, closed after the test too. */
export async function ownStandby(server: Server): Promise<Server> {
  const copy = await server.standby()
  onTestFinished(() => copy.close())
  return copy
}

/** A network to hurt, in front of a server. Closed after the test. */
export async function proxyTo(server: Server): Promise<Proxy> {
  const proxy = await Proxy.to(server.port)
  onTestFinished(() => proxy.close())
  return proxy
}
