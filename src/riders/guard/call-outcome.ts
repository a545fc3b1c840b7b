// What one call came to, as the breaker counts it (progress.ts): was it refused, may it work later, is it the same as another?
import { hash } from 'node:crypto'
import type { BlobRef, CallStatus, EffectClass, Failure, Gate, Json } from '../../kernel/content.ts'
import { canonicalJson } from '../../tools/core/canonical.ts'
import { type ClassifiedFailure, classify } from '../../sessions/classify.ts'
import { stringOf } from '../../view/json.ts'

/** What one call came to. Sealed, `print` stands for the arguments, and a hash for a long output. */
export type CallOutcome = {
  readonly tool: string
  readonly effect: EffectClass
  readonly gate: Gate | undefined
  readonly args: Json
  readonly print: string | null
  readonly status: CallStatus
  readonly failure: Failure | undefined
  readonly metadata: Json | undefined
  readonly output: string | BlobRef | { readonly hash: string }
}

const OUTPUT_KEPT_CHARS = 256

/** Only the harness's own word about a child it ran: any tool may claim to be beyond hope. */
export function isPermanent({ metadata, gate }: CallOutcome): boolean {
  if (metadata === null || typeof metadata !== 'object' || !gate) return false
  if ((metadata as { readonly permanent?: Json }).permanent !== true) return false
  const outside = gate.type === 'ask' ? gate.outside : gate
  return outside?.type === 'outside' && outside.child !== undefined
}

/** A child that asked another model says nothing about the model of its parent. Older logs do not say which it was. */
export function isLostFor({ metadata }: CallOutcome, model: string): boolean {
  const { model: asked = model } = metadata as { readonly model?: Json }
  return asked === model
}

/** A rule, a hook or a person said no. An expired question is no denial, and what a tool itself denies may change. */
export function isRejected(attempt: CallOutcome): boolean {
  const { status, failure, gate } = attempt
  if (status === 'denied') return classified(attempt)?.class !== 'ApprovalExpired'
  return gate?.type === 'refuse' && failure?.kind === 'Denied'
}

/** The same again may work later. What the model must correct is not of that kind. */
export function isTransient(attempt: CallOutcome): boolean {
  const { status, failure } = attempt
  if (status === 'denied') return false
  const { kind, recoverable } = failure ?? {}
  if (status === 'timeout' || status === 'unknown' || kind === 'Unknown') return true
  if (kind === 'InvalidInput' || kind === 'NotFound' || kind === 'Denied' || recoverable === false) return false
  if (kind === 'Timeout' || kind === 'Unavailable' || recoverable) return true
  return classified(attempt)?.recoverable === true
}

function classified({ status, failure, metadata, output }: CallOutcome): ClassifiedFailure | null {
  const result = { type: 'agent.tool_result', status, content: stringOf(output) } as const
  return classify({ ...result, ...(failure ? { failure } : {}), ...(metadata === undefined ? {} : { metadata }) })
}

export function isSameFailure(a: CallOutcome, b: CallOutcome): boolean {
  return a.tool === b.tool && lineOf(errorOf(a)) === lineOf(errorOf(b)) && isSameArgs(a, b)
}

export function isSameCall(a: CallOutcome, b: CallOutcome): boolean {
  return a.tool === b.tool && isSameArgs(a, b)
}

export function isSameOutput(a: CallOutcome, b: CallOutcome): boolean {
  if (a.tool !== b.tool) return false
  if (typeof a.output === 'string' && typeof b.output === 'string') return a.output === b.output
  return hashOf(a.output) === hashOf(b.output)
}

/** Comparing stops at the first difference, so it is cheaper than a hash of each. A hash is not kept: it is for sealed ones alone. */
function isSameArgs(a: CallOutcome, b: CallOutcome): boolean {
  return a.print === null && b.print === null ? isSameJson(a.args, b.args) : printOf(a) === printOf(b)
}

function printOf({ print, args }: CallOutcome): string {
  return print ?? fingerprint(args)
}

/** Equal arguments have equal fingerprints, whatever the order of their keys. */
export function fingerprint(args: Json): string {
  return hash('sha256', canonicalJson(args)).slice(0, 16)
}

/** As it will read when it comes back from the log: a key without a value is no key. */
export function isSameJson(a: Json, b: Json): boolean {
  if (a === b) return true
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!isSameJson(a[i] as Json, b[i] as Json)) return false
    return true
  }
  const one = a as Keyed
  const other = b as Keyed
  let keys = 0
  for (const key in one) {
    const value = one[key]
    if (value === undefined) continue
    if (!Object.hasOwn(other, key) || !isSameJson(value, other[key] as Json)) return false
    keys += 1
  }
  for (const key in other) if (other[key] !== undefined) keys -= 1
  return keys === 0
}
type Keyed = { readonly [key: string]: Json | undefined }

/** Holds nothing large, and compares as before. */
export function sealed(attempt: CallOutcome): CallOutcome {
  const { status, output } = attempt
  const long = status === 'ok' && typeof output === 'string' && output.length > OUTPUT_KEPT_CHARS
  return { ...attempt, args: null, print: printOf(attempt), output: long ? { hash: hashOf(output) } : output }
}

/** Two pictures of the same page may differ while the text beside them does not. */
export function shownAs(content: string | BlobRef, parts: readonly BlobRef[]): { readonly hash: string } {
  const all = [hashOf(content), ...parts.map((part) => part.hash)]
  return { hash: hash('sha256', all.join(' ')) }
}

function hashOf(output: CallOutcome['output']): string {
  return typeof output === 'string' ? hash('sha256', output) : output.hash
}

export function errorOf({ output, failure }: CallOutcome): string {
  return stringOf(output) || (failure?.message ?? '')
}

function lineOf(text: string): string {
  const end = text.indexOf('\n')
  return end < 0 ? text : text.slice(0, end)
}
