// Tables of patterns for paths that are dangerous to write, to remove or to read. It looks only at the spelling, never
// at a disk.
import { posix } from 'node:path'
import { matchesText } from '../../policy/pattern.ts'
import { OBEYED, OBEYED_BY_GIT, PROTECTED, REBASE_ORDERS } from '../../files/protected-names.ts'
import type { RiskLevel } from './risk-level.ts'
import type { ShellWord } from './shell-words.ts'

/** Standard files of a process: writing to them changes nothing permanent. */
const SINKS = /^\/dev\/(null|zero|full|tty|stdin|stdout|stderr|fd\/\d+)$/

/** The folders directly below the root. */
const TREES = new Set(
  (
    'bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys usr var ' +
    'Applications Library System Users Volumes private'
  ).split(' '),
)

const FORBIDDEN_TO_WRITE: readonly RegExp[] = [
  /^\/dev\/(?!(shm|pts|mqueue|tcp|udp)\/)/,
  /^\/proc\/(sysrq-trigger|sys\/|kcore|mem)/,
  /^\/sys\//,
  /^\/boot\//,
  /^\/etc\/(passwd|shadow|group|gshadow|sudoers|fstab|crypttab|hosts|profile|bash\.bashrc|environment|crontab)\b/,
  /^\/etc\/(cron\.[a-z]+|init\.d|ld\.so\.\w+|pam\.d|profile\.d|ssh|sudoers\.d|systemd|security)(\/|$)/,
  /^\/(usr\/)?(s?bin|lib(32|64)?)\//,
]

/** Paths that other programs will run or trust later. */
const TOUCHY_TO_WRITE: readonly RegExp[] = [
  /^\/(etc|usr|opt|var\/(lib|spool|log))\//,
  /^\/proc\//,
  /^~[^/]*\/\./,
  ...[...PROTECTED, ...OBEYED].map(pathRule),
  ...[...OBEYED_BY_GIT, REBASE_ORDERS].map((name) => pathRule(`.git/([^]*/)?${name}`)),
]

/** Names in any folder that no command changes unasked, and all of `.git`, which a longer path may follow. */
const UNASKED = pathRule(`(?:${[...PROTECTED, ...OBEYED, '.git'].join('|')})`)
/** A quick test: each of these names contains one of these. */
const PERHAPS = /\.|Library/i

function pathRule(name: string): RegExp {
  return new RegExp(`(^|/)${name.replaceAll('.', '\\.')}(/|$)`, 'i')
}

const SECRET: readonly RegExp[] = [
  /(^|[/=:@])\.(ssh|aws|gnupg|kube|azure|password-store|mozilla)(\/|$)/,
  /(^|[/=:@])\.(netrc|pgpass|npmrc|pypirc|git-credentials|my\.cnf|terret)(\/|$)/,
  /(^|[/=:@])\.(bash|zsh|python|psql|mysql|sqlite|node_repl)_history$/,
  /(^|\/)\.(docker\/config\.json|config\/(gcloud|gh|hub)(\/|$)|cargo\/credentials)/,
  /(^|[/=:@])id_(rsa|dsa|ecdsa|ed25519)$/,
  /^\/etc\/(shadow|gshadow|sudoers|ssh\/ssh_host_\w+_key)/,
  /^\/proc\/(\d+|self|thread-self|\*|\0)\/(environ|mem|root|cwd|fd)(\/|$)/,
  /^\/(var\/)?run\/(docker|containerd\/containerd|podman\/podman)\.sock$/,
]

/** Normalises a path as the kernel reads it: no double slashes, no dots. An unknown part stays. */
function normalPath(text: string): string {
  const path = posix.normalize(text.replace(/^\/+/, '/'))
  return path.replace(/^~root(?=\/|$)/, '~')
}

/** Removing or changing it recursively would destroy a system or a home folder. */
export function isWholeTree({ text, pattern }: ShellWord): boolean {
  const path = normalPath(text)
  if (!/^[/~]/.test(path)) return false
  const parts = path.split('/').filter((part) => part !== '')
  // `x/*` and `x/.*` are all of x.
  while (pattern && /^(\.?[*?[{].*|\*\*)$/.test(parts.at(-1) ?? '')) parts.pop()
  const [top = '', second, third] = parts
  if (second === undefined)
    return top === '' || TREES.has(top) || top.startsWith('~') || (pattern && /[*?[{]/.test(top))
  return third === undefined && (top === 'home' || top === 'Users')
}

/** The risk of writing to this path; null if a sandbox limits it. */
export function writeLevel(word: ShellWord): RiskLevel | null {
  const path = normalPath(word.text)
  if (SINKS.test(path)) return null
  if (FORBIDDEN_TO_WRITE.some((rule) => rule.test(path))) return 'blocked'
  return TOUCHY_TO_WRITE.some((rule) => rule.test(path)) ? 'needs_approval' : null
}

/** Whether it names a protected file or folder, alone or as the value of an option (`of=.envrc`, `-o.envrc`). */
export function isProtected({ text, pattern }: ShellWord): boolean {
  if (!PERHAPS.test(text)) return false
  const values = [text, text.slice(text.indexOf('=') + 1), ...(/^-\w./.test(text) ? [text.slice(2)] : [])]
  return values.some((value) => UNASKED.test(normalPath(value)) || (pattern && mayNameProtected(value)))
}

/** A pattern finds a name with a leading dot only if it begins with a dot itself. */
function mayNameProtected(text: string): boolean {
  const wide = text
    .replace(/\[[^\]]*\]|\{[^}]*\}|\?/g, '*')
    .split('/')
    .filter((name) => name.startsWith('.'))
  const names = [...PROTECTED, ...OBEYED, '.git']
    .filter((name) => name.startsWith('.'))
    .map((name) => name.split('/')[0] ?? name)
  return wide.some((one) => one.includes('*') && names.some((name) => matchesText(one, name)))
}

export function isSink(word: ShellWord): boolean {
  return SINKS.test(normalPath(word.text))
}

export function isDevice(word: ShellWord): boolean {
  return /^\/dev\/(?!shm\/)/.test(normalPath(word.text)) && !isSink(word)
}

export function isSecret(word: ShellWord): boolean {
  return SECRET.some((rule) => rule.test(word.text) || rule.test(normalPath(word.text)))
}

/** Bash itself opens a connection for these. */
export function isSocket(word: ShellWord): boolean {
  return /^\/dev\/(tcp|udp)\//.test(normalPath(word.text))
}
