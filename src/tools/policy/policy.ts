// The policy decides whether a call may run, needs an approval, or is denied. Pure, except that it follows links for
// rules on paths. It is asked when a call is admitted, and its verdict is recorded with the reply. It only judges; the
// sandbox and the path guard enforce.
import type { EffectClass, Frozen, Gate, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import {
  anyCheck,
  type Check,
  countCheck,
  nonEmptyCheck,
  withoutUndefined,
  listCheck,
  requiredCheck,
  oneOf,
} from '../../options.ts'
import { optionsChecker, objectCheck } from '../../options.ts'
import type { Approval } from '../core/tool.ts'
import { followLinks, followPattern, realPath } from './links.ts'
import { pathsIn, placesIn } from './argument-paths.ts'
import { matchesPath, matchesPathAnywhere, matchesText } from './pattern.ts'
import { type CommandMatch, mayRun, runsOnly } from './command-pattern.ts'
import type { ShellReading } from '../shell/risk/read-shell.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** All given conditions must hold. A rule without conditions matches every call. */
export type Rule = Frozen<{
  /** What happens with a call that matches. */
  effect: 'allow' | 'ask' | 'deny'
  /** Patterns of tool names. */
  tool?: string | readonly string[]
  /**
   * An argument by dotted path, with a text pattern for its value. If there are several values, all must match to
   * allow.
   */
  args?: Readonly<Record<string, string>>
  /** All arguments, exactly: no more, no fewer, no others. */
  exact?: Json
  /**
   * Path patterns (`src/**`): all paths of the call must match to allow, any one to ask or deny. Each path counts
   * twice: as it is written, and as the place that links lead to.
   */
  path?: string | readonly string[]
  /** Command patterns, word by word (`git status *`). */
  command?: string | readonly string[]
  /** The rule holds only in sessions of this environment. Absent: in all. */
  environment?: string
  /** For `ask`: the class of the approval, for people who decide by it. Default: the name of the tool. */
  class?: string
  /** For `ask`: how many people must approve. Default 1. */
  n?: number
  /** For `ask`: the roles of which one must decide. Default: anybody may. */
  roles?: readonly string[]
  /** For `ask`: how long the call waits for a decision, in ms. Then it is denied. Default: the agent's own time. */
  expiresMs?: number
  /** For `deny`: what the model reads as the reason. Default: a description of the rule. */
  reason?: string
}>

/** Rules that decide about calls before anybody is asked, and how often somebody may be asked. */
export type Policy = Frozen<{
  /** Of those that match a call, `deny` comes before `ask`, and `ask` before `allow`; within each the first counts. */
  rules: readonly Rule[]
  /** How to treat a question where no person can be asked: wait (the default), or deny. */
  onAsk?: 'park' | 'deny'
  /** The limit of calls per hour that change something, over all sessions of this agent in the store. */
  actionsPerHour?: number
  /**
   * The limit of questions to people per hour, over all sessions of this agent in the store. Further ones are refused.
   */
  asksPerHour?: number
  /** Absolute folders. A call is denied if its tool is not `read` and it names a path outside of all of them. */
  writeRoots?: readonly string[]
  /**
   * The absolute folder that relative paths of calls start from. Needed with `writeRoots`, and for absolute path
   * patterns.
   */
  base?: string
}>

/** `approval` is the tool's own setting; see tool.ts. */
export type PolicyAction = Frozen<{
  tool: string
  args: Json
  environment?: string
  approval: Approval
  effect?: EffectClass
  /** The folder that relative paths of the tool start from. Default: `base` of the policy, else the current folder. */
  root?: string
  /** The targets of its paths, from `followLinks`. Default: looked up now. */
  links?: readonly string[]
}>

export type Judgement =
  | { readonly type: 'allow' }
  | {
      readonly type: 'ask'
      readonly gate: Omit<Extract<Gate, { type: 'ask' }>, 'expiresAt'>
      readonly expiresMs: number | null
    }
  | { readonly type: 'deny'; readonly reason: string }

/** The longest path on Linux, and the longest command of the bash tool. Longer ones are denied without matching. */
const PATH_CHARACTERS_MAX = 4096
const COMMAND_CHARACTERS_MAX = 100_000
const PATHS_MAX = 10_000

/** The commands of one call as read for rules, by their text. */
export type CommandReadings = ReadonlyMap<string, ShellReading>

/**
 * Reads the commands of a call if rules look at commands. Null if there is nothing to read, so that the shell parser is
 * loaded only for a call that needs it.
 */
export function readCommands({ rules }: Policy, args: Json): Promise<CommandReadings> | null {
  if (!rules.some(({ command }) => command !== undefined)) return null
  const commands = new Set(valuesAt(args, ['command']))
  // Longer ones are denied unread.
  if (commands.size === 0 || countCharacters([...commands]) > COMMAND_CHARACTERS_MAX) return null
  return readEachCommand([...commands])
}

async function readEachCommand(commands: readonly string[]): Promise<CommandReadings> {
  const { readShell } = await import('../shell/risk/read-shell.ts')
  const readings = new Map<string, ShellReading>()
  for (const command of commands) readings.set(command, await readShell(command, { mentions: true }))
  return readings
}

function countCharacters(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** Reads the commands of the call first, then judges it. */
export async function judgeCall(policy: Policy, action: PolicyAction): Promise<Judgement> {
  return judge(policy, action, await readCommands(policy, action.args))
}

/**
 * Deny comes before ask, ask before allow, and within each the first rule that matches. If no rule matches, the tool's
 * own approval counts. `readings` come from `readCommands` for the same call; without them no rule allows a command,
 * and a rule that denies one asks.
 */
export function judge(policy: Policy, action: PolicyAction, readings: CommandReadings | null = null): Judgement {
  if (action.approval === 'never') return { type: 'deny', reason: `Tool "${action.tool}" refuses this call here.` }
  const long = whyTooLong(policy, action)
  if (long !== null) return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: ${long}` }
  if (action.effect !== 'read' && policy.writeRoots && !isWithinRoots(policy, policy.writeRoots, action)) {
    const where = policy.writeRoots.join(', ') || 'nowhere'
    return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: it may write only in ${where}.` }
  }
  const paths = namesPaths(policy) ? pathsOf(policy, action) : []
  let doubt = false
  for (const effect of ['deny', 'ask', 'allow'] as const) {
    // A call that may be denied is never allowed by a rule: a person is asked.
    if (effect === 'allow' && doubt) return askOrDeny(policy, { effect: 'ask' }, action)
    for (const rule of policy.rules) {
      const match = rule.effect === effect ? matchRule(rule, action, { paths, policy, readings }) : 'no'
      if (match === 'yes' || (match === 'maybe' && effect === 'ask')) return applyRule(policy, rule, action)
      if (match === 'maybe') doubt = true
    }
  }
  return action.approval === 'auto' ? { type: 'allow' } : askOrDeny(policy, null, action)
}

