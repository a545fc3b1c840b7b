// A filter between the SDK and any transport: it drops answers that are late, repeated or without a request, and floods
// of server requests. It also fails a request whose stream has ended, which the SDK would wait for until its timeout.
import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'

/** The limit of our pending answers to a server's requests. Further requests stay unanswered. */
const ANSWERS_MAX = 16
/**
 * A code from the range that JSON-RPC leaves to implementations. Its message tells it apart from a server's own errors.
 */
const STREAM_ENDED = -32_099
export const STREAM_ENDED_MESSAGE = 'The stream ended before the answer came.'

export class MessageFilter implements Transport {
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

  /** The number of dropped messages: invalid lines, answers without a request, too many requests. */
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

  /** Sends notifications, and answers to the server. */
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
    // Compare the exact id: the SDK would take "1" for 1.
    return message.id !== undefined && this.#open.delete(message.id)
  }
}
