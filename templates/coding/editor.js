// Prints what an editor needs to start the agent. Editors are often started without your PATH, so both paths are whole.
import { fileURLToPath } from 'node:url'

const terret = fileURLToPath(new URL('node_modules/terret/dist/cli/main.js', import.meta.url))
console.log(
  JSON.stringify({ agent_servers: { Terret: { command: process.execPath, args: [terret, 'acp'], env: {} } } }, null, 2),
)
