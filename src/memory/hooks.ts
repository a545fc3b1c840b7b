// Memory for a harness, as hooks: recall when a run begins, learn and write the runtime files when a session rests. None of them
// fails a run, and none delays one for longer than it may.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Hook } from '../riders/hooks/hooks.ts'
import { alsoWhenWoken, bindable } from '../riders/hooks/bound.ts'
import { backgroundOf } from './background.ts'
import { filesHook, Folder, Views } from './files.ts'
import { callable, type Check, type Checks, count, filled, optionsOf, within } from '../options.ts'
import { hintIn } from '../models/router.ts'
import { modelCheck } from '../sessions/agent.ts'
import type { ExtractHost, Extracting, ExtractOptions } from './extract.ts'
import { type Memory, RECALL, RECALL_MS, type RecallOptions } from './memory.ts'

/**
 * What memory has for a run, for the model to read before it: what the agent learned that is about the message, what stands in
 * MEMORY.md, and where the session stands once its conversation was cut. Loaded anew for each run, also for one that a wake begins.
 */
export function recallHook(memory: Recalling, options: RecallHookOptions = {}): Hook {
  checkRecall(options)
  return recallOf(memory, options, memory.store === undefined ? null : new Views(memory.store))
}

/** A memory of a host's own may only recall. */
type Recalling = Pick<Memory, 'recall'> & Partial<Pick<Memory, 'store' | 'within' | 'ownerOf'>>

function recallOf(memory: Recalling, options: RecallHookOptions, views: Views | null): Hook {
  const { onError = warn, file, budgetChars = BUDGET_CHARS, ...recall } = options
  const { timeoutMs = RECALL_MS } = recall
  const inTime = <T>(work: Promise<T>): Promise<T> => memory.within?.(timeoutMs, work) ?? work
  return alsoWhenWoken<Hook>({
    type: 'user_prompt_submit',
    run: async ({ session, agent, prompt }) => {
      const owner = inTime(Promise.resolve(memory.ownerOf?.(session) ?? null))
      const recalled = async () => memory.recall(agent, prompt, { ...recall, owner: await owner })
      const keptFor = async () => {
        const path = typeof file === 'function' ? file(await owner) : file
        return path === undefined ? '' : inTime(readKept(path))
      }
      const [learned, view, kept] = await Promise.allSettled([
        recalled(),
        views && inTime(views.of(session)),
        file === undefined ? '' : keptFor(),
      ])
      const [failed] = [learned, view, kept].filter((one) => one.status === 'rejected')
      if (failed) onError(failed.reason)
      const found = {
        prompt,
        learned: learned.status === 'fulfilled' ? learned.value : [],
        view: view.status === 'fulfilled' ? view.value : null,
        kept: kept.status === 'fulfilled' ? kept.value : '',
      }
      const context = backgroundOf(found, budgetChars)
      return context === '' ? undefined : { context }
    },
  })
}

export type RecallHookOptions = Omit<RecallOptions, 'owner'> & {
  /**
   * MEMORY.md, or what it is called: its entries are told too. Without it none are. One file is told to the sessions of all owners; a
   * function names a file for each.
   */
  readonly file?: string | ((owner: string | null) => string | undefined)
  /** Of all that a run is told, in characters. Default: 8,000. */
  readonly budgetChars?: number
  /** Told why something was not recalled. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
}

const BUDGET_CHARS = 8_000
const FILE_BYTES = 64 * 1024

/** Its first lines. What is no regular file is not read, so nothing hangs. */
async function readKept(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return null
    throw error
  })
  if (handle === null) return ''
  try {
    if (!(await handle.stat()).isFile()) throw new Error(`${file} is not a regular file.`)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FILE_BYTES), 0, FILE_BYTES, 0)
    const text = buffer.toString('utf8', 0, bytesRead)
    return bytesRead < FILE_BYTES ? text : text.slice(0, text.lastIndexOf('\n') + 1)
  } finally {
    await handle.close()
  }
}

const fileCheck: Check = (value, name, of) => (typeof value === 'function' ? null : filled(value, name, of))
const { owner: _owner, ...RECALL_OF_RUN } = RECALL
const RECALL_HOOK: Checks<RecallHookOptions> = {
  ...RECALL_OF_RUN,
  onError: callable,
  file: fileCheck,
  budgetChars: count(),
}
const checkRecall = optionsOf<RecallHookOptions>('recallHook', RECALL_HOOK)
const extractCheck = within<ExtractOptions>({ model: modelCheck, tokens: count(), calls: count(), runs: count(1) })
const checkHooks = optionsOf<MemoryHooksOptions>('memoryHooks', {
  ...RECALL_HOOK,
  dir: filled,
  extract: (value, name, of) => (typeof value === 'boolean' ? null : extractCheck(value, name, of)),
})

/** Takes in what a session taught, each time it rests. */
export function learnHook(memory: Pick<Memory, 'learn'>): Hook {
  return { type: 'session_rest', run: ({ session }) => memory.learn(session) }
}

/** Asks a model after a run what later sessions should know, each time enough has happened. Its code is loaded with the first run. */
function extractHook(extracting: Extracting): Hook {
  const { model } = extracting.extract
  // Sound: only a harness binds, and this is what it gives.
  return bindable<Hook>(
    { type: 'post_run', run: () => undefined },
    {
      check: (host) => {
        if (typeof model === 'string' && hintIn(model) === null) (host as ExtractHost).services.model(model)
      },
      make: async (host) => {
        const { Extractor } = await import('./extract.ts')
        return new Extractor(host as ExtractHost, extracting)
      },
    },
  )
}

/** All of it; the runtime files only with `dir`, and extraction only with `extract`. */
export function memoryHooks(memory: Memory, options: MemoryHooksOptions = {}): readonly Hook[] {
  checkHooks(options)
  const { dir, extract = false, ...recall } = options
  const views = new Views(memory.store)
  const folder = dir === undefined ? null : new Folder(memory.store, dir, views)
  const files = folder === null ? [] : [filesHook(folder)]
  const { onError = warn } = recall
  const written = async (session: string): Promise<void> => {
    await memory.learn(session)
    await folder?.write(session)
  }
  const extracting = { memory, extract: typeof extract === 'boolean' ? {} : extract, report: onError, written }
  const extracts = extract === false ? [] : [extractHook(extracting)]
  return [recallOf(memory, recall, views), learnHook(memory), ...files, ...extracts]
}

export type MemoryHooksOptions = RecallHookOptions & {
  /** Where the sessions' folders with their runtime files are. */
  readonly dir?: string
  /**
   * After enough new tokens, calls and runs of a session, a model is asked for what later sessions should know. It costs money. `true`:
   * after 4,000 tokens, 8 calls and 4 runs, by the session's own model.
   */
  readonly extract?: ExtractOptions | boolean
}

function warn(error: unknown): void {
  process.emitWarning(`memory: ${error instanceof Error ? error.message : String(error)}`, 'TerretWarning')
}
