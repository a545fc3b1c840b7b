// A place of its own among the processes for a program that may do everything else: when its first process ends, all it has started
// end with it, however far they went. No sandbox: sandbox.ts builds that one.
import type { Clock } from '../../kernel/ports.ts'
import { runChild } from '../shell/spawn.ts'

/** The system's own only: this runs beside programs that the user chose, and never by what a folder put on PATH. */
const BWRAP = '/usr/bin/bwrap'
/** All the rest as it is: the disk, the devices, the network and the rights. */
const ARGS = ['--dev-bind', '/', '/', '--proc', '/proc', '--unshare-pid', '--as-pid-1', '--cap-add', 'ALL', '--']

let found: Promise<readonly string[] | null> | null = null

/**
 * What stands before a command; null where there is no such place, as in many containers. Tried once per process. Only for root:
 * others need a user namespace for it, in which files of root seem to be nobody's and no program gets more rights than it has, so
 * that ssh, sudo and rootless containers fail.
 */
export function pidNamespace(clock: Clock): Promise<readonly string[] | null> {
  found ??= tried(clock)
  return found
}

async function tried(clock: Clock): Promise<readonly string[] | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const limits = { previewBytesMax: 1_000, wholeBytesMax: 0 }
  const frame = { cwd: '/', env: {}, softMs: 5_000, hardMs: 5_000, namespaced: false, limits }
  const order = { ...frame, file: BWRAP, args: [...ARGS, '/bin/true'], signal: new AbortController().signal }
  const { how } = await runChild(order, clock)
  return how.type === 'exited' && how.code === 0 ? [BWRAP, ...ARGS] : null
}
