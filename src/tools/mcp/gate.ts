// Stands between the SDK and any transport, and lets only what was asked for through: no answer that is late, doubled or to
// no request, no flood of questions. It also tells a request that its stream has ended, which the SDK would wait out.
import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'

/** Answers that may be under way to a server that asks. What it asks beyond that stays unanswered. */
const ANSWERS_MAX = 16
/** Of the range JSON-RPC leaves to implementations; told apart from a server's own errors by its message. */
const STREAM_ENDED = -32_099
export const STREAM_ENDED_MESSAGE = 'The stream ended before the answer came.'

export class Gate implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly #inner: Transport
  readonly #open = new Set<string | number>()
  #answers = 0
  #dropped = 0

  constructor(inner: Transport) {
    this.#inner = inner
    inner.onclose = () => this.onclose?.()
    inner.onerror = (error) => {
      this.#dropped += 1
      this.onerror?.(error)
    }
    inner.onmessage = (message, extra) => {
      if (this.#admits(message)) this.onmessage?.(message, extra)
      else this.#dropped += 1
    }
  }

  /** Lines that were no message, answers to no question, too many questions. */
  get dropped(): number {
    return this.#dropped
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream ?? false
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version)
  }

  start(): Promise<void> {
    return this.#inner.start()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    const id = 'id' in message && 'method' in message ? message.id : undefined
    if (id === undefined) return this.#tell(message, options)
    this.#open.add(id)
    const onRequestStreamEnd = () => {
      options.onRequestStreamEnd?.()
      const error = { code: STREAM_ENDED, message: STREAM_ENDED_MESSAGE }
      if (this.#open.delete(id)) this.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    try {
      await this.#inner.send(message, { ...options, onRequestStreamEnd })
    } catch (error) {
      this.#open.delete(id)
      throw error
    }
  }

  /** Notifications, and answers to the server. */
  async #tell(message: JSONRPCMessage, options: TransportSendOptions): Promise<void> {
    if ('method' in message && message.method === 'notifications/cancelled') {
      const cancelled = message.params?.['requestId']
      if (typeof cancelled === 'number' || typeof cancelled === 'string') this.#open.delete(cancelled)
    }
    this.#answers += 1
    try {
      await this.#inner.send(message, options)
    } finally {
      this.#answers -= 1
    }
  }

  #admits(message: JSONRPCMessage): boolean {
    if ('method' in message) return !('id' in message) || this.#answers < ANSWERS_MAX
    // By the exact id: to the SDK "1" would be 1.
    return message.id !== undefined && this.#open.delete(message.id)
  }
}
