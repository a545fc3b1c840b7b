// Sessions as tools for other agents, as one import: the MCP server over streamable HTTP, for a server of your own to mount.
export type { Caller, Role } from './caller.ts'
export { type Desk, deskOf, type ServerOptions, type Start } from './desk.ts'
export { type McpHandler, mcpHandler } from './http.ts'
