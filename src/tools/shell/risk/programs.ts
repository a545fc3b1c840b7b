// Programs that destroy, reach out or last, as a table of rules. It judges one call by its words; finding calls is risk.ts.
import { gitCall } from './git.ts'
import type { Level } from './level.ts'
import { isDevice, isWholeTree, writeLevel } from './risky-paths.ts'
import { has, optionsOf, type Word } from './words.ts'

export type Found = { readonly level: Level; readonly reason: string }
type Rule = (args: readonly Word[], name: string) => readonly Found[]

const asks = (reason: string): Found => ({ level: 'needs_approval', reason })
const denied = (reason: string): Found => ({ level: 'blocked', reason })
const never: readonly Found[] = []

/** Always worth a question, whatever the arguments. */
const ask =
  (why: string): Rule =>
  (_, name) => [asks(`${name} ${why}`)]
const deny =
  (why: string): Rule =>
  (_, name) => [denied(`${name} ${why}`)]
/** One of these words as the first operand is worth a question. */
const askWhen =
  (why: string, ...verbs: readonly string[]): Rule =>
  (args, name) => {
    const [verb = '', next = ''] = optionsOf(args).operands.map(({ text }) => text)
    return verbs.includes(verb) || verbs.includes(`${verb} ${next}`) ? [asks(`${name} ${verb} ${why}`)] : never
  }

