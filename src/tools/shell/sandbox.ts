// Builds the arguments for bubblewrap: what a confined command may see and touch. It also finds bubblewrap and chooses
// a child's environment. It starts nothing: child-process.ts does, and sandbox-check.ts tests whether the sandbox
// holds.
import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { homedir, totalmem } from 'node:os'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { harnessFolders } from '../files/harness-folders.ts'
import { findProgram, isExecutable, repositoryAround } from '../files/find-program.ts'
import type { HomeView } from './home-view.ts'
import { systemCallFilter } from './seccomp.ts'
import { FILTER_FD, GO, READY } from './child-process.ts'

export type ShellSandbox =
  | { readonly type: 'bwrap'; readonly path: string }
  /** Nothing confines a command here: a person must be asked each time. */
  | { readonly type: 'none'; readonly reason: string }

/** The features of this bubblewrap, found out by running it. */
export type SandboxFeatures = { readonly disableUserns: boolean; readonly tmpfsSize: boolean }

export type SandboxAccess = {
  /** The only folder that outlives the call and can be written. */
  readonly workspace: string
  readonly network: boolean
  /** May a command open unix sockets? Then it also reaches those of the host that are not hidden. Default false. */
  readonly localSockets?: boolean
  readonly env: Readonly<Record<string, string>>
  /** Absolute. Each appears empty, whether file or folder. */
  readonly masked: readonly string[]
  /**
   * Relative to the workspace. Existing paths are read-only; new files at missing ones are found afterwards
   * (protected-changes.ts).
   */
  readonly protectedPaths: readonly string[]
  /** Absolute. Read-only, and visible even within hidden folders. */
  readonly shown?: readonly string[]
  /** Absolute. Links in hidden folders that stay, with their targets. */
  readonly links?: HomeView['links']
}

/** Limits per process, except that processes are counted together. */
export type ProcessLimits = {
  readonly processesMax: number
  readonly memoryBytesMax: number
  readonly fileBytesMax: number
}

type Environment = Readonly<Record<string, string | undefined>>

const ALLOWED_VARIABLES = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'TMPDIR']
const TMP_BYTES_MAX = 1 << 30

/** Far above the needs of builds, and below what stops a machine. One process may use half of the memory. */
const LIMITS: ProcessLimits = {
  processesMax: 4096,
  memoryBytesMax: Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / 2),
  fileBytesMax: 8 * 2 ** 30,
}

/**
 * Hidden even if the home folder is visible, because the workspace is around it, or because a tool needs the folder
 * around them.
 */
const SECRETS_AT_HOME = [
  '.ssh .aws .gnupg .config/gcloud .npmrc .netrc .docker .azure .kube .config/gh .config/op .git-credentials',
  '.config/git/credentials .pypirc .pgpass .my.cnf .vault-token .terraform.d .cargo/credentials',
  '.cargo/credentials.toml .yarnrc.yml .password-store .local/share/keyrings .mozilla .config/google-chrome',
  '.config/chromium .bash_history .zsh_history .node_repl_history .python_history .psql_history .mysql_history .sqlite_history',
  '.rediscli_history .dbshell .mongorc.js .mongodb .irb_history .lesshst .viminfo .local/share/fish .config/fish/fish_variables',
  '.claude .claude.json .codex .gemini .cursor .config/claude .aider.conf.yml .config/github-copilot .continue .ollama',
  '.cache/huggingface .huggingface .kaggle .wandb .config/rclone .config/doctl .config/hub .config/glab-cli .oci .aliyun .bluemix',
  '.fly .railway .vercel .netlify .config/netlify .config/heroku .databrickscfg .snowsql .dbt .boto .s3cfg .config/sops .age',
  '.electrum .bitcoin .ethereum .config/solana .config/Exodus .config/Bitwarden .config/1Password .config/keepassxc .thunderbird',
  '.config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/Slack .config/discord .config/Signal .config/Code',
  '.config/containers .config/helm .gem/credentials .bundle/config .composer/auth.json .config/composer/auth.json .m2/settings.xml',
  '.m2/settings-security.xml .gradle/gradle.properties .nuget/NuGet .config/NuGet .ivy2/.credentials .sbt/credentials',
  '.hex/hex.config .pub-cache/credentials.json .julia/servers .android .config/pypoetry .condarc .conda/token .rvm/user',
].flatMap((line) => line.split(' '))
/** /run holds sockets and tokens of daemons. The filter of system calls decides whether sockets can be used at all. */
const SECRETS_ELSEWHERE = ['/run', '/var/run', '/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/etc/sudoers.d']
/** Parts of masked folders that programs need: the programs of NixOS. */
const NEEDED = ['/run/current-system', '/run/wrappers']