/** Do its verdicts depend on paths, and so on the targets of links? */
export function namesPaths({ rules, writeRoots }: Policy): boolean {
  return writeRoots !== undefined || rules.some(({ path }) => path !== undefined)
}

/** Every path of the call twice: as it is written, and as the place that links lead to. */
function pathsOf(policy: Policy, action: PolicyAction): readonly string[] {
  const given = pathsIn(action.args)
  return [...given, ...(action.links ?? followLinks(given, rootFor(policy, action)))]
}

function rootFor({ base }: Policy, { root }: PolicyAction): string {
  return root ?? base ?? process.cwd()
}

/** Says why rules cannot examine the call's paths or commands; null if they can. */
function whyTooLong(policy: Policy, { args }: PolicyAction): string | null {
  const { rules, writeRoots } = policy
  if (namesPaths(policy)) {
    const paths = writeRoots ? placesIn(args) : pathsIn(args)
    const chars = paths.reduce((most, path) => Math.max(most, path.length), 0)
    if (chars > PATH_CHARACTERS_MAX)
      return `a path in it has ${chars} characters, and rules read at most ${PATH_CHARACTERS_MAX}. Use a shorter path.`
    if (paths.length > PATHS_MAX)
      return `it names ${paths.length} paths, and rules read at most ${PATHS_MAX}. Use several calls.`
  }
  if (!rules.some(({ command }) => command !== undefined)) return null
  const chars = countCharacters(valuesAt(args, ['command']))
  if (chars <= COMMAND_CHARACTERS_MAX) return null
  return `the command has ${chars} characters, and rules read at most ${COMMAND_CHARACTERS_MAX}. Put it into a file.`
}

