// Runs one program for a tool: in the sandbox if there is one, with bounded output and its end as data. It knows no
// tool. The tool decides what to run and what to tell the model about it, also without a sandbox.
import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Json } from '../../kernel/content.ts'
import {
  functionCheck,
  type Check,
  type Checks,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  objectCheck,
} from '../../options.ts'
import {
  type ProtectedChanges,
  protectedChanges,
  type ProtectedBefore,
  fileFingerprint,
  linkTarget,
} from './protected-changes.ts'
import { boundContent, clip, readOnHint } from '../core/bound-content.ts'
import { homeView } from './home-view.ts'
import type { CapturedStream } from './capture.ts'
import { type OutputMetadata, type Output, output, ToolFailure } from '../core/tool-output.ts'
import * as sandboxes from './sandbox.ts'
import type { ShellSandbox } from './sandbox.ts'
import { testSandbox } from './sandbox-check.ts'
import { FOLDERS_MAX, isProtectedName, type ProtectedScan, scanProtected, NOTHING_SEEN } from './scan-protected.ts'
import { type ChildEnd, type ChildOrder, runChild, type OutputStream } from './child-process.ts'
import type { ToolRoot } from '../core/tool-context.ts'
import type { Approval, Tool, ToolContext } from '../core/tool.ts'

export type ConfinedOptions = {
  /** The folder that commands work in and may write. */
  readonly workspace: string
  /** Default: the result of `findSandbox`. */
  readonly sandbox?: ShellSandbox
  /** Can a person be asked? Without a sandbox nothing runs if not. Default: whether standard input is a terminal. */
  readonly attended?: boolean
  /** Relative to the workspace. Default: the result of `scanProtected`. */
  readonly protectedPaths?: readonly string[]
  /**
   * More files and folders that your program obeys: no command without an approval changes them. Relative to the
   * workspace or absolute.
   */
  readonly obeyed?: readonly string[]
  /**
   * The limit of workspace folders that are searched for them. In a larger workspace a person must allow each call.
   * Default 50,000.
   */
  readonly foldersMax?: number
  /** More places to hide, beside the usual secrets and the harness's own folders. Absolute. */
  readonly masked?: readonly string[]
  /** More places of the home folder to show, beside the programs that tools need. Read-only. Absolute. */
  readonly readable?: readonly string[]
  /** The source of the allowed variables. Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Names of more variables to pass on, such as `JAVA_HOME`. Default none. */
  readonly variables?: readonly string[]
  /**
   * Lets commands open unix sockets. They then reach sockets of the host that lie in no hidden folder. Default false.
   */
  readonly localSockets?: boolean
  /**
   * Runs the program outside of this process, such as in a terminal of an editor. It gets the whole order, with its
   * sandbox and limits.
   */
  readonly launch?: (order: ChildOrder, context: ToolContext) => Promise<ChildEnd>
}

const sandboxCheck: Check = (value) => {
  const { type } = (value ?? {}) as Partial<ShellSandbox>
  return type === 'bwrap' || type === 'none'
    ? null
    : 'is no sandbox: leave it out, and the one of this machine is found'
}

export const CONFINED_OPTIONS: Checks<ConfinedOptions> = {
  workspace: requiredCheck(nonEmptyCheck),
  sandbox: sandboxCheck,
  attended: flagCheck,
  protectedPaths: listCheck(nonEmptyCheck),
  obeyed: listCheck(nonEmptyCheck),
  masked: listCheck(nonEmptyCheck),
  readable: listCheck(nonEmptyCheck),
  env: objectCheck,
  variables: listCheck(nonEmptyCheck),
  localSockets: flagCheck,
  foldersMax: countCheck(1),
  launch: functionCheck,
}

/** The options, with everything found out that does not change between calls. */
export type Confinement = ConfinedOptions & {
  readonly sandbox: ShellSandbox
  readonly attended: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly foldersMax: number
  /** The result of the last scan, which makes the next one faster. */
  readonly last: { look: ProtectedScan }
}

