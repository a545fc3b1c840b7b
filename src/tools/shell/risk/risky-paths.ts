// Which paths are dangerous to write, to remove or to read, as tables of patterns. It looks at spelling only, never at a disk.
import { posix } from 'node:path'
import { matchesText } from '../../policy/pattern.ts'
import { OBEYED, OBEYED_BY_GIT, PROTECTED, REBASE_ORDERS } from '../../files/protected.ts'
import type { Level } from './level.ts'
import type { Word } from './words.ts'

/** Standard files of a process: writing to them changes nothing that lasts. */
const SINKS = /^\/dev\/(null|zero|full|tty|stdin|stdout|stderr|fd\/\d+)$/

/** The folders right below the root. */
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

/** What other programs will run or trust later. */
const TOUCHY_TO_WRITE: readonly RegExp[] = [
  /^\/(etc|usr|opt|var\/(lib|spool|log))\//,
  /^\/proc\//,
  /^~[^/]*\/\./,
  ...[...PROTECTED, ...OBEYED].map(inPath),
  ...[...OBEYED_BY_GIT, REBASE_ORDERS].map((name) => inPath(`.git/([^]*/)?${name}`)),
]

/** What no command changes unasked: names in any folder, and all of `.git`, from which a path may go on. */
const UNASKED = inPath(`(?:${[...PROTECTED, ...OBEYED, '.git'].join('|')})`)
/** All of these names hold one of these. */
const PERHAPS = /\.|Library/i

function inPath(name: string): RegExp {
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

/** As the kernel would walk it: no doubled slashes, no dots. A part that is not known stays one. */
function normal(text: string): string {
  const path = posix.normalize(text.replace(/^\/+/, '/'))
  return path.replace(/^~root(?=\/|$)/, '~')
}

/** Removing or changing it and all below would leave no system or no home. */
export function isWholeTree({ text, pattern }: Word): boolean {
  const path = normal(text)
  if (!/^[/~]/.test(path)) return false
  const parts = path.split('/').filter((part) => part !== '')
  // `x/*` and `x/.*` are all of x.
  while (pattern && /^(\.?[*?[{].*|\*\*)$/.test(parts.at(-1) ?? '')) parts.pop()
  const [top = '', second, third] = parts
  if (second === undefined)
    return top === '' || TREES.has(top) || top.startsWith('~') || (pattern && /[*?[{]/.test(top))
  return third === undefined && (top === 'home' || top === 'Users')
}

/** What writing to this path is worth; null for what a sandbox bounds. */
export function writeLevel(word: Word): Level | null {
  const path = normal(word.text)
  if (SINKS.test(path)) return null
  if (FORBIDDEN_TO_WRITE.some((rule) => rule.test(path))) return 'blocked'
  return TOUCHY_TO_WRITE.some((rule) => rule.test(path)) ? 'needs_approval' : null
}

/** It names a protected file or folder, on its own or as the value of an option (`of=.envrc`, `-o.envrc`). */
export function isProtected({ text, pattern }: Word): boolean {
  if (!PERHAPS.test(text)) return false
  const values = [text, text.slice(text.indexOf('=') + 1), ...(/^-\w./.test(text) ? [text.slice(2)] : [])]
  return values.some((value) => UNASKED.test(normal(value)) || (pattern && mayName(value)))
}

/** A pattern finds a name that begins with a dot only if it begins with one itself. */
function mayName(text: string): boolean {
  const wide = text
    .replace(/\[[^\]]*\]|\{[^}]*\}|\?/g, '*')
    .split('/')
    .filter((name) => name.startsWith('.'))
  const names = [...PROTECTED, ...OBEYED, '.git']
    .filter((name) => name.startsWith('.'))
    .map((name) => name.split('/')[0] ?? name)
  return wide.some((one) => one.includes('*') && names.some((name) => matchesText(one, name)))
}

export function isSink(word: Word): boolean {
  return SINKS.test(normal(word.text))
}

export function isDevice(word: Word): boolean {
  return /^\/dev\/(?!shm\/)/.test(normal(word.text)) && !isSink(word)
}

export function isSecret(word: Word): boolean {
  return SECRET.some((rule) => rule.test(word.text) || rule.test(normal(word.text)))
}

/** Bash itself opens a connection for these. */
export function isSocket(word: Word): boolean {
  return /^\/dev\/(tcp|udp)\//.test(normal(word.text))
}
