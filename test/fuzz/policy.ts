// The policy against an independent implementation of its rules: deny before ask before allow, a further denial never lets more
// through, shell syntax is never allowed by a rule, and a remembered decision covers one action.
import type { Json } from '../../src/kernel/content.ts'
import { type PolicyAction, judgeCall, type Policy, rememberedRule, type Rule } from '../../src/tools/policy/policy.ts'
import { command, type Command, VOCABULARY } from './command.ts'
import { isObject, sameJson } from './json.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = { readonly judge: typeof judgeCall; readonly rememberedRule: typeof rememberedRule }
type Verdict = 'allow' | 'ask' | 'deny'
type Case = {
  readonly rules: readonly Rule[]
  readonly more: Rule
  readonly onAsk: 'park' | 'deny'
  readonly action: PolicyAction
  readonly command: Command | null
  readonly other: PolicyAction
}

const TOOLS = ['bash', 'edit', 'read', 'reader']
const SEGMENTS = ['..', '.', '', 'src', 'a', 'src-evil', '...', '.git', '.GIT', 'b.ts']
const PATHS = ['src/**', '**', '*', '.git/**', '**/*.ts', 'src/*/b.ts', '/src/**', 'src', '**/a/**', './src/*', '/**']
const VALUES: readonly Json[] = ['x', 'x*', '', 5, '5', true, 'true', null, ['x'], ['x', 'y'], [], { x: 1 }, [['x']]]

function rule(tape: Tape): Rule {
  const patterns = () => tape.list(3, () => tape.pick([...VOCABULARY, '*']), 1).join(tape.pick([' ', '  ']))
  return {
    effect: tape.pick(['allow', 'ask', 'deny'] as const),
    ...(tape.chance(2) ? { tool: tape.pick(['bash', 'edit', 're*', '*', '*d*', ['bash', 'edit']]) } : {}),
    ...(tape.chance(3) ? { command: tape.chance(4) ? [patterns(), patterns()] : patterns() } : {}),
    ...(tape.chance(3) ? { path: tape.chance(4) ? [tape.pick(PATHS), tape.pick(PATHS)] : tape.pick(PATHS) } : {}),
    ...(tape.chance(4)
      ? { args: { [tape.pick(['v', 'edits.path', 'v.x'])]: tape.pick(['x', '*', 'x*', '5', 'src/*']) } }
      : {}),
    ...(tape.chance(6) ? { environment: tape.pick(['here', 'there']) } : {}),
  }
}

function path(tape: Tape): string {
  return tape.pick(['', '', '/', './']) + tape.list(5, () => tape.pick(SEGMENTS)).join('/')
}

function action(tape: Tape, own: Command | null): PolicyAction {
  const args = {
    ...(own ? { command: own.text } : {}),
    ...(tape.chance(2) ? { path: path(tape) } : {}),
    ...(tape.chance(3) ? { edits: tape.list(3, () => ({ path: path(tape) })) } : {}),
    ...(tape.chance(3) ? { v: tape.pick(VALUES) } : {}),
    ...(tape.chance(6) ? { 'a.b': tape.pick(VALUES) } : {}),
  }
  const approval = tape.pick(['ask', 'auto', 'ask', 'always', 'never'] as const)
  return {
    tool: tape.pick(TOOLS),
    args,
    approval,
    ...(tape.chance(3) ? { environment: tape.pick(['here', 'there']) } : {}),
  }
}

function question(tape: Tape): Case {
  const own = tape.chance(2) ? command(tape) : null
  const asked = action(tape, own)
  const other = tape.chance(2) ? near(tape, asked) : action(tape, tape.chance(2) ? own : null)
  const rules = tape.list(4, () => rule(tape))
  return {
    rules,
    more: { ...rule(tape), effect: 'deny' },
    onAsk: tape.pick(['park', 'deny']),
    action: asked,
    command: own,
    other,
  }
}

/** The same action but for one thing. */
function near(tape: Tape, one: PolicyAction): PolicyAction {
  const entries = Object.entries(one.args as Readonly<Record<string, Json>>)
  const at = tape.below(entries.length + 1)
  const changed = entries.map(
    ([key, item], i) =>
      [
        key,
        i === at
          ? tape.pick<Json>([
              [item],
              [item, 'y'],
              `${JSON.stringify(item)} `,
              typeof item === 'string' ? `${item} ` : 'x',
            ])
          : item,
      ] as const,
  )
  switch (tape.below(4)) {
    case 0:
      return { ...one, args: Object.fromEntries([...entries, ['network', true]]) }
    case 1:
      return { ...one, args: Object.fromEntries(entries.filter((_, i) => i !== at)) }
    case 2:
      return { ...one, tool: tape.pick(TOOLS) }
    default:
      return { ...one, args: Object.fromEntries(changed) }
  }
}

/** Where the oracle cannot say what a shell would do with a command, it says so. */
type Match = 'yes' | 'no' | 'maybe'

