// The policy: may this call run, must a person be asked, or is it denied? Pure but for links, which it follows where rules speak of
// paths. It is looked at when a call is admitted, and its verdict is recorded with the reply. It only judges; the sandbox and the
// path guard are the boundary.
import type { EffectClass, Frozen, Gate, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { anything, type Check, count, filled, given, listOf as listCheck, needed, oneOf } from '../../options.ts'
import { optionsOf, record } from '../../options.ts'
import type { Approval } from '../core/tool.ts'
import { followLinks, followPattern, realPath } from './links.ts'
import { pathsIn, placesIn } from './paths.ts'
import { matchesPath, matchesPathAnywhere, matchesText } from './pattern.ts'
import { type Match, mayRun, runsOnly } from './command-pattern.ts'
import type { ShellReading } from '../shell/risk/read.ts'
import { isObject } from '../../view/json.ts'

/** Every condition that is given must hold. A rule without any matches every call. */
export type Rule = Frozen<{
  effect: 'allow' | 'ask' | 'deny'
  /** Name patterns of tools. */
  tool?: string | readonly string[]
  /** Argument by dotted path, and a text pattern for its value. Of several values all must match to allow. */
  args?: Readonly<Record<string, string>>
  /** All arguments, exactly: none more, none less, none other. */
  exact?: Json
  /**
   * Path patterns (`src/**`): all paths of the call must match to allow, any one to ask or deny. Each path counts twice, as it is
   * written and as the place that links lead to.
   */
  path?: string | readonly string[]
  /** Command patterns, word by word (`git status *`). */
  command?: string | readonly string[]
  environment?: string
  /** For `ask`: what kind of approval this is, how many people, of which roles, for how long. */
  class?: string
  n?: number
  roles?: readonly string[]
  expiresMs?: number
  reason?: string
}>

export type Policy = Frozen<{
  rules: readonly Rule[]
  /** What a question does where no person can be asked: wait (the default), or count as a no. */
  onAsk?: 'park' | 'deny'
  /** How many calls that change something may start in an hour, over all sessions of this agent in the store. */
  actionsPerHour?: number
  /** How many questions people may be asked in an hour, over all sessions of this agent in the store. More are refused. */
  asksPerHour?: number
  /** Folders, absolute. A call of a tool that is no `read` and names a path outside of all of them is denied. */
  writeRoots?: readonly string[]
  /** What relative paths of calls start from, absolute. Needed with `writeRoots`, and for absolute patterns of paths. */
  base?: string
}>

/** `approval` is what the tool itself asks for; see tool.ts. */
export type Action = Frozen<{
  tool: string
  args: Json
  environment?: string
  approval: Approval
  effect?: EffectClass
  /** The folder that relative paths of the tool start from. Default: `base` of the policy, else the current folder. */
  root?: string
  /** Where its paths lead, as `followLinks` says it. Default: looked up now. */
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

/** As long as a path can be on Linux, and as a command can be for the bash tool. Longer ones are not matched but denied. */
const PATH_CHARACTERS_MAX = 4096
const COMMAND_CHARACTERS_MAX = 100_000
const PATHS_MAX = 10_000

/** The commands of one call, as read for rules: by their text. */
export type CommandReadings = ReadonlyMap<string, ShellReading>

/**
 * Reads the commands of a call for the rules that look at commands. Null when there is nothing to read, so that the parser of shell is
 * loaded only for a call that needs it.
 */
export function readCommands({ rules }: Policy, args: Json): Promise<CommandReadings> | null {
  if (!rules.some(({ command }) => command !== undefined)) return null
  const commands = new Set(valuesAt(args, ['command']))
  // Longer ones are denied unread.
  if (commands.size === 0 || charactersOf([...commands]) > COMMAND_CHARACTERS_MAX) return null
  return readEach([...commands])
}

async function readEach(commands: readonly string[]): Promise<CommandReadings> {
  const { readShell } = await import('../shell/risk/read.ts')
  const readings = new Map<string, ShellReading>()
  for (const command of commands) readings.set(command, await readShell(command, { mentions: true }))
  return readings
}

function charactersOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** The same as `judge`, with the commands of the call read first. */
export async function judgeCall(policy: Policy, action: Action): Promise<Judgement> {
  return judge(policy, action, await readCommands(policy, action.args))
}

/**
 * Deny before ask before allow, and within each the first rule that matches. No rule: what the tool asks for itself. `readings` are those
 * of `readCommands` for the same call; without them no rule allows a command, and a rule that denies one asks.
 */
export function judge(policy: Policy, action: Action, readings: CommandReadings | null = null): Judgement {
  if (action.approval === 'never') return { type: 'deny', reason: `Tool "${action.tool}" refuses this call here.` }
  const long = tooLong(policy, action)
  if (long !== null) return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: ${long}` }
  if (action.effect !== 'read' && policy.writeRoots && !isWithin(policy, policy.writeRoots, action)) {
    const where = policy.writeRoots.join(', ') || 'nowhere'
    return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: it may write only in ${where}.` }
  }
  const paths = namesPaths(policy) ? pathsOf(policy, action) : []
  let doubt = false
  for (const effect of ['deny', 'ask', 'allow'] as const) {
    // What may be denied is never allowed by a rule: a person is asked.
    if (effect === 'allow' && doubt) return asked(policy, { effect: 'ask' }, action)
    for (const rule of policy.rules) {
      const match = rule.effect === effect ? matches(rule, action, { paths, policy, readings }) : 'no'
      if (match === 'yes' || (match === 'maybe' && effect === 'ask')) return verdict(policy, rule, action)
      if (match === 'maybe') doubt = true
    }
  }
  return action.approval === 'auto' ? { type: 'allow' } : asked(policy, null, action)
}

