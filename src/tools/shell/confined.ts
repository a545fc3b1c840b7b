// Running one program for a tool: in the sandbox where there is one, with what it said bounded and its end as data.
// It knows no tool. What is run, and what the model is told about it, is the tool's; so is what it says without a sandbox.
import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Json } from '../../kernel/content.ts'
import { callable, type Check, type Checks, count, filled, flag, listOf, needed, record } from '../../options.ts'
import { type Aftermath, aftermath, type Before, glimpse, leadsTo } from './protected-after.ts'
import { bound, clip, readOn } from '../core/bound.ts'
import { homeView } from './home.ts'
import type { Captured } from './capture.ts'
import { type Metadata, type Output, output, ToolFailure } from '../core/output.ts'
import * as sandboxes from './sandbox.ts'
import type { Sandbox } from './sandbox.ts'
import { selfTest } from './sandbox-check.ts'
import { FOLDERS_MAX, isProtectedName, type Look, lookAround, NOTHING_SEEN } from './protected-before.ts'
import { type ChildEnd, type ChildOrder, runChild, type Stream } from './spawn.ts'
import type { ToolRoot } from '../core/context.ts'
import type { Approval, Tool, ToolContext } from '../core/tool.ts'

export type ConfinedOptions = {
  readonly workspace: string
  /** Default: what `findSandbox` finds. */
  readonly sandbox?: Sandbox
  /** Can a person be asked? Without a sandbox nothing is run if not. Default: standard input is a terminal. */
  readonly attended?: boolean
  /** Relative to the workspace; default: what `lookAround` finds. */
  readonly protectedPaths?: readonly string[]
  /** More files and folders that your program obeys: no command that nobody allowed changes them. From the workspace or absolute. */
  readonly obeyed?: readonly string[]
  /** How many folders of the workspace are looked into for them. In a larger one a person must allow each call. Default 50,000. */
  readonly foldersMax?: number
  /** More to hide than the usual secrets and what is the harness's own. Absolute. */
  readonly masked?: readonly string[]
  /** More to show of the home folder than the programs that tools need. Read-only. Absolute. */
  readonly readable?: readonly string[]
  /** Where the allowed variables are read from; default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Names of more variables to let through, such as `JAVA_HOME`. Default none. */
  readonly variables?: readonly string[]
  /** Lets commands open unix sockets, and with them reach those of the host that lie in no hidden folder. Default false. */
  readonly localSockets?: boolean
  /** Runs the program elsewhere than in this process, such as in a terminal of an editor: the whole order, with its walls and limits. */
  readonly launch?: (order: ChildOrder, context: ToolContext) => Promise<ChildEnd>
}

const sandboxCheck: Check = (value) => {
  const { type } = (value ?? {}) as Partial<Sandbox>
  return type === 'bwrap' || type === 'none'
    ? null
    : 'is no sandbox: leave it out, and the one of this machine is found'
}

export const CONFINED_OPTIONS: Checks<ConfinedOptions> = {
  workspace: needed(filled),
  sandbox: sandboxCheck,
  attended: flag,
  protectedPaths: listOf(filled),
  obeyed: listOf(filled),
  masked: listOf(filled),
  readable: listOf(filled),
  env: record,
  variables: listOf(filled),
  localSockets: flag,
  foldersMax: count(1),
  launch: callable,
}

/** The options with everything found out that does not change from call to call. */
export type Ground = ConfinedOptions & {
  readonly sandbox: Sandbox
  readonly attended: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly foldersMax: number
  /** What the last look found. It makes the next one faster. */
  readonly last: { look: Look }
}

export type Errand = {
  /** The program and its arguments. No shell reads them. */
  readonly argv: readonly string[]
  readonly network: boolean
  readonly softMs: number
  readonly hardMs: number
  /** Folders that must be seen, read-only, wherever they are. */
  readonly shown?: readonly string[]
  /** Beside the allowed variables, inside the sandbox only. */
  readonly variables?: Readonly<Record<string, string>>
  readonly onChunk?: (stream: Stream, chunk: Uint8Array) => void
}

export type Ran = {
  readonly end: ChildEnd & { readonly how: Exclude<ChildEnd['how'], { type: 'unstarted' }> }
  /** At protected places. */
  readonly left: Aftermath
  readonly confined: boolean
  readonly network: boolean
}

