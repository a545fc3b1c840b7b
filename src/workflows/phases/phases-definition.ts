// A workflow in phases as data, checked when it is loaded. Each error has a name and a place. It runs nothing.
import { Fault } from '../../kernel/failure.ts'
import {
  anyCheck,
  countCheck,
  nonEmptyCheck,
  listCheck,
  nearest,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck,
} from '../../options.ts'
import type { SafetyTier } from '../safety-tiers.ts'

/** One phase of a workflow: its agents, and the phases that must have ended before it. */
export type WorkflowPhase = {
  /** The name by which other phases depend on it. */
  readonly name: string
  /** The work of its agents. */
  readonly description: string
  /** They work at the same time. */
  readonly agents: readonly string[]
  /** The phases that must be done before this one. */
  readonly depends_on?: readonly string[]
}

/** A workflow in phases, as a file has it. */
export type PhasesDefinition = {
  /** Its name as an agent. */
  readonly id: string
  /** For people. Default: its id. */
  readonly name?: string
  /** When to use it: models that may start subagents read this. */
  readonly description?: string
  /** The phases, in the order of the file. */
  readonly phases: readonly WorkflowPhase[]
  /** How many agents work at once. Default 4. */
  readonly concurrency?: number
  /** The most agents that all phases together may start. Default 24. */
  readonly max_children?: number
  /** The rights of its agents. Default `standard`: their usual rights, but no writing of files. */
  readonly safety_tier?: SafetyTier
}

const PHASES_MAX = 100
const CHILDREN_MAX = 200
export const PHASES_DEFAULTS = { concurrency: 4, max_children: 24, safety_tier: 'standard' } as const
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?$/
/** Reserved names of a graph, and the approval node of workflows that edit. */
const TAKEN = ['START', 'END', 'subagent', 'approve_edits']

const checkDefinition = optionsChecker<PhasesDefinition>('a workflow in phases', {
  id: requiredCheck(nonEmptyCheck),
  name: textCheck,
  description: textCheck,
  phases: requiredCheck(anyCheck),
  concurrency: countCheck(1, 64),
  max_children: countCheck(1, CHILDREN_MAX),
  safety_tier: oneOf<SafetyTier>({ read_only: true, standard: true, edit_capable: true }),
})
const checkPhase = optionsChecker<WorkflowPhase>('a phase', {
  name: requiredCheck(nonEmptyCheck),
  description: requiredCheck(nonEmptyCheck, 'Say what its agents are to do.'),
  agents: requiredCheck(anyCheck),
  depends_on: listCheck(nonEmptyCheck),
})

/** Throws for an invalid definition. `agents` are the names it may use. */
export function checkPhases(definition: PhasesDefinition, agents: readonly string[]): void {
  const { id, phases } = (definition ?? {}) as Partial<PhasesDefinition>
  if (!Array.isArray(phases) || phases.length === 0)
    throw phasesFault('NoPhases', 'phases', 'is empty. Give at least one phase')
  if (phases.length > PHASES_MAX)
    throw phasesFault('TooManyPhases', 'phases', `has ${phases.length} phases, and may have ${PHASES_MAX}`)
  checkDefinition(definition, typeof id === 'string' ? `workflow "${id.slice(0, 64)}"` : undefined)
  checkName(definition.id, 'id')
  checkNames(phases)
  for (const [i, phase] of definition.phases.entries()) checkReferences(definition, phase, i, agents)
  const cycle = findCycle(definition.phases)
  if (cycle !== null)
    throw phasesFault(
      'CyclicDependency',
      dependencyPath(definition.phases, cycle[0] ?? ''),
      `waits for itself: ${cycle.join(' → ')}`,
    )
  checkChildren(definition)
}

function checkNames(phases: readonly WorkflowPhase[]): void {
  const seen = new Map<string, number>()
  for (const [i, phase] of phases.entries()) {
    checkPhase(phase, `phases[${i}]`)
    const { name } = phase
    checkName(name, `phases[${i}].name`)
    const before = seen.get(name)
    if (before !== undefined)
      throw phasesFault(
        'DuplicatePhase',
        `phases[${i}]`,
        `has the name "${name}" of phases[${before}]. Give it another`,
      )
    seen.set(name, i)
  }
}

function checkName(name: string, place: string): void {
  if (NAME.test(name) && !name.includes('--') && !TAKEN.includes(name)) return
  const what = `cannot be "${name.slice(0, 64)}": use 1 to 40 letters, digits, "_" or single "-", and no word of the harness`
  throw phasesFault('InvalidName', place, what)
}

function checkReferences(
  { phases }: PhasesDefinition,
  phase: WorkflowPhase,
  i: number,
  known: readonly string[],
): void {
  const { name, agents, depends_on = [] } = phase
  if (!Array.isArray(agents) || agents.length === 0)
    throw phasesFault('EmptyPhase', `phases[${i}].agents`, `is empty: phase "${name}" has no agent. Name one`)
  for (const [k, agent] of (agents as readonly string[]).entries())
    if (!known.includes(agent))
      throw phasesFault('UnknownAgent', `phases[${i}].agents[${k}]`, `is ${unknownNameText('agent', agent, known)}`)
  const names = phases.map((each) => each.name)
  for (const [k, other] of depends_on.entries())
    if (!names.includes(other))
      throw phasesFault(
        'UnknownDependency',
        `phases[${i}].depends_on[${k}]`,
        `is ${unknownNameText('phase', other, names)}`,
      )
}

function unknownNameText(what: string, name: unknown, known: readonly string[]): string {
  const word = String(name).slice(0, 64)
  const near = nearest(word, known)
  const hint = near === null ? `There are: ${known.slice(0, 20).join(', ') || 'none'}` : `Did you mean "${near}"?`
  return `"${word}", and there is no such ${what}. ${hint}`
}

/** The names in a cycle, with the first one again at the end; null if there is none. */
function findCycle(phases: readonly WorkflowPhase[]): readonly string[] | null {
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
  // Each phase that is left waits for another that is left, so the walk must return to an earlier one.
  while (at !== undefined && !path.includes(at)) {
    path.push(at)
    at = [...(left.get(at) ?? [])].find((other) => left.has(other))
  }
  return at === undefined ? null : [...path.slice(path.indexOf(at)), at]
}

/** Checked before anything runs, so no agent above the limit starts. */
function checkChildren({ phases, max_children = PHASES_DEFAULTS.max_children }: PhasesDefinition): void {
  let wanted = 0
  for (const [i, { name, agents }] of phases.entries()) {
    wanted += agents.length
    if (wanted <= max_children) continue
    const all = phases.reduce((sum, phase) => sum + phase.agents.length, 0)
    const what = `of phase "${name}" is one agent too many: all phases start ${all}, and max_children is ${max_children}`
    throw phasesFault('TooManyChildren', `phases[${i}].agents`, what)
  }
}

function dependencyPath(phases: readonly WorkflowPhase[], name: string): string {
  return `phases[${phases.findIndex((phase) => phase.name === name)}].depends_on`
}

function phasesFault(name: string, place: string, what: string): Fault {
  return new Fault('invalid_config', `${name}: ${place} ${what}${what.endsWith('?') ? '' : '.'}`)
}