function applyRule(policy: Policy, rule: Rule, action: PolicyAction): Judgement {
  if (rule.effect === 'allow') return action.approval === 'always' ? askOrDeny(policy, rule, action) : { type: 'allow' }
  if (rule.effect === 'ask') return askOrDeny(policy, rule, action)
  return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: ${rule.reason ?? describeRule(rule)}` }
}

/**
 * A question from a rule, or from a tool that always asks, is asked each time: an approval of another call does not
 * cover it.
 */
function askOrDeny(policy: Policy, rule: Rule | null, action: PolicyAction): Judgement {
  if (policy.onAsk === 'deny') {
    return { type: 'deny', reason: `Tool "${action.tool}" needs an approval, and nobody can be asked here.` }
  }
  const { class: kind = action.tool, n = 1, roles = [], expiresMs = null } = rule ?? {}
  const each = rule !== null || action.approval === 'always' ? { each: true as const } : {}
  return { type: 'ask', gate: { type: 'ask', class: kind, n, roles, ...each }, expiresMs }
}

type MatchContext = {
  readonly paths: readonly string[]
  readonly policy: Policy
  readonly readings: CommandReadings | null
}

function matchRule(rule: Rule, action: PolicyAction, { paths, policy, readings }: MatchContext): CommandMatch {
  const { tool, args, environment } = action
  if (rule.tool !== undefined && !asList(rule.tool).some((pattern) => matchesText(pattern, tool))) return 'no'
  if (rule.environment !== undefined && rule.environment !== environment) return 'no'
  if (rule.exact !== undefined && !isEqualJson(rule.exact, args)) return 'no'
  for (const [path, pattern] of Object.entries(rule.args ?? {})) {
    if (!matchesValues(rule.effect, pattern, valuesAt(args, path.split('.')))) return 'no'
  }
  if (rule.path !== undefined && !matchesPaths(rule, paths, policy, action)) return 'no'
  if (rule.command === undefined) return 'yes'
  const found = valuesAt(args, ['command']).map((command) => readings?.get(command) ?? UNREAD)
  return matchesCommand(rule.effect, asList(rule.command), found)
}

/** The reading of a command that was not read: it may run anything. */
const UNREAD: Pick<ShellReading, 'runs' | 'whole' | 'plain'> = { runs: [], whole: false, plain: false }

function matchesValues(effect: Rule['effect'], pattern: string, values: readonly string[]): boolean {
  const fits = (value: string): boolean => matchesText(pattern, value)
  return effect === 'allow' ? values.length > 0 && values.every(fits) : values.some(fits)
}

/** Matches absolute patterns with the absolute path, so that a relative path cannot evade them. */
function matchesPaths(rule: Rule, paths: readonly string[], policy: Policy, action: PolicyAction): boolean {
  const { effect } = rule
  const patterns = asList(rule.path ?? [])
  const bases = [policy.base, action.root].filter((base) => base !== undefined)
  const wholes = (path: string, pattern: string): readonly string[] =>
    pattern.startsWith('/') && bases.length > 0 ? bases.map((base) => wholePath(path, base)) : [path]
  if (effect === 'allow') {
    const fits = (path: string): boolean =>
      patterns.some((pattern) => wholes(path, pattern).every((whole) => matchesPath(pattern, whole)))
    return paths.length > 0 && paths.every(fits)
  }
  // A rule that asks or denies may name a link itself: then it also covers the link's target.
  const led = patterns.flatMap((pattern) => followPattern(pattern, rootFor(policy, action)) ?? [])
  return paths.some((path) =>
    [...patterns, ...led].some((pattern) => wholes(path, pattern).some((whole) => matchesPathAnywhere(pattern, whole))),
  )
}

function wholePath(path: string, base: string): string {
  return path.startsWith('/') ? path : `${base}/${path}`
}

function matchesCommand(
  effect: Rule['effect'],
  patterns: readonly string[],
  found: readonly (typeof UNREAD)[],
): CommandMatch {
  if (effect === 'allow')
    return found.length > 0 && found.every((reading) => runsOnly(patterns, reading)) ? 'yes' : 'no'
  const matched = found.map((reading) => mayRun(patterns, reading))
  return matched.includes('yes') ? 'yes' : matched.includes('maybe') ? 'maybe' : 'no'
}

/** Both the path as written and the place that links lead to must lie within the roots. */
function isWithinRoots(policy: Policy, roots: readonly string[], action: PolicyAction): boolean {
  const { base = '/' } = policy
  const real = roots.map((root) => realPath(root, '.') ?? root)
  return placesIn(action.args).every((place) => {
    const path = place.replace(/^file:(\/\/[^/]*)?(?=\/)/, '')
    // It is not known here which user's home the tool means.
    if (path.startsWith('~') || path.startsWith('file:')) return false
    if (!roots.some((root) => matchesPath(`${root}/**`, wholePath(path, base)))) return false
    const led = realPath(action.root ?? base, path)
    return led !== null && real.some((root) => matchesPath(`${root}/**`, led))
  })
}

/** The values at a dotted path, as text. An array on the way stands for each of its items. */
function valuesAt(value: Json, path: readonly string[], found: string[] = []): readonly string[] {
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) valuesAt(item, path, found)
    return found
  }
  const [key, ...rest] = path
  if (key === undefined) found.push(typeof value === 'string' ? value : JSON.stringify(value))
  else if (value !== null && typeof value === 'object' && Object.hasOwn(value, key))
    valuesAt((value as Readonly<Record<string, Json>>)[key] ?? null, rest, found)
  return found
}