/** Do its verdicts depend on paths, and so on where links lead? */
export function namesPaths({ rules, writeRoots }: Policy): boolean {
  return writeRoots !== undefined || rules.some(({ path }) => path !== undefined)
}

/** Every path of the call twice: as it is written, and as the place that links lead to. */
function pathsOf(policy: Policy, action: Action): readonly string[] {
  const given = pathsIn(action.args)
  return [...given, ...(action.links ?? followLinks(given, rootOf(policy, action)))]
}

function rootOf({ base }: Policy, { root }: Action): string {
  return root ?? base ?? process.cwd()
}

/** What rules on paths and commands cannot be held against, in words; null if they can. */
function tooLong(policy: Policy, { args }: Action): string | null {
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
  const chars = charactersOf(valuesAt(args, ['command']))
  if (chars <= COMMAND_CHARACTERS_MAX) return null
  return `the command has ${chars} characters, and rules read at most ${COMMAND_CHARACTERS_MAX}. Put it into a file.`
}

function verdict(policy: Policy, rule: Rule, action: Action): Judgement {
  if (rule.effect === 'allow') return action.approval === 'always' ? asked(policy, rule, action) : { type: 'allow' }
  if (rule.effect === 'ask') return asked(policy, rule, action)
  return { type: 'deny', reason: `Tool "${action.tool}" is denied by policy: ${rule.reason ?? describeRule(rule)}` }
}

/** What a rule asks about, or a tool whatever rules say, is asked each time: no yes to another call counts for it. */
function asked(policy: Policy, rule: Rule | null, action: Action): Judgement {
  if (policy.onAsk === 'deny') {
    return { type: 'deny', reason: `Tool "${action.tool}" needs an approval, and nobody can be asked here.` }
  }
  const { class: kind = action.tool, n = 1, roles = [], expiresMs = null } = rule ?? {}
  const each = rule !== null || action.approval === 'always' ? { each: true as const } : {}
  return { type: 'ask', gate: { type: 'ask', class: kind, n, roles, ...each }, expiresMs }
}

type Located = {
  readonly paths: readonly string[]
  readonly policy: Policy
  readonly readings: CommandReadings | null
}

