// The other side of `stream` and `http`: a provider of Chat Completions in a process of its own, so that its CPU is not counted.
// Plain node:http and bytes made beforehand; it reads no request. What it says: a short reply, a long one in large or in small
// chunks, or so many calls and then a short reply, again and again.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Case } from './family.ts'
import { argsOf } from './turn.ts'

export const DELTAS = 20_000
export const TURNS = 200
const HEAD = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }
/** About 64 KB: what one read of a socket brings when the reader is slower than the writer. */
const TOGETHER = 320

export const provider: Case = async () => {
  const events = longReply()
  const short = chunked([[said({ role: 'assistant', content: 'done' }), ...ending('stop')].join('')])
  const long = chunked(together(events))
  const apart = chunked(events)
  let turns = 0
  const replies: Readonly<Record<string, () => Buffer>> = {
    '/short/chat/completions': () => short,
    '/long/chat/completions': () => long,
    '/apart/chat/completions': () => apart,
    '/turns/chat/completions': () => (turns++ % (TURNS + 1) < TURNS ? chunked([callReply(turns)]) : short),
  }
  const server = createServer((request, out) => {
    request.resume().on('end', () => {
      out.writeHead(200, HEAD)
      // The bytes have their chunks already: what Node would make of them differs by its version.
      out.chunkedEncoding = false
      out.end(replies[request.url ?? '']?.())
    })
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
  await once(process, 'disconnect')
  server.close()
  server.closeAllConnections()
  return {}
}

/** A child that runs the part `provider` of this family. It ends when it is disconnected. */
export async function startProvider(family: string): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = fork(process.argv[1] ?? '', ['--case', `${family}:provider`, ''], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  })
  const [port] = (await once(child, 'message')) as [number]
  return { url: `http://127.0.0.1:${port}`, child }
}

/** Each text as one chunk of HTTP, and the end. */
function chunked(texts: readonly string[]): Buffer {
  const chunks = texts.map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  return Buffer.from(`${chunks.join('')}0\r\n\r\n`)
}

function together(events: readonly string[]): readonly string[] {
  const chunks: string[] = []
  for (let at = 0; at < events.length; at += TOGETHER) chunks.push(events.slice(at, at + TOGETHER).join(''))
  return chunks
}

function longReply(): readonly string[] {
  const words = Array.from({ length: DELTAS }, (_, n) => said({ content: ` word${n % 100}` }))
  return [said({ role: 'assistant', content: '' }), ...words, ...ending('stop')]
}

/** The call of one turn, its arguments in three pieces. */
function callReply(n: number): string {
  const args = JSON.stringify(argsOf(n))
  const begun = { index: 0, id: `call_${n}`, type: 'function', function: { name: 'lookup', arguments: '' } }
  const pieces = [args.slice(0, 30), args.slice(30, 60), args.slice(60)].map((text) => {
    return said({ tool_calls: [{ index: 0, function: { arguments: text } }] })
  })
  return [said({ role: 'assistant', content: null, tool_calls: [begun] }), ...pieces, ...ending('tool_calls')].join('')
}

function said(delta: object, finish: string | null = null): string {
  return event({ choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
}

function ending(finish: string): readonly string[] {
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
  return [said({}, finish), event({ choices: [], usage }), 'data: [DONE]\n\n']
}

function event(fields: object): string {
  const head = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench' }
  return `data: ${JSON.stringify({ ...head, ...fields })}\n\n`
}