/** The narrowest rule that allows exactly this action again: with its very arguments, and no similar ones. */
export function rememberedRule({ tool, args, environment }: PolicyAction): Rule {
  return { effect: 'allow', tool, exact: args, ...(environment === undefined ? {} : { environment }) }
}

function isEqualJson(one: Json, other: Json | undefined): boolean {
  if (one === null || typeof one !== 'object') return one === other
  if (other === null || typeof other !== 'object' || Array.isArray(one) !== Array.isArray(other)) return false
  const [mine, theirs] = [one, other] as Readonly<Record<string, Json>>[]
  const keys = Object.keys(mine ?? {})
  return (
    keys.length === Object.keys(theirs ?? {}).length &&
    keys.every((key) => Object.hasOwn(theirs ?? {}, key) && isEqualJson(mine?.[key] ?? null, theirs?.[key]))
  )
}

/** Describes in words what a rule matches, for the person who is about to save it. */
export function describeRule(rule: Rule): string {
  const parts = [
    rule.tool === undefined ? 'any tool' : `tool ${asList(rule.tool).join(' or ')}`,
    ...Object.entries(rule.args ?? {}).map(([path, pattern]) => `${path} is "${pattern}"`),
    ...exactText(rule.exact),
    ...(rule.path === undefined ? [] : [`path ${asList(rule.path).join(' or ')}`]),
    ...(rule.command === undefined ? [] : [`command ${asList(rule.command).join(' or ')}`]),
    ...(rule.environment === undefined ? [] : [`in ${rule.environment}`]),
    ...(rule.class === undefined ? [] : [`class ${rule.class}`]),
    ...(rule.n === undefined || rule.n === 1 ? [] : [`${rule.n} approvals`]),
    ...(rule.roles === undefined ? [] : [`by ${rule.roles.join(' or ')}`]),
    ...(rule.expiresMs === undefined ? [] : [`within ${rule.expiresMs} ms`]),
  ]
  return `${rule.effect} ${parts.join(', ')}`
}