function matches(rule: Rule, action: Action, { paths, policy, readings }: Located): Match {
  const { tool, args, environment } = action
  if (rule.tool !== undefined && !listOf(rule.tool).some((pattern) => matchesText(pattern, tool))) return 'no'
  if (rule.environment !== undefined && rule.environment !== environment) return 'no'
  if (rule.exact !== undefined && !isSame(rule.exact, args)) return 'no'
  for (const [path, pattern] of Object.entries(rule.args ?? {})) {
    if (!matchesValues(rule.effect, pattern, valuesAt(args, path.split('.')))) return 'no'
  }
  if (rule.path !== undefined && !matchesPaths(rule, paths, policy, action)) return 'no'
  if (rule.command === undefined) return 'yes'
  const found = valuesAt(args, ['command']).map((command) => readings?.get(command) ?? UNREAD)
  return matchesCommand(rule.effect, listOf(rule.command), found)
}

/** What is known of a command that was not read: it may run anything. */
const UNREAD: Pick<ShellReading, 'runs' | 'whole' | 'plain'> = { runs: [], whole: false, plain: false }

function matchesValues(effect: Rule['effect'], pattern: string, values: readonly string[]): boolean {
  const fits = (value: string): boolean => matchesText(pattern, value)
  return effect === 'allow' ? values.length > 0 && values.every(fits) : values.some(fits)
}

/** An absolute pattern is held against the whole path: a relative one must not slip past it. */
function matchesPaths(rule: Rule, paths: readonly string[], policy: Policy, action: Action): boolean {
  const { effect } = rule
  const patterns = listOf(rule.path ?? [])
  const bases = [policy.base, action.root].filter((base) => base !== undefined)
  const wholes = (path: string, pattern: string): readonly string[] =>
    pattern.startsWith('/') && bases.length > 0 ? bases.map((base) => wholePath(path, base)) : [path]
  if (effect === 'allow') {
    const fits = (path: string): boolean =>
      patterns.some((pattern) => wholes(path, pattern).every((whole) => matchesPath(pattern, whole)))
    return paths.length > 0 && paths.every(fits)
  }
  // A rule that asks or denies may name a link itself: then it speaks of what the link leads to, too.
  const led = patterns.flatMap((pattern) => followPattern(pattern, rootOf(policy, action)) ?? [])
  return paths.some((path) =>
    [...patterns, ...led].some((pattern) => wholes(path, pattern).some((whole) => matchesPathAnywhere(pattern, whole))),
  )
}

function wholePath(path: string, base: string): string {
  return path.startsWith('/') ? path : `${base}/${path}`
}

function matchesCommand(effect: Rule['effect'], patterns: readonly string[], found: readonly (typeof UNREAD)[]): Match {
  if (effect === 'allow')
    return found.length > 0 && found.every((reading) => runsOnly(patterns, reading)) ? 'yes' : 'no'
  const matched = found.map((reading) => mayRun(patterns, reading))
  return matched.includes('yes') ? 'yes' : matched.includes('maybe') ? 'maybe' : 'no'
}

/** Both as it is written and as the place that links lead to. */
function isWithin(policy: Policy, roots: readonly string[], action: Action): boolean {
  const { base = '/' } = policy
  const real = roots.map((root) => realPath(root, '.') ?? root)
  return placesIn(action.args).every((place) => {
    const path = place.replace(/^file:(\/\/[^/]*)?(?=\/)/, '')
    // Whose home a tool means is not known here.
    if (path.startsWith('~') || path.startsWith('file:')) return false
    if (!roots.some((root) => matchesPath(`${root}/**`, wholePath(path, base)))) return false
    const led = realPath(action.root ?? base, path)
    return led !== null && real.some((root) => matchesPath(`${root}/**`, led))
  })
}

/** The values at a dotted path, as text. An array on the way means each of its items. */
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

/** The narrowest rule that lets exactly this action through again: its very arguments, and nothing like them. */
export function rememberedRule({ tool, args, environment }: Action): Rule {
  return { effect: 'allow', tool, exact: args, ...(environment === undefined ? {} : { environment }) }
}

