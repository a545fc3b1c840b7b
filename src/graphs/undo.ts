// What a graph does after it has failed: the calls that were done and have a compensation are undone, the newest first, one after the
// other. Pure, as the planner is: what is left to undo stands in each checkpoint, so it goes on where it was after a crash.
import type { Json } from '../kernel/content.ts'
import { errorText } from './error.ts'
import { type Tool, defineTool } from '../tools/core/tool.ts'
import { output } from '../tools/core/output.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { isObject } from '../view/json.ts'
import type { Done, Outcome, Point, Reading, Undoing } from './checkpoint.ts'
import type { Graph } from './definition.ts'
import { AS_WRITTEN, ownError, type Step } from './step.ts'

type Call = { readonly tool: string; readonly args: { readonly [name: string]: Json } }
type Planned = { readonly point: Point; readonly calls: readonly Call[] }

const TOLD_CHARS_MAX = 300

/** The name of the tool that undoes a node. */
function undoName({ onFailure }: Graph, node: string): string | null {
  const by = onFailure.get(node)
  return by === undefined ? null : by === true ? `undo_${node}` : by
}

/**
 * With what a result adds to what may have to be undone. A call that failed has done nothing; one that was lost or was too slow may have,
 * unless a later try of it succeeded.
 */
export function withDone(done: readonly Done[], graph: Graph, { node, args }: Done, result: Outcome): readonly Done[] {
  if (!graph.onFailure.has(node)) return done
  const { ok, status, content } = result
  if (!ok) return status === 'unknown' || status === 'timeout' ? [...done, { node, args, unknown: true }] : done
  const same = canonicalJson(args)
  const known = done.filter((each) => !each.unknown || each.node !== node || canonicalJson(each.args) !== same)
  return [...known, { node, args, wrote: wroteIn(content) }]
}

/** The first thing to undo after a failure, or the failure as it is if there is none. */
export function compensated(graph: Graph, point: Point): Planned {
  const { done, failed = '', ...rest } = point
  if (done === undefined || done.length === 0) return { point, calls: [] }
  return undoNext(graph, { ...rest, tasks: [], undo: { failed, left: done, told: [], tries: 0 } })
}

/** With what became of the last compensation: it is told, or tried once more, and then the next. */
export function undone(graph: Graph, point: Point, undo: Undoing, { results, said }: Reading): Planned {
  const result = results.get(0)
  // Its worker was lost before anything came of it, or a stop kept it from ending: the same call is still wanted.
  if (!result || result.status === 'aborted') return undoNext(graph, point)
  const { left, told } = undo
  const last = left[left.length - 1]
  const tries = undo.tries + 1
  const step = graph.nodes.get(last ? (undoName(graph, last.node) ?? '') : '')
  const own = ownError(result.content)
  if (own !== null && !result.ok && tries <= (step?.retries ?? 0))
    return undoNext(graph, { ...point, undo: { ...undo, tries } })
  const what = result.ok ? '' : ` was not undone: ${(own ?? result.content).slice(0, TOLD_CHARS_MAX)}`
  const lost = said.length > 0 && !undo.failed.endsWith(LOST) ? LOST : ''
  const now = { failed: undo.failed + lost, left: left.slice(0, -1), told: [...told, `${last?.node}${what}`], tries: 0 }
  return undoNext(graph, { ...point, undo: now })
}
const LOST = ' What was sent meanwhile was not taken in.'

function undoNext(graph: Graph, point: Point): Planned {
  const { undo, ...rest } = point
  const next = undo?.left[undo.left.length - 1]
  if (!undo || !next) return { point: { ...rest, failed: endText(undo) }, calls: [] }
  const tool = undoName(graph, next.node)
  if (tool === null) {
    const told = [...undo.told, `${next.node} was not undone: the graph has no compensation for it any more`]
    return undoNext(graph, { ...point, undo: { ...undo, left: undo.left.slice(0, -1), told } })
  }
  const { node: _node, ...args } = next
  return { point, calls: [{ tool, args }] }
}

/** The reason stays what it was; what was undone is said after it. */
function endText(undo: Undoing | undefined): string {
  const { failed = '', told = [] } = undo ?? {}
  const back = told.filter((each) => !each.includes(' was not undone: '))
  const kept = told.filter((each) => each.includes(' was not undone: '))
  const parts = [...(back.length > 0 ? [`Undone: ${back.join(', ')}.`] : []), ...kept.map((each) => `Node ${each}.`)]
  return [failed, ...parts].join(' ')
}

/** Whether a lost call took effect is not known: a person is asked before it is undone, whatever rules allow. */
export function askedIfUnknown(tool: Tool): Tool {
  const approval: Tool['approval'] = (args) =>
    isObject(args) && args['unknown'] === true ? 'always' : tool.approval(args)
  return { ...tool, approval, byArguments: true }
}

/** The tool that undoes a node by the node's own `undo`. It asks as the node does. */
export function undoTool(node: string, step: Step): Tool {
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

function wroteIn(content: string): Json {
  try {
    return JSON.parse(content) as Json
  } catch {
    return content
  }
}
