// The question about one call in `run`, `resume`, `start` and the chat: the possible answers and what each covers, and what an earlier
// yes of the run covers. preview.ts shows the call.
import type { ApprovalDecision, Pending, Result, Rule, SessionHandle, Policy } from '../../index.ts'
import { skeleton } from '../../view/lookalike.ts'
import { WRITERS, toolIn } from '../state/agent.ts'
import { type Kept, keepRule } from '../state/kept.ts'
import type { Setup } from '../state/setup.ts'
import type { Json } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'

type Word =
  | { readonly type: 'yes' | 'all' | 'always' | 'edit' | 'later' | 'whole' | 'unclear' }
  | { readonly type: 'no'; readonly why: string }

/** Only a plain yes counts as yes. Text after a no is its reason. */
export function wordOf(text: string | null): Word {
  const said = (text ?? '').trim()
  const [, first = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(said) ?? []
  const word = first.toLowerCase().replace(/[,.:;!]$/, '')
  if (word === 'n' || word === 'no') return { type: 'no', why: rest.trim() }
  if (rest !== '') return { type: 'unclear' }
  if (word === 'y' || word === 'yes') return { type: 'yes' }
  if (word === 'a' || word === 'all') return { type: 'all' }
  if (word === 'k' || word === 'always') return { type: 'always' }
  if (word === 'd' || word === 'diff') return { type: 'whole' }
  if (word === 'e' || word === 'edit') return { type: 'edit' }
  return word === '' || word === 'l' || word === 'later' ? { type: 'later' } : { type: 'unclear' }
}

/** The person who is asked. */
export interface Asker {
  read(question: string): Promise<string | null>
  note(text: string): void
  /** The exact action. True if not all of it was shown. */
  show(pending: Pending, whole: boolean): Promise<boolean>
  /** Asks for a reason after a plain no, where there is room for it. */
  readonly reason: (() => Promise<string>) | null
  /** The text as the person changed it. Null: they left it as it is. */
  edit(text: string): Promise<string | null>
}

type Asking = {
  readonly setup: Setup
  readonly session: string
  readonly by: string
  /** Rules saved by "always" since it began, in order. */
  readonly kept: Kept[]
}
export type Said = Pick<ApprovalDecision, 'allow' | 'why' | 'remember' | 'scope' | 'args'>

/** Null: later. An unclear answer is asked again. */
export async function askApproval(asker: Asker, asking: Asking, asked: Pending): Promise<Said | null> {
  const wide = wideRule(asked, asking.session)
  let pending = asked
  let rule = await rememberable(asking.setup, pending)
  let isClipped = await asker.show(pending, false)
  if (wide) asker.note(WIDE_TEXT)
  for (;;) {
    const keys = keysFor(wide !== null, rule !== null, isClipped)
    const word = wordOf(await asker.read(`Allow it? ${keys.join(' · ')} ›`))
    const edit = pending === asked ? {} : { args: pending.args }
    if (word.type === 'later') return null
    if (word.type === 'yes') return { allow: true, ...edit }
    if (word.type === 'all' && wide) return { allow: true, remember: wide, scope: 'run', ...edit }
    if (word.type === 'whole') await asker.show(pending, true)
    else if (word.type === 'edit') {
      const changed = await editedPending(asker, asking, pending, asked)
      if (changed === null) continue
      pending = changed
      rule = await rememberable(asking.setup, pending)
      isClipped = await asker.show(pending, false)
    } else if (word.type === 'no') {
      const why = word.why || ((await asker.reason?.()) ?? '')
      return { allow: false, ...(why === '' ? {} : { why }) }
    } else if (word.type === 'always' && rule) {
      const said = await keep(asker, asking, rule)
      if (said) return { ...said, ...edit }
    } else asker.note(`Say one of: ${keys.map((key) => key[0]).join(', ')}. After n you may say why.`)
  }
}

function keysFor(isWide: boolean, isRemembered: boolean, isClipped: boolean): readonly string[] {
  return [
    'y yes, this call',
    'n no',
    'e edit',
    ...(isWide ? ["a all of this run's writes"] : []),
    ...(isRemembered ? ['k always, exactly this'] : []),
    'l later',
    ...(isClipped ? ['d all of it'] : []),
  ]
}

/** The call with the arguments that the person wrote, shown as a difference. Null: nothing was changed. */
async function editedPending(asker: Asker, { by }: Asking, pending: Pending, asked: Pending): Promise<Pending | null> {
  const written = await asker.edit(JSON.stringify(pending.args, null, 2))
  if (written === null || written.trim() === '') return null
  try {
    const args = argsIn(written)
    if (JSON.stringify(args) === JSON.stringify(pending.args)) return null
    if (JSON.stringify(args) === JSON.stringify(asked.args)) return asked
    return { ...asked, args, edited: { by, args: asked.edited?.args ?? asked.args } }
  } catch (error) {
    asker.note(oneLine((error as Error).message, 300))
    return null
  }
}

/** Arguments as a person writes them. */
export function argsIn(text: string): Json {
  let args: unknown
  try {
    args = JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read'
    throw new Refusal(EXIT.usage, `The arguments are no JSON (${why}). Write an object, such as {"path": "a.txt"}.`)
  }
  if (args !== null && typeof args === 'object' && !Array.isArray(args)) return args as Json
  throw new Refusal(EXIT.usage, 'The arguments of a call are a JSON object, such as {"path": "a.txt"}.')
}

/** A rule is saved only after it was shown. */
async function keep(asker: Asker, { setup, by, kept }: Asking, rule: Rule): Promise<Said | null> {
  asker.note(await ruleText(setup, rule))
  if (wordOf(await asker.read('Keep this rule, and allow it? y yes · n no ›')).type !== 'yes') return null
  kept.push(keepAlways(setup, rule, by))
  return { allow: true, remember: rule }
}

/** The wider yes, for all writes of this run. Not if a rule asks, nor if the call was denied before. */
function wideRule({ needs, tool, sessionId, each, denied, n = 1, roles = [] }: Pending, session: string): Rule | null {
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return null
  return each || denied || n > 1 || roles.length > 0 ? null : { effect: 'allow', tool: [...WRITERS] }
}

const WIDE_TEXT = `a also allows every later ${[...WRITERS].join(' and ')} in this folder until this run ends or you say no.`

type Covering = { readonly session: SessionHandle; readonly setup: Setup; readonly kept: readonly Kept[] }

/** Decides calls that an earlier yes covers, and records whose yes it was. True if there were any. */
export async function decideCovered({ session, setup, kept }: Covering, { pending: all }: Result): Promise<boolean> {
  let any = false
  for (const pending of all) {
    const { covered, denied } = pending
    const always = denied ? null : await keptFor(kept, pending, setup)
    if (!covered && always === null) continue
    const why = covered ? `${covered.by} allowed writes for this run` : `${always?.by} always allows this`
    const under = covered ? { under: covered.call } : {}
    try {
      await session.decide({ ...bound(pending), allow: true, by: 'terret', why, ...under })
    } catch (error) {
      // It was decided or denied elsewhere in the meantime: ask as usual.
      if ((error as { readonly code?: unknown }).code !== 'decision_stale') throw error
      return true
    }
    any = true
  }
  return any
}

/** Binds a decision to the action that was shown. */
export function bound({
  callId,
  sessionId,
  digest,
}: Pending): Pick<ApprovalDecision, 'callId' | 'sessionId' | 'digest'> {
  return { callId, sessionId, ...(digest === undefined ? {} : { digest }) }
}

/** A person votes once, and a prompt takes no role: `approve --role` does. */
export function isForOthers({ roles = [], votes = [] }: Pending, by: string): boolean {
  return roles.length > 0 || hasVoted(votes, by)
}

/** Names that look alike count as one person. */
export function hasVoted(votes: readonly string[], by: string): boolean {
  return votes.some((name) => skeleton(name) === skeleton(by))
}

// The answer "always": the rule it would save, its description, and saving it. kept.ts stores the rules.

/** Longer arguments never come again unchanged. */
const RULE_CHARS_MAX = 16_384

/** The rule that allows exactly this call from now on. Null if the call would be asked about anyway. */
export async function rememberable(setup: Setup, { tool, args, needs }: Pending): Promise<Rule | null> {
  // The same content is rarely written twice: for writes there is a yes for the whole run.
  if (needs !== 'approval' || WRITERS.has(tool)) return null
  const { judgeCall, rememberedRule } = await import('../../index.ts')
  const known = await toolIn(setup, tool)
  const approval = known ? await known.approval(args) : 'ask'
  const { environment } = setup.settings
  const where = { ...(environment ? { environment } : {}), ...(known?.root === undefined ? {} : { root: known.root }) }
  const action = { tool, args, approval, effect: known?.effect ?? 'once', ...where }
  const rule = rememberedRule(action)
  if (JSON.stringify(rule).length > RULE_CHARS_MAX) return null
  const policy: Policy = { ...setup.policy, rules: [...setup.policy.rules, rule] }
  return (await judgeCall(policy, action)).type === 'allow' ? rule : null
}

/** Explains what saving the rule would mean. */
export async function ruleText({ folder }: Setup, rule: Rule): Promise<string> {
  const { describeRule } = await import('../../index.ts')
  return `From now on, in ${oneLine(folder, 300)}, without asking: ${oneLine(describeRule(rule), 1_000)}`
}

/** Saves the rule before it decides anything. */
export function keepAlways({ home, folder }: Setup, rule: Rule, by: string): Kept {
  const kept = { rule, by, at: new Date().toISOString() }
  keepRule(home, folder, kept)
  return kept
}

/** The rule saved since the harness got its policy that allows exactly this call. */
async function keptFor(kept: readonly Kept[], pending: Pending, { settings, folder }: Setup): Promise<Kept | null> {
  const { tool, args, needs } = pending
  if (kept.length === 0 || needs !== 'approval') return null
  const { judgeCall } = await import('../../index.ts')
  const { environment } = settings
  const action = { tool, args, approval: 'ask', root: folder, ...(environment ? { environment } : {}) } as const
  for (const each of kept) if ((await judgeCall({ rules: [each.rule] }, action)).type === 'allow') return each
  return null
}
