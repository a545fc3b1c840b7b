// The projection of logs to spans for hosts, with checked options. view/spans/project-spans.ts is the projection
// itself.
import { optionsChecker } from '../options.ts'
import { runsOf } from '../view/spans/project-spans.ts'
import type { Capture, SessionLog, Span } from '../view/spans/span.ts'
import { captureCheck } from './sink.ts'

type SpanOptions = { readonly capture?: Capture }
const checkOptions = optionsChecker<SpanOptions>('spansOf', { capture: captureCheck })

/**
 * The spans of these logs. Give a root session with all its children: a log whose parent is missing counts as a root.
 */
export function spansOf(logs: readonly SessionLog[], options: SpanOptions = {}): readonly Span[] {
  checkOptions(options)
  return runsOf(logs, options.capture ?? 'none').flatMap((run) => run.spans)
}
