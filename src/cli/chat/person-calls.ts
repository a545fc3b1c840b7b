// What the person at a terminal runs and reads without a model: `!command` and `@file`. The tools are those of the folder
// and the policy is obeyed. The log gets what came of it as a part of the person's message, so no replay runs it again.
import { readFileSync, realpathSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { environmentSecrets, type Input, judgeCall, type Tool } from '../../index.ts'
import type { RunningCommand } from '../../tools/index.ts'
import type { Json } from '../../kernel/index.ts'
import { detectMedia } from '../../tools/core/file-part.ts'
import { executeTool, type ToolRunEnd } from '../../tools/core/run-tool.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { outcomeOf, outcomeText, parseOutputFields } from '../present/outcome.ts'
import { approvalForCall, findFolderTool } from '../state/folder-agent.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import { isInside } from '../state/plain-file.ts'
import { PERSON } from './background-commands.ts'
import { PICTURE, sizeText, statFile } from './pictures.ts'
import { standaloneContext } from '../state/standalone-context.ts'

type Parts = Exclude<Extract<Input, readonly unknown[]>, string>

/** A message with what it attaches, and a line for the person about each attachment. */
export type AttachedMessage = { readonly input: Input; readonly lines: readonly string[] }

/** A message has at most this many attachments; later names stay text. */
const ATTACHED_MAX = 20
const MENTION = /(?<=^|\s)@("(?:[^"\\\n]|\\.)*"|[^\s"]+)/gu

/** `before`: output that joins the message. `entered`: what the person typed, where the text is that of a file. */
type AttachOptions = { readonly before?: readonly string[]; readonly entered?: string }

/** Adds the files that a message names with `@`. A name of no file stays text. */
export async function attachFiles(
  setup: FolderSetup,
  text: string,
  { before = [], entered = text }: AttachOptions = {},
): Promise<AttachedMessage> {
  const lines: string[] = []
  const added: Parts[number][] = []
  const own = mentionedPaths(entered)
  for (const path of mentionedPaths(text).slice(0, ATTACHED_MAX)) {
    const found = PICTURE.test(path)
      ? await attachPicture(setup, path, own.includes(path))
      : await attachText(setup, path)
    if (found === null) continue
    lines.push(found.line)
    if (found.part) added.push(found.part)
  }
  if (added.length === 0 && before.length === 0) return { input: text, lines }
  const told = before.map((each) => ({ type: 'text', text: `${each}\n\n` }) as const)
  return { input: [...told, { type: 'text', text }, ...added], lines }
}

function mentionedPaths(text: string): readonly string[] {
  const paths = [...text.matchAll(MENTION)].map(([, said = '']) => (said.startsWith('"') ? unquotePath(said) : said))
  return [...new Set(paths.filter((path) => path !== ''))]
}

function unquotePath(said: string): string {
  try {
    return String(JSON.parse(said))
  } catch {
    return ''
  }
}

type Attachment = { readonly line: string; readonly part?: Parts[number] }

/** The file as the tool `read` gives it, with its limits and the rules for paths. */
async function attachText(setup: FolderSetup, path: string): Promise<Attachment | null> {
  if (statFile(setup.folder, path) === null) return null
  const done = await runForPerson(setup, 'read', { path }, AbortSignal.timeout(READ_MS))
  const name = oneLine(path, 200)
  if (typeof done === 'string') return { line: `@${name}: ${oneLine(done, 300)}` }
  const { ok, content, metadata, parts = [] } = done.output
  if (done.type !== 'ok' || !ok) return { line: `@${name}: ${oneLine(content, 300)}` }
  const [part] = parts
  if (part && part.type !== 'blob')
    return { line: attachedText(name, `${part.media}, ${sizeText(Number(metadata['bytes']))}`), part }
  const shown = Number(metadata['lines'])
  const cut = metadata['truncated'] === true ? ` of ${Number(metadata['total_lines'])}` : ''
  const line = attachedText(name, `${countNoun(shown, 'line')}${cut}`)
  return { line, part: { type: 'text', text: `\n\nThe file ${path}, as the user attached it:\n${content}` } }
}

/** A picture may lie outside of the folder if the person named it; the policy is asked all the same. */
async function attachPicture(setup: FolderSetup, path: string, isEntered: boolean): Promise<Attachment | null> {
  const stat = statFile(setup.folder, path)
  if (stat === null) return null
  const name = oneLine(path, 200)
  const denied = whyOutside(setup.folder, path, isEntered) ?? (await whyDenied(setup, 'read', { path }))
  if (denied !== null) return { line: `@${name}: ${oneLine(denied, 300)}` }
  if (stat.size > PICTURE_BYTES_MAX)
    return { line: `@${name}: It has ${sizeText(stat.size)}, at most 20 MB are taken.` }
  try {
    const data = readFileSync(resolve(setup.folder, path))
    const media = detectMedia(data)
    if (!media?.startsWith('image/'))
      return { line: `@${name}: It is no picture that models take (PNG, JPEG, GIF, WebP).` }
    const line = attachedText(oneLine(basename(path), 200), sizeText(data.length))
    return { line, part: { type: 'image', media, data, name: basename(path) } }
  } catch (error) {
    return { line: `@${name}: ${oneLine(error instanceof Error ? error.message : String(error), 300)}` }
  }
}

