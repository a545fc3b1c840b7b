// Classified failures: what people are told went wrong, and whether trying again may help.
import { describe, expect, it } from 'vitest'
import type { CallStatus, FailedReason, FailureKind, Json, ModelFailureClass } from '../../src/kernel/content.ts'
import type { Model, Script } from '../../src/index.ts'
import { type ClassifiedFailure, classify } from '../../src/runtime/guard/classify-failure.ts'
import { make } from './scene.ts'

function result(
  message: string,
  { kind = 'Failed', status = 'error', metadata }: { kind?: FailureKind; status?: CallStatus; metadata?: Json } = {},
): ClassifiedFailure | null {
  const failure = { kind, message }
  const plain = { type: 'agent.tool_result', status, content: message, failure } as const
  return classify(metadata === undefined ? plain : { ...plain, metadata })
}

function run(reason: FailedReason, message: string, kind: FailureKind = 'Failed'): ClassifiedFailure {
  return classify({ type: 'failed', reason, failure: { kind, message } })
}

const classOf = (classified: ClassifiedFailure | null): string => classified?.class ?? 'none'

describe('classified failures of calls', () => {
  it('B-CLASS-1: a person who says no is Denied, whatever the reason says, and trying again is never offered (S2-30)', () => {
    const said = result('Tool call was rejected by a human reviewer.\nReason: expired, timed out, HTTP 503', {
      status: 'denied',
      kind: 'Denied',
    })
    expect(said).toMatchObject({ class: 'Denied', category: 'declined', recoverable: false })
    const failure = {
      kind: 'Denied',
      message: 'Tool call was rejected by a human reviewer.',
      recoverable: true,
    } as const
    const odd = { type: 'agent.tool_result', status: 'denied', content: failure.message, failure } as const
    expect(classify(odd)?.recoverable).toBe(false)
  })

  it('B-CLASS-2: an approval that was not given in time is ApprovalExpired, not a time-out (AC-97, TRAP-18)', () => {
    const expired = result('The approval expired before anyone decided.', { status: 'denied', kind: 'Denied' })
    expect(expired).toMatchObject({ class: 'ApprovalExpired', category: 'needs_confirmation', recoverable: false })
    const late = result('The approval timed out: its TTL of 60 s is over.', { status: 'denied', kind: 'Denied' })
    expect(classOf(late)).toBe('ApprovalExpired')
  })

  it('B-CLASS-3: what a rule or a hook does not allow is BlockedByPolicy (S2-30)', () => {
    const blocked = [
      result('Tool "bash" is denied by policy: HTTP 403 is what it would get', { kind: 'Denied' }),
      result('The path is outside the workspace.', { kind: 'Denied' }),
      result('Not run: a hook held it back: the token expired', { status: 'denied', kind: 'Denied' }),
      result('Not run: a hook did not say in time whether it may.', { status: 'denied', kind: 'Denied' }),
      result('refused: blocked by the security policy'),
    ]
    for (const one of blocked)
      expect(one).toMatchObject({ class: 'BlockedByPolicy', category: 'blocked_by_policy', recoverable: false })
  })

  it('B-CLASS-4: a 403 of another server is about credentials, not about policy (AC-97)', () => {
    for (const text of ['GitHub answered 403', 'HTTP 401', 'status=403', 'It answered HTTP/403.', '401 Unauthorized']) {
      for (const kind of ['Failed', 'Unavailable', 'Denied'] as const)
        expect(result(text, { kind })).toMatchObject({ class: 'BadCredentials', category: 'needs_confirmation' })
    }
    expect(classOf(result('the access token has expired'))).toBe('BadCredentials')
    expect(classOf(result('invalid API key'))).toBe('BadCredentials')
  })

  it('B-CLASS-5: a status is a whole number, and not a line, an amount or a part of another (AC-97, TRAP-18)', () => {
    const none = [
      '4031 rows',
      'took 403 ms',
      'a.ts:401:7 is wrong',
      'line 403',
      'id-401',
      '1.503',
      '403.5',
      '503 bytes',
      '$401',
      '12,503',
      '401k',
    ]
    for (const text of none) expect(classOf(result(text))).toBe('Unknown')
    for (const text of ['503', 'got 502.', '(504)', 'error: 429'])
      expect(result(text)).toMatchObject({ class: 'ServiceUnavailable', recoverable: true })
  })

  it('B-CLASS-6: what was recorded is believed before what is written (TRAP-18)', () => {
    expect(classOf(result('HTTP 401', { kind: 'Timeout' }))).toBe('Timeout')
    expect(classOf(result('HTTP 401', { status: 'timeout', kind: 'Timeout' }))).toBe('Timeout')
    expect(classOf(result('"401" is no path', { kind: 'InvalidInput' }))).toBe('Unknown')
    expect(classOf(result('unknown tool "x"; choose one of: timeout, unauthorized', { kind: 'NotFound' }))).toBe(
      'Unknown',
    )
    expect(classOf(result('the server is away', { kind: 'Unavailable' }))).toBe('ServiceUnavailable')
    expect(classOf(result('failed', { kind: 'NonZeroExit', metadata: { exit_code: 127 } }))).toBe('MissingApp')
  })

  it('B-CLASS-7: a time-out in words is a time-out before it is anything else (S2-30)', () => {
    for (const text of ['Request timed out: 401', 'connect ETIMEDOUT', 'gateway timeout 504', 'deadline exceeded'])
      expect(result(text)).toMatchObject({ class: 'Timeout', category: 'recoverable', recoverable: true })
  })

  it('B-CLASS-8: permissions, missing programs, models and services have their classes, in that order (S2-30)', () => {
    expect(classOf(result('EACCES: permission denied, open "x"'))).toBe('MissingPermission')
    expect(classOf(result('The operating system does not allow this with "x".', { kind: 'Denied' }))).toBe(
      'MissingPermission',
    )
    expect(classOf(result('sh: gh: command not found'))).toBe('MissingApp')
    expect(classOf(result('"a.py" needs python3, which is not installed.', { kind: 'Unavailable' }))).toBe('MissingApp')
    expect(classOf(result('the model could not be reached'))).toBe('ModelConnection')
    expect(classOf(result('read ECONNRESET'))).toBe('ServiceUnavailable')
    expect(classOf(result('Too Many Requests'))).toBe('ServiceUnavailable')
    expect(classOf(result('it broke'))).toBe('Unknown')
  })

  it('B-CLASS-9: a success is no failure, but a command that ran into its time or was not found is', () => {
    const ok = { type: 'agent.tool_result', status: 'ok', content: 'HTTP 401' } as const
    expect(classify(ok)).toBeNull()
    expect(classify({ ...ok, metadata: { exit_code: 1, error_type: 'NonZeroExit' } })).toBeNull()
    expect(classOf(classify({ ...ok, metadata: { exit_code: null, timed_out: true } }))).toBe('Timeout')
    expect(classOf(classify({ ...ok, metadata: { exit_code: 127, timed_out: false } }))).toBe('MissingApp')
    expect(classOf(classify({ ...ok, metadata: { exit_code: 126, timed_out: false } }))).toBe('MissingPermission')
  })

  it('B-CLASS-10: what may have happened is not called safe to try again', () => {
    expect(result('The worker was lost.', { status: 'unknown', kind: 'Unknown' })).toMatchObject({ recoverable: false })
    expect(result('Lost. HTTP 503', { kind: 'Unknown' })).toMatchObject({ class: 'Unknown', recoverable: false })
    const failure = { kind: 'Failed', message: 'later', recoverable: true } as const
    const later = { type: 'agent.tool_result', status: 'error', content: 'later', failure } as const
    expect(classify(later)).toMatchObject({ class: 'Unknown', category: 'recoverable', recoverable: true })
  })
})

