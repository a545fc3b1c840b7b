// A stage for tests of confined commands: a workspace, a home with secrets, a folder outside, and a context that keeps blobs.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bashTool, type BashArgs, type BashOptions } from '../../src/tools/shell/bash.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { findSandbox } from '../../src/tools/shell/sandbox.ts'
import type { ToolContext } from '../../src/tools/core/tool.ts'
import { toolContext } from './context.ts'

/** Sandbox tests need bubblewrap. The CI installs it; elsewhere its absence is a named skip. */
export const noBubblewrap = findSandbox('/tmp').type === 'none'
if (noBubblewrap && process.env['TERRET_REQUIRE_SANDBOX'])
  throw new Error('bubblewrap is missing, and its tests may not be skipped here')

export type Result = {
  readonly command: string
  readonly shell: string
  readonly stdout: string
  readonly stderr: string
  readonly exit_code: number | null
  readonly success: boolean
  readonly timed_out?: boolean
  readonly timeout_kind?: string
  readonly message?: string
  readonly protected_changed?: readonly string[]
  readonly protected_not_listed?: number
  readonly protected_set_aside?: readonly { readonly path: string; readonly now: string }[]
}

export class Box {
  /** Not in /tmp, which is another folder inside the sandbox: what a command writes outside must really be refused. */
  readonly root = realpathSync(mkdtempSync('/var/tmp/terret-box-'))
  readonly workspace = join(this.root, 'ws')
  readonly home = join(this.root, 'home')
  readonly outside = join(this.root, 'outside')
  readonly kept = new Map<string, string>()

  constructor() {
    for (const folder of [this.workspace, this.home, this.outside]) mkdirSync(folder)
    writeFileSync(join(this.outside, 'canary'), 'alive')
  }

  /** A file below the box, with its folders. */
  write(path: string, text: string): string {
    const whole = join(this.root, path)
    mkdirSync(join(whole, '..'), { recursive: true })
    writeFileSync(whole, text)
    return whole
  }

  context(signal = new AbortController().signal): ToolContext {
    return toolContext({ signal, kept: this.kept })
  }

  async output(args: BashArgs, options: Partial<BashOptions> = {}, signal?: AbortSignal): Promise<Output> {
    const env = { ...process.env, HOME: this.home }
    const tool = bashTool({ workspace: this.workspace, env, ...options })
    return (await tool.execute(args, this.context(signal))) as Output
  }

  async run(command: string, more: Partial<BashArgs> = {}, options: Partial<BashOptions> = {}): Promise<Result> {
    return JSON.parse((await this.output({ command, ...more }, options)).content) as Result
  }

  close(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** The pids of living processes whose command line holds the text, from the process table. */
export function processesWith(text: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })
    .map(Number)
}
