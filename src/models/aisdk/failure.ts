// Turns errors of the AI SDK into failures. They are recognised by name and fields, not by class: two versions of the package may
// be installed.
import type { ProviderFailureClass } from '../../kernel/content.ts'
import type { ModelFailure } from '../../ports/model.ts'
import { failure, failureOf, isObjectOrList, retryAfter, troubleIn } from '../http/failures.ts'

const CLASSES: Readonly<Record<string, ProviderFailureClass>> = {
  AI_LoadAPIKeyError: 'auth',
  AI_LoadSettingError: 'auth',
  AI_UnsupportedFunctionalityError: 'bad_request',
  AI_InvalidPromptError: 'bad_request',
  AI_InvalidArgumentError: 'bad_request',
  AI_NoSuchModelError: 'bad_request',
  AI_InvalidResponseDataError: 'network',
  AI_EmptyResponseBodyError: 'network',
  AI_JSONParseError: 'network',
  AI_TypeValidationError: 'network',
}

/** An error thrown by the client, before or during the answer. */
export function brokenBy(error: unknown): ModelFailure {
  if (!isObjectOrList(error)) return failure('other', `The client threw ${String(error)}.`)
  const said = wordsOf(error)
  const known = CLASSES[String(error['name'])]
  if (known) return failure(known, said)
  const { statusCode: status, responseBody: body, isRetryable } = error
  if (typeof status === 'number') {
    const told = typeof body === 'string' ? troubleIn(body) : { message: '' }
    const headers = isObjectOrList(error['responseHeaders']) ? (error['responseHeaders'] as Record<string, string>) : {}
    return failureOf({ status, ...told, message: told.message || said, ...retryAfter(headers) })
  }
  const lost = isRetryable === true || /fetch failed|terminated|ECONN|ENOTFOUND|ETIMEDOUT|socket|network/i.test(said)
  return lost ? failure('network', said) : failureOf({ message: said })
}

/** An error sent inside a stream. One without a known class counts as a server error. */
export function failureIn(error: unknown): ModelFailure {
  const isPlain = isObjectOrList(error) && !(error instanceof Error)
  const told = isPlain ? failureOf(troubleIn(JSON.stringify(error))) : null
  const found = told ?? (typeof error === 'string' ? failureOf({ message: error }) : brokenBy(error))
  return found.class === 'other' ? failure('server', found.message) : found
}

function wordsOf(error: { readonly [key: string]: unknown }): string {
  const { message, name, cause } = error
  const words = (typeof message === 'string' && message) || (typeof name === 'string' && name) || 'The call failed.'
  const why = isObjectOrList(cause) && typeof cause['message'] === 'string' ? cause['message'] : ''
  return why === '' || words.includes(why) ? words : `${words} (${why})`
}
