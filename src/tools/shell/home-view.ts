// The part of the home folder that a confined command sees, read-only: only the programs and caches that tools need. It
// only chooses the places: sandbox.ts hides and shows them.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { containsPath } from '../files/path-guard.ts'
import { splitWords } from '../files/protected-names.ts'
import { repositoryAround } from '../files/find-program.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Toolchains, packages and caches without secrets of the user. Secrets beside them, such as `.m2/settings.xml`, stay
 * hidden.
 */
const TOOLS = splitWords(`
  bin go/bin go/pkg sdk Android/Sdk miniconda3 miniforge3 mambaforge anaconda3 .linuxbrew .nix-profile .nix-defexpr
  .nvm .fnm .n .volta .nodenv .bun/bin .bun/install .deno/bin .npm/_cacache .npm/_npx .npm-global .npm-packages .node_modules
  .yarn/berry .pnpm-store .pyenv .rye .pixi/bin .pixi/envs .conda/envs .conda/pkgs micromamba .poetry .virtualenvs
  .rbenv .rvm .gem/ruby .bundle/cache .phpbrew .phpenv .composer/vendor .config/composer/vendor
  .cargo/bin .cargo/env .cargo/registry .cargo/git .cargo/config .cargo/config.toml .rustup .elan .ghcup .cabal/bin .cabal/packages
  .cabal/store .stack/programs .stack/snapshots .stack/pantry .opam .juliaup .julia/packages .julia/artifacts .julia/compiled
  .julia/registries .mix .hex/packages .goenv .jenv .jabba .sdkman .m2/repository .m2/wrapper .gradle/wrapper .gradle/caches
  .gradle/native .gradle/jdks .konan .ivy2/cache .ivy2/local .sbt/boot .sbt/launchers .dotnet .nuget/packages .swiftly .swiftenv
  .pub-cache/bin .pub-cache/hosted .pub-cache/git .asdf .mise .foundry/bin .krew/bin .wasmtime .wasmer/bin .zvm .moon .proto
  .local/bin .local/lib .local/pipx .local/opt .local/share/pipx .local/share/uv .local/share/pnpm .local/share/mise .local/share/rtx
  .local/share/fnm .local/share/virtualenvs .local/share/hatch .local/share/swiftly .local/share/coursier .local/share/gem
  .cache/ms-playwright .cache/puppeteer .cache/Cypress .cache/pip .cache/uv .cache/pypoetry .cache/pre-commit .cache/yarn
  .cache/pnpm .cache/node .cache/deno .cache/go-build .cache/golangci-lint .cache/zig .cache/bazelisk .cache/coursier .cache/mise
  .cache/cargo .cache/sccache .cache/ccache .ccache
`)
/** Without these files git does not know the user's name. */
const GIT_SETTINGS = splitWords('.gitconfig .config/git/config .config/git/ignore .config/git/attributes')
/** The home folder of a service may be one of these. To hide it would hide programs. */
const SYSTEM = splitWords('/bin /boot /dev /etc /lib /lib32 /lib64 /opt /proc /run /sbin /srv /sys /tmp /usr /var/tmp')
/** A `bin` folder in these does not mean that the rest may be shown. */
const MIXED = new Set([
  '.local',
  '.config',
  '.cache',
  '.cargo',
  '.bun',
  '.deno',
  '.pub-cache',
  '.cabal',
  '.wasmer',
  '.krew',
  '.foundry',
])

export type HomeView = {
  readonly masked: readonly string[]
  readonly shown: readonly string[]
  /** A path at home that is a link, and its target. */
  readonly links: readonly (readonly [path: string, target: string])[]
}

/**
 * `workspace` is a real path: its content is visible anyway. `masked` are the places that the host hides, even if tools
 * need them.
 */
export function homeView(workspace: string, env: Environment, masked: readonly string[] = []): HomeView {
  const homes = homeFolders(env)
  const hidden = masked.map(realPathOrSame)
  const isHidden = (path: string): boolean => hidden.some((one) => containsPath(one, path))
  const isAtHome = (path: string): boolean => homes.some((home) => containsPath(home, path) && home !== path)
  const named = homes.flatMap((home) => [...TOOLS, ...GIT_SETTINGS].map((path) => join(home, path)))
  const programs = [...(env['PATH'] ?? '').split(delimiter), dirname(realPathOrSame(process.execPath))].filter(
    isAbsolute,
  )
  const found = [
    ...named,
    ...programs.map((folder) => installationRoot(resolve(folder), homes)),
    ...repositoriesAround(workspace, env),
  ]
  const isOutside = (path: string): boolean => !containsPath(workspace, path)
  const there = [...new Set(found)].filter(
    (path) => isAtHome(path) && isOutside(path) && existsSync(path) && !isHidden(path),
  )
  const links = there.flatMap((path) => (realPathOrSame(path) === path ? [] : [[path, realPathOrSame(path)] as const]))
  const shown = there.map(realPathOrSame).filter((path) => isAtHome(path) && isOutside(path) && !isHidden(path))
  return { masked: homes, shown, links }
}

/**
 * The real home folders: that of the variable, that of the system's user entry, and the folders of settings that lie
 * elsewhere.
 */
function homeFolders(env: Environment): readonly string[] {
  const settings = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME'].map((name) => env[name] ?? '')
  const all = [env['HOME'] || homedir(), systemHome(), ...settings].filter(
    (path) => isAbsolute(path) && existsSync(path),
  )
  const real = [...new Set(all.map(realPathOrSame))].filter((path) => path !== '/' && !SYSTEM.includes(path))
  return real.filter((path) => !/^\/(?:bin|dev|etc|lib\d*|proc|sbin|sys|usr)\//.test(path))
}

function systemHome(): string {
  try {
    return userInfo().homedir
  } catch {
    // The user has no entry, as in a container with an arbitrary user id.
    return ''
  }
}

/**
 * Returns the folder of an installation, which has more than programs in it: `~/node-v24/bin` needs `~/node-v24/lib`.
 */
function installationRoot(folder: string, homes: readonly string[]): string {
  const above = dirname(folder)
  const isOwn = basename(folder) === 'bin' && !homes.includes(above) && !MIXED.has(basename(above))
  return isOwn ? above : folder
}

/** The repository that the workspace is part of, and the one whose worktree it is. */
function repositoriesAround(workspace: string, env: Environment): readonly string[] {
  const top = repositoryAround(workspace, env)
  const link = join(top, '.git')
  const named = /^gitdir: (.+)$/m.exec(fileText(link))?.[1]
  const gitDir = named === undefined ? null : realPathOrSame(resolve(top, named))
  // Only if that repository lists this worktree: a file that comes with a repository must not show anything else.
  const isKnown =
    gitDir !== null && basename(dirname(gitDir)) === 'worktrees' && fileText(join(gitDir, 'gitdir')).trim() === link
  return isKnown ? [top, dirname(dirname(gitDir))] : [top]
}

function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