export const HARD_MS_MAX = 600_000
const STARTS_MAX = 4
const NAMED_MAX = 50
const HELD_MAX = 300
/** How many paths of a kind a result tells. */
const LISTED_MAX = 50
const PREVIEW_BYTES_MAX = 50_000
const WHOLE_BYTES_MAX = 8_000_000
const CONTENT_CHARACTERS_MAX = 4 * PREVIEW_BYTES_MAX

export function groundOf<Options extends ConfinedOptions>(options: Options): Options & Ground {
  const { env = process.env, attended = process.stdin.isTTY === true, foldersMax = FOLDERS_MAX } = options
  const sandbox = options.sandbox ?? sandboxes.findSandbox(options.workspace, env)
  return { ...options, env, attended, sandbox, foldersMax, last: { look: NOTHING_SEEN } }
}

/** A tool that runs programs, made again for another folder. It has no way to hold a program to a few paths, so there is none with claims. */
export function inFolder<Options extends ConfinedOptions>(options: Options, make: (options: Options) => Tool) {
  return ({ folder = options.workspace, claims }: ToolRoot): Tool | null =>
    claims ? null : make({ ...options, workspace: folder })
}

/** What an approval is bound to: the folder, how it is confined, and the variables that lead to other programs and files. */
export function placeOf({
  workspace,
  sandbox,
  masked = [],
  readable = [],
  protectedPaths,
  localSockets = false,
  variables = [],
  env,
}: Ground): Readonly<Record<string, Json>> {
  const { PATH = null, HOME = null, TMPDIR = null } = env
  const confined = { sandbox: sandbox.type, masked, readable, protectedPaths: protectedPaths ?? null, localSockets }
  const passed = variables.map((name) => [name, env[name] ?? null])
  return { workspace: realpathSync(workspace), ...confined, PATH, HOME, TMPDIR, variables: passed }
}

/**
 * What a call needs because of where it runs, whatever it does. Without a sandbox no rule waves it through, and where no person can be
 * asked it is refused. In a workspace that is too large to be checked afterwards a person must allow it.
 */
export function approvalOfGround(ground: Ground): Approval {
  const { sandbox, attended, last, workspace, foldersMax } = ground
  if (sandbox.type === 'none') return attended ? 'always' : 'never'
  if (!last.look.partly) return 'auto'
  // Looked at once more: it may have been tidied up since.
  return look(ground, realpathSync(workspace), { now: 0, foldersMax }).partly ? 'always' : 'auto'
}

/** For a description: loud, so that neither the model nor a reader of its tools can miss it. Null if there is a sandbox. */
export function warning({ sandbox, attended }: Ground): string | null {
  if (sandbox.type !== 'none') return null
  const then = attended ? 'a person is asked for every call' : 'nobody can be asked here: every call is refused'
  return `WARNING: NOT SANDBOXED (${sandbox.reason}). It has all rights of the user, and ${then}.`
}

/** A program that fails is a result. Throws only if it was not run. */
export async function runConfined(errand: Errand, ground: Ground, context: ToolContext): Promise<Ran> {
  for (let starts = 1; ; starts++) {
    const { order, before } = await prepare(errand, ground, context)
    const end = await (ground.launch ? ground.launch(order, context) : runChild(order, context.clock))
    // A file that was to be hidden may be gone by now, and then the walls do not stand. Nothing of the command has run.
    const again = end.how.type === 'unstarted' && before !== null && starts < STARTS_MAX
    if (again) continue
    if (before === null) return ran(end, NOTHING_LEFT, { errand, ground })
    const after = look(ground, order.cwd, {
      now: context.clock.now(),
      foldersMax: before.look.folders.size + ground.foldersMax,
    })
    return ran(end, aftermath(before, after, context.approved), { errand, ground })
  }
}

const NOTHING_LEFT: Aftermath = { changed: [], setAside: [], unchecked: [] }

function ran(
  end: ChildEnd,
  left: Aftermath,
  { errand, ground }: { readonly errand: Errand; readonly ground: Ground },
): Ran {
  const { how } = end
  if (how.type === 'unstarted') {
    throw new ToolFailure('Unavailable', `The command was not run: ${how.message || 'it did not start.'}`)
  }
  const confined = ground.sandbox.type !== 'none'
  return { end: { ...end, how }, left, confined, network: !confined || errand.network }
}

