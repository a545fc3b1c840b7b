// Undoes the calls of a failed graph: those that were done and have a compensation, one after the other, newest first.
// Pure like the planner. The calls left to undo are in each checkpoint, so it continues after a crash.
import type { Json } from '../kernel/content.ts'
import { errorText } from './error.ts'
import { type Tool, defineTool } from '../tools/core/tool.ts'
import { output } from '../tools/core/tool-output.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { DoneCall, ToolOutcome, Checkpoint, PlannerInput, UndoProgress } from './checkpoint.ts'
import type { Graph } from './graph-definition.ts'
import { AS_WRITTEN, nodeErrorIn, type PlannerNode } from './planner-node.ts'

type UndoCall = { readonly tool: string; readonly args: { readonly [name: string]: Json } }
type UndoReply = { readonly point: Checkpoint; readonly calls: readonly UndoCall[] }

const TOLD_CHARS_MAX = 300

/** The name of the tool that undoes a node. */
function undoToolName({ onFailure }: Graph, node: string): string | null {
  const by = onFailure.get(node)
  return by === undefined ? null : by === true ? `undo_${node}` : by
}

/**
 * Adds a call to those that may have to be undone. A failed call has done nothing. A call that was lost or timed out
 * may have taken effect, unless a later try of it succeeded.
 */
export function addDoneCall(
  done: readonly DoneCall[],
  graph: Graph,
  { node, args }: DoneCall,
  result: ToolOutcome,
): readonly DoneCall[] {
  if (!graph.onFailure.has(node)) return done
  const { ok, status, content } = result
  if (!ok) return status === 'unknown' || status === 'timeout' ? [...done, { node, args, unknown: true }] : done
  const same = canonicalJson(args)
  const known = done.filter((each) => !each.unknown || each.node !== node || canonicalJson(each.args) !== same)
  return [...known, { node, args, wrote: parseContent(content) }]
}

/** The first call to undo after a failure, or the failure itself if there is none. */
export function startUndo(graph: Graph, point: Checkpoint): UndoReply {
  const { done, failed = '', ...rest } = point
  if (done === undefined || done.length === 0) return { point, calls: [] }
  return undoNext(graph, { ...rest, tasks: [], undo: { failed, left: done, told: [], tries: 0 } })
}

/** Handles the result of the last compensation: reports it or tries it again, then goes to the next. */
export function continueUndo(
  graph: Graph,
  point: Checkpoint,
  undo: UndoProgress,
  { results, said }: PlannerInput,
): UndoReply {
  const result = results.get(0)
  // There is no result because the worker was lost or a stop came first, so the same call is made again.
  if (!result || result.status === 'aborted') return undoNext(graph, point)
  const { left, told } = undo
  const last = left[left.length - 1]
  const tries = undo.tries + 1
  const step = graph.nodes.get(last ? (undoToolName(graph, last.node) ?? '') : '')
  const own = nodeErrorIn(result.content)
  if (own !== null && !result.ok && tries <= (step?.retries ?? 0))
    return undoNext(graph, { ...point, undo: { ...undo, tries } })
  const what = result.ok ? '' : ` was not undone: ${(own ?? result.content).slice(0, TOLD_CHARS_MAX)}`
  const lost = said.length > 0 && !undo.failed.endsWith(LOST) ? LOST : ''
  const now = { failed: undo.failed + lost, left: left.slice(0, -1), told: [...told, `${last?.node}${what}`], tries: 0 }
  return undoNext(graph, { ...point, undo: now })
}
const LOST = ' What was sent meanwhile was not taken in.'

function undoNext(graph: Graph, point: Checkpoint): UndoReply {
  const { undo, ...rest } = point
  const next = undo?.left[undo.left.length - 1]
  if (!undo || !next) return { point: { ...rest, failed: failureText(undo) }, calls: [] }
  const tool = undoToolName(graph, next.node)
  if (tool === null) {
    const told = [...undo.told, `${next.node} was not undone: the graph has no compensation for it any more`]
    return undoNext(graph, { ...point, undo: { ...undo, left: undo.left.slice(0, -1), told } })
  }
  const { node: _node, ...args } = next
  return { point, calls: [{ tool, args }] }
}

/** Keeps the original reason, and adds the result of the undo. */
function failureText(undo: UndoProgress | undefined): string {
  const { failed = '', told = [] } = undo ?? {}
  const back = told.filter((each) => !each.includes(' was not undone: '))
  const kept = told.filter((each) => each.includes(' was not undone: '))
  const parts = [...(back.length > 0 ? [`Undone: ${back.join(', ')}.`] : []), ...kept.map((each) => `Node ${each}.`)]
  return [failed, ...parts].join(' ')
}

/**
 * When it is not known whether a lost call took effect, a person is asked before it is undone, whatever the rules
 * allow.
 */
export function askIfUnknown(tool: Tool): Tool {
  const approval: Tool['approval'] = (args) =>
    isObject(args) && args['unknown'] === true ? 'always' : tool.approval(args)
  return { ...tool, approval, byArguments: true }
}

/** The tool that runs a node's own `undo`. It asks for approval as the node does. */
export function undoTool(node: string, step: PlannerNode): Tool {
  const { undo, secrets, timeoutMs } = step.tool(node)
  return defineTool({
    name: `undo_${node}`,
    description: `Undoes what the node ${node} did.`,
    input: AS_WRITTEN,
    effect: 'idempotent',
    timeoutMs,
    secrets,
    approval: step.gate === 'by_arguments' ? 'ask' : step.gate,
    execute: async ({ wrote }, context) => {
      try {
        const all = (await undo?.(isObject(wrote) ? wrote : {}, context)) ?? []
        const kept = all.filter(({ result }) => result === 'changed_since' || result === 'not_kept')
        if (kept.length === 0) return output({ content: canonicalJson(all) })
        const text = kept.map(({ what, result }) => `${what} (${result})`).join(', ')
        return output({ ok: false, content: canonicalJson({ error: text }) })
      } catch (error) {
        if (context.signal.aborted) throw error
        return output({ ok: false, content: canonicalJson({ error: errorText(error) }) })
      }
    },
  })
}

function parseContent(content: string): Json {
  try {
    return JSON.parse(content) as Json
  } catch {
    return content
  }
}