describe('classified failures of models and runs', () => {
  it('B-CLASS-11: a model that failed is classified by what its provider said, not by its words', () => {
    const classes: Readonly<Record<ModelFailureClass, string>> = {
      auth: 'BadCredentials',
      rate_limit: 'ModelConnection',
      server: 'ModelConnection',
      network: 'ModelConnection',
      timeout: 'Timeout',
      overflow: 'Unknown',
      bad_request: 'Unknown',
      other: 'Unknown',
      lost: 'Unknown',
      superseded: 'Unknown',
      interrupted: 'Unknown',
    }
    for (const [kind, expected] of Object.entries(classes)) {
      const event = { type: 'model.failed', class: kind as ModelFailureClass, retryable: false } as const
      expect([kind, classOf(classify(event))]).toEqual([kind, expected])
    }
  })

  it('B-CLASS-12: a run keeps the class of the failure that ended it, whatever its words say', async () => {
    const ends = async (model: Model | Script) => {
      const result = await make(model).run('Go.')
      return result.status === 'failed' ? result.failure.classified : null
    }
    const broken: Model = { name: 'm', call: () => Promise.reject(new Error('Cannot read properties of undefined')) }
    expect(await ends(broken)).toMatchObject({ class: 'Unknown', recoverable: false, nextAction: 'Read the error.' })
    expect(await ends([{ error: 'auth', message: 'It timed out.' }])).toMatchObject({ class: 'BadCredentials' })
    expect(await ends([{ error: 'bad_request', message: 'No.' }])).toMatchObject({ class: 'Unknown' })
  })

  it('B-CLASS-12: a run that failed has its cause: the provider, or what the model could not do', () => {
    expect(run('provider_error', 'HTTP 401: invalid_api_key: no')).toMatchObject({ class: 'BadCredentials' })
    expect(run('provider_error', 'The model did not answer in time.')).toMatchObject({
      class: 'Timeout',
      recoverable: true,
    })
    expect(run('provider_error', 'The model failed too often in a row.')).toMatchObject({ class: 'ModelConnection' })
    expect(run('provider_error', 'Given up after 5 tries: HTTP 429: insufficient_quota: no')).toMatchObject({
      recoverable: false,
      nextAction: 'Add credit or raise the limit at the provider of the model, then try again.',
    })
    expect(run('provider_error', 'HTTP 400: no such field')).toMatchObject({ class: 'Unknown', recoverable: false })
    expect(run('prepare_failed', 'Preparing took too long.', 'Timeout')).toMatchObject({ class: 'Timeout' })
    expect(run('prepare_failed', 'connect ECONNREFUSED')).toMatchObject({ class: 'ServiceUnavailable' })
    const others: readonly FailedReason[] = [
      'output_validation_failed',
      'tool_retries_exceeded',
      'unexpected_model_behavior',
    ]
    for (const reason of [...others, 'empty_answer', 'crashed_too_often', 'hook_error', 'prepare_failed'] as const)
      expect(run(reason, 'HTTP').class).toBe('Unknown')
  })

  it('B-CLASS-13: every class says in plain sentences what happened and what to do', () => {
    const texts = [
      'EACCES',
      'command not found',
      'HTTP 503',
      'HTTP 401',
      'denied by policy',
      'model unreachable',
      'timed out',
      '?',
    ]
    for (const text of texts) {
      const classified = result(text)
      expect(classified?.cause).toMatch(/^[A-Z].+\.$/)
      expect(classified?.nextAction).toMatch(/^[A-Z].+\.$/)
    }
  })
})
