// The answer "always" to an approval: the rules it can keep, what each also allows, and where it is kept. The rules of a
// folder are stored by kept-rules.ts; a rule for the run is part of the decision, so the log has it.
import type { Pending, Policy, Rule } from '../../index.ts'
import { WRITERS, findFolderTool } from '../state/folder-agent.ts'
import { type KeptRule, keepRule } from '../state/kept-rules.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { oneLine } from '../../view/clean.ts'

/** A call with longer arguments is unlikely to come again unchanged. */
const RULE_CHARS_MAX = 16_384

/** The rules that an answer "always" can keep. `prefix` is the pattern of a rule that allows more than this call. */
export type AlwaysOffer = {
  readonly exact: Rule
  readonly prefix: { readonly rule: Rule; readonly text: string } | null
}

/** Null if the call would be asked about anyway. */
export async function alwaysOffer(setup: FolderSetup, pending: Pending): Promise<AlwaysOffer | null> {
  const exact = await rememberableRule(setup, pending)
  if (exact === null) return null
  const command = (pending.args as { readonly command?: unknown } | null)?.command
  const text = typeof command === 'string' ? await prefixPattern(command) : null
  if (text === null) return { exact, prefix: null }
  const { exact: _exact, ...where } = exact
  const rule: Rule = { ...where, command: text }
  return { exact, prefix: (await isFollowed(setup, pending, rule)) ? { rule, text } : null }
}

/** The rule that allows exactly this call from now on. Null if the call would be asked about anyway. */
export async function rememberableRule(setup: FolderSetup, pending: Pending): Promise<Rule | null> {
  const { tool, needs, each } = pending
  // The same content is rarely written twice. For writes there is the yes for the whole run.
  if (needs !== 'approval' || each || WRITERS.has(tool)) return null
  const { rememberedRule } = await import('../../index.ts')
  const rule = rememberedRule(await actionOf(setup, pending))
  if (JSON.stringify(rule).length > RULE_CHARS_MAX) return null
  return (await isFollowed(setup, pending, rule)) ? rule : null
}

/** True if the call would not be asked about with this rule in the policy. */
async function isFollowed(setup: FolderSetup, pending: Pending, rule: Rule): Promise<boolean> {
  const { judgeCall } = await import('../../index.ts')
  const policy: Policy = { ...setup.policy, rules: [...setup.policy.rules, rule] }
  return (await judgeCall(policy, await actionOf(setup, pending))).type === 'allow'
}

async function actionOf(setup: FolderSetup, { tool, args }: Pending) {
  const known = await findFolderTool(setup, tool)
  const approval = known ? await known.approval(args) : 'ask'
  const { environment } = setup.settings.approvals ?? {}
  const where = { ...(environment ? { environment } : {}), ...(known?.root === undefined ? {} : { root: known.root }) }
  return { tool, args, approval, effect: known?.effect ?? 'once', ...where } as const
}

/** Programs that run any text they are given, destroy data, or reach other machines: no prefix of them is harmless. */
const NO_PREFIX = new Set(
  (
    'sh bash dash zsh ksh mksh ash rbash fish csh tcsh eval exec source trap sudo doas su runuser pkexec env command ' +
    'builtin time nice ionice nohup setsid timeout stdbuf watch parallel xargs flock script ssh scp sftp rsync find fd ' +
    'awk gawk sed perl rm rmdir mv cp dd shred truncate chmod chown chgrp ln tee install curl wget nc ncat socat telnet ' +
    'kill pkill killall systemctl crontab at docker podman kubectl terraform aws gcloud az mount umount'
  ).split(' '),
)
/** Programs that run the file they are given: the file belongs into the prefix. */
const RUNS_FILE = /^(?:python|pypy|node|deno|bun|tsx|ts-node|ruby|php|lua|java|Rscript|npx|pnpx|bunx|uvx)[\d.]*$/
/** Words behind a program that name another thing to run: that thing belongs into the prefix. */
const RUNS_NEXT = new Set(['run', 'exec', 'x', 'dlx', 'tool', 'compose', 'script', 'run-script'])
const SUBCOMMAND = /^[A-Za-z][\w:-]*$/
/** A word of a pattern stands for itself only without these. */
const PLAIN_WORD = /^[^\s*]+$/

/** The pattern `npm test *` for `npm test -- --watch`. Null if a prefix would allow more than it says. */
export async function prefixPattern(command: string): Promise<string | null> {
  const { readShell } = await import('../../tools/shell/risk/read-shell.ts')
  const { runs, whole, plain } = await readShell(command, { mentions: true })
  const [run, ...others] = runs
  // Operators, redirections, variables and programs inside of programs leave it to the exact rule.
  if (!plain || !whole || !run || others.length > 0 || run.programs.some((at) => at > 0)) return null
  const words = run.words.map(({ text }) => text)
  const count = prefixLength(words)
  const prefix = words.slice(0, count)
  return count > 0 && prefix.every((word) => PLAIN_WORD.test(word)) ? `${prefix.join(' ')} *` : null
}

/** How many words belong into the prefix; 0: no prefix is harmless. */
function prefixLength([program = '', second = '', third = '']: readonly string[]): number {
  const name = program.slice(program.lastIndexOf('/') + 1)
  if (NO_PREFIX.has(name)) return 0
  if (RUNS_FILE.test(name) && !RUNS_NEXT.has(second)) return second === '' || second.startsWith('-') ? 0 : 2
  if (RUNS_NEXT.has(second)) return third === '' || third.startsWith('-') ? 0 : 3
  return SUBCOMMAND.test(second) ? 2 : second.startsWith('-') || second === '' || /[./]/.test(second) ? 1 : 0
}

/** What a prefix allows beyond the call, in sentences for the person who is about to keep it. */
export function prefixText(pattern: string): readonly string[] {
  const prefix = oneLine(pattern.replace(/ \*$/, ''), 300)
  return [
    `also allows: ${prefix} with any words behind it, such as: ${prefix} --force, ${prefix} -- --watch`,
    'still asks: whatever has ; && | > $( ) or a variable in it',
  ]
}

/** Explains what keeping the rule for the folder would mean. */
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
export async function findKeptRule(
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
