// The HTTP wiring of the MCP server behind a real port, as a server mounts it: host and origin are checked first, then who asks.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostHeaderValidationResponse, type McpServer, originValidationResponse } from '@modelcontextprotocol/server'
import { onTestFinished } from 'vitest'
import type { Harness } from '../../src/index.ts'
import type { Caller } from '../../src/mcp/caller.ts'
import { deskOf } from '../../src/mcp/mcp-session-host.ts'
import { mcpHandler } from '../../src/mcp/http-handler.ts'
import { nodeListener } from '../../src/ui/index.ts'

type Served = {
  readonly callers: (request: Request) => Caller
  readonly owns?: (caller: Caller, session: string) => Promise<boolean>
  readonly more?: (server: McpServer) => void
}

const LOCAL = ['localhost', '127.0.0.1', '[::1]']

/** The address of the endpoint. Gone after the test. */
export async function served(harness: Harness, { callers, owns, more }: Served): Promise<string> {
  const handler = mcpHandler({
    desk: deskOf(harness, owns),
    ...(more ? { more: (made) => more(made as McpServer) } : {}),
  })
  const server = createServer(
    nodeListener(async (request) => {
      const refused = hostHeaderValidationResponse(request, LOCAL) ?? originValidationResponse(request, LOCAL)
      return refused ?? handler.fetch(request, callers(request))
    }),
  )
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
  onTestFinished(async () => {
    await handler.close()
    server.closeAllConnections()
    await new Promise((down) => server.close(down))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}
