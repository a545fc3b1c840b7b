// What a run that was narrowed leaves to everything below it: the only tools, and the most of each limit. A child has the bounds of the
// run that started it in its `session.created`, so they hold at any depth, in all its runs, and in any process.
import type { Limits, RunChoice, Within } from '../kernel/content.ts'
import type { Session } from '../kernel/session.ts'
import type { Varied } from '../engine/wiring.ts'
import type { Tools } from './toolbox.ts'

/** The limits that bound what is done. The others say how trouble is met, and stay as each agent has them. */
const BOUNDING = [
  'modelRequests',
  'modelAttempts',
  'toolCalls',
  'tokens',
  'activeMs',
  'depth',
  'children',
  'wakes',
] as const satisfies readonly (keyof Limits)[]
/** What of them also bounds a workflow: its turns and calls are its program, and cost nothing. */
const OF_WORKFLOWS: readonly (keyof Limits)[] = ['depth', 'children', 'wakes']

/** Bounds that allow only what both allow; undefined for none. */
export function narrowBoth(one: Within | undefined, other: Within | undefined): Within | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const tools = one.tools && other.tools ? one.tools.filter((name) => other.tools?.includes(name)) : undefined
  const named = tools ?? one.tools ?? other.tools
  const limits: Record<string, number> = { ...one.limits }
  for (const [name, most] of Object.entries(other.limits ?? {})) limits[name] = Math.min(most, limits[name] ?? most)
  return boundsOf(named, limits)
}

/** The bounds that a run with this choice sets for all below it: the tools it names, and the limits it has lower than its agent. */
export function boundsOfChoice({ tools, limits = {} }: RunChoice, own: Limits): Within | undefined {
  const lower = BOUNDING.flatMap((name) => {
    const chosen = limits[name]
    const most = own[name] ?? Number.POSITIVE_INFINITY
    return typeof chosen === 'number' && chosen < most ? [[name, chosen] as const] : []
  })
  return boundsOf(tools, Object.fromEntries(lower))
}

function boundsOf(tools: readonly string[] | undefined, limits: Readonly<Record<string, number>>): Within | undefined {
  const bounded = Object.keys(limits).length > 0
  if (tools === undefined && !bounded) return undefined
  return { ...(tools ? { tools } : {}), ...(bounded ? { limits } : {}) }
}

/** The bounds of what this session starts now: those of its open run, which are at least its own. */
export function boundsBelow({ session, varied }: Bounded): Within | undefined {
  const { run, within } = session
  return run?.options !== undefined && varied?.options === run.options ? varied.below : within
}
type Bounded = { readonly session: Session; readonly varied: Varied | null }

export function limitsWithin(limits: Limits, { limits: most = {} }: Within, isWorkflow: boolean): Limits {
  const bounded: Record<string, number | null | undefined> = { ...limits }
  for (const name of isWorkflow ? OF_WORKFLOWS : BOUNDING) {
    const bound = most[name]
    if (bound !== undefined) bounded[name] = Math.min(bound, bounded[name] ?? bound)
  }
  return bounded as Limits
}

/** Those of the tools that are left. What the harness itself always offers stays. */
export function toolsWithin(tools: Tools, { tools: names }: Within): Tools {
  return names === undefined ? tools : new Map([...tools].filter(([name, tool]) => tool.always || names.includes(name)))
}

/** Whether a session with these bounds has no tool that the others leave out. */
export function isWithin(bounds: Within | undefined, others: Within | undefined): boolean {
  if (others?.tools === undefined) return true
  return bounds?.tools?.every((name) => others.tools?.includes(name)) === true
}
