// A table of rules for programs that destroy data, use other machines or outlive the call. It judges one call by its
// words; judge-call.ts finds the calls.
import { parseGitCall } from './git-risk.ts'
import type { RiskLevel } from './risk-level.ts'
import { isDevice, isWholeTree, writeLevel } from './risky-paths.ts'
import { hasOption, parseOptions, type ShellWord } from './shell-words.ts'

export type ProgramFinding = { readonly level: RiskLevel; readonly reason: string }
type ProgramRule = (args: readonly ShellWord[], name: string) => readonly ProgramFinding[]

const approvalFinding = (reason: string): ProgramFinding => ({ level: 'needs_approval', reason })
const blockedFinding = (reason: string): ProgramFinding => ({ level: 'blocked', reason })
const noFindings: readonly ProgramFinding[] = []

/** Needs an approval, whatever the arguments. */
const alwaysAsk =
  (why: string): ProgramRule =>
  (_, name) => [approvalFinding(`${name} ${why}`)]
const alwaysBlock =
  (why: string): ProgramRule =>
  (_, name) => [blockedFinding(`${name} ${why}`)]
/** Needs an approval if one of these words is the first operand. */
const askWhen =
  (why: string, ...verbs: readonly string[]): ProgramRule =>
  (args, name) => {
    const [verb = '', next = ''] = parseOptions(args).operands.map(({ text }) => text)
    return verbs.includes(verb) || verbs.includes(`${verb} ${next}`)
      ? [approvalFinding(`${name} ${verb} ${why}`)]
      : noFindings
  }