/** Without a sandbox, what a command leaves is not looked at: each command was allowed. */
type Prepared = { readonly order: ChildOrder; readonly before: Before | null }

async function prepare(errand: Errand, ground: Ground, context: ToolContext): Promise<Prepared> {
  const { sandbox, env: source } = ground
  const { softMs, hardMs, onChunk, argv } = errand
  const workspace = realpathSync(ground.workspace)
  const env = sandboxes.allowedEnvironment(source, ground.variables)
  const limits = { previewBytesMax: PREVIEW_BYTES_MAX, wholeBytesMax: WHOLE_BYTES_MAX }
  const { signal } = context
  const frame = { cwd: workspace, env, signal, limits, softMs, hardMs, ...(onChunk ? { onChunk } : {}) }
  if (sandbox.type === 'none') {
    const [file = '', ...args] = argv
    return { order: { ...frame, file, args, namespaced: false }, before: null }
  }
  const verdict = await selfTest(sandbox.path, context.clock)
  if (verdict.type === 'unsound') {
    throw new ToolFailure('Unavailable', `The sandbox does not hold, so nothing is run in it: ${verdict.reason}.`)
  }
  const seen = look(ground, workspace, { now: context.clock.now(), foldersMax: ground.foldersMax })
  if (seen.partly && !context.approved) throw new ToolFailure('Denied', tooLarge(ground))
  const { closed, told } = closedOf([...seen.paths])
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
  const { args, filter, links } = sandboxes.raiseWalls(confinement, verdict.features)
  const wrapped = [...args, ...sandboxes.heldBack(argv)]
  const order = { ...frame, file: sandbox.path, args: wrapped, filter, namespaced: true }
  const looked = new Map(told.map((path) => [join(workspace, path), glimpse(join(workspace, path))]))
  const led = new Map(links.map((link) => [link, leadsTo(link)]))
  return { order, before: { workspace, look: seen, told: looked, links: led } }
}

function tooLarge({ foldersMax }: Ground): string {
  return `Nothing was run: the workspace has more than ${foldersMax} folders, so what a command leaves at protected places cannot be checked, and a person must allow each one. Call it again to have a person asked, or work in a smaller folder.`
}

/** What is protected and there. */
function look(ground: Ground, workspace: string, bounds: { readonly now: number; readonly foldersMax: number }): Look {
  const { protectedPaths, last } = ground
  if (protectedPaths) {
    return { ...NOTHING_SEEN, paths: new Set(protectedPaths.filter((path) => existsSync(join(workspace, path)))) }
  }
  last.look = lookAround(workspace, last.look, bounds)
  const { obeyed = [] } = ground
  if (obeyed.length === 0) return last.look
  const named = obeyed.map((path) => relative(workspace, resolve(workspace, path)))
  const inside = named.filter((path) => path !== '' && !path.startsWith('..') && existsSync(join(workspace, path)))
  return { ...last.look, paths: new Set([...last.look.paths, ...inside]) }
}

/** Each mount makes the next one slower. What git obeys is closed all the same; of the rest only what is nearest to the top. */
function closedOf(paths: readonly string[]): { readonly closed: readonly string[]; readonly told: readonly string[] } {
  const isNamed = (path: string): boolean => isProtectedName(basename(path), dirname(path))
  const depth = (path: string): number => path.split('/').length
  const named = paths.filter(isNamed).sort((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1))
  return {
    closed: [...gathered(paths.filter((path) => !isNamed(path))), ...named.slice(0, NAMED_MAX)],
    told: named.slice(NAMED_MAX),
  }
}

/** Of a repository with very many others in it the folders that hold those are closed as a whole. */
function gathered(paths: readonly string[]): readonly string[] {
  const holderOf = (path: string): string => HOLDER.exec(path)?.[0] ?? path
  const held = new Map<string, number>()
  for (const holder of paths.map(holderOf)) held.set(holder, (held.get(holder) ?? 0) + 1)
  const close = (path: string): string => ((held.get(holderOf(path)) ?? 0) > HELD_MAX ? holderOf(path) : path)
  return [...new Set(paths.map(close))]
}

const HOLDER = /^(?:.*?\/)?\.git\/(?:modules|worktrees)(?=\/)/i