export type ConfinedCommand = {
  /** The program and its arguments. No shell reads them. */
  readonly argv: readonly string[]
  readonly network: boolean
  readonly softMs: number
  readonly hardMs: number
  /** Once it fires, the limits of time do not count. */
  readonly released?: AbortSignal
  /** Folders that must be visible, read-only, wherever they are. */
  readonly shown?: readonly string[]
  /** Added to the allowed variables, only inside the sandbox. */
  readonly variables?: Readonly<Record<string, string>>
  readonly onChunk?: (stream: OutputStream, chunk: Uint8Array) => void
}

export type ConfinedResult = {
  readonly end: ChildEnd & { readonly how: Exclude<ChildEnd['how'], { type: 'unstarted' }> }
  /** Changes at protected places. */
  readonly left: ProtectedChanges
  readonly confined: boolean
  readonly network: boolean
}

export const HARD_MS_MAX = 600_000
const STARTS_MAX = 4
const NAMED_MAX = 50
const HELD_MAX = 300
/** The limit of paths of each kind in a result. */
const LISTED_MAX = 50
const PREVIEW_BYTES_MAX = 50_000
const WHOLE_BYTES_MAX = 8_000_000
const CONTENT_CHARACTERS_MAX = 4 * PREVIEW_BYTES_MAX

export function confinementOf<Options extends ConfinedOptions>(options: Options): Options & Confinement {
  const { env = process.env, attended = process.stdin.isTTY === true, foldersMax = FOLDERS_MAX } = options
  const sandbox = options.sandbox ?? sandboxes.findSandbox(options.workspace, env)
  return { ...options, env, attended, sandbox, foldersMax, last: { look: NOTHING_SEEN } }
}

/**
 * Makes a tool that runs programs again for another folder. A program cannot be limited to a few paths, so there is no
 * such tool with claims.
 */
export function rootedInFolder<Options extends ConfinedOptions>(options: Options, make: (options: Options) => Tool) {
  return ({ folder = options.workspace, claims }: ToolRoot): Tool | null =>
    claims ? null : make({ ...options, workspace: folder })
}

/**
 * The settings that an approval is bound to: the folder, how it is confined, and the variables that lead to other
 * programs and files.
 */
export function placeOfConfinement({
  workspace,
  sandbox,
  masked = [],
  readable = [],
  protectedPaths,
  localSockets = false,
  variables = [],
  env,
}: Confinement): Readonly<Record<string, Json>> {
  const { PATH = null, HOME = null, TMPDIR = null } = env
  const confined = { sandbox: sandbox.type, masked, readable, protectedPaths: protectedPaths ?? null, localSockets }
  const passed = variables.map((name) => [name, env[name] ?? null])
  return { workspace: realpathSync(workspace), ...confined, PATH, HOME, TMPDIR, variables: passed }
}

/**
 * The approval that a call needs because of where it runs, whatever it does. Without a sandbox no rule can allow it
 * alone, and if no person can be asked it is refused. In a workspace too large to check afterwards a person must allow
 * it.
 */
export function approvalOfConfinement(ground: Confinement): Approval {
  const { sandbox, attended, last, workspace, foldersMax } = ground
  if (sandbox.type === 'none') return attended ? 'always' : 'never'
  if (!last.look.partly) return 'auto'
  // Scan again: the workspace may have been tidied up since.
  return scanWorkspace(ground, realpathSync(workspace), { now: 0, foldersMax }).partly ? 'always' : 'auto'
}

/** A warning for the description, so that neither the model nor its readers can miss it. Null if there is a sandbox. */
export function sandboxWarning({ sandbox, attended }: Confinement): string | null {
  if (sandbox.type !== 'none') return null
  const then = attended ? 'a person is asked for every call' : 'nobody can be asked here: every call is refused'
  return `WARNING: NOT SANDBOXED (${sandbox.reason}). It has all rights of the user, and ${then}.`
}

