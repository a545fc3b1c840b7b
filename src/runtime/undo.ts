// Undo: takes back what the calls of one run changed, newest first, by asking the tools that made them. It finds out what there
// is to take back from the log; it does not decide how.
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { isMetadata, type Metadata } from '../tools/output.ts'
import type { Undone } from '../tools/tool.ts'
import { ToolTalk } from './talk.ts'
import type { World } from './world.ts'

const PAGE = 1_000

type Made = { readonly call: CallKey; readonly tool: string; readonly metadata: Metadata }

export type UndoneCall = Undone & { readonly call: CallKey }

/** `run` is the seq of its `run.started`. */
export async function undoRun(
  world: World,
  { session, agent, run }: { readonly session: string; readonly agent: string; readonly run: number },
  signal: AbortSignal,
): Promise<readonly UndoneCall[]> {
  const tools = await world.agent(agent).tools.open({ signal })
  const flight = { signal, reason: null, clear: () => !signal.aborted }
  const undone = new Map<CallKey, readonly Undone[]>()
  let left = (await madeIn(world, session, run)).reverse().filter(({ tool }) => tools.get(tool)?.undo)
  // Calls of one turn may have worked on one file in any order: what does not fit yet may fit after another.
  for (let before = left.length + 1; left.length > 0 && left.length < before; ) {
    before = left.length
    for (const { call, tool, metadata } of left) {
      const context = new ToolTalk(world, session, call, flight, [])
      undone.set(call, (await tools.get(tool)?.undo?.(metadata, context)) ?? [])
    }
    left = left.filter(({ call }) => undone.get(call)?.some(({ result }) => result === 'changed_since'))
  }
  return [...undone].flatMap(([call, results]) => results.map((each) => ({ ...each, call })))
}

/** The results of a run that say what they did, in the order they came. */
async function madeIn(world: World, session: string, run: number): Promise<Made[]> {
  const tools = new Map<CallKey, string>()
  const made: Made[] = []
  for (let after = run - 1; ; ) {
    const { events } = await world.store.read(session, after, PAGE)
    for (const event of events) {
      if (event.type === 'run.settled') return made
      if (event.type === 'agent.message')
        event.calls.forEach((call, index) => tools.set(callKey(event.seq, index), call.tool))
      if (event.type === 'agent.tool_result') made.push(...madeBy(event, tools))
    }
    const last = events.at(-1)
    if (last === undefined || events.length < PAGE) return made
    after = last.seq
  }
}

function madeBy(event: Extract<Event, { type: 'agent.tool_result' }>, tools: ReadonlyMap<CallKey, string>): Made[] {
  const { call, metadata } = event
  const tool = tools.get(call)
  return tool !== undefined && isMetadata(metadata) ? [{ call, tool, metadata }] : []
}

/** What the model is told at its next request: what it believed to be there may be gone. */
export function undoText(undone: readonly UndoneCall[]): string {
  const lines = undone.map(({ what, result }) => `- ${what}: ${SAID[result]}`)
  return ['The user took back file changes of an earlier run:', ...lines].join('\n')
}

const SAID: Readonly<Record<Undone['result'], string>> = {
  restored: 'put back as it was before',
  removed: 'removed, as it was new',
  changed_since: 'left alone, because it was changed since',
  not_kept: 'left alone, because the old content was not kept',
}
