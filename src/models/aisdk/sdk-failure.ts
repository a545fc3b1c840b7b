// Turns errors of the AI SDK into failures. They are recognised by name and fields, not by class, since two versions of
// the package may be installed.
import type { ProviderFailureClass } from '../../kernel/content.ts'
import type { ModelFailure } from '../../ports/model.ts'
import { failure, failureFromTrouble, isObjectOrList, readRetryAfter, readTrouble } from '../http/failures.ts'

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
export function failureFromError(error: unknown): ModelFailure {
  if (!isObjectOrList(error)) return failure('other', `The client threw ${String(error)}.`)
  const said = messageOfError(error)
  const known = CLASSES[String(error['name'])]
  if (known) return failure(known, said)
  const { statusCode: status, responseBody: body, isRetryable } = error
  if (typeof status === 'number') {
    const told = typeof body === 'string' ? readTrouble(body) : { message: '' }
    const headers = isObjectOrList(error['responseHeaders']) ? (error['responseHeaders'] as Record<string, string>) : {}
    return failureFromTrouble({ status, ...told, message: told.message || said, ...readRetryAfter(headers) })
  }
  const lost = isRetryable === true || /fetch failed|terminated|ECONN|ENOTFOUND|ETIMEDOUT|socket|network/i.test(said)
  return lost ? failure('network', said) : failureFromTrouble({ message: said })
}

/** An error sent inside a stream. One without a known class counts as a server error. */
export function failureFromStream(error: unknown): ModelFailure {
  const isPlain = isObjectOrList(error) && !(error instanceof Error)
  const told = isPlain ? failureFromTrouble(readTrouble(JSON.stringify(error))) : null
  const found = told ?? (typeof error === 'string' ? failureFromTrouble({ message: error }) : failureFromError(error))
  return found.class === 'other' ? failure('server', found.message) : found
}

function messageOfError(error: { readonly [key: string]: unknown }): string {
  const { message, name, cause } = error
  const words = (typeof message === 'string' && message) || (typeof name === 'string' && name) || 'The call failed.'
  const why = isObjectOrList(cause) && typeof cause['message'] === 'string' ? cause['message'] : ''
  return why === '' || words.includes(why) ? words : `${words} (${why})`
}
