// What a confined command may see and touch, as arguments for bubblewrap; where bubblewrap is; and which environment a child gets.
// It starts nothing: spawn.ts does, and sandbox-check.ts finds out whether the walls stand.
import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { homedir, totalmem } from 'node:os'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { ownPlaces } from '../files/own-places.ts'
import { findProgram, isExecutable, repositoryAround } from '../files/programs.ts'
import type { HomeView } from './home.ts'
import { filterFor } from './seccomp.ts'
import { FILTER_FD, GO, READY } from './spawn.ts'

export type Sandbox =
  | { readonly type: 'bwrap'; readonly path: string }
  /** Nothing confines a command here: a person must be asked each time. */
  | { readonly type: 'none'; readonly reason: string }

/** What this bubblewrap can do; found out by running it. */
export type SandboxFeatures = { readonly disableUserns: boolean; readonly tmpfsSize: boolean }

export type Confinement = {
  /** The only folder that outlives the call and can be written. */
  readonly workspace: string
  readonly network: boolean
  /** May a command open unix sockets? Then it reaches those of the host too, wherever nothing hides them. Default false. */
  readonly localSockets?: boolean
  readonly env: Readonly<Record<string, string>>
  /** Absolute. Shown empty, whether file or folder. */
  readonly masked: readonly string[]
  /** Relative to the workspace. Read-only where they exist: what is missing is found when it was made (protected-after.ts). */
  readonly protectedPaths: readonly string[]
  /** Absolute. Read-only, and seen also where what is around them is hidden. */
  readonly shown?: readonly string[]
  /** Absolute. Names in hidden folders that stay as links, and where they lead. */
  readonly links?: HomeView['links']
}

/** Per process, but for the processes, which are counted together. */
export type Limits = { readonly processesMax: number; readonly memoryBytesMax: number; readonly fileBytesMax: number }

type Environment = Readonly<Record<string, string | undefined>>

const ALLOWED_VARIABLES = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'TMPDIR']
const TMP_BYTES_MAX = 1 << 30

/** Far above what builds need, and below what stops a machine. One process may take half of its memory. */
const LIMITS: Limits = {
  processesMax: 4096,
  memoryBytesMax: Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / 2),
  fileBytesMax: 8 * 2 ** 30,
}

/** Hidden also where the home folder is not, because the workspace is around it, or because a tool needs what is around them. */
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
/** Sockets and tokens of daemons live in /run. Whether a socket can be used at all is decided by the filter of system calls. */
const SECRETS_ELSEWHERE = ['/run', '/var/run', '/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/etc/sudoers.d']
/** What programs need of a masked folder: the programs of NixOS. */
const NEEDED = ['/run/current-system', '/run/wrappers']

/** The system's own bubblewrap first, as AppArmor profiles name it; then any on PATH. */
export function findSandbox(
  workspace: string,
  env: Environment = process.env,
  platform: string = process.platform,
  arch: string = process.arch,
): Sandbox {
  if (platform !== 'linux') return { type: 'none', reason: `there is no sandbox for ${platform} yet` }
  // Without the filter every socket of the host could be reached.
  if (filterFor(arch) === null) return { type: 'none', reason: `there is no filter of system calls for ${arch} yet` }
  const path = findProgram('bwrap', repositoryAround(workspace, env), env, ['/usr/bin'])
  return path === null ? { type: 'none', reason: 'bubblewrap (bwrap) is not installed' } : { type: 'bwrap', path }
}

