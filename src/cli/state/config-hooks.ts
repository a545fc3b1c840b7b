// `hooks` of the configuration: programs of the user that are asked about messages, calls and ends of runs. Each gets what
// happens as JSON on its standard input; its exit code is the answer. A person is shown all of them before the first use.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Hook } from '../../index.ts'
import { isChildId } from '../../view/ids.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { CliError, EXIT } from '../exit.ts'
import { terretCommand, warn } from '../present/print.ts'
import { type Environment, type Home, makeHome, replaceHomeFile } from './cli-home.ts'
import type { HookEntry } from './config.ts'
import { isInside, readPlainFile } from './plain-file.ts'

/** A hook with the file that it stands in. */
export type FolderHook = HookEntry & { readonly file: string }
type HookPlace = { readonly folder: string; readonly env: Environment; readonly hooks: readonly FolderHook[] }

const TIMEOUT_MS = 60_000
const OUTPUT_CHARS_MAX = 16_000

/** As the harness asks them. Only the agents that work for the person directly are asked about messages and ends. */
export function configHooks({ folder, env, hooks }: HookPlace): readonly Hook[] {
  return hooks.map((entry): Hook => {
    const ask = (fields: object): Promise<HookEnd> => runHook(entry, { folder, env }, fields)
    const { tools } = entry
    const about = tools === undefined ? {} : { tools }
    switch (entry.on) {
      case 'before_tool_call':
        return {
          type: entry.on,
          ...about,
          run: async ({ session, agent, call, tool, args }) => refusal(await ask({ session, agent, call, tool, args })),
        }
      case 'after_tool_call':
        return {
          type: entry.on,
          ...about,
          run: async ({ session, agent, call, tool, args, output }) => {
            const { ok, content } = output
            const end = await ask({ session, agent, call, tool, args, output: { ok, content } })
            if (end.code === 0) return undefined
            return { ...output, content: `${content}\n\n[A hook of the user says: ${end.said}]` }
          },
        }
      case 'user_prompt_submit':
        return {
          type: entry.on,
          run: async ({ session, agent, prompt }) => {
            if (isChildId(session)) return undefined
            const end = await ask({ session, agent, prompt })
            if (end.code !== 0) warn(oneLine(`The hook "${entry.command}" refused the message: ${end.said}`, 600))
            return refusal(end) ?? (end.printed === '' ? undefined : { context: end.printed })
          },
        }
      default:
        return {
          type: 'run_end',
          run: async ({ session, agent, result }) => {
            if (isChildId(session)) return
            const text = result.status === 'completed' ? result.text : ''
            const end = await ask({ session, agent, status: result.status, text })
            if (end.code !== 0) warn(oneLine(`The hook "${entry.command}" failed: ${end.said}`, 600))
          },
        }
    }
  })
}

function refusal({ code, said }: HookEnd): { readonly cancel: string } | undefined {
  return code === 0 ? undefined : { cancel: said }
}

/** `said`: why it does not agree. `printed`: its standard output. */
type HookEnd = { readonly code: number | null; readonly printed: string; readonly said: string }

/** Runs the program with the rights of the user. One that cannot be run, or takes too long, does not agree. */
function runHook(
  { on, command, timeoutMs = TIMEOUT_MS }: FolderHook,
  { folder, env }: Omit<HookPlace, 'hooks'>,
  fields: object,
): Promise<HookEnd> {
  return new Promise((done) => {
    const child = spawn('/bin/sh', ['-c', command], { cwd: folder, env, detached: true, stdio: 'pipe' })
    let [out, err, late] = ['', '', false]
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out = (out + text).slice(-OUTPUT_CHARS_MAX)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err = (err + text).slice(-OUTPUT_CHARS_MAX)))
    // Who does not read what happened may end before all of it was written.
    child.stdin.on('error', () => {})
    child.stdin.end(`${JSON.stringify({ on, folder, ...fields })}\n`)
    const timer = setTimeout(() => {
      late = true
      killGroup(child.pid)
    }, timeoutMs)
    const end = (code: number | null, why: string): void => {
      clearTimeout(timer)
      const said = err.trim() || out.trim() || why
      done({ code, printed: out.trim(), said: late ? `It took longer than ${timeoutMs} ms.` : said })
    }
    child.once('error', (error) => end(null, error.message))
    child.once('close', (code) => end(late ? null : code, `"${command}" ended with ${code ?? 'a signal'}.`))
  })
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {}
}

/** The files in the folder that the hooks name. Who changes one of them decides what a hook does. */
export function filesOfHooks(folder: string, hooks: readonly FolderHook[]): readonly string[] {
  const words = hooks.flatMap(({ command }) => command.split(/[\s'"=;|&<>()]+/))
  const named = [...new Set(words)].filter((word) => word !== '').map((word) => resolve(folder, word))
  return named.filter((path) => isInside(folder, path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true)
}

// ── shown before the first use ──

/** The lines that show the hooks that this user was never shown. Empty: all were. */
export function unseenHookLines(home: Home, hooks: readonly FolderHook[]): readonly string[] {
  const seen = new Set(readSeen(home))
  const files = [...new Set(hooks.map(({ file }) => file))].filter((file) => !seen.has(digestOf(hooks, file)))
  return files.flatMap((file) => [
    `Hooks in ${clean(file)}, which run with your rights, outside of the sandbox:`,
    ...hooks.filter((hook) => hook.file === file).map(hookLine),
  ])
}

function hookLine({ on, tools, command }: HookEntry): string {
  return `  ${on}${tools === undefined ? '' : ` (${tools.map((tool) => oneLine(tool, 60)).join(', ')})`}: ${oneLine(command, 2_000)}`
}

export function rememberHooks(home: Home, hooks: readonly FolderHook[]): void {
  const shown = hooks.map(({ file }) => digestOf(hooks, file))
  makeHome(home)
  const seen = [...new Set([...readSeen(home), ...shown])]
  replaceHomeFile(home, home.hooks, `${JSON.stringify({ version: 1, seen }, null, 2)}\n`)
}

/** Shows hooks that were never shown, and remembers them: a person asked for it by `trust`. */
export function showHooks(home: Home, hooks: readonly FolderHook[]): void {
  const lines = unseenHookLines(home, hooks)
  if (lines.length === 0) return
  for (const line of lines) warn(line)
  rememberHooks(home, hooks)
}

export function refuseUnseenHooks(home: Home, hooks: readonly FolderHook[]): void {
  const [first] = unseenHookLines(home, hooks)
  if (first === undefined) return
  const { file } = hooks.find((hook) => first.includes(clean(hook.file))) ?? { file: '' }
  throw new CliError(
    EXIT.config,
    `The hooks in ${file} are new. \`${terretCommand`trust`}\` shows them, and lets them run.`,
  )
}

function digestOf(hooks: readonly FolderHook[], file: string): string {
  const own = hooks.filter((hook) => hook.file === file)
  return createHash('sha256').update(JSON.stringify(own)).digest('hex')
}

function readSeen({ hooks }: Home): readonly string[] {
  const text = readPlainFile(hooks)
  if (text === null) return []
  try {
    const value: unknown = JSON.parse(text)
    const seen = isObject(value) && value['version'] === 1 ? value['seen'] : null
    if (Array.isArray(seen) && seen.every((each) => typeof each === 'string')) return seen
  } catch {}
  throw new CliError(EXIT.config, `${hooks} cannot be read. Repair it, or remove it to be shown the hooks anew.`)
}
