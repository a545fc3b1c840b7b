// The stage of `web_fetch` in tests: real servers on this host under names of the web, and what a fetch of them gives.
import type { RequestListener, ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { webFetchTool, type WebFetchOptions } from '../../src/tools/web/web-fetch.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import type { ToolContext } from '../../src/tools/core/tool.ts'
import { toolContext } from './context.ts'
import { CERTIFICATE, names, serve, type Web, type Where } from './web.ts'

export type Page = {
  readonly note: string
  readonly url: string
  readonly final_url: string
  readonly status: number
  readonly content_type: string
  readonly format: string
  readonly content: string
  readonly truncated: boolean
}
type Args = {
  readonly url: string
  readonly format?: string
  readonly max_length?: number
  readonly timeout_ms?: number
}

export async function web(answer: RequestListener, where: Where = {}): Promise<Web> {
  const one = await serve(answer, where)
  onTestFinished(() => one.close())
  return one
}

export const LOOPBACK = ['127.0.0.1']
/** Names that stand for the web outside, on this host. */
export const HOSTS = {
  'site.test': LOOPBACK,
  'www.site.test': LOOPBACK,
  'other.test': LOOPBACK,
  'secure.test': LOOPBACK,
}
export const outside = (...webs: readonly Web[]): WebFetchOptions => ({
  ports: webs.map(({ port }) => port),
  privateHosts: ['*.test'],
  resolve: names(HOSTS),
  ca: CERTIFICATE,
})

export async function output(
  args: Args,
  options: WebFetchOptions,
  context: ToolContext = toolContext(),
): Promise<Output> {
  return (await webFetchTool(options).execute(args, context)) as Output
}

export async function page(args: Args, options: WebFetchOptions, context?: ToolContext): Promise<Page> {
  return JSON.parse((await output(args, options, context)).content) as Page
}

/** One page of one server, and what becomes of it. */
export async function shown(answer: RequestListener, args: Partial<Args> = {}, context?: ToolContext): Promise<Page> {
  const one = await web(answer)
  return page({ url: `http://site.test:${one.port}/`, ...args }, outside(one), context)
}

export const html =
  (body: string): RequestListener =>
  (_, response) =>
    void response.setHeader('content-type', 'text/html; charset=utf-8').end(body)

export const typed =
  (type: string, body: string | Buffer): RequestListener =>
  (_, response) =>
    void response.writeHead(200, type === '' ? {} : { 'content-type': type }).end(body)

export const packed =
  (encoding: string, body: Buffer): RequestListener =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': encoding }).end(body)

export const moved = (response: ServerResponse, location: string, status = 302): void =>
  void response.writeHead(status, { location }).end()

/** Nothing of a fetch is left: the server sees every socket closed. */
export async function allClosed(one: Web): Promise<boolean> {
  for (let i = 0; i < 500 && one.connections.open.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10))
  return one.connections.open.size === 0
}