/** Runs the command. A program that fails is a result; it throws only if nothing was run. */
export async function runConfined(
  errand: ConfinedCommand,
  ground: Confinement,
  context: ToolContext,
): Promise<ConfinedResult> {
  for (let starts = 1; ; starts++) {
    const { order, before } = await prepareCommand(errand, ground, context)
    const end = await (ground.launch ? ground.launch(order, context) : runChild(order, context.clock))
    // A file that was to be hidden may be gone by now; then the sandbox does not start, and nothing of the command has
    // run.
    const again = end.how.type === 'unstarted' && before !== null && starts < STARTS_MAX
    if (again) continue
    if (before === null) return toConfinedResult(end, NOTHING_LEFT, { errand, ground })
    const after = scanWorkspace(ground, order.cwd, {
      now: context.clock.now(),
      foldersMax: before.look.folders.size + ground.foldersMax,
    })
    return toConfinedResult(end, protectedChanges(before, after, context.approved), { errand, ground })
  }
}

const NOTHING_LEFT: ProtectedChanges = { changed: [], setAside: [], unchecked: [] }

function toConfinedResult(
  end: ChildEnd,
  left: ProtectedChanges,
  { errand, ground }: { readonly errand: ConfinedCommand; readonly ground: Confinement },
): ConfinedResult {
  const { how } = end
  if (how.type === 'unstarted') {
    throw new ToolFailure('Unavailable', `The command was not run: ${how.message || 'it did not start.'}`)
  }
  const confined = ground.sandbox.type !== 'none'
  return { end: { ...end, how }, left, confined, network: !confined || errand.network }
}

/** `before` is null without a sandbox: then changes are not checked, because each command was allowed. */
type PreparedCommand = { readonly order: ChildOrder; readonly before: ProtectedBefore | null }

async function prepareCommand(
  errand: ConfinedCommand,
  ground: Confinement,
  context: ToolContext,
): Promise<PreparedCommand> {
  const { sandbox, env: source } = ground
  const { softMs, hardMs, onChunk, argv, released } = errand
  const workspace = realpathSync(ground.workspace)
  const env = sandboxes.allowedEnvironment(source, ground.variables)
  const limits = { previewBytesMax: PREVIEW_BYTES_MAX, wholeBytesMax: WHOLE_BYTES_MAX }
  const { signal } = context
  const frame = {
    cwd: workspace,
    env,
    signal,
    limits,
    softMs,
    hardMs,
    ...(onChunk ? { onChunk } : {}),
    ...(released ? { released } : {}),
  }
  if (sandbox.type === 'none') {
    const [file = '', ...args] = argv
    return { order: { ...frame, file, args, namespaced: false }, before: null }
  }
  const verdict = await testSandbox(sandbox.path, context.clock)
  if (verdict.type === 'unsound') {
    throw new ToolFailure('Unavailable', `The sandbox does not hold, so nothing is run in it: ${verdict.reason}.`)
  }
  const seen = scanWorkspace(ground, workspace, { now: context.clock.now(), foldersMax: ground.foldersMax })
  if (seen.partly && !context.approved) throw new ToolFailure('Denied', tooLargeText(ground))
  const { closed, told } = choosePathsToClose([...seen.paths])
  const home = homeView(workspace, source, ground.masked)
  const confinement = {
    workspace,
    env: { ...env, ...errand.variables },
    network: errand.network,
    localSockets: ground.localSockets === true,
    masked: [...home.masked, ...sandboxes.secretPaths(source), ...(ground.masked ?? [])],
    protectedPaths: closed,
    shown: [...home.shown, ...(ground.readable ?? []), ...(errand.shown ?? [])],
    links: home.links,
  }
  const { args, filter, links } = sandboxes.buildSandbox(confinement, verdict.features)
  const wrapped = [...args, ...sandboxes.supervisedCommand(argv)]
  const order = { ...frame, file: sandbox.path, args: wrapped, filter, namespaced: true }
  const looked = new Map(told.map((path) => [join(workspace, path), fileFingerprint(join(workspace, path))]))
  const led = new Map(links.map((link) => [link, linkTarget(link)]))
  return { order, before: { workspace, look: seen, told: looked, links: led } }
}

function tooLargeText({ foldersMax }: Confinement): string {
  return `Nothing was run: the workspace has more than ${foldersMax} folders, so what a command leaves at protected places cannot be checked, and a person must allow each one. Call it again to have a person asked, or work in a smaller folder.`
}

