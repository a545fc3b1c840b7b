// Tools as they are often written: each lacks one defence, and the controls use it instead of the real tool.
// Do not copy anything from here; nothing here runs outside of a world made for it.
import { spawn } from 'node:child_process'
import { createReadStream, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { z } from 'zod'
import { defineTool, type Tool } from '../../src/index.ts'
import { sleep, type World } from './world.ts'

/** Is the path within the root? Each answer is one that was shipped somewhere. */
export type Check = (root: string, path: string) => boolean

/** It does not ask. */
export const unchecked: Check = () => true
/** By characters: `/ws-evil` begins with `/ws`. */
export const byPrefix: Check = (root, path) => path.startsWith(root)
/** By segments, and links are not looked at. */
export const lexical: Check = (root, path) => path === root || path.startsWith(root + sep)
/** Links are resolved if the path exists; what does not is taken at its word. */
export const ifThere: Check = (root, path) => {
  try {
    return lexical(root, realpathSync(path))
  } catch {
    return lexical(root, path)
  }
}
/** Right, but at the moment of looking, and with no thought of what the file is. */
export const atFirst: Check = (root, path) => {
  for (let existing = path; ; existing = dirname(existing)) {
    try {
      return lexical(root, realpathSync(existing))
    } catch {
      if (existing === dirname(existing)) return false
    }
  }
}

/** The file tools by the names of the real ones, so that the same script plays against both. */
export function naiveFiles(world: World, check: Check, pauseMs = 0): readonly Tool[] {
  /** What was checked is used a little later. */
  const at = async (path: string): Promise<string> => {
    const whole = resolve(world.workspace, path)
    if (!check(world.workspace, whole)) throw new Error('outside')
    if (pauseMs > 0) await sleep(pauseMs)
    return whole
  }
  const path = z.string()
  return [
    defineTool({
      name: 'read',
      description: 'read',
      input: z.object({ path, limit: z.number().optional() }),
      execute: async (args) => readFile(await at(args.path), 'utf8'),
    }),
    defineTool({
      name: 'write',
      description: 'write',
      input: z.object({ path, content: z.string(), append: z.boolean().optional() }),
      execute: async (args) => {
        const whole = await at(args.path)
        mkdirSync(dirname(whole), { recursive: true })
        await (args.append ? appendFile(whole, args.content) : writeFile(whole, args.content))
        return 'written'
      },
    }),
    defineTool({
      name: 'edit',
      description: 'edit',
      input: z.object({ path, old_string: z.string(), new_string: z.string() }),
      execute: async (args) => {
        const whole = await at(args.path)
        await writeFile(whole, (await readFile(whole, 'utf8')).replace(args.old_string, args.new_string))
        return 'edited'
      },
    }),
    defineTool({
      name: 'list',
      description: 'list',
      input: z.object({ path }),
      execute: async (args) => readdir(await at(args.path)),
    }),
    ...naiveSearches(world, at),
  ]
}

function naiveSearches(world: World, at: (path: string) => Promise<string>): readonly Tool[] {
  const find = (args: readonly string[]) => ripgrep(world, ['--follow', '--hidden', '--no-ignore', ...args])
  const optional = z.string().optional()
  return [
    defineTool({
      name: 'search',
      description: 'search',
      input: z.object({ pattern: z.string(), path: optional }),
      execute: async ({ pattern, path = '.' }) => find(['--', pattern, await at(path)]),
    }),
    defineTool({
      name: 'glob',
      description: 'glob',
      input: z.object({ pattern: z.string(), path: optional }),
      execute: async ({ pattern, path = '.' }) => find(['--files', `--glob=${pattern}`, '--', await at(path)]),
    }),
    defineTool({
      name: 'jsonl_search',
      description: 'jsonl_search',
      input: z.object({ path: z.string() }),
      execute: async ({ path }) => find(['--', '', await at(path.includes('*') ? dirname(path) : path)]),
    }),
  ]
}

/** The bundled ripgrep with arguments as they come. */
export async function ripgrep(world: World, args: readonly string[], cwd = world.workspace): Promise<string> {
  const { rgPath } = await import('@vscode/ripgrep')
  return output(world, rgPath, args, { cwd })
}

/** One command line in a shell. */
export function shell(world: World, command: string): Promise<string> {
  return output(world, '/bin/bash', ['-c', command], { cwd: world.workspace })
}

type Place = { readonly cwd: string; readonly env?: NodeJS.ProcessEnv }

/** Everything it says, until it exits. The process ends with the world. */
function output(world: World, file: string, args: readonly string[], place: Place): Promise<string> {
  const child = spawn(file, [...args], { ...place, stdio: ['ignore', 'pipe', 'pipe'] })
  world.defer(() => child.kill('SIGKILL'))
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  return new Promise((done, fail) => {
    child.once('error', fail)
    const end = (): void => done(Buffer.concat(chunks).toString())
    child.once('close', end)
    // What a command leaves behind may keep the output open.
    child.once('exit', () => setTimeout(end, 1_000))
  })
}

/** `bash` without a sandbox: the environment of the harness, no limit, and only the shell itself is waited for. */
export function naiveBash(world: World, env: NodeJS.ProcessEnv = {}): Tool {
  const place = { cwd: world.workspace, env: { ...process.env, HOME: world.home, ...env } }
  return defineTool({
    name: 'bash',
    description: 'bash',
    input: z.object({
      command: z.string(),
      network: z.boolean().optional(),
      soft_timeout_ms: z.number().optional(),
      timeout_ms: z.number().optional(),
    }),
    // A shell in between: a command that kills its parent must not kill this process.
    execute: ({ command }) => output(world, '/bin/bash', ['-c', '/bin/bash -c "$0"; exit $?', command], place),
  })
}

/** As in a harness that bounds nothing either: what the tool hands over is what the model would be shown. */
export function handedOver(world: World, tool: Tool): Tool {
  const execute: Tool['execute'] = async (args, context) => {
    const given: unknown = await tool.execute(args, context)
    world.shown += typeof given === 'string' ? given : JSON.stringify(given)
    return given
  }
  return { ...tool, execute }
}

/** Reads to the end, however far that is. */
export function naiveReader(world: World): Tool {
  return defineTool({
    name: 'read',
    description: 'read',
    input: z.object({ path: z.string() }),
    execute: ({ path }, { signal }) =>
      new Promise((done, fail) => {
        let lines = 0
        const stream = createReadStream(join(world.workspace, path), { signal })
        world.defer(() => stream.destroy())
        stream.on('data', (chunk) => (lines += chunk.length))
        stream.once('error', fail).once('close', () => done(`${basename(path)}: ${lines}`))
      }),
  })
}

/** The whole text of a file, for tools that look into it. */
export function bytesOf(world: World, path: string): string {
  return readFileSync(join(world.workspace, path), 'utf8')
}
