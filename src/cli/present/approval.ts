// The question about one call, wherever it is asked: `run`, `resume`, `start` and the chat. Which words there are, what each of them
// covers, and what an earlier yes of the same run covers. It asks; what is shown of the call is preview.ts.
import type { ApprovalDecision, Pending, Result, Rule, SessionHandle } from '../../index.ts'
import { skeleton } from '../../view/lookalike.ts'
import { WRITERS } from '../state/agent.ts'
import { keepAlways, keptFor, rememberable, ruleText } from './always.ts'
import type { Kept } from '../state/kept.ts'
import type { Setup } from '../state/setup.ts'

export type Word =
  | { readonly type: 'yes' | 'all' | 'always' | 'later' | 'whole' | 'unclear' }
  | { readonly type: 'no'; readonly why: string }

/** Only a plain yes is one. What comes after a no is its reason. */
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
}

export type Asking = {
  readonly setup: Setup
  readonly session: string
  readonly by: string
  /** Rules that were kept here since it began, in the order they were. */
  readonly kept: Kept[]
}
export type Said = Pick<ApprovalDecision, 'allow' | 'why' | 'remember' | 'scope'>

/** Null: later. What is neither a plain yes nor a plain no is asked again. */
export async function askApproval(asker: Asker, asking: Asking, pending: Pending): Promise<Said | null> {
  const wide = wideRule(pending, asking.session)
  const rule = await rememberable(asking.setup, pending)
  const isClipped = await asker.show(pending, false)
  if (wide) asker.note(WIDE_TEXT)
  const keys = [
    'y yes, this call',
    'n no',
    ...(wide ? ["a all of this run's writes"] : []),
    ...(rule ? ['k always, exactly this'] : []),
    'l later',
    ...(isClipped ? ['d all of it'] : []),
  ]
  for (;;) {
    const word = wordOf(await asker.read(`Allow it? ${keys.join(' · ')} ›`))
    if (word.type === 'later') return null
    if (word.type === 'yes') return { allow: true }
    if (word.type === 'all' && wide) return { allow: true, remember: wide, scope: 'run' }
    if (word.type === 'whole') await asker.show(pending, true)
    else if (word.type === 'no') {
      const why = word.why || ((await asker.reason?.()) ?? '')
      return { allow: false, ...(why === '' ? {} : { why }) }
    } else if (word.type === 'always' && rule) {
      const said = await keep(asker, asking, rule)
      if (said) return said
    } else asker.note(`Say one of: ${keys.map((key) => key[0]).join(', ')}. After n you may say why.`)
  }
}

/** A rule is kept only after it was shown in words. */
async function keep(asker: Asker, { setup, by, kept }: Asking, rule: Rule): Promise<Said | null> {
  asker.note(await ruleText(setup, rule))
  if (wordOf(await asker.read('Keep this rule, and allow it? y yes · n no ›')).type !== 'yes') return null
  kept.push(keepAlways(setup, rule, by))
  return { allow: true, remember: rule }
}

/** The wider yes there is: for the writes of this run. Not for what a rule asks about, nor for what was denied before. */
function wideRule({ needs, tool, sessionId, each, denied, n = 1, roles = [] }: Pending, session: string): Rule | null {
  if (needs !== 'approval' || !WRITERS.has(tool) || sessionId !== session) return null
  return each || denied || n > 1 || roles.length > 0 ? null : { effect: 'allow', tool: [...WRITERS] }
}

const WIDE_TEXT = `a also allows every later ${[...WRITERS].join(' and ')} in this folder until this run ends or you say no.`

type Covering = { readonly session: SessionHandle; readonly setup: Setup; readonly kept: readonly Kept[] }

/** True if there was a call that an earlier yes covers. Each is recorded with whose yes it was. */
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
      // Somebody said no, or decided it, since this was read: then it is asked like any other.
      if ((error as { readonly code?: unknown }).code !== 'decision_stale') throw error
      return true
    }
    any = true
  }
  return any
}

/** To the very action that was shown. */
export function bound({
  callId,
  sessionId,
  digest,
}: Pending): Pick<ApprovalDecision, 'callId' | 'sessionId' | 'digest'> {
  return { callId, sessionId, ...(digest === undefined ? {} : { digest }) }
}

/** Somebody who voted cannot vote again, and at a prompt nobody says a role: `approve --role` does. */
export function isForOthers({ roles = [], votes = [] }: Pending, by: string): boolean {
  return roles.length > 0 || hasVoted(votes, by)
}

/** Names that can be taken for each other are one person. */
export function hasVoted(votes: readonly string[], by: string): boolean {
  return votes.some((name) => skeleton(name) === skeleton(by))
}
