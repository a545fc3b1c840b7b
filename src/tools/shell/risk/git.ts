// What subcommands of git destroy work, leave the machine or run programs of others, as a table. It never runs git.
import type { Level } from './level.ts'
import { has, type Options, optionsOf, plainWord, type Word } from './words.ts'

export type GitFinding = { readonly level: Level; readonly reason: string }

type Rule = { readonly level: Level; readonly why: string; readonly when: (options: Options) => boolean }

const ask = (why: string, when: Rule['when']): Rule => ({ level: 'needs_approval', why, when })
const always = (): boolean => true
const first = (options: Options, ...names: readonly string[]): boolean =>
  names.includes(options.operands[0]?.text ?? '')
const discards = 'throws away changes'
const rewrites = 'rewrites or removes history'
const obeyed = 'makes what git obeys'
const leaves = 'sends data to another machine'

const RULES: Readonly<Record<string, Rule>> = {
  push: ask(leaves, always),
  'send-email': ask(leaves, always),
  'http-push': ask(leaves, always),
  reset: ask(discards, (options) => has(options, '', '--hard', '--merge', '--keep')),
  clean: ask(discards, (options) => !has(options, 'n', '--dry-run')),
  checkout: ask(discards, (options) => has(options, 'fB', '--force', '--ours', '--theirs') || namesPaths(options)),
  switch: ask(discards, (options) => has(options, 'fC', '--force', '--discard-changes')),
  restore: ask(discards, (options) => !has(options, 'S', '--staged') || has(options, 'W', '--worktree')),
  rm: ask(discards, (options) => has(options, 'rf', '--force') && !has(options, '', '--cached')),
  branch: ask(rewrites, (options) => has(options, 'DMCfd', '--delete', '--force')),
  tag: ask(rewrites, (options) => has(options, 'df', '--delete', '--force')),
  stash: ask(discards, (options) => first(options, 'drop', 'clear')),
  reflog: ask(rewrites, (options) => first(options, 'expire', 'delete')),
  worktree: ask(
    'makes what git obeys, or throws away changes',
    (options) => first(options, 'add') || (first(options, 'remove') && has(options, 'f', '--force')),
  ),
  init: ask(obeyed, always),
  clone: ask(obeyed, always),
  submodule: ask(obeyed, (options) => first(options, 'add', 'init', 'update', 'set-url', 'sync', 'deinit')),
  'update-ref': ask(rewrites, always),
  'filter-branch': ask(rewrites, always),
  'filter-repo': ask(rewrites, always),
  gc: ask(rewrites, (options) => has(options, '', '--prune')),
  prune: ask(rewrites, always),
  config: ask(
    'changes what git does everywhere, or runs',
    (options) => has(options, '', '--global', '--system') || runs(options),
  ),
  credential: ask('reads credentials', always),
  daemon: ask('serves files to others', always),
}

/** `git checkout -- x`, `git checkout .`, `git checkout HEAD x`: files, not a branch. */
function namesPaths({ operands, letters }: Options): boolean {
  if (letters.has('b')) return false
  return operands.length > 1 || /^\.{1,2}\/?$|[*/]$|^:/.test(operands[0]?.text ?? '')
}

function runs({ operands }: Options): boolean {
  return operands.some(({ text }) =>
    /^(alias\.|core\.(pager|editor|sshcommand|fsmonitor|hookspath)|.*\.(cmd|command|textconv|helper|clean|smudge|process)$|diff\.external|!)/i.test(
      text,
    ),
  )
}

/** Settings on the command line that only change how git prints or whom it names. */
const HARMLESS_SETTING =
  /^(user\.(name|email)|color\.\w+|core\.(quotepath|autocrlf)|init\.defaultbranch|commit\.gpgsign|advice\.\w+|log\.\w+)=/i

export type GitCall = {
  readonly subcommand: string
  readonly args: readonly Word[]
  readonly found: readonly GitFinding[]
  /** Values of settings on the command line that may be programs to run. */
  readonly settings: readonly Word[]
  readonly plain: boolean
}

/** The subcommand behind git's own options. `plain` when there were none that change what it reads or runs. */
export function gitCall(words: readonly Word[]): GitCall {
  const found: GitFinding[] = []
  const settings: Word[] = []
  let at = 0
  let plain = true
  for (; at < words.length; at++) {
    const text = words[at]?.text ?? ''
    if (!text.startsWith('-')) break
    if (!/^(--no-pager|-P|--version|--help|-h|-v|--literal-pathspecs|--no-optional-locks)$/.test(text)) plain = false
    if (text === '-c' || text.startsWith('--config-env') || text.startsWith('--exec-path=')) {
      const setting = words[at + 1]?.text ?? ''
      if (text !== '-c' || !HARMLESS_SETTING.test(setting)) {
        found.push({ level: 'needs_approval', reason: `git ${text} ${setting} may run a program` })
        const value = words[at + 1]
        if (value) settings.push({ ...value, text: setting.replace(/^[^=]*=!?/, '') })
      }
    }
    if (/^(-c|-C|--git-dir|--work-tree|--namespace|--config-env|--super-prefix)$/.test(text)) at++
  }
  const args = words.slice(at + 1)
  const subcommand = words[at]?.text ?? ''
  const rule = RULES[subcommand]
  const dashed = args.some(({ text }) => text === '--') && subcommand === 'checkout'
  if (rule && (dashed || rule.when(optionsOf(args)))) {
    found.push({ level: rule.level, reason: `git ${subcommand} ${rule.why}` })
  }
  return { subcommand, args, found, settings, plain }
}

/** Subcommands that take a shell text to run. */
export function gitScripts({ subcommand, args, settings }: GitCall): readonly Word[] {
  if (subcommand === 'submodule' && args[0]?.text === 'foreach')
    return [...settings, ...args.slice(1).filter(({ text }) => !text.startsWith('-'))]
  if (subcommand === 'bisect' && args[0]?.text === 'run')
    return [
      ...settings,
      plainWord(
        args
          .slice(1)
          .map(({ text }) => text)
          .join(' '),
      ),
    ]
  if (subcommand !== 'rebase' && subcommand !== 'difftool') return settings
  const given = args.flatMap((word, i) => {
    if (/^(-x|--exec|--extcmd)$/.test(word.text)) return args.slice(i + 1, i + 2)
    const [, text] = word.text.match(/^(?:--exec=|--extcmd=|-x)([^]+)$/) ?? []
    return text === undefined ? [] : [{ ...word, text }]
  })
  return [...settings, ...given]
}
