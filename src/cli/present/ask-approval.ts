// The question about one call in `run`, `resume`, `start` and the chat: the possible answers and their scope, and calls
// that an earlier yes of the run covers. call-preview.ts shows the call.
import type { ApprovalDecision, Pending, Result, Rule, SessionHandle, Policy } from '../../index.ts'
import { skeleton } from '../../view/lookalike.ts'
import { WRITERS, findFolderTool } from '../state/folder-agent.ts'
import { type KeptRule, keepRule } from '../state/kept-rules.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import type { Json } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'

type ApprovalReply =
  | { readonly type: 'yes' | 'all' | 'always' | 'edit' | 'later' | 'whole' | 'unclear' }
  | { readonly type: 'no'; readonly why: string }

/** Only a plain yes counts as yes. Text after a no is its reason. */
export function parseReply(text: string | null): ApprovalReply {
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

/** Asks the person, at a terminal or in a chat. */
export interface Asker {
  read(question: string): Promise<string | null>
  note(text: string): void
  /** Shows the exact action. True if a part of it was not shown. */
  show(pending: Pending, whole: boolean): Promise<boolean>
  /** Asks for a reason after a plain no. Null where there is no room for it. */
  readonly reason: (() => Promise<string>) | null
  /** Returns the text after the person's edit. Null: they left it as it is. */
  edit(text: string): Promise<string | null>
}

type ApprovalContext = {
  readonly setup: FolderSetup
  readonly session: string
  readonly by: string
  /** Rules saved by "always" since the start, in order. */
  readonly kept: KeptRule[]
}
export type ApprovalAnswer = Pick<ApprovalDecision, 'allow' | 'why' | 'remember' | 'scope' | 'args'>

/** Null: the person decides later. An unclear answer is asked again. */
export async function askApproval(
  asker: Asker,
  asking: ApprovalContext,
  asked: Pending,
): Promise<ApprovalAnswer | null> {
  const wide = wideRule(asked, asking.session)
  let pending = asked
  let rule = await rememberableRule(asking.setup, pending)
  let isClipped = await asker.show(pending, false)
  if (wide) asker.note(WIDE_TEXT)
  for (;;) {
    const keys = replyKeys(wide !== null, rule !== null, isClipped)
    const word = parseReply(await asker.read(`Allow it? ${keys.join(' · ')} ›`))
    const edit = pending === asked ? {} : { args: pending.args }
    if (word.type === 'later') return null
    if (word.type === 'yes') return { allow: true, ...edit }
    if (word.type === 'all' && wide) return { allow: true, remember: wide, scope: 'run', ...edit }
    if (word.type === 'whole') await asker.show(pending, true)
    else if (word.type === 'edit') {
      const changed = await askForEdit(asker, asking, pending, asked)
      if (changed === null) continue
      pending = changed
      rule = await rememberableRule(asking.setup, pending)
      isClipped = await asker.show(pending, false)
    } else if (word.type === 'no') {
      const why = word.why || ((await asker.reason?.()) ?? '')
      return { allow: false, ...(why === '' ? {} : { why }) }
    } else if (word.type === 'always' && rule) {
      const said = await askToKeepRule(asker, asking, rule)
      if (said) return { ...said, ...edit }
    } else asker.note(`Say one of: ${keys.map((key) => key[0]).join(', ')}. After n you may say why.`)
  }
}

function replyKeys(isWide: boolean, isRemembered: boolean, isClipped: boolean): readonly string[] {
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

/** The call with the person's arguments, shown as a diff. Null: nothing was changed. */
async function askForEdit(
  asker: Asker,
  { by }: ApprovalContext,
  pending: Pending,
  asked: Pending,
): Promise<Pending | null> {
  const written = await asker.edit(JSON.stringify(pending.args, null, 2))
  if (written === null || written.trim() === '') return null
  try {
    const args = parseCallArgs(written)
    if (JSON.stringify(args) === JSON.stringify(pending.args)) return null
    if (JSON.stringify(args) === JSON.stringify(asked.args)) return asked
    return { ...asked, args, edited: { by, args: asked.edited?.args ?? asked.args } }
  } catch (error) {
    asker.note(oneLine((error as Error).message, 300))
    return null
  }
}

/** Parses arguments that a person wrote. */
export function parseCallArgs(text: string): Json {
  let args: unknown
  try {
    args = JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read'
    throw new CliError(EXIT.usage, `The arguments are no JSON (${why}). Write an object, such as {"path": "a.txt"}.`)
  }
  if (args !== null && typeof args === 'object' && !Array.isArray(args)) return args as Json
  throw new CliError(EXIT.usage, 'The arguments of a call are a JSON object, such as {"path": "a.txt"}.')
}

/** Shows the rule, and saves it only if the person agrees. */
async function askToKeepRule(
  asker: Asker,
  { setup, by, kept }: ApprovalContext,
  rule: Rule,
): Promise<ApprovalAnswer | null> {
  asker.note(await ruleText(setup, rule))
  if (parseReply(await asker.read('Keep this rule, and allow it? y yes · n no ›')).type !== 'yes') return null
  kept.push(saveAlwaysRule(setup, rule, by))
  return { allow: true, remember: rule }
}

/** The rule for all writes of this run. Null if a rule asks each time, or if the call was denied before. */
function wideRule({ needs, tool, sessionId, each, denied, n = 1, roles = [] }: Pending, session: string): Rule | null {
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return null
  return each || denied || n > 1 || roles.length > 0 ? null : { effect: 'allow', tool: [...WRITERS] }
}

const WIDE_TEXT = `a also allows every later ${[...WRITERS].join(' and ')} in this folder until this run ends or you say no.`

type CoverContext = { readonly session: SessionHandle; readonly setup: FolderSetup; readonly kept: readonly KeptRule[] }

/** Decides calls that an earlier yes covers, and records whose yes it was. True if there were any. */
export async function decideCovered(
  { session, setup, kept }: CoverContext,
  { pending: all }: Result,
): Promise<boolean> {
  let any = false
  for (const pending of all) {
    const { covered, denied } = pending
    const always = denied ? null : await findKeptRule(kept, pending, setup)
    if (!covered && always === null) continue
    const why = covered ? `${covered.by} allowed writes for this run` : `${always?.by} always allows this`
    const under = covered ? { under: covered.call } : {}
    try {
      await session.decide({ ...decisionTarget(pending), allow: true, by: 'terret', why, ...under })
    } catch (error) {
      // The call was decided or denied elsewhere in the meantime: ask as usual.
      if ((error as { readonly code?: unknown }).code !== 'decision_stale') throw error
      return true
    }
    any = true
  }
  return any
}

/** Identifies the action that was shown, so that the decision counts for it alone. */
export function decisionTarget({
  callId,
  sessionId,
  digest,
}: Pending): Pick<ApprovalDecision, 'callId' | 'sessionId' | 'digest'> {
  return { callId, sessionId, ...(digest === undefined ? {} : { digest }) }
}

/** True if this person cannot decide: a person votes once, and a prompt takes no role (`approve --role` does). */
export function isForOthers({ roles = [], votes = [] }: Pending, by: string): boolean {
  return roles.length > 0 || hasVoted(votes, by)
}

/** Names that look alike count as one person. */
export function hasVoted(votes: readonly string[], by: string): boolean {
  return votes.some((name) => skeleton(name) === skeleton(by))
}

// The answer "always": its rule, the description of the rule, and saving it. kept-rules.ts stores the rules.

/** A call with longer arguments is unlikely to come again unchanged. */
const RULE_CHARS_MAX = 16_384

/** The rule that allows exactly this call from now on. Null if the call would be asked about anyway. */
export async function rememberableRule(setup: FolderSetup, { tool, args, needs }: Pending): Promise<Rule | null> {
  // The same content is rarely written twice. For writes there is the yes for the whole run.
  if (needs !== 'approval' || WRITERS.has(tool)) return null
  const { judgeCall, rememberedRule } = await import('../../index.ts')
  const known = await findFolderTool(setup, tool)
  const approval = known ? await known.approval(args) : 'ask'
  const { environment } = setup.settings.approvals ?? {}
  const where = { ...(environment ? { environment } : {}), ...(known?.root === undefined ? {} : { root: known.root }) }
  const action = { tool, args, approval, effect: known?.effect ?? 'once', ...where }
  const rule = rememberedRule(action)
  if (JSON.stringify(rule).length > RULE_CHARS_MAX) return null
  const policy: Policy = { ...setup.policy, rules: [...setup.policy.rules, rule] }
  return (await judgeCall(policy, action)).type === 'allow' ? rule : null
}

/** Explains what saving the rule would mean. */
export async function ruleText({ folder }: FolderSetup, rule: Rule): Promise<string> {
  const { describeRule } = await import('../../index.ts')
  return `From now on, in ${oneLine(folder, 300)}, without asking: ${oneLine(describeRule(rule), 1_000)}`
}

/** Saves the rule, which happens before any decision by it. */
export function saveAlwaysRule({ home, folder }: FolderSetup, rule: Rule, by: string): KeptRule {
  const kept = { rule, by, at: new Date().toISOString() }
  keepRule(home, folder, kept)
  return kept
}

/** Finds a rule that was saved after the harness got its policy and allows exactly this call. */
async function findKeptRule(
  kept: readonly KeptRule[],
  pending: Pending,
  { settings, folder }: FolderSetup,
): Promise<KeptRule | null> {
  const { tool, args, needs } = pending
  if (kept.length === 0 || needs !== 'approval') return null
  const { judgeCall } = await import('../../index.ts')
  const { environment } = settings.approvals ?? {}
  const action = { tool, args, approval: 'ask', root: folder, ...(environment ? { environment } : {}) } as const
  for (const each of kept) if ((await judgeCall({ rules: [each.rule] }, action)).type === 'allow') return each
  return null
}