function isSame(one: Json, other: Json | undefined): boolean {
  if (one === null || typeof one !== 'object') return one === other
  if (other === null || typeof other !== 'object' || Array.isArray(one) !== Array.isArray(other)) return false
  const [mine, theirs] = [one, other] as Readonly<Record<string, Json>>[]
  const keys = Object.keys(mine ?? {})
  return (
    keys.length === Object.keys(theirs ?? {}).length &&
    keys.every((key) => Object.hasOwn(theirs ?? {}, key) && isSame(mine?.[key] ?? null, theirs?.[key]))
  )
}

/** What a rule will match, in words, for the person who is about to keep it. */
export function describeRule(rule: Rule): string {
  const parts = [
    rule.tool === undefined ? 'any tool' : `tool ${listOf(rule.tool).join(' or ')}`,
    ...Object.entries(rule.args ?? {}).map(([path, pattern]) => `${path} is "${pattern}"`),
    ...exactText(rule.exact),
    ...(rule.path === undefined ? [] : [`path ${listOf(rule.path).join(' or ')}`]),
    ...(rule.command === undefined ? [] : [`command ${listOf(rule.command).join(' or ')}`]),
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

/** A policy from a file or from code. What is not understood is refused: a rule that silently does nothing protects nothing. */
export function parsePolicy(value: unknown): Policy {
  checkPolicy(value)
  const policy = value as Policy
  for (const [i, rule] of policy.rules.entries()) checkRule(rule, `rule ${i + 1} of the policy`)
  const { writeRoots, base, ...rest } = policy
  return { ...given(rest), ...rootsOf(writeRoots, base) }
}

function bad(what: string): Fault {
  return new Fault('invalid_config', `The policy is not valid: ${what}.`)
}

function rootsOf(roots: unknown, base: unknown): Pick<Policy, 'writeRoots' | 'base'> {
  const isWhole = (path: unknown): path is string => typeof path === 'string' && path.startsWith('/')
  const isRoot = (path: unknown): path is string => isWhole(path) && !path.includes('*')
  if (base !== undefined && !isWhole(base))
    throw bad('"base" must be the absolute folder that relative paths of calls start from')
  if (roots === undefined) return base === undefined ? {} : { base }
  if (!Array.isArray(roots) || !roots.every(isRoot)) throw bad('"writeRoots" must be a list of absolute folders')
  if (base === undefined)
    throw bad('"writeRoots" needs "base", the absolute folder that relative paths of calls start from')
  return { writeRoots: roots, base }
}

const texts: Check = (value) => (isText(value) || isTexts(value) ? null : 'must be a text or a list of texts')
const patterns: Check = (value) =>
  isPatterns(value) ? null : 'must be an object of argument names, each with a pattern that is a text'

const checkPolicy = optionsOf<Policy>('the policy', {
  // Each is checked by its number.
  rules: needed(listCheck(anything), 'A policy is an object with "rules".'),
  onAsk: oneOf<'park' | 'deny'>({ park: true, deny: true }),
  actionsPerHour: count(),
  asksPerHour: count(),
  writeRoots: anything,
  base: anything,
})
const checkFields = optionsOf<Rule>('a rule', {
  effect: needed(oneOf<Rule['effect']>({ allow: true, ask: true, deny: true }), 'It is allow, ask or deny.'),
  tool: texts,
  args: patterns,
  exact: record,
  path: texts,
  command: texts,
  environment: filled,
  class: filled,
  n: count(1),
  roles: (value) => (isTexts(value) ? null : 'must be a list of texts, with at least one'),
  expiresMs: count(1),
  reason: filled,
})
const ONLY_ASKED = ['class', 'n', 'roles', 'expiresMs'] as const

function checkRule(rule: Rule, name: string): void {
  checkFields(rule, name)
  const idle = rule.effect === 'ask' ? undefined : ONLY_ASKED.find((field) => rule[field] !== undefined)
  if (idle !== undefined) throw bad(`${name}: "${idle}" is for a rule that asks, and this one does not`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isText)
}

/** None at all would match every call. */
function isPatterns(value: unknown): boolean {
  if (!isObject(value)) return false
  const patterns = Object.values(value)
  return patterns.length > 0 && patterns.every((pattern) => typeof pattern === 'string')
}

function listOf(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value
}
