// Checks a `traceparent` given by a host. view/spans/traceparent.ts reads it.
import type { Check } from '../options.ts'
import { readTraceparent } from '../view/spans/traceparent.ts'

const EXAMPLE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

export const traceparentCheck: Check = (value) =>
  readTraceparent(value) ? null : `must be a W3C traceparent such as "${EXAMPLE}"`
