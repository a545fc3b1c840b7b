// Trouble in the words of each provider: status, body and headers.
import { describe, expect, it } from 'vitest'
import {
  type ChaosTrouble,
  overflowError,
  overloadedError,
  quotaError,
  rateLimitError,
  serverError,
  unauthorizedError,
} from '../../src/testing/index.ts'
import { chaosFor, DIALECTS, json, post } from './wire.ts'

const TABLE: readonly (readonly [string, ChaosTrouble, readonly [number, string], readonly [number, string]])[] = [
  ['overloaded', overloadedError(), [529, 'overloaded_error'], [503, 'server_error']],
  ['rate limited', rateLimitError(3), [429, 'rate_limit_error'], [429, 'rate_limit_exceeded']],
  ['overflow', overflowError(), [400, 'prompt is too long'], [400, 'context_length_exceeded']],
  ['unauthorized', unauthorizedError(), [401, 'authentication_error'], [401, 'invalid_api_key']],
  ['quota', quotaError(), [402, 'billing_error'], [429, 'insufficient_quota']],
  ['server error', serverError(), [500, 'api_error'], [500, 'server_error']],
  ['529', { status: 529 }, [529, 'overloaded_error'], [529, 'server_error']],
  ['418', { status: 418 }, [418, 'invalid_request_error'], [418, 'invalid_request_error']],
]

describe('trouble', () => {
  it.each(TABLE)(
    'B-CHAOS-6: %s has the status and the body of each provider',
    async (_name, trouble, anthropic, openai) => {
      const chaos = await chaosFor(() => trouble)
      for (const dialect of DIALECTS) {
        const [status, word] = dialect === 'messages' ? anthropic : openai
        const response = await post(chaos, dialect, { stream: true })
        expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json'])
        expect(response.headers.get('retry-after')).toBe(trouble.retryAfter === undefined ? null : '3')
        const body = await json(response)
        expect(JSON.stringify(body)).toContain(word)
        const keys = dialect === 'messages' ? ['type', 'error', 'request_id'] : ['error']
        expect(Object.keys(body)).toEqual(keys)
      }
    },
  )

  it('B-CHAOS-6: a body and headers of its own are sent as they are, and trouble can go wrong too', async () => {
    const chaos = await chaosFor([
      { status: 502, body: '<html>Bad gateway</html>', headers: { 'content-type': 'text/html', 'x-cache': 'miss' } },
      { status: 400, body: { detail: 'no' } },
      { status: 'overloaded', chaos: { cutAfterBytes: 9 } },
    ])
    const page = await post(chaos, 'chat')
    expect([page.status, page.headers.get('content-type'), page.headers.get('x-cache')]).toEqual([
      502,
      'text/html',
      'miss',
    ])
    expect(await page.text()).toBe('<html>Bad gateway</html>')
    expect(await json(await post(chaos, 'messages'))).toEqual({ detail: 'no' })
    await expect((await post(chaos, 'messages')).text()).rejects.toThrow()
  })

  it.each(DIALECTS)('B-CHAOS-11: %s can send the client somewhere else', async (dialect) => {
    const chaos = await chaosFor([{ chaos: { redirectTo: 'http://127.0.0.1:9/elsewhere' } }])
    const response = await post(chaos, dialect)
    expect([response.status, response.headers.get('location')]).toEqual([307, 'http://127.0.0.1:9/elsewhere'])
  })
})
