// The entry of the tools that come with Terret. It is separate, so that a program without them does not load them.
export { askUserTool } from './ask-user.ts'
export { type BuiltInName, type BuiltInOptions, builtInTools } from './builtin.ts'
export { type BashLine, type BashOptions, bashTool } from './shell/bash.ts'
export type { CommandEnd, RunningCommand } from './shell/running-command.ts'
export { extractTool } from './core/extract-tool.ts'
export { type WebFetchOptions, webFetchTool } from './web/web-fetch.ts'
export { type WebSearchResult, type WebSearchOptions, webSearchTool } from './web/web-search.ts'
export { type FileToolsOptions, fileTools } from './files/file-tools.ts'
export type { FileBuffers } from './files/path-guard.ts'
export { type WorktreeToolsOptions, worktreeTools } from './worktrees/worktree-tools.ts'
export { jsonlSearchTool } from './jsonl/jsonl-search.ts'
export {
  filePins,
  type McpChange,
  type McpHttpOptions,
  type McpOptions,
  type McpServer,
  type McpStatus,
  type McpStdioOptions,
  mcpServer,
  type McpPin,
  type McpPins,
} from './mcp/mcp-server.ts'
export { type ParallelLlmOptions, parallelLlmTool } from './agents/parallel-llm.ts'
export { type SkillOptions, skillTools } from './skills/skills.ts'
