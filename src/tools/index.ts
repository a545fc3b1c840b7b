// The tools that come with Terret, as an entry of their own: whoever does not use them does not load them.
export { askUserTool } from './ask.ts'
export { type BashOptions, bashTool } from './bash.ts'
export { type FileToolsOptions, fileTools } from './files.ts'
export { jsonlSearchTool } from './jsonl.ts'
