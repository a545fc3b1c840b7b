// Memory for a harness, as hooks: recall when a run begins, learn and write the runtime files when a session rests. None of them
// fails a run, and none delays one for longer than it may.
import type { Hook } from '../riders/hooks/hooks.ts'
import { citedText } from './cite.ts'
import { runtimeFilesHook } from './files.ts'
import { callable, type Checks, filled, optionsOf } from '../options.ts'
import { type Memory, RECALL, type RecallOptions } from './memory.ts'

/** What the agent learned that is about the message, for the model to read before it, with citations. */
export function recallHook(memory: Pick<Memory, 'recall'>, options: RecallHookOptions = {}): Hook {
  checkRecall(options)
  const { onError = warn, ...recall } = options
  return {
    type: 'user_prompt_submit',
    run: async ({ agent, prompt }) => {
      try {
        const found = await memory.recall(agent, prompt, recall)
        return found.length > 0 ? { context: citedText(found) } : undefined
      } catch (error) {
        onError(error)
        return undefined
      }
    },
  }
}

export type RecallHookOptions = RecallOptions & {
  /** Told why nothing was recalled. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
}

const RECALL_HOOK: Checks<RecallHookOptions> = { ...RECALL, onError: callable }
const checkRecall = optionsOf<RecallHookOptions>('recallHook', RECALL_HOOK)
const checkHooks = optionsOf<MemoryHooksOptions>('memoryHooks', { ...RECALL_HOOK, dir: filled })

/** Takes in what a session taught, each time it rests. */
export function learnHook(memory: Pick<Memory, 'learn'>): Hook {
  return { type: 'session_rest', run: ({ session }) => memory.learn(session) }
}

/** All of it; the runtime files only with `dir`. */
export function memoryHooks(memory: Memory, options: MemoryHooksOptions = {}): readonly Hook[] {
  checkHooks(options)
  const { dir, ...recall } = options
  const files = dir === undefined ? [] : [runtimeFilesHook({ store: memory.store, dir })]
  return [recallHook(memory, recall), learnHook(memory), ...files]
}

/** `dir` is where the sessions' folders with their runtime files are. */
export type MemoryHooksOptions = RecallHookOptions & { readonly dir?: string }

function warn(error: unknown): void {
  process.emitWarning(`recall: ${error instanceof Error ? error.message : String(error)}`, 'TerretWarning')
}
