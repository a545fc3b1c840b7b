// The sinks that spans go to, and how much content they may contain. view/spans/span.ts defines spans.
import type { Frozen } from '../kernel/content.ts'
import { type Check, flagCheck, oneOf, optionsCheck } from '../options.ts'
import type { Clock } from '../ports/system.ts'
import type { Capture, CaptureFlags, Span } from '../view/spans/span.ts'

const flags = optionsCheck<CaptureFlags>({ prompts: flagCheck, arguments: flagCheck, results: flagCheck })
const word = oneOf<'none' | 'content'>({ none: true, content: true })
export const captureCheck: Check = (value, name, of) =>
  typeof value === 'object' && value !== null ? flags(value, name, of) : word(value, name, of)

/** What a sink gets beside the spans: the long texts they refer to, the time, and a signal to stop. */
export type ExportContext = Frozen<{
  /** Texts that spans refer to by hash: instructions and toolsets. Empty unless the sink captures prompts. */
  texts: ReadonlyMap<string, string>
  /** The clock of the tracer, for a sink that waits. */
  clock: Clock
  /** Aborted when this export is no longer awaited. */
  signal: AbortSignal
}>

/**
 * A destination for spans. `export` gets the spans of one run tree once (with `live` in parts). It rejects when they
 * could not be stored; they are then counted and dropped. It is never called twice at a time.
 */
export interface Sink {
  /** The name in reports. */
  readonly name: string
  /** Default: `none`. A sink gets no more than it asks for. */
  readonly capture?: Capture
  /** Stores these spans. Rejects if it cannot: they are then counted as lost and not sent again. */
  export(spans: readonly Span[], context: ExportContext): Promise<void>
  /** Called once at the end, after the last export. */
  close(): Promise<void>
}
