// What a confined command sees of the home folder: nothing but the programs and caches that tools need, read-only. Only places:
// sandbox.ts hides and shows them.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { contains } from '../files/paths.ts'
import { repositoryAround } from '../files/programs.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Toolchains, packages and caches that hold no secrets of the user. What a tool keeps beside them, as `.m2/settings.xml`, stays hidden. */
const TOOLS = words(`
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
/** Git has no name of the user without them. */
const GIT_SETTINGS = words('.gitconfig .config/git/config .config/git/ignore .config/git/attributes')
/** A home folder of a service may be one of these. To hide it would hide the programs. */
const SYSTEM = words('/bin /boot /dev /etc /lib /lib32 /lib64 /opt /proc /run /sbin /srv /sys /tmp /usr /var/tmp')
/** `bin` in them says nothing about what else they hold. */
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
  /** A name at home that is a link, and where it leads. */
  readonly links: readonly (readonly [path: string, target: string])[]
}

/** `workspace` is a real path: what is in it is seen anyway. `masked` is what the host hides: it hides places of tools too. */
export function homeView(workspace: string, env: Environment, masked: readonly string[] = []): HomeView {
  const homes = homesOf(env)
  const hidden = masked.map(realOf)
  const isHidden = (path: string): boolean => hidden.some((one) => contains(one, path))
  const isAtHome = (path: string): boolean => homes.some((home) => contains(home, path) && home !== path)
  const named = homes.flatMap((home) => [...TOOLS, ...GIT_SETTINGS].map((path) => join(home, path)))
  const programs = [...(env['PATH'] ?? '').split(delimiter), dirname(realOf(process.execPath))].filter(isAbsolute)
  const found = [...named, ...programs.map((folder) => rootOf(resolve(folder), homes)), ...around(workspace, env)]
  const isOutside = (path: string): boolean => !contains(workspace, path)
  const there = [...new Set(found)].filter(
    (path) => isAtHome(path) && isOutside(path) && existsSync(path) && !isHidden(path),
  )
  const links = there.flatMap((path) => (realOf(path) === path ? [] : [[path, realOf(path)] as const]))
  const shown = there.map(realOf).filter((path) => isAtHome(path) && isOutside(path) && !isHidden(path))
  return { masked: homes, shown, links }
}

/** Real paths. The one of the variable, and the one that the system knows, if it is another; and where settings lie that are elsewhere. */
function homesOf(env: Environment): readonly string[] {
  const settings = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME'].map((name) => env[name] ?? '')
  const all = [env['HOME'] || homedir(), ownHome(), ...settings].filter((path) => isAbsolute(path) && existsSync(path))
  const real = [...new Set(all.map(realOf))].filter((path) => path !== '/' && !SYSTEM.includes(path))
  return real.filter((path) => !/^\/(?:bin|dev|etc|lib\d*|proc|sbin|sys|usr)\//.test(path))
}

function ownHome(): string {
  try {
    return userInfo().homedir
  } catch {
    // The user has no entry, as in a container that runs with any number.
    return ''
  }
}

/** The folder of an installation has more than programs in it: `~/node-v24/bin` needs `~/node-v24/lib`. */
function rootOf(folder: string, homes: readonly string[]): string {
  const above = dirname(folder)
  const isOwn = basename(folder) === 'bin' && !homes.includes(above) && !MIXED.has(basename(above))
  return isOwn ? above : folder
}

/** The repository that the workspace is a part of, and the one that it is a worktree of. */
function around(workspace: string, env: Environment): readonly string[] {
  const top = repositoryAround(workspace, env)
  const link = join(top, '.git')
  const named = /^gitdir: (.+)$/m.exec(textOf(link))?.[1]
  const gitDir = named === undefined ? null : realOf(resolve(top, named))
  // Only if that repository knows this worktree: a file that a repository brings along must show nothing else.
  const isKnown =
    gitDir !== null && basename(dirname(gitDir)) === 'worktrees' && textOf(join(gitDir, 'gitdir')).trim() === link
  return isKnown ? [top, dirname(dirname(gitDir))] : [top]
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function words(list: string): readonly string[] {
  return list.trim().split(/\s+/)
}