/** Finds the existing protected places. */
function scanWorkspace(
  ground: Confinement,
  workspace: string,
  bounds: { readonly now: number; readonly foldersMax: number },
): ProtectedScan {
  const { protectedPaths, last } = ground
  if (protectedPaths) {
    return { ...NOTHING_SEEN, paths: new Set(protectedPaths.filter((path) => existsSync(join(workspace, path)))) }
  }
  last.look = scanProtected(workspace, last.look, bounds)
  const { obeyed = [] } = ground
  if (obeyed.length === 0) return last.look
  const named = obeyed.map((path) => relative(workspace, resolve(workspace, path)))
  const inside = named.filter((path) => path !== '' && !path.startsWith('..') && existsSync(join(workspace, path)))
  return { ...last.look, paths: new Set([...last.look.paths, ...inside]) }
}

/**
 * Each mount slows down the next one. Paths that git obeys are all closed; of the rest only those nearest to the top.
 */
function choosePathsToClose(paths: readonly string[]): {
  readonly closed: readonly string[]
  readonly told: readonly string[]
} {
  const isNamed = (path: string): boolean => isProtectedName(basename(path), dirname(path))
  const depth = (path: string): number => path.split('/').length
  const named = paths.filter(isNamed).sort((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1))
  return {
    closed: [...groupByHolder(paths.filter((path) => !isNamed(path))), ...named.slice(0, NAMED_MAX)],
    told: named.slice(NAMED_MAX),
  }
}

/** If a repository holds very many others, the folders that contain them are closed as a whole. */
function groupByHolder(paths: readonly string[]): readonly string[] {
  const holderOf = (path: string): string => HOLDER.exec(path)?.[0] ?? path
  const held = new Map<string, number>()
  for (const holder of paths.map(holderOf)) held.set(holder, (held.get(holder) ?? 0) + 1)
  const close = (path: string): string => ((held.get(holderOf(path)) ?? 0) > HELD_MAX ? holderOf(path) : path)
  return [...new Set(paths.map(close))]
}

const HOLDER = /^(?:.*?\/)?\.git\/(?:modules|worktrees)(?=\/)/i

export type ResultTexts = {
  /** The tool's own description of what was run: the first fields of the result. */
  readonly asked: Readonly<Record<string, Json>>
  readonly timeoutText: (kind: 'soft' | 'hard') => string
  /** The limit for each shown stream, if it is below the usual one. */
  readonly charsMax?: number | null
}

/**
 * Builds the one shape of a result: JSON for the model with both streams and the exit code, and metadata for people and
 * programs. For a command that was stopped from outside it throws an `Interrupted` failure of the same shape, so that
 * its output is kept.
 */
export function commandResult(
  { end, left, confined, network }: ConfinedResult,
  told: ResultTexts,
  context: ToolContext,
): Output {
  const { how, durationMs } = end
  const timedOut = how.type === 'timeout'
  const code = how.type === 'exited' ? how.code : null
  const stdout = shortenStream(boundStream(end.stdout, context), told, context)
  const stderr = shortenStream(boundStream(end.stderr, context), told, context)
  const noticed = protectedFields(left)
  const aborted = how.type === 'aborted'
  const late = timedOut
    ? { timed_out: true, timeout_kind: how.kind, message: told.timeoutText(how.kind) }
    : aborted
      ? { interrupted: true, message: stoppedText(durationMs) }
      : {}
  const streams = { stdout: stdout.text, stderr: stderr.text }
  const result = { ...told.asked, ...streams, exit_code: code, success: code === 0, ...late, ...noticed }
  const error = aborted ? 'Interrupted' : timedOut ? 'Timeout' : code === 0 ? null : 'NonZeroExit'
  const metadata: OutputMetadata = {
    exit_code: code,
    timed_out: timedOut,
    duration_ms: durationMs,
    sandboxed: confined,
    network,
    stdout_bytes: end.stdout.bytes,
    stderr_bytes: end.stderr.bytes,
    stdout_truncated: end.stdout.omittedBytes > 0,
    stderr_truncated: end.stderr.omittedBytes > 0,
    stdout_lines: countLines(end.stdout),
    stderr_lines: countLines(end.stderr),
    ...(stdout.blob ? { stdout_blob: stdout.blob } : {}),
    ...(stderr.blob ? { stderr_blob: stderr.blob } : {}),
    ...noticed,
    ...(error ? { error_type: error } : {}),
  }
  if (aborted) throw new ToolFailure('Interrupted', contentOf(result), metadata)
  return output({ content: contentOf(result), metadata })
}

