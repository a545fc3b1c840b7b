// The client under test: connects to the server the suite names as the last argument, and calls every tool it offers once.
// The suite judges what it saw of this on the wire. Its own exit code only says whether it could do its part.
import type { Json } from '../../src/kernel/content.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { mcpServer } from '../../src/tools/mcp/mcp-server.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from '../tools/context.ts'

const url = process.argv.at(-1) ?? ''
const server = mcpServer({ name: 'suite', url, required: true, approval: 'auto' })
try {
  for (const tool of await server.tools(new AbortController().signal, runtimeClock)) {
    const done = await executeTool(tool, argumentsFor(tool.parameters), toolContext())
    console.log(tool.name, JSON.stringify(done))
    if (done.type !== 'ok') process.exitCode = 1
  }
} finally {
  await server.close()
}

/** Some number for each field: what the suite's tools take are numbers. */
function argumentsFor(parameters: Json): Json {
  const { properties = {} } = parameters as { readonly properties?: Readonly<Record<string, unknown>> }
  return Object.fromEntries(Object.keys(properties).map((name, i) => [name, i + 2]))
}
