// A source of tools that can be changed from outside, as a server of tools changes its list.
import type { Tool, ToolSource } from '../../src/index.ts'

export function changing(...first: readonly Tool[]): ToolSource & { now: readonly Tool[] } {
  const source = {
    type: 'source' as const,
    name: 'changing',
    now: first,
    tools: () => Promise.resolve(source.now),
    close: () => Promise.resolve(),
  }
  return source
}
