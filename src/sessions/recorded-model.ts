// The model of a recorded session that is run again. Tools that the harness adds by itself are no tools of the recording, so the model
// says what stands in for them.
import type { Model } from '../ports/model.ts'
import type { Tool } from '../tools/core/tool.ts'

export type RecordedModel = Model & {
  readonly standInFor: (tool: Tool) => Tool
  /** The results are those of the log, which were made shorter then. */
  readonly repeatsResults: boolean
}

export function isRecorded(model: Model): model is RecordedModel {
  return 'standInFor' in model && 'repeatsResults' in model
}