function matches(one: Rule, { tool, args, environment }: PolicyAction, own: Command | null): Match {
  if (one.tool !== undefined && ![one.tool].flat().some((pattern) => glob(pattern).test(tool))) return 'no'
  if (one.environment !== undefined && one.environment !== environment) return 'no'
  for (const [dotted, pattern] of Object.entries(one.args ?? {})) {
    const hits = textsAt(args, dotted.split('.')).map((text) => glob(pattern).test(text))
    if (!(one.effect === 'allow' ? hits.length > 0 && !hits.includes(false) : hits.includes(true))) return 'no'
  }
  if (one.path !== undefined && !matchesPaths(one.effect, [one.path].flat(), pathsOf(args))) return 'no'
  return one.command === undefined ? 'yes' : matchesCommand(one.effect, [one.command].flat(), own)
}

function glob(pattern: string, flags = ''): RegExp {
  const body = pattern.split('*').map((piece) => piece.replace(/[.\\+?^${}()|[\]]/g, '\\$&'))
  return new RegExp(`^${body.join('[^]*')}$`, flags)
}

function textsAt(value: Json, keys: readonly string[]): readonly string[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap((item) => textsAt(item, keys))
  const [key, ...rest] = keys
  if (key === undefined) return [typeof value === 'string' ? value : JSON.stringify(value)]
  return isObject(value) && Object.hasOwn(value, key) ? textsAt(value[key] as Json, rest) : []
}

/** The cases have paths in these two places alone. */
function pathsOf(args: Json): readonly string[] {
  return [...textsAt(args, ['path']), ...textsAt(args, ['edits', 'path'])]
}

function matchesPaths(effect: Verdict, patterns: readonly string[], paths: readonly string[]): boolean {
  const fit = (pattern: string, given: string): boolean => {
    const plain = normal(given)
    if (plain === null) return effect !== 'allow'
    const flags = effect === 'allow' ? '' : 'i'
    if (effect === 'allow' && pattern.startsWith('/') !== given.startsWith('/')) return false
    const wanted = pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
    // What denies fits anywhere in the path; what allows fits the whole of it.
    const starts = effect === 'allow' || plain.length === 0 ? [0] : plain.map((_, i) => i)
    return starts.some((start) => fitsSegments(wanted, plain.slice(start), flags))
  }
  if (effect !== 'allow') return paths.some((given) => patterns.some((pattern) => fit(pattern, given)))
  return paths.length > 0 && paths.every((given) => patterns.some((pattern) => fit(pattern, given)))
}

function fitsSegments(pattern: readonly string[], segments: readonly string[], flags: string): boolean {
  const [wanted, ...rest] = pattern
  if (wanted === undefined) return segments.length === 0
  if (wanted === '**')
    return segments.some((_, i) => fitsSegments(rest, segments.slice(i), flags)) || fitsSegments(rest, [], flags)
  const [first, ...others] = segments
  return first !== undefined && glob(wanted, flags).test(first) && fitsSegments(rest, others, flags)
}

