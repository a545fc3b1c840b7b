// What a provider refused in a request and the request can do without: the same target, without it. Pure; each thing is left
// out once, so that nobody is asked for ever.
import type { ModelFailure, Request } from '../../kernel/ports.ts'
import type { Target } from '../protocols/protocol.ts'

/** A conversation the provider no longer has. */
const FORGOTTEN = /previous_response_not_found/
/** A signature or a seal it no longer takes: its key changed, or the model behind the name did. */
const SEALED = new RegExp(
  [
    'invalid_encrypted_content|encrypted content .{0,80}could not be',
    'invalid .{0,20}in .?(redacted_)?thinking.? block',
    'thinking.? blocks .{0,80}cannot be modified',
  ].join('|'),
  'i',
)
/** Only organisations that OpenAI has verified may read a summary of what was thought. */
const SUMMARY = /reasoning\.summary|verified to generate reasoning summaries/i

/** Null: there is nothing to leave out, and the refusal stands. */
export function withoutRefused(answer: ModelFailure, target: Target, request: Request): Target | null {
  if (answer.class !== 'bad_request') return null
  const { message } = answer
  const { settings, quirks, unlinked, sealedAfter = 0 } = target
  if (settings.chain === true && !unlinked && FORGOTTEN.test(message)) return { ...target, unlinked: true }
  if (!quirks.lacks?.includes('summary') && SUMMARY.test(message)) {
    return { ...target, quirks: { ...quirks, lacks: [...(quirks.lacks ?? []), 'summary'] } }
  }
  const last = request.messages.at(-1)?.seq ?? 0
  return last > sealedAfter && SEALED.test(message) ? { ...target, sealedAfter: last } : null
}