function exactText(exact: Json | undefined): readonly string[] {
  if (exact === undefined) return []
  const entries = Object.entries((exact ?? {}) as Readonly<Record<string, Json>>)
  const fields = entries.map(([key, value]) => `${key} is ${JSON.stringify(value)}`)
  return fields.length > 0 ? [...fields, 'and nothing else'] : ['no arguments']
}

/**
 * Parses a policy from a file or from code. Unknown parts are refused: a rule that silently does nothing protects
 * nothing.
 */
export function parsePolicy(value: unknown): Policy {
  checkPolicy(value)
  const policy = value as Policy
  for (const [i, rule] of policy.rules.entries()) checkRule(rule, `rule ${i + 1} of the policy`)
  const { writeRoots, base, ...rest } = policy
  return { ...withoutUndefined(rest), ...checkRoots(writeRoots, base) }
}

function invalidPolicy(what: string): Fault {
  return new Fault('invalid_config', `The policy is not valid: ${what}.`)
}

function checkRoots(roots: unknown, base: unknown): Pick<Policy, 'writeRoots' | 'base'> {
  const isWhole = (path: unknown): path is string => typeof path === 'string' && path.startsWith('/')
  const isRoot = (path: unknown): path is string => isWhole(path) && !path.includes('*')
  if (base !== undefined && !isWhole(base))
    throw invalidPolicy('"base" must be the absolute folder that relative paths of calls start from')
  if (roots === undefined) return base === undefined ? {} : { base }
  if (!Array.isArray(roots) || !roots.every(isRoot))
    throw invalidPolicy('"writeRoots" must be a list of absolute folders')
  if (base === undefined)
    throw invalidPolicy('"writeRoots" needs "base", the absolute folder that relative paths of calls start from')
  return { writeRoots: roots, base }
}

const textsCheck: Check = (value) => (isText(value) || isTexts(value) ? null : 'must be a text or a list of texts')
const patternsCheck: Check = (value) =>
  isPatterns(value) ? null : 'must be an object of argument names, each with a pattern that is a text'

const checkPolicy = optionsChecker<Policy>('the policy', {
  // Each rule is checked below, where its number is known.
  rules: requiredCheck(listCheck(anyCheck), 'A policy is an object with "rules".'),
  onAsk: oneOf<'park' | 'deny'>({ park: true, deny: true }),
  actionsPerHour: countCheck(),
  asksPerHour: countCheck(),
  writeRoots: anyCheck,
  base: anyCheck,
})
const checkFields = optionsChecker<Rule>('a rule', {
  effect: requiredCheck(oneOf<Rule['effect']>({ allow: true, ask: true, deny: true }), 'It is allow, ask or deny.'),
  tool: textsCheck,
  args: patternsCheck,
  exact: objectCheck,
  path: textsCheck,
  command: textsCheck,
  environment: nonEmptyCheck,
  class: nonEmptyCheck,
  n: countCheck(1),
  roles: (value) => (isTexts(value) ? null : 'must be a list of texts, with at least one'),
  expiresMs: countCheck(1),
  reason: nonEmptyCheck,
})
const ONLY_ASKED = ['class', 'n', 'roles', 'expiresMs'] as const

function checkRule(rule: Rule, name: string): void {
  checkFields(rule, name)
  const idle = rule.effect === 'ask' ? undefined : ONLY_ASKED.find((field) => rule[field] !== undefined)
  if (idle !== undefined) throw invalidPolicy(`${name}: "${idle}" is for a rule that asks, and this one does not`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isText)
}

/** An empty object would match every call. */
function isPatterns(value: unknown): boolean {
  if (!isObject(value)) return false
  const patterns = Object.values(value)
  return patterns.length > 0 && patterns.every((pattern) => typeof pattern === 'string')
}

function asList(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value
}
