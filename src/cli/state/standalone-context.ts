// The context of a tool that a person runs outside of any session: texts are kept until the command ends, and no model
// can be asked.
import { hash } from 'node:crypto'
import type { ToolContext } from '../../tools/core/tool.ts'
import { EXIT, CliError } from '../exit.ts'
import { timerClock } from './mcp-servers.ts'

export function standaloneContext(name: string, signal: AbortSignal): ToolContext {
  const kept = new Map<string, string>()
  const none = (): never => {
    throw new CliError(EXIT.usage, 'This tool needs a session. Ask an agent to call it.')
  }
  return {
    session: name,
    call: '1.0',
    key: `${name}:1.0`,
    approved: true,
    signal,
    metadata: {},
    deps: undefined,
    clock: timerClock,
    keep: (data, media = 'text/plain') => {
      const key = hash('sha256', data)
      if (typeof data === 'string') kept.set(key, data)
      return { type: 'blob', hash: key, bytes: Buffer.byteLength(data), media }
    },
    recall: (key) => Promise.resolve(kept.get(key) ?? null),
    tell: () => {},
    redact: (text) => text,
    askModel: none,
    secret: none,
    reveal: (text) => text,
  }
}
