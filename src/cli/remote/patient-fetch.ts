// The requests of a chat to its server. While the server is away they wait, and go on when it is back, so that a person
// sees one line instead of an error for each request. Only what did not reach the server, or may be sent twice, is sent
// again.
import { sleepUntilAborted } from '../../client/server-connection.ts'

/** What a chat shows of an outage. */
export type OutageListener = { readonly away: () => void; readonly back: () => void }

const WAIT_MS = 300
const WAIT_MS_MAX = 3_000

export class PatientFetch {
  #listener: OutageListener | null = null
  #over = new AbortController()
  /** Resolves when the server answers again. All requests of one outage share it. */
  #outage: Promise<void> | null = null

  /** Until then it is a plain `fetch`. */
  listen(listener: OutageListener): void {
    this.#listener = listener
  }

  /** Ends every request, also one that waits. Later ones wait no more: the person leaves. */
  hurry(): void {
    this.#listener = null
    this.#over.abort()
    this.#over = new AbortController()
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const over = this.#over.signal
    const signal = init.signal ? AbortSignal.any([init.signal, over]) : over
    for (;;) {
      try {
        return await fetch(input, { ...init, signal })
      } catch (error) {
        if (this.#listener === null || signal.aborted || !mayRepeat(error, init)) throw error
        await (this.#outage ??= this.#waitUntilBack(new URL('/v1/health', String(input)), this.#listener))
        if (signal.aborted) throw error
      }
    }
  }

  async #waitUntilBack(address: URL, listener: OutageListener): Promise<void> {
    listener.away()
    const { signal } = this.#over
    for (let waitMs = WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, WAIT_MS_MAX)) {
      await sleepUntilAborted(waitMs, signal)
      const answer = await fetch(address, { signal, redirect: 'error' }).catch(() => null)
      await answer?.body?.cancel()
      // Without a token the server refuses, so it is there. Another program may have its port meanwhile.
      if (answer?.ok || answer?.status === 401) break
    }
    this.#outage = null
    if (!signal.aborted) listener.back()
  }
}

/** `fetch` throws a TypeError if there was no answer. A request without a key is repeated only if it was never sent. */
function mayRepeat(error: unknown, { method = 'GET', headers = {} }: RequestInit): boolean {
  if (!(error instanceof TypeError)) return false
  const { code } = (error.cause ?? {}) as { readonly code?: unknown }
  return method === 'GET' || code === 'ECONNREFUSED' || new Headers(headers).has('idempotency-key')
}
