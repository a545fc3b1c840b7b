// What a desktop editor offers an agent, for tests: files that may have changes which are not saved, and terminals that run real processes.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type ClientApp, type ClientCapabilities, methods, RequestError } from '@agentclientprotocol/sdk'

type Terminal = { readonly child: ChildProcess; readonly ended: Promise<number | null>; output: string }

export class Desktop {
  readonly capabilities: ClientCapabilities = {
    fs: { readTextFile: true, writeTextFile: true },
    terminal: true,
  }
  /** Texts that are open and not saved, by path. */
  readonly unsaved = new Map<string, string>()
  readonly asked: string[] = []
  readonly commands: string[][] = []
  readonly released: string[] = []
  /** Set by a test: what the editor does to a text as it saves it. */
  format: (text: string) => string = (text) => text
  /** It does not kill, nor say when a program ended. */
  isDeaf = false
  /** It starts no terminal. */
  refuses = false
  readonly #terminals = new Map<string, Terminal>()

  readonly offer = (app: ClientApp): void => {
    const { fs, terminal } = methods.client
    app
      .onRequest(fs.readTextFile, ({ params: { path } }) => {
        this.asked.push(`read ${path}`)
        const open = this.unsaved.get(path)
        if (open === undefined && !existsSync(path)) throw RequestError.resourceNotFound(path)
        return { content: open ?? readFileSync(path, 'utf8') }
      })
      .onRequest(fs.writeTextFile, ({ params: { path, content } }) => {
        this.asked.push(`write ${path}`)
        this.unsaved.delete(path)
        writeFileSync(path, this.format(content))
        return {}
      })
      .onRequest(terminal.create, ({ params: { command, args = [], cwd } }) => {
        if (this.refuses) throw RequestError.invalidParams(undefined, 'no terminals today')
        const id = `terminal-${this.#terminals.size + 1}`
        this.commands.push([command, ...args])
        const child = spawn(command, args, { ...(cwd ? { cwd } : {}), stdio: ['ignore', 'pipe', 'pipe'] })
        const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
        const made: Terminal = { child, ended, output: '' }
        const hear = (chunk: Buffer): void => {
          made.output += chunk.toString()
        }
        child.stdout.on('data', hear)
        child.stderr.on('data', hear)
        this.#terminals.set(id, made)
        return { terminalId: id }
      })
      .onRequest(terminal.output, ({ params: { terminalId } }) => ({
        output: this.terminal(terminalId).output,
        truncated: false,
      }))
      .onRequest(terminal.waitForExit, async ({ params: { terminalId } }) => {
        if (this.isDeaf) await new Promise(() => {})
        return { exitCode: await this.terminal(terminalId).ended }
      })
      .onRequest(terminal.kill, ({ params: { terminalId } }) => {
        if (!this.isDeaf) this.terminal(terminalId).child.kill('SIGTERM')
        return {}
      })
      .onRequest(terminal.release, ({ params: { terminalId } }) => {
        this.released.push(terminalId)
        this.terminal(terminalId).child.kill('SIGTERM')
        return {}
      })
  }

  get terminals(): readonly Terminal[] {
    return [...this.#terminals.values()]
  }

  terminal(id: string): Terminal {
    const found = this.#terminals.get(id)
    if (!found) throw RequestError.resourceNotFound(id)
    return found
  }
}
