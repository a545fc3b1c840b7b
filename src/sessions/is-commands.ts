// Tells a list of commands from the parts of one message: `send` takes both. The first entry decides.
import type { Command } from './command.ts'
import type { Input } from './input.ts'

const COMMANDS: Readonly<Record<Command['type'], true>> = {
  message: true,
  redirect: true,
  pause: true,
  resume: true,
  cancel: true,
  withdraw: true,
}

export function isCommands(given: Input | readonly Command[]): given is readonly Command[] {
  const first: unknown = Array.isArray(given) ? given[0] : undefined
  const named = (first as { readonly type?: unknown } | null | undefined)?.type
  return typeof named === 'string' && Object.hasOwn(COMMANDS, named)
}
