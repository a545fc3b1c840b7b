// A server made with the official SDK that speaks only the newest revision, on stdio or on a port it prints.
// usage: node newest.mjs [stdio|http]
/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access -- plain JavaScript, so that plain Node runs it */
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = (words) => ({ content: [{ type: 'text', text: words }] })

function make() {
  const server = new McpServer({ name: 'newest', version: '1' }, { capabilities: { tools: {} } })
  server.registerTool('double', { inputSchema: z.object({ n: z.number() }) }, ({ n }) => text(String(2 * n)))
  server.registerTool('list', { inputSchema: z.object({}) }, () => ({ content: [], structuredContent: [1, 2] }))
  server.registerTool('ask', { inputSchema: z.object({}) }, () =>
    inputRequired({
      inputRequests: {
        who: inputRequired.elicit({
          message: 'Your password?',
          requestedSchema: { type: 'object', properties: { password: { type: 'string' } } },
        }),
      },
    }),
  )
  return server
}

if (process.argv[2] === 'http') {
  const handler = createMcpHandler(make, { legacy: 'reject' })
  const server = createServer((request, response) => {
    const body = request.method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {}
    const url = `http://${request.headers.host}${request.url}`
    const asked = new Request(url, { method: request.method, headers: request.headers, ...body })
    void handler.fetch(asked).then((answer) => {
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      if (answer.body) Readable.fromWeb(answer.body).pipe(response)
      else response.end()
    })
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
} else serveStdio(make, { legacy: 'reject' })
