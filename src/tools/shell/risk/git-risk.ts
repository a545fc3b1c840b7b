// A table of the git subcommands that destroy work, send data away or run other programs. It never runs git.
import type { RiskLevel } from './risk-level.ts'
import { hasOption, type WordOptions, parseOptions, plainWord, type ShellWord } from './shell-words.ts'

export type GitFinding = { readonly level: RiskLevel; readonly reason: string }

type GitRule = { readonly level: RiskLevel; readonly why: string; readonly when: (options: WordOptions) => boolean }

const askRule = (why: string, when: GitRule['when']): GitRule => ({ level: 'needs_approval', why, when })
const always = (): boolean => true
const firstIs = (options: WordOptions, ...names: readonly string[]): boolean =>
  names.includes(options.operands[0]?.text ?? '')
const discards = 'throws away changes'
const rewrites = 'rewrites or removes history'
const obeyed = 'makes what git obeys'
const leaves = 'sends data to another machine'

const RULES: Readonly<Record<string, GitRule>> = {
  push: askRule(leaves, always),
  'send-email': askRule(leaves, always),
  'http-push': askRule(leaves, always),
  reset: askRule(discards, (options) => hasOption(options, '', '--hard', '--merge', '--keep')),
  clean: askRule(discards, (options) => !hasOption(options, 'n', '--dry-run')),
  checkout: askRule(
    discards,
    (options) => hasOption(options, 'fB', '--force', '--ours', '--theirs') || namesPaths(options),
  ),
  switch: askRule(discards, (options) => hasOption(options, 'fC', '--force', '--discard-changes')),
  restore: askRule(
    discards,
    (options) => !hasOption(options, 'S', '--staged') || hasOption(options, 'W', '--worktree'),
  ),
  rm: askRule(discards, (options) => hasOption(options, 'rf', '--force') && !hasOption(options, '', '--cached')),
  branch: askRule(rewrites, (options) => hasOption(options, 'DMCfd', '--delete', '--force')),
  tag: askRule(rewrites, (options) => hasOption(options, 'df', '--delete', '--force')),
  stash: askRule(discards, (options) => firstIs(options, 'drop', 'clear')),
  reflog: askRule(rewrites, (options) => firstIs(options, 'expire', 'delete')),
  worktree: askRule(
    'makes what git obeys, or throws away changes',
    (options) => firstIs(options, 'add') || (firstIs(options, 'remove') && hasOption(options, 'f', '--force')),
  ),
  init: askRule(obeyed, always),
  clone: askRule(obeyed, always),
  submodule: askRule(obeyed, (options) => firstIs(options, 'add', 'init', 'update', 'set-url', 'sync', 'deinit')),
  'update-ref': askRule(rewrites, always),
  'filter-branch': askRule(rewrites, always),
  'filter-repo': askRule(rewrites, always),
  gc: askRule(rewrites, (options) => hasOption(options, '', '--prune')),
  prune: askRule(rewrites, always),
  config: askRule(
    'changes what git does everywhere, or runs',
    (options) => hasOption(options, '', '--global', '--system') || setsProgram(options),
  ),
  credential: askRule('reads credentials', always),
  daemon: askRule('serves files to others', always),
}

/** `git checkout -- x`, `git checkout .` and `git checkout HEAD x` name files, not a branch. */
function namesPaths({ operands, letters }: WordOptions): boolean {
  if (letters.has('b')) return false
  return operands.length > 1 || /^\.{1,2}\/?$|[*/]$|^:/.test(operands[0]?.text ?? '')
}

function setsProgram({ operands }: WordOptions): boolean {
  return operands.some(({ text }) =>
    /^(alias\.|core\.(pager|editor|sshcommand|fsmonitor|hookspath)|.*\.(cmd|command|textconv|helper|clean|smudge|process)$|diff\.external|!)/i.test(
      text,
    ),
  )
}

/** Command-line settings that only change how git prints, or the author's name. */
const HARMLESS_SETTING =
  /^(user\.(name|email)|color\.\w+|core\.(quotepath|autocrlf)|init\.defaultbranch|commit\.gpgsign|advice\.\w+|log\.\w+)=/i

export type GitCall = {
  readonly subcommand: string
  readonly args: readonly ShellWord[]
  readonly found: readonly GitFinding[]
  /** Values of command-line settings that may be programs to run. */
  readonly settings: readonly ShellWord[]
  readonly plain: boolean
}

/** Finds the subcommand behind git's own options. `plain` if none of these changes what git reads or runs. */
export function parseGitCall(words: readonly ShellWord[]): GitCall {
  const found: GitFinding[] = []
  const settings: ShellWord[] = []
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
  if (rule && (dashed || rule.when(parseOptions(args)))) {
    found.push({ level: rule.level, reason: `git ${subcommand} ${rule.why}` })
  }
  return { subcommand, args, found, settings, plain }
}

/** The shell texts that these subcommands run. */
export function gitScripts({ subcommand, args, settings }: GitCall): readonly ShellWord[] {
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
