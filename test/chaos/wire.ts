// Asking the chaos server as a client would: plain requests, and a stream split into its events.
import { onTestFinished } from 'vitest'
import { type Chaos, type ChaosOptions, type ChaosScript, type Dialect, startChaos } from '../../src/testing/index.ts'

export type Body = Readonly<Record<string, unknown>>
export type WireEvent = { readonly event: string; readonly data: string }

export const PATHS: Readonly<Record<Dialect, string>> = {
  messages: '/v1/messages',
  responses: '/v1/responses',
  chat: '/v1/chat/completions',
}
export const DIALECTS = Object.keys(PATHS) as readonly Dialect[]

/** The smallest good request of each dialect. */
const HELLO: Readonly<Record<Dialect, Body>> = {
  messages: { model: 'claude-sonnet-4-5', max_tokens: 4_096, messages: [{ role: 'user', content: 'hello' }] },
  responses: { model: 'gpt-5', input: [{ role: 'user', content: 'hello' }] },
  chat: { model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }] },
}

/** Closed when the test is over. */
export async function chaosFor(script: ChaosScript, options: Partial<ChaosOptions> = {}): Promise<Chaos> {
  const chaos = await startChaos({ script, ...options })
  onTestFinished(() => chaos.close())
  return chaos
}

export function post(
  chaos: Chaos,
  dialect: Dialect,
  body: Body = {},
  init: { readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(chaos.url + PATHS[dialect], {
    method: 'POST',
    redirect: 'manual',
    body: JSON.stringify({ ...HELLO[dialect], ...body }),
    ...init,
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...init.headers },
  })
}

export async function json(response: Response): Promise<Body> {
  return (await response.json()) as Body
}

export async function streamOf(chaos: Chaos, dialect: Dialect, body: Body = {}): Promise<readonly WireEvent[]> {
  const response = await post(chaos, dialect, { stream: true, ...body })
  return split(await response.text())
}

/** Whole events only: what has no data is none. */
export function split(text: string): readonly WireEvent[] {
  return text
    .split('\n\n')
    .map((block) => block.split('\n'))
    .map((lines) => ({ event: field(lines, 'event'), data: field(lines, 'data') }))
    .filter(({ data }) => data !== '')
}

function field(lines: readonly string[], name: string): string {
  return lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ''
}

/** What came before the answer ended or broke off. */
export async function received(response: Response): Promise<{ readonly bytes: Buffer; readonly broken: boolean }> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk as Uint8Array)
    return { bytes: Buffer.concat(chunks), broken: false }
  } catch {
    return { bytes: Buffer.concat(chunks), broken: true }
  }
}
