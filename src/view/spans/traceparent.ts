// The header `traceparent` of W3C Trace Context: reading and writing it. Pure; where it comes from and goes to is not here.
import type { Frozen } from '../../kernel/content.ts'

/** `flags` as two hexadecimal digits. */
export type TraceContext = Frozen<{ traceId: string; spanId: string; flags: string }>

/** Later versions may say more after the flags; version 00 may not. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Null for what is not a traceparent. */
export function readTraceparent(value: unknown): TraceContext | null {
  const found = typeof value === 'string' && value.length <= 256 ? FORM.exec(value) : null
  if (found === null) return null
  const [, version, traceId = '', spanId = '', flags = '', more] = found
  return version === '00' && more !== undefined ? null : { traceId, spanId, flags }
}

export function traceparentOf({ traceId, flags }: Pick<TraceContext, 'traceId' | 'flags'>, spanId: string): string {
  return `00-${traceId}-${spanId}-${flags}`
}

export function isSampled({ flags }: TraceContext): boolean {
  return (Number.parseInt(flags, 16) & 1) === 1
}