/** Without dots; null when it climbs out. By rewriting, until nothing changes. */
function normal(given: string): readonly string[] | null {
  let text = `/${given}/`.replace(/\/(?:\.?\/)+/g, '/')
  for (let next = ''; next !== text; ) {
    next = text
    text = text.replace(/\/(?!\.\.\/)[^/]+\/\.\.\//, '/')
  }
  return text.startsWith('/../') ? null : text.split('/').filter((segment) => segment !== '')
}

function matchesCommand(effect: Verdict, patterns: readonly string[], own: Command | null): Match {
  if (own === null) return 'no'
  const { words, runs } = own
  const fit = (given: readonly string[]) => patterns.some((pattern) => wordsPattern(pattern).test(given.join('\0')))
  // A line break in a rule is no way in: whatever is not plain words is never allowed.
  if (effect === 'allow') {
    if (words === null || !fit(words)) return 'no'
    // Behind `sudo` and its like every program must fit. Which words are its own options the oracle does not know.
    if (runs.some(([first = '']) => /^-|=/.test(first))) return 'maybe'
    return runs.every(fit) ? 'yes' : 'no'
  }
  const rows = words === null ? runs : [words]
  if (rows.some((row) => row.some((_, i) => fit(row.slice(i))))) return 'yes'
  return words === null || words.some((word) => word.startsWith('-')) ? 'maybe' : 'no'
}

function wordsPattern(pattern: string): RegExp {
  const words = pattern.trim().split(/\s+/)
  const open = words.at(-1) === '*'
  const fixed = (open ? words.slice(0, -1) : words).map((word) =>
    word === '*' ? '[^\\0]*' : word.replace(/[.\\+?^${}()|[\]]/g, '\\$&'),
  )
  if (!open) return new RegExp(`^${fixed.join('\\0')}$`)
  return fixed.length === 0 ? /^/ : new RegExp(`^${fixed.join('\\0')}(?:\\0|$)`)
}

/** Every verdict that is right. More than one only where the oracle does not know a command. */
function expected(policy: Policy, asked: PolicyAction, own: Command | null): ReadonlySet<Verdict> {
  const ask = policy.onAsk === 'deny' ? 'deny' : 'ask'
  if (asked.approval === 'never') return new Set(['deny'])
  const right = new Set<Verdict>()
  for (const effect of ['deny', 'ask', 'allow'] as const) {
    const found = policy.rules.filter((one) => one.effect === effect).map((one) => matches(one, asked, own))
    const verdict = effect === 'deny' ? 'deny' : effect === 'ask' || asked.approval === 'always' ? ask : 'allow'
    if (found.includes('yes')) return right.add(verdict)
    // What may be denied is asked at least.
    if (found.includes('maybe')) right.add(verdict).add(ask)
  }
  return right.add(asked.approval === 'auto' ? 'allow' : ask)
}

const RANK: readonly Verdict[] = ['allow', 'ask', 'deny']

async function check(
  subject: Subject,
  { rules, more, onAsk, action: asked, command: own, other }: Case,
): Promise<void> {
  const policy = { rules, onAsk }
  const verdict = (await subject.judge(policy, asked)).type
  const right = expected(policy, asked, own)
  hold(right.has(verdict), () => `${verdict} instead of ${[...right].join(' or ')}`)
  const reversed = (await subject.judge({ rules: rules.toReversed(), onAsk }, asked)).type
  hold(reversed === verdict, () => `${verdict}, and ${reversed} with the rules the other way round`)
  const stricter = (await subject.judge({ rules: [more, ...rules], onAsk }, asked)).type
  hold(RANK.indexOf(stricter) >= RANK.indexOf(verdict), () => `${verdict}, and ${stricter} with one more denial`)
  await checkCommand(subject, asked, own)
  const kept = { rules: [subject.rememberedRule(asked)] }
  const again = { ...asked, approval: 'ask' } as const
  const kind = (await subject.judge(kept, again)).type
  hold(kind === 'allow', () => 'what was remembered is not let through again')
  const released = (await subject.judge(kept, { ...other, approval: 'ask' })).type === 'allow'
  hold(!released || isSame(asked, other), () => `${textOf(other)} is let through because ${textOf(asked)} was`)
}

/** A rule remembered in a place without a name has no condition on the place, so it holds everywhere. */
function isSame(one: PolicyAction, other: PolicyAction): boolean {
  const there = one.environment === undefined || one.environment === other.environment
  return there && one.tool === other.tool && sameJson(one.args, other.args)
}

function textOf({ tool, args, environment }: PolicyAction): string {
  return JSON.stringify({ tool, args, environment })
}

/** No rule on commands that allows, however wide, lets a shell do more than run words. */
async function checkCommand(subject: Subject, asked: PolicyAction, own: Command | null): Promise<void> {
  if (own === null || own.words !== null || asked.approval !== 'ask') return
  const wide = {
    rules: [{ effect: 'allow', command: ['*', '* *', '* * *', '* * * *', `${VOCABULARY[0]} *`] }],
  } as const
  const verdict = (await subject.judge(wide, asked)).type
  hold(verdict === 'ask', () => `${JSON.stringify(own.text)} is allowed by a rule on commands`)
}

export const policies = target<Subject, Case>({
  name: 'policy',
  real: { judge: judgeCall, rememberedRule },
  cases: drawn(question, 80),
  planted: {
    'allow comes first': {
      rememberedRule,
      judge: async (policy, asked) => {
        const first = await judgeCall(
          { ...policy, rules: policy.rules.filter(({ effect }) => effect === 'allow') },
          { ...asked, approval: 'ask' },
        )
        return first.type === 'allow' ? first : judgeCall(policy, asked)
      },
    },
    'the first rule decides': {
      rememberedRule,
      judge: async (policy, asked) => {
        const hits = await Promise.all(
          policy.rules.map((one) => judgeCall({ rules: [{ ...one, effect: 'deny' }] }, { ...asked, approval: 'auto' })),
        )
        const first = policy.rules[hits.findIndex(({ type }) => type === 'deny')]
        return judgeCall({ ...policy, rules: first ? [first] : [] }, asked)
      },
    },
    'paths are compared by prefix': {
      rememberedRule,
      judge: (policy, asked) => judgeCall({ ...policy, rules: policy.rules.map(byPrefix) }, asked),
    },
    'a command is split at spaces alone': {
      rememberedRule,
      judge: (policy, asked) => judgeCall(policy, { ...asked, args: unquoted(asked.args) }),
    },
    'a remembered rule forgets what else was asked': {
      judge: judgeCall,
      rememberedRule: ({ tool, args }) => ({ effect: 'allow', tool, args: textFields(args) }),
    },
  },
  check,
})

function byPrefix(one: Rule): Rule {
  return one.path === undefined
    ? one
    : { ...one, path: [one.path].flat().map((pattern) => pattern.replace('src/**', 'src*/**')) }
}

function unquoted(args: Json): Json {
  if (!isObject(args) || typeof args['command'] !== 'string') return args
  return { ...args, command: args['command'].replace(/[^\w ./=-]/g, '') }
}

function textFields(args: Json): Readonly<Record<string, string>> {
  const entries = isObject(args) ? Object.entries(args) : []
  return Object.fromEntries(entries.flatMap(([key, item]) => (typeof item === 'string' ? [[key, item]] : [])))
}
