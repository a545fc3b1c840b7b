// A table of programs that only read, each with the options and operands that would make it do more. An unknown program
// does not count.
import { parseGitCall } from './git-risk.ts'
import { hasOption, parseOptions, type ShellWord } from './shell-words.ts'

type ReadsOnly = (args: readonly ShellWord[]) => boolean

const anything: ReadsOnly = () => true
/** Read-only unless one of these options is given: letters, then long names. */
const withoutOptions =
  (letters: string, ...long: readonly string[]): ReadsOnly =>
  (args) =>
    !hasOption(parseOptions(args), letters, ...long)
const atMostOperands =
  (operands: number): ReadsOnly =>
  (args) =>
    parseOptions(args).operands.length <= operands

const forEachName = (names: string, reads: ReadsOnly): [string, ReadsOnly][] =>
  names.split(' ').map((name) => [name, reads])

/** No option of these writes a file or starts a program. */
const HARMLESS =
  'ls cat head tail wc stat du df pwd echo true false : basename dirname realpath readlink which whoami id groups uname ' +
  'nproc arch uptime free cut tr nl tac rev fold fmt expand unexpand paste join comm cmp md5sum sha1sum sha224sum ' +
  'sha256sum sha384sum sha512sum b2sum cksum sum seq od hexdump strings grep egrep fgrep zcat jq column tsort numfmt ' +
  'locale getconf printenv cd exit return break continue shift ps lscpu tty type sleep cal'

const FIND_ACTS = /^-(exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls|files0-from)$/
/** Addresses with one letter, or a substitution that neither writes a file nor runs a command. */
const SED_PRINTS = /^\s*(\d+|\$|\/[^/\\]*\/)?(,(\d+|\$|\/[^/\\]*\/))?!?[pdq=]\s*$/
const SED_REPLACES = /^s([/|,#:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*$/

function sedReads(args: readonly ShellWord[]): boolean {
  const options = parseOptions(args)
  const known = args.every(
    ({ text }) => !text.startsWith('-') || /^-[nErsuz]+$|^--(quiet|silent|regexp-extended)$/.test(text),
  )
  const script = options.operands[0]?.text ?? ''
  return known && (SED_REPLACES.test(script) || script.split(';').every((part) => SED_PRINTS.test(part)))
}

function awkReads(args: readonly ShellWord[]): boolean {
  const [script] = args.filter(({ text }, i) => !text.startsWith('-F') && args[i - 1]?.text !== '-F')
  const plain = args.every(({ text }, i) => !text.startsWith('-') || (i < 2 && /^-F.?$/.test(text)))
  return plain && script !== undefined && !/system|getline|close|[|>@]|\b(ENVIRON|ARGV)\b/.test(script.text)
}

const GIT_DIFF = withoutOptions('', '--ext-diff', '--textconv', '--output', '--output-indicator-new')
const GIT_READS: ReadonlyMap<string, ReadsOnly> = new Map([
  ...forEachName(
    'log diff show whatchanged shortlog blame annotate diff-tree diff-index diff-files rev-list range-diff',
    GIT_DIFF,
  ),
  ...forEachName(
    'status rev-parse ls-files ls-tree describe merge-base name-rev show-ref count-objects cherry',
    anything,
  ),
  ...forEachName('for-each-ref check-ignore version show-branch', anything),
  ['cat-file', withoutOptions('', '--textconv', '--filters')],
  ['grep', withoutOptions('O', '--open-files-in-pager', '--textconv')],
  ['branch', (args) => args.every(({ text }) => /^(-[avr]+|--(list|all|remotes|show-current|verbose))$/.test(text))],
  ['tag', (args) => args.length === 0 || /^(-l|--list|-n\d*)$/.test(args[0]?.text ?? '')],
  ['remote', (args) => args.every(({ text }) => /^(-v|--verbose)$/.test(text))],
  ['stash', (args) => args.length === 1 && args[0]?.text === 'list'],
  ['reflog', (args) => args.length === 0 || args[0]?.text === 'show'],
  ['worktree', (args) => args.length === 1 && args[0]?.text === 'list'],
  ['config', (args) => /^(-l|--list|--get|--get-all)$/.test(args[0]?.text ?? '')],
])

function gitReads(words: readonly ShellWord[]): boolean {
  const call = parseGitCall(words)
  if (!call.plain || call.found.length > 0) return false
  return call.subcommand === '' || (GIT_READS.get(call.subcommand)?.(call.args) ?? false)
}

/** These are read-only if they are only asked for their version. */
const VERSIONED =
  'node npm npx pnpm yarn python python3 pip ruby go rustc cargo java javac gcc g++ clang make cmake tsc deno bun php perl'
const asksVersion: ReadsOnly = (args) => args.length === 1 && /^(--version|-V|--help)$/.test(args[0]?.text ?? '')

const READERS: ReadonlyMap<string, ReadsOnly> = new Map([
  ...forEachName(HARMLESS, anything),
  ...forEachName(VERSIONED, asksVersion),
  ['date', withoutOptions('sf', '--set', '--file')],
  ['hostname', (args) => args.every(({ text }) => /^-[AdfiIs]+$/.test(text))],
  ['printf', (args) => !(args[0]?.text ?? '').startsWith('-v')],
  ['wait', (args) => args.length === 0],
  // Bash evaluates a subscript as a command, even a quoted one.
  ...forEachName('test [', (args) => args.every(({ text }) => !/[$`]/.test(text))),
  ['set', (args) => args.every(({ text }) => /^([-+][eux]+o?|[-+]o|pipefail|errexit|nounset|xtrace)$/.test(text))],
  ['command', (args) => /^-[vV]$/.test(args[0]?.text ?? '')],
  ['env', (args) => args.length === 0],
  ['file', withoutOptions('CzZ', '--compile', '--uncompress', '--uncompress-noreport')],
  ['diff', anything],
  ['uniq', atMostOperands(1)],
  ['tree', withoutOptions('oR')],
  ['sort', withoutOptions('oST', '--output', '--compress-program', '--temporary-directory', '--files0-from')],
  ['rg', withoutOptions('z', '--pre', '--pre-glob', '--hostname-bin', '--search-zip')],
  ['find', (args) => args.every(({ text }) => !FIND_ACTS.test(text))],
  ['sed', sedReads],
  ['awk', awkReads],
  ['git', gitReads],
])

/** The system's program folders: `./ls` is a file of the workspace. */
const SYSTEM_FOLDER = /^(?:\/usr)?\/s?bin\//

/** The name of a system program, however it is spelled; null for any other file. */
export function systemName(program: string): string | null {
  const name = program.replace(SYSTEM_FOLDER, '')
  return name.includes('/') ? null : name
}

/** Whether this call only reads, as far as its words show. */
export function onlyReads(program: string, args: readonly ShellWord[]): boolean {
  const reads = READERS.get(systemName(program) ?? '')
  if (reads === undefined || args.some(({ computed }) => computed)) return false
  // A file may be named like an option, and a pattern that begins with a star finds it.
  if (reads !== anything && args.some(({ text, pattern }) => pattern && /^[*?[{]/.test(text))) return false
  return reads(args)
}
