// The sessions that the workers of a program may drive: those that the program opened. The check runs before an attempt
// drives anything, and never within a run.
import { Fault } from '../../kernel/failure.ts'
import type { Card } from '../../ports/store.ts'
import type { FrozenRuns } from './frozen-run.ts'
import { lastStart } from './last-start.ts'
import { RETRIEVE } from '../../context/compress/marker.ts'
import { LEADING } from '../../tools/agents/order-tools.ts'
import { type Check, nonEmptyCheck, listCheck } from '../../options.ts'
import { driverText, UNNAMED } from '../../view/session-program.ts'
import type { SessionCache } from './session-cache.ts'
import type { ProgramNames, Services } from './runtime-ports.ts'
import { agentOfSession, plannerName } from './agent.ts'

const NOT_NAMED: ProgramNames = { names: [UNNAMED], given: false }
const NAME_CHARS_MAX = 64

export const programNameCheck: Check = (value) =>
  typeof value === 'string' && /^[A-Za-z0-9@/._-]+$/.test(value) && value.length <= NAME_CHARS_MAX
    ? null
    : `must be a name of 1 to ${NAME_CHARS_MAX} letters, digits, "@", "/", ".", "_" or "-", or a list of such names`
export const programCheck: Check = (value, name, of) => {
  if (!Array.isArray(value)) return programNameCheck(value, name, of)
  return value.length === 0
    ? 'is empty. Name a program, or leave it out'
    : (listCheck(nonEmptyCheck)(value, name, of) ?? firstInvalidName(value))
}
function firstInvalidName(names: readonly unknown[]): ReturnType<Check> {
  return names.map((each) => programNameCheck(each, '', '')).find((wrong) => wrong !== null) ?? null
}

export function readProgramNames(given: string | readonly string[] | undefined): ProgramNames {
  if (given === undefined) return NOT_NAMED
  return { names: typeof given === 'string' ? [given] : given, given: true }
}

/** The program name of a new session. */
export function ownProgramName({ program = NOT_NAMED }: Pick<Services, 'program'>): string {
  return program.names[0] ?? UNNAMED
}

/** Whether a session may belong to this program, judged from its card. Older cards name no program. */
export function mayBeOwn({ program = NOT_NAMED }: Pick<Services, 'program'>, card: Pick<Card, 'program'>): boolean {
  return card.program === undefined || program.names.includes(card.program)
}

/**
 * Why no worker of this harness drives the session; null if one may. The program must be the session's own, and its
 * agent must have the same planner. Programs without a name cannot be told apart: one of these must also have each tool
 * that the open run froze. A session of an older version names no program: a program with a name drives it if it was
 * imported, or if the program has the tools of the session's last run.
 */
export async function whyNotDriven(services: Services, runs: FrozenRuns, cache: SessionCache): Promise<string | null> {
  const { session } = cache
  const { program = NOT_NAMED } = services
  if (!mayBeOwn(services, session)) return driverText(session)
  if (await hasOtherPlanner(services, cache)) return `${driverText(session)} Here that agent is of another kind.`
  const isImported = session.program === undefined && session.imported !== undefined
  const listed = isImported || program.names.includes(session.program ?? UNNAMED)
  if (listed && (program.given || session.run === null || session.run.foreign)) return null
  const missing = await findMissingTool(services, runs, cache)
  if (missing === null) return null
  const text =
    missing === ''
      ? 'Nothing shows that it was opened by this program.'
      : `Here is no tool "${missing}", which its run has.`
  return `${driverText(session)} ${text}`
}

/** For the receipt of a message to a session that no worker of this program drives. */
export function elsewhereReceipt(services: Services, card: Card | null): { readonly elsewhere?: string } {
  return card === null || mayBeOwn(services, card) ? {} : { elsewhere: driverText(card) }
}

/** Refuses to use the agent of a foreign session: its tools or its model. */
export function checkOwnSession(services: Services, id: string, session: Pick<Card, 'agent' | 'program'>): void {
  if (mayBeOwn(services, session)) return
  throw elsewhereFault(id, driverText(session))
}

export function elsewhereFault(id: string, why: string): Fault {
  return new Fault('session_elsewhere', `No worker of this program drives session ${id}. ${why}`)
}

/** An agent that is missing here is reported by the functions that need it. */
async function hasOtherPlanner(services: Services, cache: SessionCache): Promise<boolean> {
  const { agent, planner } = cache.session
  const here = plannerName(services, agent)
  if (planner !== undefined || here === MODEL) return here !== (planner ?? MODEL)
  // An older snapshot does not have the planner.
  const first = cache.firstEvent ?? (await services.store.read(cache.id, 0, 1)).events[0]
  return first?.type === 'session.created' && first.planner !== here
}
const MODEL = 'model'

/** Harness options give an agent these tools, so they say nothing about the program. */
const OWN_TOOLS: ReadonlySet<string> = new Set([...LEADING, RETRIEVE])

/**
 * The first tool of the open run, or else of the last run, that is missing here; empty if there was no run with tools.
 */
async function findMissingTool(services: Services, runs: FrozenRuns, cache: SessionCache): Promise<string | null> {
  const { run } = cache.session
  const start = await lastStart(services.store, cache)
  const [toolset, instructions] = run ? [run.toolset, run.instructions] : [start?.toolset, start?.instructions]
  if (toolset === undefined || instructions === undefined) return ''
  const { definitions } = await runs.read(toolset, instructions, start?.now?.toolset)
  const names = [...definitions.keys()].filter((name) => !OWN_TOOLS.has(name))
  const { tools } = agentOfSession(services, cache.session)
  if (names.some((name) => !tools.mayHave(name))) await tools.open({ signal: new AbortController().signal })
  const missing = names.find((name) => !tools.mayHave(name))
  if (missing !== undefined) return missing
  return services.program?.given && names.length === 0 ? '' : null
}
