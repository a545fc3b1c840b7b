// Where spans go, and how much of what was said they may carry. What a span is: view/spans/span.ts.
import type { Frozen } from '../kernel/content.ts'
import { type Check, flag, oneOf, within } from '../options.ts'
import type { Clock } from '../ports/system.ts'
import type { Capture, CaptureFlags, Span } from '../view/spans/span.ts'

const flags = within<CaptureFlags>({ prompts: flag, arguments: flag, results: flag })
const word = oneOf<'none' | 'content'>({ none: true, content: true })
export const captureCheck: Check = (value, name, of) =>
  typeof value === 'object' && value !== null ? flags(value, name, of) : word(value, name, of)

export type ExportContext = Frozen<{
  /** Texts that spans name by hash: instructions and toolsets. Empty unless the sink captures prompts. */
  texts: ReadonlyMap<string, string>
  clock: Clock
  /** Aborted when this export is not waited for any more. */
  signal: AbortSignal
}>

/**
 * A place where spans go. `export` gets the spans of one run tree, once (with `live` in parts), and rejects when they could not be kept: they are
 * then counted and given up. It is never called twice at a time.
 */
export interface Sink {
  /** For reports. */
  readonly name: string
  /** Default: `none`. What a sink did not ask for, it is not given. */
  readonly capture?: Capture
  export(spans: readonly Span[], context: ExportContext): Promise<void>
  close(): Promise<void>
}
