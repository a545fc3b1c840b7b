// The built command line, in a home of its own: as real processes, or as lines that share one. The test's process is the other side: a provider, a person.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { canShare, type Ended, sharedLine } from './lines.ts'

/** The published command as a file: what users run, and it loads faster than one file per module. */
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export type { Ended } from './lines.ts'
export type Started = {
  readonly child: ChildProcess
  /** Resolves when standard error or standard output has this text. */
  readonly says: (text: string) => Promise<void>
  readonly ended: Promise<Ended>
}

export type Stage = {
  /** The command, by the name it has when it is installed. */
  readonly command: string
  readonly folder: string
  readonly home: string
  readonly config: string
  readonly env: Readonly<Record<string, string>>
  write(path: string, content: string): string
  /** Replaces the user configuration. */
  configure(config: object): void
  start(args: readonly string[], options?: Options): Started
  /** To its end, mostly in a process that runs many lines: see lines.ts. */
  terret(...args: readonly string[]): Promise<Ended>
  /** The same in another folder, or with more variables. */
  terretIn(where: Pick<Options, 'cwd' | 'env'>, ...args: readonly string[]): Promise<Ended>
  /** To its end, in a process of its own: where a test is about what another process finds. */
  apart(...args: readonly string[]): Promise<Ended>
  /** Of a line that is not understood or not allowed, whatever its command: nothing is to be driven. */
  refused(...args: readonly string[]): Promise<Ended>
  json(...args: readonly string[]): Promise<unknown>
  close(): void
}
type Options = {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly main?: string
  readonly node?: string
  /** What is piped into it. Null is a pipe that nothing comes from and that does not end. Default: nothing is piped. */
  readonly stdin?: Uint8Array | string | null
}

export function openStage(): Stage {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'terret-cli-')))
  const folder = join(root, 'work')
  const home = join(root, 'data')
  const config = join(root, 'config', 'terret')
  mkdirSync(folder)
  // As packages are installed: a link that has the command's name.
  const named = join(root, 'bin', 'terret')
  mkdirSync(dirname(named))
  symlinkSync(MAIN, named)
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: root,
    TERRET_HOME: home,
    XDG_CONFIG_HOME: join(root, 'config'),
    LANG: 'C.UTF-8',
  }
  const write = (path: string, content: string): string => {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    return file
  }
  const start: Stage['start'] = (args, options = {}) => {
    const { cwd = folder, main = named, node = process.execPath, stdin } = options
    const child = spawn(node, [main, ...args], {
      cwd,
      env: { ...env, ...options.env },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    // Who refuses what is piped in may end before all of it was read.
    child.stdin?.on('error', () => {})
    if (stdin !== null) child.stdin?.end(stdin)
    return started(child)
  }
  const shared = ({ cwd = folder, env: more }: Options, args: readonly string[]): Promise<Ended> =>
    sharedLine({ command: named, args, cwd, env: { ...env, ...more } })
  const terretIn: Stage['terretIn'] = (where, ...args) =>
    canShare(args) ? shared(where, args) : start(args, where).ended
  const terret: Stage['terret'] = (...args) => terretIn({}, ...args)
  return {
    command: named,
    folder,
    home,
    config,
    env,
    write,
    configure: (settings) => void write('config/terret/config.json', JSON.stringify(settings)),
    start,
    terret,
    terretIn,
    apart: (...args) => start(args).ended,
    refused: (...args) => shared({}, args),
    json: async (...args) => {
      const { out, err } = await terret(...args, '--json')
      if (out === '') throw new Error(err)
      return JSON.parse(out) as unknown
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

function started(child: ChildProcess): Started {
  let [out, err] = ['', '']
  const waiting = new Set<() => void>()
  const hear = (): void => {
    for (const look of waiting) look()
  }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text
    hear()
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text
    hear()
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, out, err }))
  })
  const says = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!out.includes(text) && !err.includes(text)) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
      ended.then(
        () => reject(new Error(`It ended before it said "${text}":\n${out}\n${err}`)),
        (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      )
    })
  return { child, says, ended }
}

/** A chaos provider as the user's endpoint. */
/** Its window is unknown. With compaction on, every command that drives it would say so. */
export function endpoint(url: string): object {
  return {
    model: 'fake:m',
    endpoints: { fake: { baseUrl: `${url}/v1`, protocol: 'chat' } },
    context: { compaction: false },
  }
}

export const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