const rm: Rule = (args) => {
  const options = optionsOf(args)
  if (options.long.some((name) => name.length > 4 && '--no-preserve-root'.startsWith(name))) {
    return [denied('rm without its guard for /')]
  }
  const recursive = has(options, 'rR', '--recursive')
  const tree = options.operands.find(isWholeTree)
  if (recursive && tree) return [denied(`rm -r of ${tree.text}`)]
  if (recursive) return [asks('rm -r removes whole folders')]
  if (args.some(({ computed }) => computed)) return [asks('rm of what is only known when it runs')]
  if (args.some(({ text, pattern }) => pattern && /^(\.?\/)?[*?[{]/.test(text)))
    return [asks('rm of everything that matches')]
  return never
}

const modes: Rule = (args, name) => {
  const options = optionsOf(args)
  if (!has(options, 'R', '--recursive')) return never
  const tree = options.operands.find((word) => isWholeTree(word))
  return [tree ? denied(`${name} -R of ${tree.text}`) : asks(`${name} -R changes whole folders`)]
}

/** Expressions that leave nothing out. */
const FINDS_ALL = /^-(delete|depth|xdev|mount|mindepth|maxdepth|print|[HLPO].?)$|^\d+$/

const find: Rule = (args) => {
  if (!args.some(({ text }) => text === '-delete')) return never
  const rest = args.filter(({ text }) => !FINDS_ALL.test(text))
  const tree = rest.find(isWholeTree)
  return [tree && rest.every(isWholeTree) ? denied(`find -delete in ${tree.text}`) : asks('find -delete removes files')]
}

/** Writes over what it is given: never a device. */
const overwrites: Rule = (args, name) => {
  const device = args.find((word) => isDevice({ ...word, text: word.text.replace(/^of=/, '') }))
  return [device ? denied(`${name} to ${device.text}`) : asks(`${name} overwrites raw data`)]
}

function targets(words: readonly Word[], name: string): readonly Found[] {
  return words.flatMap((word) => {
    const level = writeLevel(word)
    return level === null ? [] : [{ level, reason: `${name} writes to ${word.text}` }]
  })
}

/** The last operand is where it goes, or the value of -t. */
const moves: Rule = (args, name) => {
  const { operands } = optionsOf(args)
  const into = args.flatMap(({ text }, i) => {
    if (text === '-t' || text === '--target-directory') return args.slice(i + 1, i + 2)
    const [, value] = text.match(/^(?:-t|--target-directory=)(.+)$/) ?? []
    return value === undefined ? [] : [{ text: value, computed: false, pattern: false }]
  })
  const found = targets([...operands.slice(-1), ...into], name)
  const tree = name === 'mv' ? operands.slice(0, operands.length > 1 ? -1 : undefined).find(isWholeTree) : undefined
  return tree ? [...found, denied(`mv of ${tree.text}`)] : found
}

const writes: Rule = (args, name) => targets(optionsOf(args).operands, name)

const sed: Rule = (args, name) => {
  const options = optionsOf(args)
  return has(options, 'i', '--in-place') ? targets(options.operands, name) : never
}

const systemctl: Rule = (args) => {
  const stops = args.some(({ text }) => /^(poweroff|reboot|halt|kexec|emergency|rescue|suspend|hibernate)$/.test(text))
  return [stops ? denied('systemctl stops the machine') : asks('systemctl changes services')]
}

const init: Rule = (args) => [/^[06]$/.test(args[0]?.text ?? '') ? denied('init stops the machine') : asks('init')]

const rsync: Rule = (args) => {
  const { operands, long } = optionsOf(args)
  if (long.some((name) => name.startsWith('--del') || name === '--remove-source-files'))
    return [asks('rsync removes files')]
  if (operands.some(({ text }) => /^[^/]+:/.test(text))) return [asks('rsync copies to or from another machine')]
  return targets(operands.slice(-1), 'rsync')
}

const gh: Rule = (args) => {
  const verb = args.filter(({ text }) => !text.startsWith('-'))[1]?.text ?? ''
  return /^(view|list|status|diff|checks)$/.test(verb) ? never : [asks('gh acts in your name')]
}

const each = (names: string, rule: Rule): [string, Rule][] => names.split(' ').map((name) => [name, rule])

const RULES: ReadonlyMap<string, Rule> = new Map([
  ['rm', rm],
  ...each('chmod chown chgrp setfacl chattr', modes),
  ['find', find],
  ...each('mv cp install ln', moves),
  ...each('tee truncate sponge', writes),
  ['sed', sed],
  ...each('dd wipefs shred badblocks blkdiscard fdisk sfdisk gdisk sgdisk parted mkswap cryptsetup', overwrites),
  ...each('mkfs mke2fs newfs', overwrites),
  ...each('shutdown reboot halt poweroff', deny('stops the machine')),
  ...each('init telinit', init),
  ['systemctl', systemctl],
  ['git', (args) => gitCall(args).found],
  ['rsync', rsync],
  ['gh', gh],
  ...each('kill pkill killall skill', ask('ends processes')),
  ...each('crontab at batch service launchctl initctl update-rc.d', ask('starts something later')),
  ...each('docker podman nerdctl buildah kubectl helm lxc vagrant virsh', ask('acts outside of the sandbox')),
  ...each('ssh scp sftp nc ncat netcat socat telnet ftp tftp mosh rclone', ask('connects to another machine')),
  ...each('disown screen tmux byobu start-stop-daemon systemd-run at', ask('starts what may outlive the call')),
  ...each('mount umount modprobe insmod rmmod sysctl iptables nft ufw ip6tables swapoff', ask('changes the system')),
  ...each('useradd usermod userdel groupadd passwd chpasswd visudo adduser deluser chsh', ask('changes users')),
  ...each('aws gcloud az doctl flyctl heroku vercel netlify twine', ask('acts in your name')),
  ...each('history fc security secret-tool pass gpg ssh-add ssh-agent ssh-keygen', ask('handles secrets')),
  ...each(
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
  ...each('pnpm yarn bun', askWhen('acts in your name', 'publish', 'unpublish', 'login', 'npm publish')),
  ['cargo', askWhen('acts in your name', 'publish', 'yank', 'owner', 'login')],
  ['gem', askWhen('acts in your name', 'push', 'yank', 'owner', 'signin')],
  ...each('poetry flit hatch uv', askWhen('acts in your name', 'publish')),
  ...each('mvn gradle', askWhen('acts in your name', 'deploy', 'publish')),
  ...each('terraform tofu pulumi', askWhen('changes real machines', 'apply', 'destroy', 'up')),
])

/** What is wrong with running this program with these words. Names are looked up without their folder, in lower case. */
export function judgeProgram(name: string, args: readonly Word[]): readonly Found[] {
  const rule = RULES.get(name) ?? (name.startsWith('mkfs.') ? overwrites : undefined)
  return rule?.(args, name) ?? never
}