/** The system's own bubblewrap first, as AppArmor profiles name it; then any on PATH. */
export function findSandbox(
  workspace: string,
  env: Environment = process.env,
  platform: string = process.platform,
  arch: string = process.arch,
): ShellSandbox {
  if (platform !== 'linux') return { type: 'none', reason: `there is no sandbox for ${platform} yet` }
  // Without the filter every socket of the host could be reached.
  if (systemCallFilter(arch) === null)
    return { type: 'none', reason: `there is no filter of system calls for ${arch} yet` }
  const path = findProgram('bwrap', repositoryAround(workspace, env), env, ['/usr/bin'])
  return path === null ? { type: 'none', reason: 'bubblewrap (bwrap) is not installed' } : { type: 'bwrap', path }
}

/** Copies only the variables on the allowed list. */
export function allowedEnvironment(
  source: Environment,
  more: readonly string[] = [],
): Readonly<Record<string, string>> {
  const allowed = [...ALLOWED_VARIABLES, ...more].map((name) => [name, source[name]] as const)
  return Object.fromEntries(allowed.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** Everything hidden by default: the usual places of secrets, and the harness's own folders. */
export function secretPaths(env: Environment): readonly string[] {
  const home = env['HOME'] || homedir()
  return [...SECRETS_AT_HOME.map((path) => join(home, path)), ...harnessFolders(env).all, ...SECRETS_ELSEWHERE]
}

/** bash if it exists, else sh. The result of a command names it. */
export function findShell(): string {
  return isExecutable('/bin/bash') ? '/bin/bash' : '/bin/sh'
}

export type SandboxSetup = {
  readonly args: readonly string[]
  /**
   * The filter that bubblewrap reads from descriptor 4: the refused system calls. Null for an unsupported processor.
   */
  readonly filter: Uint8Array | null
  /** Links on the way to protected places: they cannot be mounted over, so they are compared after the command. */
  readonly links: readonly string[]
}

/** Builds all arguments before the command itself. Mounts cover only existing paths: nothing is created on the host. */
export function buildSandbox(confinement: SandboxAccess, features: SandboxFeatures): SandboxSetup {
  const { network, env } = confinement
  const workspace = realpathSync(confinement.workspace)
  if (workspace === '/') throw new Fault('invalid_config', 'The root folder cannot be the workspace of a sandbox.')
  const filter = systemCallFilter(process.arch, confinement.localSockets)
  const masked = existingPaths(confinement.masked)
  const shown = existingPaths(confinement.shown ?? [])
  const own = shown.filter((path) => isInFolder(workspace, path)).map((path) => relative(workspace, path))
  const { pins, readOnly, links } = protectedMounts(workspace, [...confinement.protectedPaths, ...own])
  const isOwnFolder = (path: string): boolean => path !== workspace && isFolder(path)
  const size = features.tmpfsSize ? ['--size', String(TMP_BYTES_MAX)] : []
  const { before, within } = orderLayers(workspace, masked, shown)
  const args = [
    ['--unshare-all', '--unshare-user', network ? ['--share-net'] : []],
    features.disableUserns ? ['--disable-userns'] : [],
    // Not --die-with-parent: bubblewrap killed while it starts leaves a process behind. `supervisedCommand` does it
    // without that gap.
    ['--as-pid-1', '--new-session', '--cap-drop', 'ALL', '--clearenv', filter ? ['--seccomp', String(FILTER_FD)] : []],
    Object.entries({ ...env, TMPDIR: '/tmp' }).map(([name, value]) => ['--setenv', name, value]),
    ['--ro-bind', '/', '/', '--dev', '/dev', size, '--tmpfs', '/dev/shm', '--proc', '/proc'],
    // Otherwise root, even without capabilities, could write /proc/sys/kernel/core_pattern, which the host obeys.
    ['/proc/sys', '/proc/sysrq-trigger'].filter(existsSync).map(bindArguments('--ro-bind')),
    [size, '--tmpfs', '/tmp'],
    before.map(({ path, isMask }) => (isMask ? maskArguments(path) : bindArguments('--ro-bind')(path))),
    (confinement.links ?? []).map(([path, target]) => ['--symlink', target, path]),
    ['--bind', workspace, workspace],
    pins.map(bindArguments('--bind')),
    readOnly.map(bindArguments('--ro-bind')),
    within.map(maskArguments),
    [...NEEDED, ...(network ? resolverFile() : [])].filter(existsSync).map(bindArguments('--ro-bind')),
    // These are in memory without a size limit, so they are made read-only.
    ['/dev', ...[...before.flatMap(({ path, isMask }) => (isMask ? [path] : [])), ...within].filter(isOwnFolder)].map(
      (path) => ['--remount-ro', path],
    ),
    ['--chdir', workspace],
  ].flat(3)
  return { args, filter, links }
}

type MountLayer = { readonly path: string; readonly isMask: boolean }

/**
 * Orders the hidden and shown places for mounting: outer folders before inner ones, so the nearest one decides.
 * `before` is mounted before the workspace, `within` after it. A place in a hidden folder is not hidden again.
 */
function orderLayers(workspace: string, masked: readonly string[], shown: readonly string[]) {
  const isInside = (path: string): boolean => path !== workspace && isInFolder(workspace, path)
  const all = [
    ...masked.map((path): MountLayer => ({ path, isMask: true })),
    ...shown.filter((path) => !isInFolder(workspace, path)).map((path): MountLayer => ({ path, isMask: false })),
  ].sort((a, b) => a.path.length - b.path.length)
  const layers: MountLayer[] = []
  for (const layer of all) {
    const nearest = layers.findLast(({ path }) => isInFolder(path, layer.path))
    const isCut = isInside(layer.path) && nearest !== undefined && isInFolder(nearest.path, workspace)
    if (!layer.isMask || nearest === undefined || !nearest.isMask || isCut) layers.push(layer)
  }
  return {
    before: layers.filter(({ path }) => !isInside(path)),
    within: layers.flatMap(({ path }) => (isInside(path) ? [path] : [])),
  }
}

/**
 * Wraps the command in the namespace's first process, which talks with the harness on descriptor 3 (see
 * child-process.ts). It starts the command when told to. It ends, and all others with it, when told to or when the
 * harness is gone. Nothing inside can kill it. It makes no core files, which may go to a program of the host, and
 * closes files that were open when the harness started. When memory runs out, the kernel kills the command before any
 * other process.
 */
export function supervisedCommand(argv: readonly string[], limits: ProcessLimits = LIMITS): readonly string[] {
  const shell = findShell()
  const bash = shell === '/bin/bash'
  // Only bash can close a descriptor above 9, and start a background process that does not ignore SIGINT.
  const close = bash
    ? 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -gt 3 ] && eval "exec $fd>&-"; done'
    : 'exec 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-'
  const first = `
    ulimit -c 0
    ${close}
    echo ${READY} >&3
    read -r word <&3 && [ "$word" = ${GO} ] || exit 125
    ${bash ? 'set -m' : ''}
    (exec 5>&2 2>/dev/null; ${limitScript(limits, bash)}; "$@" </dev/null 2>&5 3>&- 5>&-; echo $? >&3) &
    exec 2>/dev/null
    ${bash ? LISTENING : 'read -r code <&3 || exit 137'}
    exit "$code"`
  return ['--', shell, '-c', first, 'sh', ...argv]
}

/**
 * Waits until the harness repeats the exit code, or is gone. A command may kill the shell that reports the code, so it
 * checks regularly whether that shell lives. A code reported before its end is still read.
 */
const LISTENING = `
    until read -r -t 0.2 code <&3; do
      [ $? -gt 128 ] || exit 137
      [ -n "$gone" ] && exit 137
      kill -0 $! || gone=1
    done`

/**
 * Hard limits: without a capability they cannot be raised. A limit that is already lower stays. They cover private
 * writable memory and not the address space, of which node and java reserve far more than they use. Linux does not
 * count processes of root.
 */
function limitScript({ processesMax, memoryBytesMax, fileBytesMax }: ProcessLimits, bash: boolean): string {
  const [processes, blockBytes] = bash ? ['-u', 1024] : ['-p', 512]
  return [
    `ulimit ${processes} ${processesMax}`,
    `ulimit -d ${Math.floor(memoryBytesMax / 1024)}`,
    `ulimit -f ${Math.floor(fileBytesMax / blockBytes)}`,
    'echo 1000 > /proc/self/oom_score_adj',
  ].join('; ')
}

function protectedMounts(workspace: string, protectedPaths: readonly string[]) {
  const pins = new Set<string>()
  const readOnly = new Set<string>()
  const links = new Set<string>()
  for (const path of protectedPaths) {
    const whole = join(workspace, path)
    if (!isInFolder(workspace, whole) || whole === workspace) continue
    const link = firstLink(workspace, path)
    if (link !== null) links.add(link)
    const real = existingPart(workspace, path)
    if (real === null || !isInFolder(workspace, real) || real === workspace) continue
    readOnly.add(real)
    // A mount point cannot be renamed, but its parent folder can: so each folder on the way becomes a mount point too.
    for (let above = dirname(real); above !== workspace; above = dirname(above)) pins.add(above)
  }
  const byDepth = (a: string, b: string): number => a.length - b.length
  return { pins: [...pins].sort(byDepth), readOnly: [...readOnly].sort(byDepth), links: [...links] }
}

/** The existing part of a path: its end, or a file in its way, such as a `.git` file that names another folder. */
function existingPart(workspace: string, path: string): string | null {
  let place = workspace
  try {
    for (const step of path.split(sep)) {
      place = join(place, step)
      if (!statSync(place).isDirectory()) break
    }
    return realpathSync(place)
  } catch {
    return null
  }
}

/** The first step of a path that is a link, and so could be redirected. */
export function firstLink(workspace: string, path: string): string | null {
  let place = workspace
  for (const step of path.split(sep)) {
    place = join(place, step)
    try {
      if (lstatSync(place).isSymbolicLink()) return place
    } catch {
      return null
    }
  }
  return null
}

function bindArguments(how: '--bind' | '--ro-bind'): (path: string) => readonly string[] {
  return (path) => [how, path, path]
}

function maskArguments(path: string): readonly string[] {
  return isFolder(path) ? ['--tmpfs', path] : ['--dev-bind', '/dev/null', path]
}

/** Resolves links and removes duplicates; parents come before their content. */
function existingPaths(paths: readonly string[]): readonly string[] {
  const real = paths.flatMap((path) => {
    try {
      return [realpathSync(path)]
    } catch {
      return []
    }
  })
  return [...new Set(real)].sort((a, b) => a.length - b.length)
}

/** The file for name resolution, which may lie in a masked folder. */
function resolverFile(): readonly string[] {
  try {
    readlinkSync('/etc/resolv.conf')
    return [realpathSync('/etc/resolv.conf')]
  } catch {
    return []
  }
}

export function isInFolder(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory()
}
