// "Always", as the answer to a question: which rule that would be, in words, and keeping it. The rules themselves are kept.ts.
import type { Pending, Policy, Rule } from '../../index.ts'
import { toolIn, WRITERS } from '../state/agent.ts'
import { oneLine } from './clean.ts'
import { keepRule, type Kept } from '../state/kept.ts'
import type { Setup } from '../state/setup.ts'

/** Longer arguments never come again to the letter. */
const RULE_CHARS_MAX = 16_384

/** The rule that lets exactly this call through from now on. Null where it would be asked about all the same. */
export async function rememberable(setup: Setup, { tool, args, needs }: Pending): Promise<Rule | null> {
  // The very same content is not written again: for those there is a yes for the whole run.
  if (needs !== 'approval' || WRITERS.has(tool)) return null
  const { judge, rememberedRule } = await import('../../index.ts')
  const known = await toolIn(setup, tool)
  const approval = known ? await known.approval(args) : 'ask'
  const { environment } = setup.settings
  const action = { tool, args, approval, effect: known?.effect ?? 'once', ...(environment ? { environment } : {}) }
  const rule = rememberedRule(action)
  if (JSON.stringify(rule).length > RULE_CHARS_MAX) return null
  const policy: Policy = { ...setup.policy, rules: [...setup.policy.rules, rule] }
  return judge(policy, action).type === 'allow' ? rule : null
}

/** What keeping it would mean, for whoever is about to. */
export async function ruleText({ folder }: Setup, rule: Rule): Promise<string> {
  const { describeRule } = await import('../../index.ts')
  return `From now on, in ${oneLine(folder, 300)}, without asking: ${oneLine(describeRule(rule), 1_000)}`
}

/** It is in the user's file before anything is decided by it. */
export function keepAlways({ home, folder }: Setup, rule: Rule, by: string): Kept {
  const kept = { rule, by, at: new Date().toISOString() }
  keepRule(home, folder, kept)
  return kept
}

/** Of rules that were kept after the harness got its policy, the one that allows this very call. */
export async function keptFor(kept: readonly Kept[], pending: Pending, { settings }: Setup): Promise<Kept | null> {
  const { tool, args, needs } = pending
  if (kept.length === 0 || needs !== 'approval') return null
  const { judge } = await import('../../index.ts')
  const { environment } = settings
  const action = { tool, args, approval: 'ask', ...(environment ? { environment } : {}) } as const
  return kept.find(({ rule }) => judge({ rules: [rule] }, action).type === 'allow') ?? null
}
