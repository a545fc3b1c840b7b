// What a provider's trouble means.
import { describe, expect, it } from 'vitest'
import { failure, failureFromTrouble, readTrouble } from '../../src/models/http/failures.ts'

const classOf = (trouble: Partial<Parameters<typeof failureFromTrouble>[0]>) =>
  failureFromTrouble({ message: 'm', ...trouble }).class

describe('failures', () => {
  it.each([
    ['rate_limit_error', 'rate_limit'],
    ['rate_limit_exceeded', 'rate_limit'],
    ['RESOURCE_EXHAUSTED', 'rate_limit'],
    ['overloaded_error', 'server'],
    ['api_error', 'server'],
    ['server_error', 'server'],
    ['UNAVAILABLE', 'server'],
    ['timeout_error', 'server'],
    ['authentication_error', 'auth'],
    ['invalid_api_key', 'auth'],
    ['PERMISSION_DENIED', 'auth'],
    ['insufficient_quota', 'auth'],
    ['billing_error', 'auth'],
    ['invalid_request_error', 'bad_request'],
    ['not_found_error', 'bad_request'],
    ['context_length_exceeded', 'overflow'],
    ['request_too_large', 'overflow'],
    ['exceed_context_size_error', 'overflow'],
  ])('B-FAILURE-1: the provider says %s: that is %s', (code, expected) => {
    expect(classOf({ code })).toBe(expected)
    expect(classOf({ code, status: 418 })).toBe(expected)
  })

  it.each([
    [400, 'bad_request'],
    [401, 'auth'],
    [402, 'auth'],
    [403, 'auth'],
    [404, 'bad_request'],
    [405, 'bad_request'],
    [408, 'server'],
    [409, 'server'],
    [410, 'bad_request'],
    [413, 'overflow'],
    [422, 'bad_request'],
    [425, 'server'],
    [429, 'rate_limit'],
    [500, 'server'],
    [501, 'bad_request'],
    [502, 'server'],
    [503, 'server'],
    [504, 'server'],
    [505, 'bad_request'],
    [529, 'server'],
    [302, 'other'],
  ])('B-FAILURE-2: without a word of its own, status %i is %s (S0-83)', (status, expected) => {
    expect(classOf({ status })).toBe(expected)
    expect(classOf({ message: `Request failed with status code ${status}` })).toBe(expected)
  })

  it.each([400, 401, 403, 404, 405, 410, 413, 422, 501, 505])(
    'B-PATIENCE-9: status %i is not tried again, whatever code comes with it',
    (status) => {
      for (const code of ['', 'api_error', 'server_error', 'internal', 'UNAVAILABLE'])
        expect(failureFromTrouble({ status, code, message: 'no' })).toMatchObject({ retryable: false })
    },
  )

  it.each([408, 409, 425, 429, 500, 502, 503, 504, 529])('B-PATIENCE-9: status %i is tried again', (status) => {
    expect(failureFromTrouble({ status, message: 'later' })).toMatchObject({ retryable: true })
  })

  it('B-FAILURE-3: a number in a text is a status only if it is a whole one and called so (AC-97)', () => {
    expect(classOf({ message: 'HTTP 401: who are you?' })).toBe('auth')
    for (const message of ['took 500 ms', 'status 4290', 'status code 401.5', 'HTTP 1429', 'order 429 was placed']) {
      expect(classOf({ message })).toBe('other')
    }
  })

  it.each([
    ["This model's maximum context length is 128000 tokens.", 'overflow'],
    ['prompt is too long: 210000 tokens > 200000 maximum', 'overflow'],
    ["This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 'overflow'],
    ['The input token count (2000000) exceeds the maximum number of tokens allowed (1048575).', 'overflow'],
    ['the request exceeds the available context size. try increasing the context size', 'overflow'],
    ['Please reduce the length of the messages or completion.', 'overflow'],
    ['Your credit balance is too low to access the Anthropic API.', 'auth'],
    ['You exceeded your current quota, please check your plan and billing details.', 'auth'],
  ])('B-FAILURE-4: the text "%s" counts for more than the status: %s', (message, expected) => {
    expect(classOf({ message, status: 400 })).toBe(expected)
    expect(classOf({ message, code: 'invalid_request_error' })).toBe(expected)
  })

  it('B-FAILURE-5: only what time may heal is retryable, and how long that takes is kept', () => {
    const retryable = (['rate_limit', 'server', 'network', 'timeout'] as const).map(
      (kind) => failure(kind, 'm').retryable,
    )
    expect(retryable).toEqual([true, true, true, true])
    const fatal = (['auth', 'overflow', 'bad_request', 'other'] as const).map((kind) => failure(kind, 'm').retryable)
    expect(fatal).toEqual([false, false, false, false])
    expect(failureFromTrouble({ status: 429, message: 'slow down', retryAfterMs: 7 })).toMatchObject({
      retryAfterMs: 7,
    })
  })

  it('B-FAILURE-6: a message is never empty and never long, and says status and code (TRAP-29)', () => {
    expect(failure('server', ' ').message).toBe('server')
    expect(failureFromTrouble({ status: 503, message: '' }).message).toBe('HTTP 503')
    expect(failureFromTrouble({ status: 529, code: 'overloaded_error', message: 'Busy' }).message).toBe(
      'HTTP 529: overloaded_error: Busy',
    )
    expect(failure('other', 'x'.repeat(9_999)).message).toHaveLength(1_000)
  })

  it('B-FAILURE-7: an error body is read in every shape that providers use, and told as it is where it has none', () => {
    expect(readTrouble('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')).toEqual({
      code: 'overloaded_error',
      message: 'Overloaded',
    })
    expect(readTrouble('{"error":{"message":"no","type":"t","code":"c"}}')).toEqual({ code: 'c', message: 'no' })
    expect(readTrouble('[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]')).toEqual({
      code: 'RESOURCE_EXHAUSTED',
      message: 'slow',
    })
    expect(readTrouble('{"error":"no such model"}')).toEqual({ message: 'no such model' })
    expect(readTrouble('{"detail":"Not Found"}')).toEqual({ message: 'Not Found' })
    expect(readTrouble('<html>Bad Gateway</html>')).toEqual({ message: '<html>Bad Gateway</html>' })
    expect(readTrouble('null')).toEqual({ message: 'null' })
  })
})