/** A link of the folder, and a text that somebody else wrote, lead to no picture of the person. */
function whyOutside(folder: string, path: string, isEntered: boolean): string | null {
  const [root, named] = [realpathSync(folder), resolve(folder, path)]
  if (isInside(root, realpathSync(named))) return null
  if (isInside(folder, named) || isInside(root, named)) return 'It leads out of this folder. Name the picture itself.'
  return isEntered ? null : 'It lies outside of this folder, so only you can attach it: enter its path yourself.'
}

const READ_MS = 30_000
const PICTURE_BYTES_MAX = 20_000_000

const attachedText = (name: string, what: string): string => `+ ${name} · ${what}`

/** What a command of the person printed: for the model, and for the screen. */
export type PersonCommand = {
  readonly told: string
  readonly rows: readonly string[]
  readonly outcome: string
  readonly good: boolean
}

export type CommandListeners = {
  readonly onText: (text: string) => void
  /** The command has started. */
  readonly onRunning: (running: RunningCommand) => void
}

/** Runs a command with the tool `bash`. A text: why it was refused. */
export async function runCommand(
  setup: FolderSetup,
  command: string,
  { signal, ...heard }: CommandListeners & { readonly signal: AbortSignal },
): Promise<PersonCommand | string> {
  const args = { command, soft_timeout_ms: COMMAND_MS, timeout_ms: COMMAND_MS, max_chars: OUTPUT_CHARS_MAX }
  const done = await runForPerson(setup, 'bash', args, signal, heard)
  if (typeof done === 'string') return done
  const { content, metadata } = done.output
  const status = done.type === 'ok' ? 'ok' : 'error'
  const outcome = outcomeOf({
    status,
    content,
    metadata,
    ...(done.type === 'ok' ? {} : { failure: { kind: done.kind, message: content } }),
  })
  const { stdout, stderr, exit_code: code, message } = parseOutputFields(content) ?? {}
  const printed = [stdout, stderr, message].filter(
    (text): text is string => typeof text === 'string' && text.trim() !== '',
  )
  const output = printed.map((text) => text.replace(/\n+$/, '')).join('\n')
  const isSent = metadata['background'] === true
  const end = typeof code === 'number' ? `exit code ${code}` : isSent ? 'it goes on in the background' : 'stopped'
  const told = `I ran this command in the workspace:\n$ ${command}\n${output === '' ? '(no output)' : output}\n(${end})`
  return { told, rows: output === '' ? [] : output.split('\n'), outcome: outcomeText(outcome), good: outcome.good }
}

/** Long enough for a build, and Esc stops it before. */
const COMMAND_MS = 600_000
const OUTPUT_CHARS_MAX = 20_000

/** The call as the folder's own tool makes it. A text: why it was refused. */
async function runForPerson(
  setup: FolderSetup,
  name: string,
  args: Json,
  signal: AbortSignal,
  heard?: CommandListeners,
): Promise<Exclude<ToolRunEnd, { type: 'undecided' }> | string> {
  const tool = await findFolderTool(setup, name, heard ? { onRunning: heard.onRunning } : {})
  const denied = await whyDenied(setup, name, args, tool)
  if (tool === null || denied !== null) return denied ?? ''
  const secrets = Object.entries(environmentSecrets(setup.env))
  const redact = (text: string): string =>
    secrets.reduce((said, [key, value]) => said.replaceAll(value, `⟦secret:${key}⟧`), text)
  const context = { ...standaloneContext(PERSON, signal), redact, tell: (text: string) => heard?.onText(redact(text)) }
  const done = await executeTool(tool, args, context)
  if (done.type === 'undecided') return 'It is not known what came of it.'
  return { ...done, output: { ...done.output, content: redact(done.output.content) } }
}

/** The person asks for the call by typing it, so only what is refused is refused here. */
async function whyDenied(setup: FolderSetup, name: string, args: Json, known?: Tool | null): Promise<string | null> {
  const tool = known === undefined ? await findFolderTool(setup, name) : known
  if (tool === null)
    return name === 'bash'
      ? 'Commands are off here: the configuration has no "bash".'
      : `The configuration of this folder leaves out the tool "${name}".`
  const asked = (await approvalForCall(tool, args)) === 'never' ? 'never' : 'auto'
  const action = { tool: name, args, effect: tool.effect, approval: asked, root: setup.folder } as const
  const judged = await judgeCall(setup.policy, action)
  return judged.type === 'deny' ? judged.reason : null
}
