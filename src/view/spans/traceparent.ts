// Reads and writes the header `traceparent` of W3C Trace Context. Pure; it does not send or receive it.
import type { Frozen } from '../../kernel/content.ts'

/** `flags` as two hexadecimal digits. */
export type TraceContext = Frozen<{ traceId: string; spanId: string; flags: string }>

/** Later versions may have more after the flags; version 00 may not. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Null if it is not a traceparent. */
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