const rmRule: ProgramRule = (args) => {
  const options = parseOptions(args)
  if (options.long.some((name) => name.length > 4 && '--no-preserve-root'.startsWith(name))) {
    return [blockedFinding('rm without its guard for /')]
  }
  const recursive = hasOption(options, 'rR', '--recursive')
  const tree = options.operands.find(isWholeTree)
  if (recursive && tree) return [blockedFinding(`rm -r of ${tree.text}`)]
  if (recursive) return [approvalFinding('rm -r removes whole folders')]
  if (args.some(({ computed }) => computed)) return [approvalFinding('rm of what is only known when it runs')]
  if (args.some(({ text, pattern }) => pattern && /^(\.?\/)?[*?[{]/.test(text)))
    return [approvalFinding('rm of everything that matches')]
  return noFindings
}

const modesRule: ProgramRule = (args, name) => {
  const options = parseOptions(args)
  if (!hasOption(options, 'R', '--recursive')) return noFindings
  const tree = options.operands.find((word) => isWholeTree(word))
  return [tree ? blockedFinding(`${name} -R of ${tree.text}`) : approvalFinding(`${name} -R changes whole folders`)]
}

/** Expressions of find that exclude no file. */
const FINDS_ALL = /^-(delete|depth|xdev|mount|mindepth|maxdepth|print|[HLPO].?)$|^\d+$/

const findRule: ProgramRule = (args) => {
  if (!args.some(({ text }) => text === '-delete')) return noFindings
  const rest = args.filter(({ text }) => !FINDS_ALL.test(text))
  const tree = rest.find(isWholeTree)
  return [
    tree && rest.every(isWholeTree)
      ? blockedFinding(`find -delete in ${tree.text}`)
      : approvalFinding('find -delete removes files'),
  ]
}

/** For programs that overwrite their operands: a device is forbidden. */
const overwriteRule: ProgramRule = (args, name) => {
  const device = args.find((word) => isDevice({ ...word, text: word.text.replace(/^of=/, '') }))
  return [device ? blockedFinding(`${name} to ${device.text}`) : approvalFinding(`${name} overwrites raw data`)]
}

function writeTargets(words: readonly ShellWord[], name: string): readonly ProgramFinding[] {
  return words.flatMap((word) => {
    const level = writeLevel(word)
    return level === null ? [] : [{ level, reason: `${name} writes to ${word.text}` }]
  })
}

/** The target is the last operand, or the value of -t. */
const moveRule: ProgramRule = (args, name) => {
  const { operands } = parseOptions(args)
  const into = args.flatMap(({ text }, i) => {
    if (text === '-t' || text === '--target-directory') return args.slice(i + 1, i + 2)
    const [, value] = text.match(/^(?:-t|--target-directory=)(.+)$/) ?? []
    return value === undefined ? [] : [{ text: value, computed: false, pattern: false }]
  })
  const found = writeTargets([...operands.slice(-1), ...into], name)
  const tree = name === 'mv' ? operands.slice(0, operands.length > 1 ? -1 : undefined).find(isWholeTree) : undefined
  return tree ? [...found, blockedFinding(`mv of ${tree.text}`)] : found
}

const writeRule: ProgramRule = (args, name) => writeTargets(parseOptions(args).operands, name)

const sedRule: ProgramRule = (args, name) => {
  const options = parseOptions(args)
  return hasOption(options, 'i', '--in-place') ? writeTargets(options.operands, name) : noFindings
}

const systemctlRule: ProgramRule = (args) => {
  const stops = args.some(({ text }) => /^(poweroff|reboot|halt|kexec|emergency|rescue|suspend|hibernate)$/.test(text))
  return [stops ? blockedFinding('systemctl stops the machine') : approvalFinding('systemctl changes services')]
}

const initRule: ProgramRule = (args) => [
  /^[06]$/.test(args[0]?.text ?? '') ? blockedFinding('init stops the machine') : approvalFinding('init'),
]

const rsyncRule: ProgramRule = (args) => {
  const { operands, long } = parseOptions(args)
  if (long.some((name) => name.startsWith('--del') || name === '--remove-source-files'))
    return [approvalFinding('rsync removes files')]
  if (operands.some(({ text }) => /^[^/]+:/.test(text)))
    return [approvalFinding('rsync copies to or from another machine')]
  return writeTargets(operands.slice(-1), 'rsync')
}

const ghRule: ProgramRule = (args) => {
  const verb = args.filter(({ text }) => !text.startsWith('-'))[1]?.text ?? ''
  return /^(view|list|status|diff|checks)$/.test(verb) ? noFindings : [approvalFinding('gh acts in your name')]
}

const ruleForEach = (names: string, rule: ProgramRule): [string, ProgramRule][] =>
  names.split(' ').map((name) => [name, rule])

const RULES: ReadonlyMap<string, ProgramRule> = new Map([
  ['rm', rmRule],
  ...ruleForEach('chmod chown chgrp setfacl chattr', modesRule),
  ['find', findRule],
  ...ruleForEach('mv cp install ln', moveRule),
  ...ruleForEach('tee truncate sponge', writeRule),
  ['sed', sedRule],
  ...ruleForEach(
    'dd wipefs shred badblocks blkdiscard fdisk sfdisk gdisk sgdisk parted mkswap cryptsetup',
    overwriteRule,
  ),
  ...ruleForEach('mkfs mke2fs newfs', overwriteRule),
  ...ruleForEach('shutdown reboot halt poweroff', alwaysBlock('stops the machine')),
  ...ruleForEach('init telinit', initRule),
  ['systemctl', systemctlRule],
  ['git', (args) => parseGitCall(args).found],
  ['rsync', rsyncRule],
  ['gh', ghRule],
  ...ruleForEach('kill pkill killall skill', alwaysAsk('ends processes')),
  ...ruleForEach('crontab at batch service launchctl initctl update-rc.d', alwaysAsk('starts something later')),
  ...ruleForEach(
    'docker podman nerdctl buildah kubectl helm lxc vagrant virsh',
    alwaysAsk('acts outside of the sandbox'),
  ),
  ...ruleForEach(
    'ssh scp sftp nc ncat netcat socat telnet ftp tftp mosh rclone',
    alwaysAsk('connects to another machine'),
  ),
  ...ruleForEach(
    'disown screen tmux byobu start-stop-daemon systemd-run at',
    alwaysAsk('starts what may outlive the call'),
  ),
  ...ruleForEach(
    'mount umount modprobe insmod rmmod sysctl iptables nft ufw ip6tables swapoff',
    alwaysAsk('changes the system'),
  ),
  ...ruleForEach(
    'useradd usermod userdel groupadd passwd chpasswd visudo adduser deluser chsh',
    alwaysAsk('changes users'),
  ),
  ...ruleForEach('aws gcloud az doctl flyctl heroku vercel netlify twine', alwaysAsk('acts in your name')),
  ...ruleForEach('history fc security secret-tool pass gpg ssh-add ssh-agent ssh-keygen', alwaysAsk('handles secrets')),
  ...ruleForEach(
    'apt apt-get dnf yum pacman zypper apk snap brew',
    askWhen('changes the system', 'install', 'remove', 'purge', 'upgrade'),
  ),
  [
    'npm',
    askWhen(
      'acts in your name',
      'publish',
      'unpublish',
      'deprecate',
      'login',
      'adduser',
      'token',
      'owner',
      'access',
      'dist-tag',
    ),
  ],
  ...ruleForEach('pnpm yarn bun', askWhen('acts in your name', 'publish', 'unpublish', 'login', 'npm publish')),
  ['cargo', askWhen('acts in your name', 'publish', 'yank', 'owner', 'login')],
  ['gem', askWhen('acts in your name', 'push', 'yank', 'owner', 'signin')],
  ...ruleForEach('poetry flit hatch uv', askWhen('acts in your name', 'publish')),
  ...ruleForEach('mvn gradle', askWhen('acts in your name', 'deploy', 'publish')),
  ...ruleForEach('terraform tofu pulumi', askWhen('changes real machines', 'apply', 'destroy', 'up')),
])

/** The risks of running this program with these words. Names are looked up without their folder, in lower case. */
export function judgeProgram(name: string, args: readonly ShellWord[]): readonly ProgramFinding[] {
  const rule = RULES.get(name) ?? (name.startsWith('mkfs.') ? overwriteRule : undefined)
  return rule?.(args, name) ?? noFindings
}
