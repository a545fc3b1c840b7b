// Running one call of one tool: handler in, envelope out. It never throws; the intent is already on disk when it is called.
import type { FailureKind } from '../../kernel/content.ts'
import { isFailureKind } from '../../kernel/result.ts'
import { ApprovalNeeded, envelopeOf, isUnshown, ModelRetry, type Output, promisedIn, ToolFailure } from './output.ts'
import type { Tool, ToolContext } from './tool.ts'

export type Done =
  | { readonly type: 'ok'; readonly output: Output; readonly attempts: number }
  | {
      readonly type: 'failed'
      readonly kind: FailureKind
      readonly output: Output
      readonly attempts: number
      readonly retryKind?: string
      /** A person must be asked before it runs, and it changed nothing. */
      readonly asks?: true
    }
  /** Only a reconcile may say this: it could not find out whether the call had happened. */
  | { readonly type: 'undecided' }

type Failed = Extract<Done, { type: 'failed' }>

export async function execute(tool: Tool, args: unknown, context: ToolContext): Promise<Done> {
  for (let attempts = 1; ; attempts++) {
    try {
      const value = await tool.execute(args, context)
      const wrong = tool.checkOutput ? await complaint(tool, value) : null
      if (wrong !== null) return { type: 'failed', kind: 'Failed', output: wrong, attempts }
      const output = envelopeOf(value)
      if (isUnshown(output)) return { type: 'failed', kind: 'Failed', output, attempts }
      const retryKind = retryKindOf(output)
      if (retryKind !== null) return { type: 'failed', kind: 'InvalidInput', output, attempts, retryKind }
      return { type: 'ok', output, attempts }
    } catch (error) {
      // The harness repeats only what is safe to repeat, and never what the model should correct or what was stopped.
      const again = attempts < tool.attempts && !(error instanceof ModelRetry) && !context.signal.aborted
      if (!again) return told(tool, failed(error, attempts))
    }
  }
}

/** An envelope may ask for a correction too: only by both of these fields, so that neither alone does it by accident. */
function retryKindOf({ ok, metadata }: Output): string | null {
  const { retry, error_type } = metadata
  return !ok && retry === true && typeof error_type === 'string' ? error_type : null
}

/** In the words of the tool's own `onError`. If these fail, the failure is told as it is. */
function told({ onError }: Tool, done: Failed): Done {
  if (typeof onError !== 'function' || done.retryKind !== undefined) return done
  const { kind, output } = done
  try {
    const content: unknown = onError({ kind, message: output.content, metadata: output.metadata })
    return typeof content === 'string' && content !== '' ? { ...done, output: { ...output, content } } : done
  } catch {
    return done
  }
}

/** What came back is not what the tool promised. It has run, so it is not run again. */
async function complaint(tool: Tool, value: unknown): Promise<Output | null> {
  const checked = await tool.checkOutput?.(promisedIn(value))
  if (!checked?.issues) return null
  const [issue] = checked.issues
  const where = issue?.path?.length ? ` at "${issue.path.map(String).join('.')}"` : ''
  const why = `${where}: ${issue?.message ?? 'it is not valid'}`
  const content = `The tool ran, but its handler returned what its schema \`output\` does not take${why}. The arguments of the call are not at fault`
  return { ok: false, content: content.slice(0, 1_000), metadata: { error_type: 'InvalidToolOutput' } }
}

/** "Did call K happen?" Anything but a clear answer is no answer. */
export async function reconcile(tool: Tool, args: unknown, context: ToolContext): Promise<Done> {
  try {
    const found = await tool.reconcile?.(args, context)
    const output = envelopeOf(found)
    return found === undefined || isUnshown(output) ? { type: 'undecided' } : { type: 'ok', output, attempts: 1 }
  } catch {
    return { type: 'undecided' }
  }
}

const KIND_CHARS_MAX = 100

function failed(error: unknown, attempts: number): Failed {
  if (error instanceof ModelRetry) {
    const metadata = { error_type: 'ModelRetry', ...error.metadata, retry: true }
    return {
      type: 'failed',
      kind: 'InvalidInput',
      output: { ok: false, content: error.message, metadata },
      attempts,
      retryKind: 'ModelRetry',
    }
  }
  if (error instanceof ToolFailure) {
    const { kind, message, metadata } = error
    const isKnown = isFailureKind(kind)
    // A tool without types may say a kind that no event may have: the model and people still read it.
    const said = String(kind).slice(0, KIND_CHARS_MAX)
    const content = isKnown || message === said ? String(message) : `${said}: ${message}`
    const output = { ok: false, content, metadata: { error_type: said, ...metadata } }
    return { type: 'failed', kind: isKnown ? kind : 'Failed', output, attempts }
  }
  if (error instanceof ApprovalNeeded) {
    const metadata = { error_type: error.name }
    return {
      type: 'failed',
      kind: 'Denied',
      output: { ok: false, content: error.message, metadata },
      attempts,
      asks: true,
    }
  }
  const type = error instanceof Error ? error.name || 'Error' : 'Error'
  const output = { ok: false, content: errorText(type, error), metadata: { error_type: type } }
  return { type: 'failed', kind: 'Failed', output, attempts }
}

/** Never empty: an error without a message is named by its class. */
function errorText(type: string, error: unknown): string {
  if (error instanceof Error) return `${type}: ${error.message || 'no message'}`
  return `${type}: ${typeof error === 'string' && error !== '' ? error : 'something that is no Error was thrown'}`
}
