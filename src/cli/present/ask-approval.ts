// The question about one call in `run`, `resume`, `start` and the chat: the possible answers and their scope, and calls
// that an earlier yes of the run covers. call-preview.ts shows the call.
import type { ApprovalDecision, Pending, Result, Rule, Session } from '../../index.ts'
import { skeleton } from '../../view/lookalike.ts'
import { WRITERS } from '../state/folder-agent.ts'
import type { KeptRule } from '../state/kept-rules.ts'
import { type AlwaysOffer, alwaysOffer, findKeptRule, prefixText, ruleText, saveAlwaysRule } from './always-rule.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import type { Json } from '../../kernel/index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'

type ApprovalReply =
  | { readonly type: 'yes' | 'all' | 'always' | 'edit' | 'later' | 'whole' | 'every' | 'unclear' }
  | { readonly type: 'no'; readonly why: string }

/** Only a plain yes counts as yes. Text after a no is its reason. */
export function parseReply(text: string | null): ApprovalReply {
  const said = (text ?? '').trim()
  const [, first = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(said) ?? []
  const word = first.toLowerCase().replace(/[,.:;!]$/, '')
  if (word === 'n' || word === 'no') return { type: 'no', why: rest.trim() }
  if ((word === 'd' || word === 'diff') && /^all$/i.test(rest.trim())) return { type: 'every' }
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
  /** Shows all calls that wait, each whole. Null if no other call waits. */
  readonly showAll?: (() => Promise<void>) | null
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
  let rule = await alwaysOffer(asking.setup, pending)
  let isClipped = await asker.show(pending, false)
  if (wide) asker.note(WIDE_TEXT)
  for (;;) {
    const keys = replyKeys({ isWide: wide !== null, rule, isClipped, hasOthers: Boolean(asker.showAll) })
    const word = parseReply(await asker.read(`Allow it? ${keys.join(' · ')} ›`))
    const edit = pending === asked ? {} : { args: pending.args }
    if (word.type === 'later') return null
    if (word.type === 'yes') return { allow: true, ...edit }
    if (word.type === 'all' && wide) return { allow: true, remember: wide, scope: 'run', ...edit }
    if (word.type === 'whole') await asker.show(pending, true)
    else if (word.type === 'every' && asker.showAll) await asker.showAll()
    else if (word.type === 'edit') {
      const changed = await askForEdit(asker, asking, pending, asked)
      if (changed === null) continue
      pending = changed
      rule = await alwaysOffer(asking.setup, pending)
      isClipped = await asker.show(pending, false)
    } else if (word.type === 'no') {
      const why = word.why || ((await asker.reason?.()) ?? '')
      return { allow: false, ...(why === '' ? {} : { why }) }
    } else if (word.type === 'always' && rule) {
      const said = await askToKeepRule(asker, asking, rule, canCover(pending))
      if (said) return { ...said, ...edit }
    } else asker.note(`Say one of: ${keys.map((key) => key[0]).join(', ')}. After n you may say why.`)
  }
}

type ReplyKeys = {
  readonly isWide: boolean
  readonly rule: AlwaysOffer | null
  readonly isClipped: boolean
  readonly hasOthers: boolean
}

function replyKeys({ isWide, rule, isClipped, hasOthers }: ReplyKeys): readonly string[] {
  return [
    'y yes, this call',
    'n no',
    'e edit',
    ...(isWide ? ["a all of this run's writes"] : []),
    ...(rule ? [rule.prefix ? 'k always…' : 'k always, exactly this'] : []),
    'l later',
    ...(isClipped ? ['d all of it'] : []),
    ...(hasOthers ? ['d all: every call that waits'] : []),
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

/** Shows what each rule allows, and keeps one only where the person says. Null: none is kept, and nothing is decided. */
async function askToKeepRule(
  asker: Asker,
  { setup, by, kept }: ApprovalContext,
  { exact, prefix }: AlwaysOffer,
  hasRun: boolean,
): Promise<ApprovalAnswer | null> {
  let rule = exact
  if (prefix) {
    asker.note(
      ['always ›', `  1  exactly this`, `  2  ${oneLine(prefix.text, 300)}`, ...indent(prefixText(prefix.text))].join(
        '\n',
      ),
    )
    const said = (await asker.read('Which rule? 1 · 2 · n none ›'))?.trim()
    if (said !== '1' && said !== '2' && oneLine(said ?? '') !== prefix.text) return null
    if (said !== '1') rule = prefix.rule
  }
  asker.note(await ruleText(setup, rule))
  const places = [...(hasRun ? ['r this run'] : []), 'f this folder', 'n no']
  const where = (await asker.read(`Keep this rule, and allow it? ${places.join(' · ')} ›`))?.trim().toLowerCase() ?? ''
  if (hasRun && /^(r|run|this run)$/.test(where)) return { allow: true, remember: rule, scope: 'run' }
  if (!/^(f|folder|this folder|y|yes)$/.test(where)) return null
  kept.push(saveAlwaysRule(setup, rule, by))
  return { allow: true, remember: rule }
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `     ${line}`)
}

/** The rule for all writes of this run. Null if a rule asks each time, or if the call was denied before. */
function wideRule(pending: Pending, session: string): Rule | null {
  const { needs, tool, sessionId } = pending
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return null
  return canCover(pending) ? { effect: 'allow', tool: [...WRITERS] } : null
}

/** True if a yes to this call may cover others of its run. */
function canCover({ each, denied, n = 1, roles = [] }: Pending): boolean {
  return !each && !denied && n <= 1 && roles.length === 0
}

const WIDE_TEXT = `a also allows every later ${[...WRITERS].join(' and ')} in this folder until this run ends or you say no.`

type CoverContext = { readonly session: Session; readonly setup: FolderSetup; readonly kept: readonly KeptRule[] }

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
    const what = WRITERS.has(pending.tool) ? 'writes' : 'this'
    const why = covered ? `${covered.by} allowed ${what} for this run` : `${always?.by} always allows this`
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
