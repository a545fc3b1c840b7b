// The bounds that a narrowed run sets for everything below it: the only tools, and a maximum for each limit. A child
// has the bounds of the run that started it in its `session.created`, so they hold at any depth, in all its runs and in
// any process.
import type { Limits, RunChoice, Narrowing } from '../../kernel/content.ts'
import type { Session } from '../../kernel/session.ts'
import type { Agent, RunVariant } from '../state/agent.ts'
import type { Tools } from '../state/toolbox.ts'

/** The limits that bound work. The others control how failures are handled, and stay as each agent has them. */
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
/** The limits that also bound a workflow. Its turns and calls are its program, and cost nothing. */
const OF_WORKFLOWS: readonly (keyof Limits)[] = ['depth', 'children', 'wakes']
/** The limits that also bound a script, whose calls a model chose. Its turns cost nothing. */
const OF_SCRIPTS: readonly (keyof Limits)[] = [...OF_WORKFLOWS, 'toolCalls', 'tokens', 'activeMs']

/** Returns bounds that allow only what both allow; undefined for no bounds. */
export function intersectBounds(one: Narrowing | undefined, other: Narrowing | undefined): Narrowing | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const tools = one.tools && other.tools ? one.tools.filter((name) => other.tools?.includes(name)) : undefined
  const named = tools ?? one.tools ?? other.tools
  const limits: Record<string, number> = { ...one.limits }
  for (const [name, most] of Object.entries(other.limits ?? {})) limits[name] = Math.min(most, limits[name] ?? most)
  return buildBounds(named, limits)
}

/**
 * The bounds that a run with this choice sets for everything below it: the tools it names, and the limits that are
 * lower than its agent's.
 */
export function boundsOfChoice({ tools, limits = {} }: RunChoice, own: Limits): Narrowing | undefined {
  const lower = BOUNDING.flatMap((name) => {
    const chosen = limits[name]
    const most = own[name] ?? Number.POSITIVE_INFINITY
    return typeof chosen === 'number' && chosen < most ? [[name, chosen] as const] : []
  })
  return buildBounds(tools, Object.fromEntries(lower))
}

function buildBounds(
  tools: readonly string[] | undefined,
  limits: Readonly<Record<string, number>>,
): Narrowing | undefined {
  const bounded = Object.keys(limits).length > 0
  if (tools === undefined && !bounded) return undefined
  return { ...(tools ? { tools } : {}), ...(bounded ? { limits } : {}) }
}

/**
 * The bounds for children that this session starts now: those of its open run, which are at least as narrow as its own.
 */
export function boundsForChildren({ session, varied }: BoundedSession): Narrowing | undefined {
  const { run, within } = session
  return run?.options !== undefined && varied?.options === run.options ? varied.below : within
}
type BoundedSession = { readonly session: Session; readonly varied: RunVariant | null }

export function limitsWithin(limits: Limits, { limits: most = {} }: Narrowing, planner: Agent['planner']): Limits {
  const bounded: Record<string, number | null | undefined> = { ...limits }
  for (const name of planner === null ? BOUNDING : planner.bounded ? OF_SCRIPTS : OF_WORKFLOWS) {
    const bound = most[name]
    if (bound !== undefined) bounded[name] = Math.min(bound, bounded[name] ?? bound)
  }
  return bounded as Limits
}

/** The tools that are left. Tools that the harness itself always offers stay. */
export function toolsWithin(tools: Tools, { tools: names }: Narrowing): Tools {
  return names === undefined ? tools : new Map([...tools].filter(([name, tool]) => tool.always || names.includes(name)))
}

/** Whether every tool of a session with these bounds is allowed by the other bounds. */
export function isWithinBounds(bounds: Narrowing | undefined, others: Narrowing | undefined): boolean {
  if (others?.tools === undefined) return true
  return bounds?.tools?.every((name) => others.tools?.includes(name)) === true
}
