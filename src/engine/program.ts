// Which sessions the workers of a program may drive: those that the program opened. It decides before anything of a session is driven,
// once for each attempt, and never within a run.
import { Fault } from '../kernel/failure.ts'
import type { Card } from '../ports/store.ts'
import type { FrozenRuns } from '../effects/frozen-run.ts'
import { lastStart } from '../effects/last-start.ts'
import { RETRIEVE } from '../context/juice/marker.ts'
import { LEADING } from '../tools/agents/orders.ts'
import { type Check, filled, listOf } from '../options.ts'
import { driverText, UNNAMED } from '../view/program.ts'
import type { SessionCache } from './session-cache.ts'
import { agentIn, plannerName, type Program, type Services } from './wiring.ts'

const NOT_NAMED: Program = { names: [UNNAMED], given: false }
const NAME_CHARS_MAX = 64

export const nameCheck: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z0-9@/._-]+$/.test(value) && value.length <= NAME_CHARS_MAX
    ? null
    : `must be a name of 1 to ${NAME_CHARS_MAX} letters, digits, "@", "/", ".", "_" or "-", or a list of such names`
export const programCheck: Check = (value, name, of) => {
  if (!Array.isArray(value)) return nameCheck(value, name, of)
  return value.length === 0
    ? 'is empty. Name a program, or leave it out'
    : (listOf(filled)(value, name, of) ?? firstOf(value))
}
function firstOf(names: readonly unknown[]): ReturnType<Check> {
  return names.map((each) => nameCheck(each, '', '')).find((wrong) => wrong !== null) ?? null
}

export function programOf(given: string | readonly string[] | undefined): Program {
  if (given === undefined) return NOT_NAMED
  return { names: typeof given === 'string' ? [given] : given, given: true }
}

/** The name that a new session is opened under. */
export function nameOf({ program = NOT_NAMED }: Pick<Services, 'program'>): string {
  return program.names[0] ?? UNNAMED
}

/** Whether a session may be one of this program, as far as its card says. Older cards say nothing. */
export function maybeOwn({ program = NOT_NAMED }: Pick<Services, 'program'>, card: Pick<Card, 'program'>): boolean {
  return card.program === undefined || program.names.includes(card.program)
}

/**
 * Why no worker of this harness drives the session; null if one may. The program must be the session's own, and its agent must be
 * answered by the same planner. Programs without a name cannot be told apart: of these, one must also have each tool that the open run
 * froze. A session of an older version names no program: a program with a name drives it if somebody imported it, or if it has the tools of
 * the session's last run.
 */
export async function whyLeft(services: Services, runs: FrozenRuns, cache: SessionCache): Promise<string | null> {
  const { session } = cache
  const { program = NOT_NAMED } = services
  if (!maybeOwn(services, session)) return driverText(session)
  if (await isPlannedOtherwise(services, cache)) return `${driverText(session)} Here that agent is of another kind.`
  const isImported = session.program === undefined && session.imported !== undefined
  const listed = isImported || program.names.includes(session.program ?? UNNAMED)
  if (listed && (program.given || session.run === null || session.run.foreign)) return null
  const missing = await missingTool(services, runs, cache)
  if (missing === null) return null
  const text =
    missing === ''
      ? 'Nothing shows that it was opened by this program.'
      : `Here is no tool "${missing}", which its run has.`
  return `${driverText(session)} ${text}`
}

/** For the receipt of what was said to a session that no worker of this program drives. */
export function toldElsewhere(services: Services, card: Card | null): { readonly elsewhere?: string } {
  return card === null || maybeOwn(services, card) ? {} : { elsewhere: driverText(card) }
}

/** Refuses what would use the agent of a session: its tools or its model. */
export function checkOwn(services: Services, id: string, session: Pick<Card, 'agent' | 'program'>): void {
  if (maybeOwn(services, session)) return
  throw elsewhere(id, driverText(session))
}

export function elsewhere(id: string, why: string): Fault {
  return new Fault('session_elsewhere', `No worker of this program drives session ${id}. ${why}`)
}

/** An agent that is not here at all is told by those that need it. */
async function isPlannedOtherwise(services: Services, cache: SessionCache): Promise<boolean> {
  const { agent, planner } = cache.session
  const here = plannerName(services, agent)
  if (planner !== undefined || here === MODEL) return here !== (planner ?? MODEL)
  // An older snapshot does not say it.
  const first = cache.first ?? (await services.store.read(cache.id, 0, 1)).events[0]
  return first?.type === 'session.created' && first.planner !== here
}
const MODEL = 'model'

/** Options of a harness give an agent these: they say nothing about the program. */
const OWN_TOOLS: ReadonlySet<string> = new Set([...LEADING, RETRIEVE])

/** The first tool of the open run, or else of the last one, that is not here; empty if there was no run with tools. */
async function missingTool(services: Services, runs: FrozenRuns, cache: SessionCache): Promise<string | null> {
  const { run } = cache.session
  const start = await lastStart(services.store, cache)
  const [toolset, instructions] = run ? [run.toolset, run.instructions] : [start?.toolset, start?.instructions]
  if (toolset === undefined || instructions === undefined) return ''
  const { definitions } = await runs.read(toolset, instructions, start?.now?.toolset)
  const names = [...definitions.keys()].filter((name) => !OWN_TOOLS.has(name))
  const { tools } = agentIn(services, cache.session)
  if (names.some((name) => !tools.mayHave(name))) await tools.open({ signal: new AbortController().signal })
  const missing = names.find((name) => !tools.mayHave(name))
  if (missing !== undefined) return missing
  return services.program?.given && names.length === 0 ? '' : null
}
