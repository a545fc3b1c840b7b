// Running one call of one tool: handler in, text out. It never throws; the intent is already on disk when it is called.
import type { Tool, ToolContext } from './tool.ts'

export type Done =
  | { readonly type: 'ok'; readonly content: string }
  | { readonly type: 'failed'; readonly content: string }
  /** Only a reconcile may say this: it could not find out whether the call had happened. */
  | { readonly type: 'undecided' }

export async function execute(
  tool: Tool,
  args: unknown,
  context: ToolContext,
  mode: 'execute' | 'reconcile',
): Promise<Done> {
  try {
    if (mode === 'execute') return { type: 'ok', content: contentOf(await tool.execute(args, context)) }
    const found = await tool.reconcile?.(args, context)
    return found === undefined ? { type: 'undecided' } : { type: 'ok', content: contentOf(found) }
  } catch (error) {
    return mode === 'reconcile' ? { type: 'undecided' } : { type: 'failed', content: errorText(error) }
  }
}

function contentOf(value: unknown): string {
  if (typeof value === 'string') return value
  // A function or a symbol has no JSON: it is no content either.
  return JSON.stringify(value) ?? ''
}

/** Never empty: an error without a message is named by its class. */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return `Error: ${String(error) || 'an error without a message'}`
  return `${error.name || 'Error'}: ${error.message || 'no message'}`
}
