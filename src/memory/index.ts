// Runtime memory as one import: what a session is doing, as files; what an agent learned, as a store; the directive between runs.
export { type Citation, citedText } from './cite.ts'
export type { ExtractOptions } from './extract.ts'
export { runtimeFilesHook, runtimeFolder, writeRuntimeFiles } from './files.ts'
export { learnHook, memoryHooks, type MemoryHooksOptions, recallHook, type RecallHookOptions } from './hooks.ts'
export {
  type Learned,
  type Memory,
  type MemoryOptions,
  openMemory,
  type Ownership,
  type Promotion,
  type RecallOptions,
} from './memory.ts'
export { checkpointOf, type RuntimeFile, sessionStateOf, workingBufferOf } from './render.ts'
export { taggedDirective } from './tagged.ts'
export {
  type Directive,
  directiveTool,
  type Learning,
  type LearningKind,
  LOOP_DIRECTIVE,
} from '../tools/core/directive.ts'
