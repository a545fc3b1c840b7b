// The model of a recorded session that is replayed. The recording has no tools that the harness adds by itself, so the
// model names their stand-ins.
import type { Model } from '../../ports/model.ts'
import type { Tool } from '../../tools/core/tool.ts'

export type RecordedModel = Model & {
  readonly standInFor: (tool: Tool) => Tool
  /** The results come from the log, where they were already shortened. */
  readonly repeatsResults: boolean
}

export function isRecorded(model: Model): model is RecordedModel {
  return 'standInFor' in model && 'repeatsResults' in model
}