export type Told = {
  /** What was run, in the tool's own words: the first fields of the result. */
  readonly asked: Readonly<Record<string, Json>>
  readonly timeoutText: (kind: 'soft' | 'hard') => string
  /** How much of each stream is shown at most, if less than always. */
  readonly charsMax?: number | null
}

/**
 * The one shape of a result: JSON for the model with both streams and the exit code; metadata for people and programs. A command
 * that was stopped from outside throws an `Interrupted` failure of the same shape, so that what it had printed is kept.
 */
export function resultOf({ end, left, confined, network }: Ran, told: Told, context: ToolContext): Output {
  const { how, durationMs } = end
  const timedOut = how.type === 'timeout'
  const code = how.type === 'exited' ? how.code : null
  const stdout = lowered(bounded(end.stdout, context), told, context)
  const stderr = lowered(bounded(end.stderr, context), told, context)
  const noticed = noticedOf(left)
  const aborted = how.type === 'aborted'
  const late = timedOut
    ? { timed_out: true, timeout_kind: how.kind, message: told.timeoutText(how.kind) }
    : aborted
      ? { interrupted: true, message: stoppedText(durationMs) }
      : {}
  const streams = { stdout: stdout.text, stderr: stderr.text }
  const result = { ...told.asked, ...streams, exit_code: code, success: code === 0, ...late, ...noticed }
  const error = aborted ? 'Interrupted' : timedOut ? 'Timeout' : code === 0 ? null : 'NonZeroExit'
  const metadata: Metadata = {
    exit_code: code,
    timed_out: timedOut,
    duration_ms: durationMs,
    sandboxed: confined,
    network,
    stdout_bytes: end.stdout.bytes,
    stderr_bytes: end.stderr.bytes,
    stdout_truncated: end.stdout.omittedBytes > 0,
    stderr_truncated: end.stderr.omittedBytes > 0,
    stdout_lines: linesIn(end.stdout),
    stderr_lines: linesIn(end.stderr),
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

function noticedOf({ changed, setAside, unchecked }: Aftermath): Readonly<Record<string, Json>> {
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

/** JSON writes a control character as six: of binary output the preview keeps the shape, and the blob the bytes. */
function contentOf(result: { readonly stdout: string; readonly stderr: string }): string {
  const content = JSON.stringify(result)
  if (content.length <= CONTENT_CHARACTERS_MAX) return content
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  const plain = (text: string): string => text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, '.')
  return JSON.stringify({ ...result, stdout: plain(result.stdout), stderr: plain(result.stderr) })
}

type Shown = { readonly text: string; readonly blob: Json | null }

/** Asked for less: what is left out can still be read. */
function lowered(shown: Shown, { charsMax = null }: Told, context: ToolContext): Shown {
  if (charsMax === null || shown.text.length <= charsMax) return shown
  const { content, metadata } = bound(shown.text, context, charsMax)
  return { text: content, blob: shown.blob ?? metadata['blob'] ?? null }
}

/** Lines of what was kept: people are told how many there are where not all are shown. */
function linesIn({ whole, head }: Captured): number {
  const text = (whole ?? head).trimEnd()
  return text === '' ? 0 : text.split('\n').length
}

/** Both ends were cut before anything was redacted: half of a secret is not recognized. */
function endsOf(
  { head, tail, whole, lostBytes }: Captured,
  redact: ToolContext['redact'],
): { head: string; tail: string } {
  const redacted = redact(whole ?? head)
  if (redacted === whole && lostBytes === 0) return { head, tail }
  const end = lostBytes === 0 ? redacted.slice(-tail.length) : redact(tail.slice(tail.indexOf('\n') + 1))
  return { head: clip(redacted, head.length), tail: end }
}

function bounded(captured: Captured, context: ToolContext): Shown {
  const { head, bytes, omittedBytes, whole, lostBytes } = captured
  if (whole === null) return { text: context.redact(head), blob: null }
  const blob = context.keep(whole)
  const lost = lostBytes > 0 ? `; the last ${lostBytes} bytes were not kept` : ''
  const notice = `[${omittedBytes} of ${bytes} bytes left out here; ${readOn(blob.hash, context.reader)}${lost}]`
  const ends = endsOf(captured, context.redact)
  return { text: `${ends.head}\n${notice}\n${ends.tail}`, blob: { ...blob } }
}
