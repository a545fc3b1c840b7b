// The tools that come with Terret, as an entry of their own: whoever does not use them does not load them.
export { askUserTool } from './ask.ts'
export { type BuiltInName, type BuiltInOptions, builtInTools } from './builtin.ts'
export { type BashLine, type BashOptions, bashTool } from './bash.ts'
export { type WebFetchOptions, webFetchTool } from './fetch.ts'
export { type FileToolsOptions, fileTools } from './files.ts'
export { jsonlSearchTool } from './jsonl.ts'
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
} from './mcp.ts'
export { type ParallelLlmOptions, parallelLlmTool } from './parallel-llm.ts'
export { type SkillOptions, skillTools } from './skills.ts'
