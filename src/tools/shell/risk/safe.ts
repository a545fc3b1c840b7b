// Programs that only read, as a table: each with the options and operands that would make it do more. Unknown means no.
import { gitCall } from './git.ts'
import { has, optionsOf, type Word } from './words.ts'

type Reads = (args: readonly Word[]) => boolean

const anything: Reads = () => true
/** Only without these options; letters, then long names. */
const without =
  (letters: string, ...long: readonly string[]): Reads =>
  (args) =>
    !has(optionsOf(args), letters, ...long)
const atMost =
  (operands: number): Reads =>
  (args) =>
    optionsOf(args).operands.length <= operands

const all = (names: string, reads: Reads): [string, Reads][] => names.split(' ').map((name) => [name, reads])

/** No option of these writes a file or starts a program. */
const HARMLESS =
  'ls cat head tail wc stat du df pwd echo true false : basename dirname realpath readlink which whoami id groups uname ' +
  'nproc arch uptime free cut tr nl tac rev fold fmt expand unexpand paste join comm cmp md5sum sha1sum sha224sum ' +
  'sha256sum sha384sum sha512sum b2sum cksum sum seq od hexdump strings grep egrep fgrep zcat jq column tsort numfmt ' +
  'locale getconf printenv cd exit return break continue shift ps lscpu tty type sleep cal'

const FIND_ACTS = /^-(exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls|files0-from)$/
/** Addresses with one letter, or a substitution without a file to write and without a command to run. */
const SED_PRINTS = /^\s*(\d+|\$|\/[^/\\]*\/)?(,(\d+|\$|\/[^/\\]*\/))?!?[pdq=]\s*$/
const SED_REPLACES = /^s([/|,#:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*$/

function sed(args: readonly Word[]): boolean {
  const options = optionsOf(args)
  const known = args.every(
    ({ text }) => !text.startsWith('-') || /^-[nErsuz]+$|^--(quiet|silent|regexp-extended)$/.test(text),
  )
  const script = options.operands[0]?.text ?? ''
  return known && (SED_REPLACES.test(script) || script.split(';').every((part) => SED_PRINTS.test(part)))
}

function awk(args: readonly Word[]): boolean {
  const [script] = args.filter(({ text }, i) => !text.startsWith('-F') && args[i - 1]?.text !== '-F')
  const plain = args.every(({ text }, i) => !text.startsWith('-') || (i < 2 && /^-F.?$/.test(text)))
  return plain && script !== undefined && !/system|getline|close|[|>@]|\b(ENVIRON|ARGV)\b/.test(script.text)
}

const GIT_DIFF = without('', '--ext-diff', '--textconv', '--output', '--output-indicator-new')
const GIT_READS: ReadonlyMap<string, Reads> = new Map([
  ...all(
    'log diff show whatchanged shortlog blame annotate diff-tree diff-index diff-files rev-list range-diff',
    GIT_DIFF,
  ),
  ...all('status rev-parse ls-files ls-tree describe merge-base name-rev show-ref count-objects cherry', anything),
  ...all('for-each-ref check-ignore version show-branch', anything),
  ['cat-file', without('', '--textconv', '--filters')],
  ['grep', without('O', '--open-files-in-pager', '--textconv')],
  ['branch', (args) => args.every(({ text }) => /^(-[avr]+|--(list|all|remotes|show-current|verbose))$/.test(text))],
  ['tag', (args) => args.length === 0 || /^(-l|--list|-n\d*)$/.test(args[0]?.text ?? '')],
  ['remote', (args) => args.every(({ text }) => /^(-v|--verbose)$/.test(text))],
  ['stash', (args) => args.length === 1 && args[0]?.text === 'list'],
  ['reflog', (args) => args.length === 0 || args[0]?.text === 'show'],
  ['worktree', (args) => args.length === 1 && args[0]?.text === 'list'],
  ['config', (args) => /^(-l|--list|--get|--get-all)$/.test(args[0]?.text ?? '')],
])

function git(words: readonly Word[]): boolean {
  const call = gitCall(words)
  if (!call.plain || call.found.length > 0) return false
  return call.subcommand === '' || (GIT_READS.get(call.subcommand)?.(call.args) ?? false)
}

/** They are asked for their version and nothing else. */
const VERSIONED =
  'node npm npx pnpm yarn python python3 pip ruby go rustc cargo java javac gcc g++ clang make cmake tsc deno bun php perl'
const asksVersion: Reads = (args) => args.length === 1 && /^(--version|-V|--help)$/.test(args[0]?.text ?? '')

const READERS: ReadonlyMap<string, Reads> = new Map([
  ...all(HARMLESS, anything),
  ...all(VERSIONED, asksVersion),
  ['date', without('sf', '--set', '--file')],
  ['hostname', (args) => args.every(({ text }) => /^-[AdfiIs]+$/.test(text))],
  ['printf', (args) => !(args[0]?.text ?? '').startsWith('-v')],
  ['wait', (args) => args.length === 0],
  // Bash evaluates a subscript as a command even where it is quoted.
  ...all('test [', (args) => args.every(({ text }) => !/[$`]/.test(text))),
  ['set', (args) => args.every(({ text }) => /^([-+][eux]+o?|[-+]o|pipefail|errexit|nounset|xtrace)$/.test(text))],
  ['command', (args) => /^-[vV]$/.test(args[0]?.text ?? '')],
  ['env', (args) => args.length === 0],
  ['file', without('CzZ', '--compile', '--uncompress', '--uncompress-noreport')],
  ['diff', anything],
  ['uniq', atMost(1)],
  ['tree', without('oR')],
  ['sort', without('oST', '--output', '--compress-program', '--temporary-directory', '--files0-from')],
  ['rg', without('z', '--pre', '--pre-glob', '--hostname-bin', '--search-zip')],
  ['find', (args) => args.every(({ text }) => !FIND_ACTS.test(text))],
  ['sed', sed],
  ['awk', awk],
  ['git', git],
])

/** Where the system keeps its programs: `./ls` is a file of the workspace. */
const SYSTEM_FOLDER = /^(?:\/usr)?\/s?bin\//

/** The name of a program of the system, however it is spelt; null for any other file. */
export function systemName(program: string): string | null {
  const name = program.replace(SYSTEM_FOLDER, '')
  return name.includes('/') ? null : name
}

/** Whether this call reads and does nothing else, as far as its words alone say. */
export function onlyReads(program: string, args: readonly Word[]): boolean {
  const reads = READERS.get(systemName(program) ?? '')
  if (reads === undefined || args.some(({ computed }) => computed)) return false
  // A file may be named like an option, and a pattern that begins with a star finds it.
  if (reads !== anything && args.some(({ text, pattern }) => pattern && /^[*?[{]/.test(text))) return false
  return reads(args)
}
