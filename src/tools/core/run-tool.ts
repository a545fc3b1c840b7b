// Runs one call of one tool and returns its envelope. It never throws; the intent is already on disk when it is called.
import type { FailureKind } from '../../kernel/content.ts'
import { isFailureKind } from '../../kernel/result.ts'
import {
  ApprovalNeeded,
  toOutput,
  isUnshowable,
  ModelRetry,
  type Output,
  valueToCheck,
  ToolFailure,
} from './tool-output.ts'
import type { Tool, ToolContext } from './tool.ts'

export type ToolRunEnd =
  | { readonly type: 'ok'; readonly output: Output; readonly attempts: number }
  | {
      readonly type: 'failed'
      readonly kind: FailureKind
      readonly output: Output
      readonly attempts: number
      readonly retryKind?: string
      /** A person must be asked before the call runs, and it changed nothing. */
      readonly asks?: true
    }
  /** Only `reconcileCall` returns this: it could not find out whether the call had happened. */
  | { readonly type: 'undecided' }

type FailedRun = Extract<ToolRunEnd, { type: 'failed' }>

export async function executeTool(tool: Tool, args: unknown, context: ToolContext): Promise<ToolRunEnd> {
  for (let attempts = 1; ; attempts++) {
    try {
      const value = await tool.execute(args, context)
      const wrong = tool.checkOutput ? await findOutputFault(tool, value) : null
      if (wrong !== null) return { type: 'failed', kind: 'Failed', output: wrong, attempts }
      const output = toOutput(value)
      return output.ok ? { type: 'ok', output, attempts } : endNotOk(output, attempts)
    } catch (error) {
      // The harness repeats only calls that are safe to repeat, and never one that the model should correct or that was
      // stopped.
      const again = attempts < tool.attempts && !(error instanceof ModelRetry) && !context.signal.aborted
      if (!again) return applyOnError(tool, describeThrown(error, attempts))
    }
  }
}

/** An envelope may ask for a correction too. It needs both of these fields, so that neither one does it by accident. */
function endNotOk(output: Output, attempts: number): ToolRunEnd {
  if (isUnshowable(output)) return { type: 'failed', kind: 'Failed', output, attempts }
  const { retry, error_type: retryKind } = output.metadata
  return retry === true && typeof retryKind === 'string'
    ? { type: 'failed', kind: 'InvalidInput', output, attempts, retryKind }
    : { type: 'ok', output, attempts }
}

/**
 * Replaces the text of a failure with that of the tool's `onError`. If `onError` fails, the failure is reported
 * unchanged.
 */
function applyOnError({ onError }: Tool, done: FailedRun): ToolRunEnd {
  if (typeof onError !== 'function' || done.retryKind !== undefined) return done
  const { kind, output } = done
  try {
    const content: unknown = onError({ kind, message: output.content, metadata: output.metadata })
    return typeof content === 'string' && content !== '' ? { ...done, output: { ...output, content } } : done
  } catch {
    return done
  }
}

/** Checks the result against the tool's `output` schema. The call has run, so it is not repeated. */
async function findOutputFault(tool: Tool, value: unknown): Promise<Output | null> {
  const checked = await tool.checkOutput?.(valueToCheck(value))
  if (!checked?.issues) return null
  const [issue] = checked.issues
  const where = issue?.path?.length ? ` at "${issue.path.map(String).join('.')}"` : ''
  const why = `${where}: ${issue?.message ?? 'it is not valid'}`
  const content = `The tool ran, but its handler returned what its schema \`output\` does not take${why}. The arguments of the call are not at fault`
  return { ok: false, content: content.slice(0, 1_000), metadata: { error_type: 'InvalidToolOutput' } }
}

/** Asks "Did call K happen?" Anything but a clear answer counts as undecided. */
export async function reconcileCall(tool: Tool, args: unknown, context: ToolContext): Promise<ToolRunEnd> {
  try {
    const found = await tool.reconcile?.(args, context)
    const output = toOutput(found)
    return found === undefined || isUnshowable(output) ? { type: 'undecided' } : { type: 'ok', output, attempts: 1 }
  } catch {
    return { type: 'undecided' }
  }
}

const KIND_CHARS_MAX = 100

function describeThrown(error: unknown, attempts: number): FailedRun {
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
    // An untyped tool may throw a kind that events do not know: the model and people still read it.
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

/** The text is never empty: an error without a message is named by its class. */
function errorText(type: string, error: unknown): string {
  if (error instanceof Error) return `${type}: ${error.message || 'no message'}`
  return `${type}: ${typeof error === 'string' && error !== '' ? error : 'something that is no Error was thrown'}`
}
