// The tools that come with Terret, as an entry of their own, so that a program without them does not load them.
export { askUserTool } from './people/ask.ts'
export { type BuiltInName, type BuiltInOptions, builtInTools } from './builtin.ts'
export { type BashLine, type BashOptions, bashTool } from './shell/bash.ts'
export { extractTool } from './core/extract.ts'
export { type WebFetchOptions, webFetchTool } from './web/fetch.ts'
export { type Found, type WebSearchOptions, webSearchTool } from './web/search.ts'
export { type FileToolsOptions, fileTools } from './files/files.ts'
export type { FileBuffers } from './files/paths.ts'
export { type WorktreeToolsOptions, worktreeTools } from './worktrees/tools.ts'
export { jsonlSearchTool } from './jsonl/jsonl.ts'
export {
  filePins,
  type McpChange,
  type McpHttpOptions,
  type McpOptions,
  type McpServer,
  type McpStatus,
  type McpStdioOptions,
  mcpServer,
  type Pin,
  type Pins,
} from './mcp/mcp.ts'
export { type ParallelLlmOptions, parallelLlmTool } from './agents/parallel-llm.ts'
export { type SkillOptions, skillTools } from './skills/skills.ts'
