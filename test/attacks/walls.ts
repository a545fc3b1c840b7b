// Bubblewrap with one wall taken out: a script in its place that drops some of its arguments. For controls only.
// The self-test meets the real bubblewrap, so that the tool trusts the script and the attack meets the gap.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Arms of a `case` over the next three arguments. Each takes what it matches and puts into `args` what is left of it. */
const ARMS = {
  /** The file system of the host can be written. */
  files: `'--ro-bind / /') args+=(--bind / /); shift 3;;`,
  /** And /tmp is the one of the host, and its sockets can be used. */
  tmp: `'--ro-bind / /') args+=(--bind / /); shift 3;; --size\\ *) shift 2;; '--tmpfs /tmp '*) shift 2;; --seccomp\\ *) shift 2;;`,
  network: `--new-session\\ *) args+=(--new-session --share-net); shift;;`,
  /** The network of the host, and every kind of socket. */
  sockets: `--new-session\\ *) args+=(--new-session --share-net); shift;; --seccomp\\ *) shift 2;;`,
  processes: `--unshare-all\\ *) args+=(--unshare-user --unshare-net --unshare-ipc); shift;; --as-pid-1\\ *) shift;;`,
  ipc: `--unshare-all\\ *) args+=(--unshare-user --unshare-net --unshare-pid); shift;;`,
  /** The system calls are not filtered. */
  calls: `--seccomp\\ *) shift 2;;`,
  namespaces: `--disable-userns\\ *) shift;; --seccomp\\ *) shift 2;;`,
  capabilities: `'--cap-drop ALL '*) shift 2;; --disable-userns\\ *) shift;; --seccomp\\ *) shift 2;;`,
  settings: `'--ro-bind /proc/'*) shift 3;;`,
  devices: `'--dev /dev '*) args+=(--dev-bind /dev /dev); shift 2;; --size\\ *--tmpfs) [ "$4" = /dev/shm ] && shift 4 || { args+=("$1" "$2"); shift 2; };; '--remount-ro /dev '*) shift 2;;`,
  /** Secrets are not hidden, and sockets can be used. */
  masks: `--size\\ *) args+=("$1" "$2" "$3" "$4"); shift 4;; --tmpfs\\ *|--remount-ro\\ *) shift 2;; '--dev-bind /dev/null '*) shift 3;; --seccomp\\ *) shift 2;;`,
  /** Nothing confines the command. */
  all: `*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" 4>&-;;`,
} as const

export type Weakness = keyof typeof ARMS

let folder: string | null = null
const written = new Map<string, string>()

/** The path of the script. The same for all worlds of this process: each new one would be tested anew. */
export function weakened(weakness: Weakness): string {
  const tested = 'case "$*" in *terret-walls-*|--help) exec /usr/bin/bwrap "$@";; esac'
  return program(`weak-${weakness}`, `${tested}\n${without(weakness)}`)
}

/** The same gap, and the self-test meets it too. */
export function gaping(weakness: Weakness): string {
  return program(`gaping-${weakness}`, `[ "$1" = --help ] && exec /usr/bin/bwrap --help\n${without(weakness)}`)
}

function without(weakness: Weakness): string {
  return `args=()
    while [ "$1" != -- ]; do
      case "$1 $2 $3" in
        ${ARMS[weakness]}
        *) args+=("$1"); shift;;
      esac
    done
    exec /usr/bin/bwrap "\${args[@]}" "$@"`
}

/** Any program in the place of bubblewrap. */
export function program(name: string, body: string): string {
  const known = written.get(name)
  if (known !== undefined) return known
  folder ??= mkdtempSync('/var/tmp/terret-attack-walls-')
  mkdirSync(join(folder, name), { recursive: true })
  const path = join(folder, name, 'bwrap')
  writeFileSync(path, `#!/bin/bash\n${body}\n`, { mode: 0o755 })
  written.set(name, path)
  return path
}

/** Called after the last case. */
export function removeWalls(): void {
  if (folder !== null) rmSync(folder, { recursive: true, force: true })
  folder = null
  written.clear()
}
