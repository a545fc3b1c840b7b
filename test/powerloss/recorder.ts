// Makes the two recorders from their sources, with the C compiler of this machine: one that is preloaded into processes, and one that
// is a file system below them. Both write the log of calls that call-log.ts reads.
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/** A sentence for whoever began the run: what is missing, and how to get it. */
export class Missing extends Error {}

/** The environment of processes whose calls below `root` go into `log`. */
export function recordedBy(library: string, root: string, log: string): NodeJS.ProcessEnv {
  // Calls that Node hands to the kernel in a ring are not seen.
  return { ...process.env, LD_PRELOAD: library, POWERLOSS_ROOT: root, POWERLOSS_LOG: log, UV_USE_IO_URING: '0' }
}

export function makeLibrary(folder: string): string {
  if (process.platform !== 'linux') throw new Missing('Calls are recorded on Linux only.')
  const library = join(folder, 'calls.so')
  compile('calls-of-processes.c', ['-shared', '-fPIC'], library, ['-ldl', '-lpthread'])
  return library
}

export function makeFileSystem(folder: string): string {
  if (!existsSync('/dev/fuse'))
    throw new Missing('There is no /dev/fuse on this machine, so the calls of Postgres cannot be recorded.')
  if (!existsSync('/usr/include/fuse3/fuse.h'))
    throw new Missing('The headers of FUSE are missing. Install them: apt-get install fuse3 libfuse3-dev')
  const program = join(folder, 'disk')
  compile('calls-of-disk.c', ['-D_FILE_OFFSET_BITS=64'], program, ['-lfuse3', '-lpthread'])
  return program
}

function compile(source: string, flags: readonly string[], to: string, libraries: readonly string[]): void {
  // The sources stand beside this file; the compiled program is in a folder of its own.
  const beside = fileURLToPath(new URL(source, import.meta.url))
  const path = existsSync(beside)
    ? beside
    : fileURLToPath(new URL(`../../../test/powerloss/${source}`, import.meta.url))
  try {
    execFileSync('cc', ['-O2', ...flags, '-o', to, path, ...libraries], { stdio: 'pipe' })
  } catch (error) {
    const { code, stderr = '' } = error as { readonly code?: string; readonly stderr?: Buffer | string }
    if (code === 'ENOENT')
      throw new Missing('There is no C compiler (cc) on this machine. Install one: apt-get install gcc libc6-dev')
    throw new Missing(`The recorder could not be compiled: ${String(stderr).slice(0, 2_000)}`)
  }
}

/** A recording file system at `mountPoint`, whose files are in `folder`. */
export class RecordedDisk {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #ended: Promise<void>
  #said = ''

  constructor(program: string, folder: string, mountPoint: string, log: string) {
    this.#process = spawn(program, [folder, mountPoint, log], { stdio: 'pipe' })
    this.#ended = new Promise((done) => this.#process.once('close', () => done()))
    this.#process.stderr.on('data', (data: Buffer) => void (this.#said += data.toString()))
  }

  async mounted(): Promise<void> {
    for await (const line of createInterface({ input: this.#process.stdout })) if (line === 'mounted') return
    throw new Missing(`The recording file system could not be mounted: ${this.#said}`)
  }

  /** Unmounted; all that was written to it is in the log. */
  async end(): Promise<void> {
    this.#process.stdin.end()
    await this.#ended
  }
}
