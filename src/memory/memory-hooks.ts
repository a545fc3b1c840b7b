// Memory for a harness, as hooks: recall when a run begins, learn and write the runtime files when a session rests. No
// hook fails a run, or delays it beyond its time limit.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { Fault } from '../kernel/failure.ts'
import type { Hook } from '../runtime/state/hook-events.ts'
import { alsoWhenWoken } from '../runtime/hooks/woken-hooks.ts'
import { isGraderAgent } from '../view/pursuits.ts'
import { backgroundOf } from './background.ts'
import { filesHook, RuntimeFilesFolder, SessionViews } from './runtime-files.ts'
import {
  functionCheck,
  type Check,
  type Checks,
  countCheck,
  flagCheck,
  nonEmptyCheck,
  optionsChecker,
} from '../options.ts'
import { type Memory, RECALL, RECALL_MS, type RecallOptions } from './memory.ts'

/**
 * Adds the background from memory before a run: learnings of the agent about the message, entries of MEMORY.md, and the
 * state of a session whose conversation was cut. It is loaded anew for each run, also for one that a wake begins.
 */
export function recallHook(memory: RecallMemory, options: RecallHookOptions = {}): Hook {
  checkRecall(options)
  return makeRecallHook(memory, options, memory.store === undefined ? null : new SessionViews(memory.store))
}

/** A host's own memory may offer `recall` alone. */
type RecallMemory = Pick<Memory, 'recall'> & Partial<Pick<Memory, 'store' | 'within' | 'ownerOf' | 'recallEpisodes'>>

function makeRecallHook(memory: RecallMemory, options: RecallHookOptions, views: SessionViews | null): Hook {
  const { onError = warn, file, budgetChars = BUDGET_CHARS, episodes = false, ...recall } = options
  const { timeoutMs = RECALL_MS, minScore } = recall
  const near = minScore === undefined ? {} : { minScore }
  if (episodes && memory.recallEpisodes === undefined)
    throw new Fault(
      'invalid_input',
      'This memory has no episodes. Give one with recallEpisodes, or leave out `episodes`.',
    )
  const inTime = <T>(work: Promise<T>): Promise<T> => memory.within?.(timeoutMs, work) ?? work
  return alsoWhenWoken<Hook>({
    type: 'user_prompt_submit',
    run: async ({ session, agent, prompt }) => {
      // A grader judges by the rubric, and knows nothing else.
      if (isGraderAgent(agent)) return undefined
      const owner = inTime(Promise.resolve(memory.ownerOf?.(session) ?? null))
      const recalled = async () => memory.recall(agent, prompt, { ...recall, owner: await owner })
      const keptFor = async () => {
        const path = typeof file === 'function' ? file(await owner) : file
        return path === undefined ? '' : inTime(readMemoryFile(path))
      }
      const ofRuns = async () => {
        const asked = { timeoutMs, ...near, owner: await owner, except: session }
        return memory.recallEpisodes?.(agent, prompt, asked) ?? []
      }
      const [learned, view, kept, runs] = await Promise.allSettled([
        recalled(),
        views && inTime(views.of(session)),
        file === undefined ? '' : keptFor(),
        episodes ? ofRuns() : [],
      ])
      const [failed] = [learned, view, kept, runs].filter((one) => one.status === 'rejected')
      if (failed) onError(failed.reason)
      const found = {
        prompt,
        learned: learned.status === 'fulfilled' ? learned.value : [],
        view: view.status === 'fulfilled' ? view.value : null,
        kept: kept.status === 'fulfilled' ? kept.value : '',
        episodes: runs.status === 'fulfilled' ? runs.value : [],
      }
      const context = backgroundOf(found, budgetChars)
      return context === '' ? undefined : { context }
    },
  })
}

/** Options of `recallHook`: how much a run is told of what was learned. */
export type RecallHookOptions = Omit<RecallOptions, 'owner'> & {
  /**
   * The path of MEMORY.md, whose entries are told too. Without it none are. A single file is told to the sessions of
   * all owners; a function names a file for each owner.
   */
  readonly file?: string | ((owner: string | null) => string | undefined)
  /**
   * Earlier runs of the same owner that were about the message are told too: at most 3, in 1,500 characters.
   * `memoryPlugin` with this option also writes them. Default: false.
   */
  readonly episodes?: boolean
  /** The limit for the whole background of a run, in characters. Default: 8,000. */
  readonly budgetChars?: number
  /** Called with the error when something was not recalled. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
}

const BUDGET_CHARS = 8_000
const FILE_BYTES = 64 * 1024

/** The first lines of the file. Only a regular file is read, so nothing hangs. */
async function readMemoryFile(file: string): Promise<string> {
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

const fileCheck: Check = (value, name, of) => (typeof value === 'function' ? null : nonEmptyCheck(value, name, of))
const { owner: _owner, ...RECALL_OF_RUN } = RECALL
const RECALL_HOOK: Checks<RecallHookOptions> = {
  ...RECALL_OF_RUN,
  onError: functionCheck,
  file: fileCheck,
  budgetChars: countCheck(),
  episodes: flagCheck,
}
const checkRecall = optionsChecker<RecallHookOptions>('recallHook', RECALL_HOOK)
const checkHooks = optionsChecker<MemoryHooksOptions>(
  'memoryHooks',
  {
    ...RECALL_HOOK,
    dir: nonEmptyCheck,
  },
  { extract: 'Write plugins: [memoryPlugin(memory, { extract })].' },
)

/** Takes in the learnings of a session each time it rests. */
export function learnHook(memory: Pick<Memory, 'learn'>): Hook {
  return { type: 'session_rest', run: ({ session }) => memory.learn(session) }
}

/** All memory hooks; the runtime files only with `dir`. */
export function memoryHooks(memory: Memory, options: MemoryHooksOptions = {}): readonly Hook[] {
  checkHooks(options)
  const { dir, ...recall } = options
  const views = new SessionViews(memory.store)
  const files = dir === undefined ? [] : [filesHook(new RuntimeFilesFolder(memory.store, dir, views))]
  return [makeRecallHook(memory, recall, views), learnHook(memory), ...files]
}

/** Options of `memoryHooks`: what a run is told, how much of it, and what is kept afterwards. */
export type MemoryHooksOptions = RecallHookOptions & {
  /** The folder for the sessions' folders of runtime files. */
  readonly dir?: string
}

function warn(error: unknown): void {
  process.emitWarning(`memory: ${error instanceof Error ? error.message : String(error)}`, 'TerretWarning')
}
