// A page's server for the tests of terret/ui: a harness behind a real HTTP server, and its frames as they come over the wire.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Harness } from '../../src/index.ts'
import { agUiHandler, chatHandler, type Handler, nodeListener, type UiOptions } from '../../src/ui/index.ts'

async function listening(handler: Handler): Promise<string> {
  const server = createServer(nodeListener(handler))
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((down) => server.close(down))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Everyone is Ana, unless the test says otherwise. */
export const ANA: UiOptions = { by: () => 'ana' }

export const chatServer = (harness: Harness, options = ANA): Promise<string> => listening(chatHandler(harness, options))
export const agUiServer = (harness: Harness, options = ANA): Promise<string> => listening(agUiHandler(harness, options))

export type Seen = { readonly id: string | null; readonly data: Record<string, unknown> }

/** The frames of an answer, without the mark of its end. */
export async function framesOf(response: Response): Promise<readonly Seen[]> {
  return (await response.text()).split('\n\n').flatMap((text): readonly Seen[] => {
    const data = /^data: (.*)$/m.exec(text)?.[1]
    if (data === undefined || data === '[DONE]') return []
    return [{ id: /^id: (.*)$/m.exec(text)?.[1] ?? null, data: JSON.parse(data) as Record<string, unknown> }]
  })
}

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(url, { method: 'POST', body: sent, headers: { 'content-type': 'application/json', ...headers } })
}

/** What `useChat` sends for a new message. */
export function userMessage(text: string, id = `m-${text}`) {
  return { id, role: 'user', parts: [{ type: 'text', text }] }
}
