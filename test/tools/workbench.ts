// A workspace on the real disk with an outside next to it, and a way to call a tool as the harness does. Not a test.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Json } from '../../src/kernel/content.ts'
import { type FileToolsOptions, fileTools } from '../../src/tools/files/file-tools.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { type ToolRunEnd, executeTool } from '../../src/tools/core/run-tool.ts'
import type { ToolContext } from '../../src/tools/core/tool.ts'
import { toolContext } from './context.ts'

export const CANARY = 'nobody touched me\n'

export class Workbench {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-files-')))
  readonly root = join(this.folder, 'ws')
  /** A twin by prefix: `/…/ws` and `/…/ws-evil`. */
  readonly outside = join(this.folder, 'ws-evil')
  readonly blobs = new Map<string, string>()
  #calls = 0

  constructor() {
    mkdirSync(this.root)
    mkdirSync(this.outside)
    writeFileSync(join(this.outside, 'canary.txt'), CANARY)
  }

  get canary(): string {
    return readFileSync(join(this.outside, 'canary.txt'), 'utf8')
  }

  put(path: string, text: string | Buffer): string {
    const file = join(this.root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }

  text(path: string): string {
    return readFileSync(join(this.root, path), 'utf8')
  }

  context(signal = new AbortController().signal): ToolContext {
    this.#calls += 1
    return toolContext({ call: `${this.#calls}.0`, signal, kept: this.blobs })
  }

  tools(options: Partial<FileToolsOptions> = {}) {
    const tools = fileTools({ root: this.root, ...options })
    return async (name: string, args: Json, context = this.context()): Promise<Answer> => {
      const tool = tools.find((one) => one.name === name)
      if (!tool) throw new Error(`no tool ${name}`)
      const checked = await tool.validate(tool.normalise ? tool.normalise(args) : args)
      if (checked.issues) throw new Refused(JSON.stringify(checked.issues))
      const done = await executeTool(tool, checked.value, context)
      if (done.type === 'undecided') throw new Error('only a reconcile is undecided')
      return { ...done.output, kind: done.type === 'failed' ? done.kind : null, attempts: done.attempts }
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The arguments did not pass the schema. */
export class Refused extends Error {}

type Failed = Extract<ToolRunEnd, { type: 'failed' }>
export type Answer = Output & { readonly kind: Failed['kind'] | null; readonly attempts: number }
