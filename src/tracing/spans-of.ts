// The projection of logs to spans as a host calls it, with its options checked. The projection itself: view/spans/project.ts.
import { optionsOf } from '../options.ts'
import { runsOf } from '../view/spans/project.ts'
import type { Capture, SessionLog, Span } from '../view/spans/span.ts'
import { captureCheck } from './span.ts'

type SpanOptions = { readonly capture?: Capture }
const checkOptions = optionsOf<SpanOptions>('spansOf', { capture: captureCheck })

/** The spans of these logs. Give a root session with all its children: a log whose parent is missing counts as a root. */
export function spansOf(logs: readonly SessionLog[], options: SpanOptions = {}): readonly Span[] {
  checkOptions(options)
  return runsOf(logs, options.capture ?? 'none').flatMap((run) => run.spans)
}
