// The outcome of one call, as the breaker counts it (progress.ts): whether it was refused, may work later, or equals
// another.
import { hash } from 'node:crypto'
import type { BlobRef, CallStatus, EffectClass, Failure, Gate, Json } from '../../kernel/content.ts'
import { canonicalJson } from '../../tools/core/canonical-json.ts'
import { type ClassifiedFailure, classify } from './classify-failure.ts'
import { asString } from '../../view/untrusted-json.ts'

/** The outcome of one call. In the small form `print` stands for the arguments, and a hash for a long output. */
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

/** Only the harness's own metadata about a child it ran counts: any tool may claim to be permanently broken. */
export function isPermanent({ metadata, gate }: CallOutcome): boolean {
  if (metadata === null || typeof metadata !== 'object' || !gate) return false
  if ((metadata as { readonly permanent?: Json }).permanent !== true) return false
  const outside = gate.type === 'ask' ? gate.outside : gate
  return outside?.type === 'outside' && outside.child !== undefined
}

/**
 * The failure of a child that asked another model does not concern the model of its parent. Older logs do not name the
 * child's model.
 */
export function concernsModel({ metadata }: CallOutcome, model: string): boolean {
  const { model: asked = model } = metadata as { readonly model?: Json }
  return asked === model
}

/** A rule, a hook or a person denied it. An expired question is no denial, and a tool's own denial may change. */
export function isRejected(attempt: CallOutcome): boolean {
  const { status, failure, gate } = attempt
  if (status === 'denied') return classifyOutcome(attempt)?.class !== 'ApprovalExpired'
  return gate?.type === 'refuse' && failure?.kind === 'Denied'
}

/** The same call may work later. A mistake that the model must correct is not of this kind. */
export function isTransient(attempt: CallOutcome): boolean {
  const { status, failure } = attempt
  if (status === 'denied') return false
  const { kind, recoverable } = failure ?? {}
  if (status === 'timeout' || status === 'unknown' || kind === 'Unknown') return true
  if (kind === 'InvalidInput' || kind === 'NotFound' || kind === 'Denied' || recoverable === false) return false
  if (kind === 'Timeout' || kind === 'Unavailable' || recoverable) return true
  return classifyOutcome(attempt)?.recoverable === true
}

function classifyOutcome({ status, failure, metadata, output }: CallOutcome): ClassifiedFailure | null {
  const result = { type: 'agent.tool_result', status, content: asString(output) } as const
  return classify({ ...result, ...(failure ? { failure } : {}), ...(metadata === undefined ? {} : { metadata }) })
}

export function isSameFailure(a: CallOutcome, b: CallOutcome): boolean {
  return firstLine(callError(a)) === firstLine(callError(b)) && isSameCall(a, b)
}

/**
 * A comparison stops at the first difference, so it is cheaper than two hashes. The hash is stored only in the small
 * form.
 */
export function isSameCall(a: CallOutcome, b: CallOutcome): boolean {
  if (a.tool !== b.tool) return false
  return a.print === null && b.print === null ? isSameJson(a.args, b.args) : argsFingerprint(a) === argsFingerprint(b)
}

export function isSameOutput(a: CallOutcome, b: CallOutcome): boolean {
  if (a.tool !== b.tool) return false
  if (typeof a.output === 'string' && typeof b.output === 'string') return a.output === b.output
  return outputHash(a.output) === outputHash(b.output)
}

function argsFingerprint({ print, args }: CallOutcome): string {
  return print ?? fingerprint(args)
}

/** Equal arguments have equal fingerprints, in any order of their keys. */
export function fingerprint(args: Json): string {
  return hash('sha256', canonicalJson(args)).slice(0, 16)
}

/** Compares values as they come back from the log: a key without a value is no key. */
export function isSameJson(a: Json, b: Json): boolean {
  if (a === b) return true
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!isSameJson(a[i] as Json, b[i] as Json)) return false
    return true
  }
  const one = a as JsonFields
  const other = b as JsonFields
  let keys = 0
  for (const key in one) {
    const value = one[key]
    if (value === undefined) continue
    if (!Object.hasOwn(other, key)) return false
    if (value !== other[key] && !isSameJson(value, other[key] as Json)) return false
    keys += 1
  }
  for (const key in other) if (other[key] !== undefined) keys -= 1
  return keys === 0
}
type JsonFields = { readonly [key: string]: Json | undefined }

/** The small form: it holds nothing large, and compares as before. */
export function shrinkOutcome(attempt: CallOutcome): CallOutcome {
  const { status, output } = attempt
  const long = status === 'ok' && typeof output === 'string' && output.length > OUTPUT_KEPT_CHARS
  return {
    ...attempt,
    args: null,
    print: argsFingerprint(attempt),
    output: long ? { hash: outputHash(output) } : output,
  }
}

/** Two screenshots of one page may differ while the text beside them does not. */
export function hashOutput(content: string | BlobRef, parts: readonly BlobRef[]): { readonly hash: string } {
  const all = [outputHash(content), ...parts.map((part) => part.hash)]
  return { hash: hash('sha256', all.join(' ')) }
}

function outputHash(output: CallOutcome['output']): string {
  return typeof output === 'string' ? hash('sha256', output) : output.hash
}

export function callError({ output, failure }: CallOutcome): string {
  return asString(output) || (failure?.message ?? '')
}

function firstLine(text: string): string {
  const end = text.indexOf('\n')
  return end < 0 ? text : text.slice(0, end)
}
