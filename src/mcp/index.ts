// The public entry `terret/mcp`: sessions as tools for other agents, as an MCP server over streamable HTTP that your
// own server mounts.
export type { Caller, CallerRole } from './caller.ts'
export { type McpSessionHost, deskOf, type ServerOptions, type Start } from './mcp-session-host.ts'
export { type McpHandler, mcpHandler } from './http-handler.ts'
