// A workflow in phases as data, checked when it is loaded: each error has a name and says where it is. It runs nothing.
import { Fault } from '../../kernel/failure.ts'
import { anything, count, filled, listOf, nearest, needed, oneOf, optionsOf, text } from '../../options.ts'
import type { SafetyTier } from '../tiers.ts'

export type Phase = {
  readonly name: string
  /** What its agents are to do. */
  readonly description: string
  /** They work at once. */
  readonly agents: readonly string[]
  /** The phases that must be done before. */
  readonly depends_on?: readonly string[]
}

export type PhasesDefinition = {
  /** Its name as an agent. */
  readonly id: string
  /** For people. Default: its id. */
  readonly name?: string
  /** When to use it: models that may start subagents read this. */
  readonly description?: string
  readonly phases: readonly Phase[]
  /** How many agents work at once. Default 4. */
  readonly concurrency?: number
  /** How many agents all phases may start together. Default 24. */
  readonly max_children?: number
  /** What its agents may do. Default `standard`: what they may do otherwise, but no writing of files. */
  readonly safety_tier?: SafetyTier
}

const PHASES_MAX = 100
const CHILDREN_MAX = 200
export const DEFAULTS = { concurrency: 4, max_children: 24, safety_tier: 'standard' } as const
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?$/
/** Names that mean something to a graph, and the gate of workflows that edit. */
const TAKEN = ['START', 'END', 'subagent', 'approve_edits']

const checkDefinition = optionsOf<PhasesDefinition>('a workflow in phases', {
  id: needed(filled),
  name: text,
  description: text,
  phases: needed(anything),
  concurrency: count(1, 64),
  max_children: count(1, CHILDREN_MAX),
  safety_tier: oneOf<SafetyTier>({ read_only: true, standard: true, edit_capable: true }),
})
const checkPhase = optionsOf<Phase>('a phase', {
  name: needed(filled),
  description: needed(filled, 'Say what its agents are to do.'),
  agents: needed(anything),
  depends_on: listOf(filled),
})

/** Throws for what is wrong with it. `agents` are the names it may use. */
export function checkPhases(definition: PhasesDefinition, agents: readonly string[]): void {
  const { id, phases } = (definition ?? {}) as Partial<PhasesDefinition>
  if (!Array.isArray(phases) || phases.length === 0)
    throw wrong('NoPhases', 'phases', 'is empty. Give at least one phase')
  if (phases.length > PHASES_MAX)
    throw wrong('TooManyPhases', 'phases', `has ${phases.length} phases, and may have ${PHASES_MAX}`)
  checkDefinition(definition, typeof id === 'string' ? `workflow "${id.slice(0, 64)}"` : undefined)
  checkName(definition.id, 'id')
  checkNames(phases)
  for (const [i, phase] of definition.phases.entries()) checkOne(definition, phase, i, agents)
  const cycle = cycleIn(definition.phases)
  if (cycle !== null)
    throw wrong(
      'CyclicDependency',
      placeOf(definition.phases, cycle[0] ?? ''),
      `waits for itself: ${cycle.join(' → ')}`,
    )
  checkChildren(definition)
}

function checkNames(phases: readonly Phase[]): void {
  const seen = new Map<string, number>()
  for (const [i, phase] of phases.entries()) {
    checkPhase(phase, `phases[${i}]`)
    const { name } = phase
    checkName(name, `phases[${i}].name`)
    const before = seen.get(name)
    if (before !== undefined)
      throw wrong('DuplicatePhase', `phases[${i}]`, `has the name "${name}" of phases[${before}]. Give it another`)
    seen.set(name, i)
  }
}

function checkName(name: string, place: string): void {
  if (NAME.test(name) && !name.includes('--') && !TAKEN.includes(name)) return
  const what = `cannot be "${name.slice(0, 64)}": use 1 to 40 letters, digits, "_" or single "-", and no word of the harness`
  throw wrong('InvalidName', place, what)
}

function checkOne({ phases }: PhasesDefinition, phase: Phase, i: number, known: readonly string[]): void {
  const { name, agents, depends_on = [] } = phase
  if (!Array.isArray(agents) || agents.length === 0)
    throw wrong('EmptyPhase', `phases[${i}].agents`, `is empty: phase "${name}" has nobody to do it. Name an agent`)
  for (const [k, agent] of (agents as readonly string[]).entries())
    if (!known.includes(agent))
      throw wrong('UnknownAgent', `phases[${i}].agents[${k}]`, `is ${unknown('agent', agent, known)}`)
  const names = phases.map((each) => each.name)
  for (const [k, other] of depends_on.entries())
    if (!names.includes(other))
      throw wrong('UnknownDependency', `phases[${i}].depends_on[${k}]`, `is ${unknown('phase', other, names)}`)
}

function unknown(what: string, name: unknown, known: readonly string[]): string {
  const word = String(name).slice(0, 64)
  const near = nearest(word, known)
  const hint = near === null ? `There are: ${known.slice(0, 20).join(', ') || 'none'}` : `Did you mean "${near}"?`
  return `"${word}", and there is no such ${what}. ${hint}`
}

/** The names of a cycle, its first one again at the end; null if there is none. */
function cycleIn(phases: readonly Phase[]): readonly string[] | null {
  const left = new Map(phases.map(({ name, depends_on = [] }) => [name, new Set(depends_on)]))
  for (let done = true; done; ) {
    done = false
    for (const [name, waits] of left) {
      if ([...waits].some((other) => left.has(other))) continue
      left.delete(name)
      done = true
    }
  }
  let [at] = left.keys()
  const path: string[] = []
  // What is left waits for something that is left too, so the walk comes back to where it was.
  while (at !== undefined && !path.includes(at)) {
    path.push(at)
    at = [...(left.get(at) ?? [])].find((other) => left.has(other))
  }
  return at === undefined ? null : [...path.slice(path.indexOf(at)), at]
}

/** Known before anything runs: the one too many never starts. */
function checkChildren({ phases, max_children = DEFAULTS.max_children }: PhasesDefinition): void {
  let wanted = 0
  for (const [i, { name, agents }] of phases.entries()) {
    wanted += agents.length
    if (wanted <= max_children) continue
    const all = phases.reduce((sum, phase) => sum + phase.agents.length, 0)
    const what = `of phase "${name}" is one agent too many: all phases start ${all}, and max_children is ${max_children}`
    throw wrong('TooManyChildren', `phases[${i}].agents`, what)
  }
}

function placeOf(phases: readonly Phase[], name: string): string {
  return `phases[${phases.findIndex((phase) => phase.name === name)}].depends_on`
}

function wrong(name: string, place: string, what: string): Fault {
  return new Fault('invalid_config', `${name}: ${place} ${what}${what.endsWith('?') ? '' : '.'}`)
}