/** Built from a list of what is let through, never from what is there. */
export function allowedEnvironment(
  source: Environment,
  more: readonly string[] = [],
): Readonly<Record<string, string>> {
  const allowed = [...ALLOWED_VARIABLES, ...more].map((name) => [name, source[name]] as const)
  return Object.fromEntries(allowed.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** All that is hidden by default: usual places of secrets, and what is the harness's own. */
export function secretPaths(env: Environment): readonly string[] {
  const home = env['HOME'] || homedir()
  return [...SECRETS_AT_HOME.map((path) => join(home, path)), ...ownPlaces(env).all, ...SECRETS_ELSEWHERE]
}

/** bash where it exists. The result names which it was. */
export function findShell(): string {
  return isExecutable('/bin/bash') ? '/bin/bash' : '/bin/sh'
}

export type Walls = {
  readonly args: readonly string[]
  /** What bubblewrap reads from descriptor 4: the system calls that are refused. Null on a processor it is not written for. */
  readonly filter: Uint8Array | null
  /** Links on the way to protected places: they cannot be mounted over. They are compared after the command. */
  readonly links: readonly string[]
}

/** Everything before the command itself. Only what exists is mounted over: nothing is ever created on the host. */
export function raiseWalls(confinement: Confinement, features: SandboxFeatures): Walls {
  const { network, env } = confinement
  const workspace = realpathSync(confinement.workspace)
  if (workspace === '/') throw new Fault('invalid_config', 'The root folder cannot be the workspace of a sandbox.')
  const filter = filterFor(process.arch, confinement.localSockets)
  const masked = existing(confinement.masked)
  const shown = existing(confinement.shown ?? [])
  const own = shown.filter((path) => isWithin(workspace, path)).map((path) => relative(workspace, path))
  const { pins, readOnly, links } = protection(workspace, [...confinement.protectedPaths, ...own])
  const isOwnFolder = (path: string): boolean => path !== workspace && isFolder(path)
  const size = features.tmpfsSize ? ['--size', String(TMP_BYTES_MAX)] : []
  const { before, within } = layersOf(workspace, masked, shown)
  const args = [
    ['--unshare-all', '--unshare-user', network ? ['--share-net'] : []],
    features.disableUserns ? ['--disable-userns'] : [],
    // Not --die-with-parent: bubblewrap killed while it starts leaves a process behind. `heldBack` does it without that gap.
    ['--as-pid-1', '--new-session', '--cap-drop', 'ALL', '--clearenv', filter ? ['--seccomp', String(FILTER_FD)] : []],
    Object.entries({ ...env, TMPDIR: '/tmp' }).map(([name, value]) => ['--setenv', name, value]),
    ['--ro-bind', '/', '/', '--dev', '/dev', size, '--tmpfs', '/dev/shm', '--proc', '/proc'],
    // Without it root would write /proc/sys/kernel/core_pattern, which the host obeys, with no capability at all.
    ['/proc/sys', '/proc/sysrq-trigger'].filter(existsSync).map(bind('--ro-bind')),
    [size, '--tmpfs', '/tmp'],
    before.map(({ path, isMask }) => (isMask ? mask(path) : bind('--ro-bind')(path))),
    (confinement.links ?? []).map(([path, target]) => ['--symlink', target, path]),
    ['--bind', workspace, workspace],
    pins.map(bind('--bind')),
    readOnly.map(bind('--ro-bind')),
    within.map(mask),
    [...NEEDED, ...(network ? resolverFile() : [])].filter(existsSync).map(bind('--ro-bind')),
    // Nothing was said about their size, and they lie in memory: they are read-only.
    ['/dev', ...[...before.flatMap(({ path, isMask }) => (isMask ? [path] : [])), ...within].filter(isOwnFolder)].map(
      (path) => ['--remount-ro', path],
    ),
    ['--chdir', workspace],
  ].flat(3)
  return { args, filter, links }
}

type Layer = { readonly path: string; readonly isMask: boolean }

/**
 * What is hidden and shown, in the order of the mounts: what is around comes before what is in it, so the nearest one decides. `before`
 * is mounted before the workspace, `within` after it. What is in a hidden folder is not hidden once more.
 */
function layersOf(workspace: string, masked: readonly string[], shown: readonly string[]) {
  const isInside = (path: string): boolean => path !== workspace && isWithin(workspace, path)
  const all = [
    ...masked.map((path): Layer => ({ path, isMask: true })),
    ...shown.filter((path) => !isWithin(workspace, path)).map((path): Layer => ({ path, isMask: false })),
  ].sort((a, b) => a.path.length - b.path.length)
  const layers: Layer[] = []
  for (const layer of all) {
    const nearest = layers.findLast(({ path }) => isWithin(path, layer.path))
    const isCut = isInside(layer.path) && nearest !== undefined && isWithin(nearest.path, workspace)
    if (!layer.isMask || nearest === undefined || !nearest.isMask || isCut) layers.push(layer)
  }
  return {
    before: layers.filter(({ path }) => !isInside(path)),
    within: layers.flatMap(({ path }) => (isInside(path) ? [path] : [])),
  }
}

/**
 * The command under the namespace's first process, which talks with the harness on descriptor 3 (see spawn.ts): it starts the
 * command when told to, and ends, and with it all others, when told to or when the harness is gone. Nothing inside can kill it.
 * It makes no core files, which may go to a program of the host, and closes files that were open when the harness started.
 * When memory runs out, the kernel kills the command before any other process.
 */
export function heldBack(argv: readonly string[], limits: Limits = LIMITS): readonly string[] {
  const shell = findShell()
  const bash = shell === '/bin/bash'
  // Only bash can close a descriptor above 9, and start something in the background that does not ignore SIGINT.
  const close = bash
    ? 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -gt 3 ] && eval "exec $fd>&-"; done'
    : 'exec 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-'
  const first = `
    ulimit -c 0
    ${close}
    echo ${READY} >&3
    read -r word <&3 && [ "$word" = ${GO} ] || exit 125
    ${bash ? 'set -m' : ''}
    (exec 5>&2 2>/dev/null; ${limited(limits, bash)}; "$@" </dev/null 2>&5 3>&- 5>&-; echo $? >&3) &
    exec 2>/dev/null
    ${bash ? LISTENING : 'read -r code <&3 || exit 137'}
    exit "$code"`
  return ['--', shell, '-c', first, 'sh', ...argv]
}

/**
 * Until the harness says the code back, or is gone. A command may kill the shell that was to say it, which would go unnoticed: so
 * now and then it looks whether that one lives. What was said last is read also when it does not.
 */
const LISTENING = `
    until read -r -t 0.2 code <&3; do
      [ $? -gt 128 ] || exit 137
      [ -n "$gone" ] && exit 137
      kill -0 $! || gone=1
    done`

/**
 * Hard limits: without a capability they cannot be raised. One that already is lower stays. Not the address space, of which node and
 * java reserve far more than they use, but private memory that can be written. Linux counts no processes of root.
 */
function limited({ processesMax, memoryBytesMax, fileBytesMax }: Limits, bash: boolean): string {
  const [processes, blockBytes] = bash ? ['-u', 1024] : ['-p', 512]
  return [
    `ulimit ${processes} ${processesMax}`,
    `ulimit -d ${Math.floor(memoryBytesMax / 1024)}`,
    `ulimit -f ${Math.floor(fileBytesMax / blockBytes)}`,
    'echo 1000 > /proc/self/oom_score_adj',
  ].join('; ')
}

function protection(workspace: string, protectedPaths: readonly string[]) {
  const pins = new Set<string>()
  const readOnly = new Set<string>()
  const links = new Set<string>()
  for (const path of protectedPaths) {
    const whole = join(workspace, path)
    if (!isWithin(workspace, whole) || whole === workspace) continue
    const link = firstLink(workspace, path)
    if (link !== null) links.add(link)
    const real = standing(workspace, path)
    if (real === null || !isWithin(workspace, real) || real === workspace) continue
    readOnly.add(real)
    // A mount point cannot be renamed, but the folder it stands in can: so each folder on the way becomes one too.
    for (let above = dirname(real); above !== workspace; above = dirname(above)) pins.add(above)
  }
  const byDepth = (a: string, b: string): number => a.length - b.length
  return { pins: [...pins].sort(byDepth), readOnly: [...readOnly].sort(byDepth), links: [...links] }
}

/** What is there of a path: its end, or the file that is in its way, such as the `.git` that names another folder. */
function standing(workspace: string, path: string): string | null {
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

/** The first step of a path that is a link, which could be turned elsewhere. */
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

function bind(how: '--bind' | '--ro-bind'): (path: string) => readonly string[] {
  return (path) => [how, path, path]
}

function mask(path: string): readonly string[] {
  return isFolder(path) ? ['--tmpfs', path] : ['--dev-bind', '/dev/null', path]
}

/** Links resolved, each once, parents before what they hold. */
function existing(paths: readonly string[]): readonly string[] {
  const real = paths.flatMap((path) => {
    try {
      return [realpathSync(path)]
    } catch {
      return []
    }
  })
  return [...new Set(real)].sort((a, b) => a.length - b.length)
}

/** Names are resolved through a file that may stand in a masked folder. */
function resolverFile(): readonly string[] {
  try {
    readlinkSync('/etc/resolv.conf')
    return [realpathSync('/etc/resolv.conf')]
  } catch {
    return []
  }
}

export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory()
}