function stoppedText(durationMs: number): string {
  return `Stopped after ${durationMs} ms, with everything the command had started. The output is cut here. It may have taken effect in part; check before repeating it.`
}

export function protectedFields({ changed, setAside, unchecked }: ProtectedChanges): Readonly<Record<string, Json>> {
  const more = [changed, setAside, unchecked].reduce((sum, list) => sum + Math.max(0, list.length - LISTED_MAX), 0)
  return {
    ...(changed.length > 0 ? { protected_changed: changed.slice(0, LISTED_MAX) } : {}),
    ...(setAside.length > 0 ? { protected_set_aside: setAside.slice(0, LISTED_MAX).map((one) => ({ ...one })) } : {}),
    ...(unchecked.length > 0 ? { protected_unchecked: unchecked.slice(0, LISTED_MAX) } : {}),
    ...(more > 0 ? { protected_not_listed: more } : {}),
    ...(setAside.length > 0 ? { advice: ADVICE } : unchecked.length > 0 ? { advice: UNCHECKED } : {}),
  }
}

const ADVICE =
  'Files that programs obey unasked, and folders too many to check for them, were renamed, as no person had allowed them. Ask the user to make them.'
const UNCHECKED = 'Folders could not be checked for files that programs obey unasked. Tell the user.'

/**
 * JSON writes a control character as six characters: of binary output the preview keeps the shape, and the blob keeps
 * the bytes.
 */
function contentOf(result: { readonly stdout: string; readonly stderr: string }): string {
  const content = JSON.stringify(result)
  if (content.length <= CONTENT_CHARACTERS_MAX) return content
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  const plain = (text: string): string => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, '.')
  return JSON.stringify({ ...result, stdout: plain(result.stdout), stderr: plain(result.stderr) })
}

type ShownStream = { readonly text: string; readonly blob: Json | null }

/** Shortens the stream further if the call asked for less; the rest can still be read. */
function shortenStream(shown: ShownStream, { charsMax = null }: ResultTexts, context: ToolContext): ShownStream {
  if (charsMax === null || shown.text.length <= charsMax) return shown
  const { content, metadata } = boundContent(shown.text, context, charsMax)
  return { text: content, blob: shown.blob ?? metadata['blob'] ?? null }
}

/** Counts the kept lines, for people who do not see all of them. */
function countLines({ whole, head }: CapturedStream): number {
  const text = (whole ?? head).trimEnd()
  return text === '' ? 0 : text.split('\n').length
}

/** Both ends were cut before redaction: half of a secret is not recognized. */
function redactEnds(
  { head, tail, whole, lostBytes }: CapturedStream,
  redact: ToolContext['redact'],
): { head: string; tail: string } {
  const redacted = redact(whole ?? head)
  if (redacted === whole && lostBytes === 0) return { head, tail }
  const end = lostBytes === 0 ? redacted.slice(-tail.length) : redact(tail.slice(tail.indexOf('\n') + 1))
  return { head: clip(redacted, head.length), tail: end }
}

function boundStream(captured: CapturedStream, context: ToolContext): ShownStream {
  const { head, bytes, omittedBytes, whole, lostBytes } = captured
  if (whole === null) return { text: context.redact(head), blob: null }
  const blob = context.keep(whole)
  const lost = lostBytes > 0 ? `; the last ${lostBytes} bytes were not kept` : ''
  const notice = `[${omittedBytes} of ${bytes} bytes left out here; ${readOnHint(blob.hash, context.reader)}${lost}]`
  const ends = redactEnds(captured, context.redact)
  return { text: `${ends.head}\n${notice}\n${ends.tail}`, blob: { ...blob } }
}
