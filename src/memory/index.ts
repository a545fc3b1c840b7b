// Runtime memory as one import: the state of a session as files, the learnings of an agent as a store, and the
// directive between runs.
export { type Citation, citedText, type RecalledEpisode } from './citations.ts'
export type { Episode } from './episodes.ts'
export type { ExtractOptions } from './extractor.ts'
export { runtimeFilesHook, runtimeFolder, writeRuntimeFiles } from './runtime-files.ts'
export { learnHook, memoryHooks, type MemoryHooksOptions, recallHook, type RecallHookOptions } from './memory-hooks.ts'
export { memoryPlugin, type MemoryPluginOptions } from './memory-plugin.ts'
export {
  type Learned,
  type Memory,
  type OpenMemoryOptions,
  openMemory,
  type Ownership,
  type Promotion,
  type RecallEpisodesOptions,
  type RecallOptions,
} from './memory.ts'
export { checkpointOf, type RuntimeFile, sessionStateOf, workingBufferOf } from './render-files.ts'
export { taggedDirective } from './tagged-directive.ts'
export {
  type Directive,
  directiveTool,
  type Learning,
  type LearningKind,
  LOOP_DIRECTIVE,
} from '../tools/core/directive.ts'
