// One POST over node:http, and the few fields of its answer that matter. otlp.ts retries and interprets answers.
import type { Agent, IncomingMessage, request } from 'node:http'

export type PostAnswer = { readonly status: number; readonly retryAfterMs: number | null; readonly body: string }

export type PostRequest = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

export type HttpClient = { readonly request: typeof request; readonly agent: Agent }

/** No more of an answer is read. */
const ANSWER_BYTES_MAX = 65_536

/** Not by `import`, which would load it for programs that never send a trace. */
export function openHttpClient(protocol: string): HttpClient {
  const http = process.getBuiltinModule(protocol === 'http:' ? 'node:http' : 'node:https')
  return { request: http.request, agent: new http.Agent({ keepAlive: true }) }
}

/** Rejects when there is no answer. A redirect is an answer: nothing is sent to an address that was not configured. */
export function postOnce(door: HttpClient, { url, headers, body, signal }: PostRequest): Promise<PostAnswer> {
  return new Promise((resolve, reject) => {
    const sent = door.request(url, { method: 'POST', headers, agent: door.agent, signal })
    sent.on('error', reject)
    sent.once('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const answer = (): void => resolve(answerOf(response, Buffer.concat(chunks).toString()))
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= ANSWER_BYTES_MAX) chunks.push(chunk)
        else response.destroy()
      })
      response.once('close', answer)
      response.on('error', () => {})
    })
    sent.end(body)
  })
}

function answerOf({ statusCode, headers }: IncomingMessage, body: string): PostAnswer {
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return { status: statusCode ?? 0, retryAfterMs: seconds >= 0 ? seconds * 1_000 : null, body }
}
